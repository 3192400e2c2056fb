import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { chmod, copyFile, mkdir, readdir, rename, rm, stat } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { type Config, ConfigError, parseConfig } from '../../shared/config/config.ts'
import { databaseUrl } from '../../sql/databaseUrl.ts'
import { createPool } from '../../sql/db.ts'
import { runningEmbeddedUrl } from '../../sql/embedded/embeddedPostgres.ts'
import { recordBackup } from '../../sql/operations/backups.ts'
import { backUpCluster } from '../../sql/operations/clusterBackup.ts'
import { Spool } from '../smtp/spool/spool.ts'

const DATABASE = 'the database'

/**
 * Names the files of DATA_DIR that the embedded database and the devnet need to find their data. None of these files
 * holds a key of the service.
 */
const COMPANIONS = ['postgres-password', 'devnet.state']

/**
 * `bun run backup FOLDER` copies DATA_DIR into a new folder while the service runs. Another installation can use this
 * folder as its DATA_DIR. The backup holds no keys, so the operator must keep the keys separately.
 */
async function backUp(): Promise<void> {
  const config = parseConfig(process.env, [])
  const target = readTarget(process.argv[2])
  // The name of the unfinished folder is random, because two backups that run at the same time, even on two machines,
  // must not write to the same folder.
  const draft = `${target}.${randomUUID()}.partial`
  await mkdir(dirname(target), { recursive: true })
  await deleteAbandoned(target)
  await mkdir(draft, { mode: 0o700 })
  try {
    const parts = await copyParts(config, draft)
    // A backup folder whose name does not end in `.partial` is complete.
    await rename(draft, target).catch((error: unknown) => {
      throw existsSync(target) ? exists(target) : error
    })
    process.stdout.write(`${target} holds ${parts.join(' and ')}\n`)
    if (parts.includes(DATABASE)) await noteBackup(databaseUrl(config))
  } catch (error) {
    await rm(draft, { recursive: true, force: true })
    throw error
  }
}

/** Sets the age in milliseconds at which an incomplete backup counts as abandoned. */
const ABANDONED_MS = 24 * 60 * 60_000

/** Deletes the abandoned incomplete backups of the same name. */
async function deleteAbandoned(target: string): Promise<void> {
  const folder = dirname(target)
  const name = RegExp.escape(basename(target))
  const draft = new RegExp(`^${name}(?:\\.[0-9a-f-]{36})?\\.partial$`)
  for (const found of await readdir(folder)) {
    if (!draft.test(found)) continue
    const path = join(folder, found)
    if (Date.now() - (await stat(path)).mtimeMs < ABANDONED_MS) continue
    await rm(path, { recursive: true, force: true })
  }
}

function readTarget(argument: string | undefined): string {
  if (argument === undefined || argument.startsWith('-')) {
    throw new ConfigError('usage: bun run backup FOLDER')
  }
  const target = resolve(argument)
  if (existsSync(target)) throw exists(target)
  return target
}

const exists = (target: string) => new ConfigError(`${target} exists; name a new folder`)

/**
 * Copies the parts of DATA_DIR, beginning with the spool (the file of accepted mail). A mail may leave the spool during
 * the backup. It is then in the copied database, or in both the copied spool and the copied database. In the latter
 * case, the restored service stores the mail only once.
 */
async function copyParts(config: Config, draft: string): Promise<string[]> {
  const { dataDir } = config
  const parts: string[] = []
  if (existsSync(join(dataDir, 'spool.sqlite'))) {
    const spool = new Spool(dataDir)
    try {
      spool.copyTo(draft)
    } finally {
      await spool.close()
    }
    parts.push('the spool')
  }
  if (config.databaseUrl === undefined) {
    const url = runningEmbeddedUrl(dataDir)
    if (url === null) {
      throw new ConfigError(
        'no embedded database runs on DATA_DIR; start the service, or copy DATA_DIR while it is stopped',
      )
    }
    await backUpCluster({
      url,
      cluster: join(dataDir, 'postgres'),
      target: join(draft, 'postgres'),
    })
    parts.push(DATABASE)
    for (const name of COMPANIONS) {
      if (!existsSync(join(dataDir, name))) continue
      await copyFile(join(dataDir, name), join(draft, name))
      await chmod(join(draft, name), 0o600)
    }
  }
  if (parts.length === 0) {
    throw new ConfigError('DATA_DIR holds no spool, and the database of DATABASE_URL is not in it')
  }
  return parts
}

/**
 * Records the time of the backup, because the command `bun run doctor` reports the backup's age. If this fails, the
 * backup is still usable.
 */
async function noteBackup(url: string): Promise<void> {
  const pool = createPool({ url, size: 1, name: 'purser backup' })
  try {
    await recordBackup(pool)
  } catch (error) {
    process.stderr.write(`the backup was not recorded: ${String(error)}\n`)
  } finally {
    await pool.end()
  }
}

try {
  await backUp()
} catch (error) {
  const expected = error instanceof ConfigError
  process.stderr.write(`${expected ? error.message : `backup failed: ${String(error)}`}\n`)
  process.exitCode = expected ? 78 : 1
}
