import pino from 'pino'
import {
  BlobsAwayError,
  type ObjectStore,
  openObjectStore,
} from '../../shared/blobs/objectStore.ts'
import { ConfigError, parseConfig } from '../../shared/config/config.ts'
import { BLOB_SECRET } from '../../shared/config/secrets.ts'
import { isDatabaseUnavailable } from '../../shared/process/databaseAway.ts'
import { progressBar } from '../../shared/progressBar.ts'
import { onDatabase } from '../command.ts'
import type { Pool } from '../db.ts'
import { type Direction, moveBlobs } from './moveBlobs.ts'
import { buryIdleBlobs, countObjects, removeAllDeadBlobs } from './sweepBlobs.ts'

const DIRECTIONS: readonly Direction[] = ['store', 'database']
const BAR_STEPS = 1_000

/** Runs the command `bun run blobs:move store|database`, which moves large contents of mail while the service runs. */
async function move(direction: string | undefined): Promise<void> {
  const to = DIRECTIONS.find((one) => one === direction)
  if (to === undefined) throw new ConfigError('usage: bun run blobs:move store|database')
  const config = parseConfig(process.env, [BLOB_SECRET])
  if (config.blobStore === null) {
    throw new ConfigError('BLOB_STORE: must be set; it names the bucket to move to or from')
  }
  const store = openObjectStore(config.blobStore, fetch, pino({ level: 'silent' }))
  await onDatabase(config, { name: 'purser blobs:move', size: 4 }, async (pool) => {
    let moved = 0
    let lost = 0
    let tooLarge = 0
    const show = progressBar(
      BAR_STEPS,
      process.stderr.isTTY === true,
      (text) => process.stderr.write(text),
      () => `${moved} moved`,
    )
    const count = await moveBlobs(pool, store, to, (now) => {
      ;({ moved, lost, tooLarge } = now)
      show(Math.floor(now.seen * BAR_STEPS))
    })
    const place = to === 'store' ? 'the object store' : 'the database'
    process.stdout.write(`${count} contents moved to ${place}\n`)
    if (tooLarge > 0) {
      const stay = tooLarge === 1 ? 'content stays' : 'contents stay'
      process.stdout.write(
        `${tooLarge} ${stay} in the database, because the object store refuses objects of this size\n`,
      )
    }
    if (to === 'database') await emptyStore(pool, store)
    if (lost === 0) return
    const are = lost === 1 ? 'content is' : 'contents are'
    process.stderr.write(
      `${lost} ${are} missing or damaged in the object store; restore the objects, and run this again\n`,
    )
    process.exitCode = 1
  })
}

/**
 * Removes the objects that no database row has named for an hour. After BLOB_STORE is taken away, no worker process
 * removes them.
 */
async function emptyStore(pool: Pool, store: ObjectStore): Promise<void> {
  while ((await buryIdleBlobs(pool)) > 0);
  await removeAllDeadBlobs(pool, store)
  const left = await countObjects(pool)
  const are = left === 1 ? 'object is' : 'objects are'
  process.stdout.write(
    left === 0
      ? 'the object store has no object of this service\n'
      : `${left} ${are} still in the object store; run this again in an hour\n`,
  )
}

try {
  await move(process.argv[2])
} catch (error) {
  const reason =
    error instanceof ConfigError
      ? error.message
      : error instanceof BlobsAwayError
        ? `${error.message}; run this again`
        : isDatabaseUnavailable(error)
          ? 'the database is away; run this again'
          : `the move failed: ${String(error)}`
  process.stderr.write(`${reason}\n`)
  process.exitCode = error instanceof ConfigError ? 78 : 1
}
