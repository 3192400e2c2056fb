import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { BlobsAwayError } from '../../../shared/blobs/objectStore.ts'
import { createBlobs } from '../../../sql/blobs/blobs.ts'
import {
  buryIdleBlobs,
  removeAllDeadBlobs,
  removeDeadBlobs,
} from '../../../sql/blobs/sweepBlobs.ts'
import { type Bucket, startBucket } from '../../support/database/bucket.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database/database.ts'
import { whileLocked } from '../../support/database/whileLocked.ts'
import { waitFor } from '../../support/waitFor.ts'

let bucket: Bucket
let database: TestDatabase
beforeAll(async () => {
  bucket = await startBucket()
  database = await createTestDatabase()
})
afterAll(async () => {
  await bucket[Symbol.asyncDispose]()
  await database[Symbol.asyncDispose]()
})
beforeEach(async () => {
  await database.pool.query('delete from raw_mails')
  await age()
  await sweep()
  expect(bucket.names()).toEqual([])
})

const keep = async () =>
  (await createBlobs(database.pool, bucket.store).keep(Buffer.alloc(70_000, 'x')))!
const name = (blob: Buffer, db: Pick<TestDatabase['pool'], 'query'> = database.pool) =>
  db.query(
    `insert into raw_mails (source_key, bytes, blob) values (gen_random_uuid(), '', $1) returning id`,
    [blob],
  )
/** Makes every object that no database row names two hours older. */
const age = () =>
  database.pool.query(
    `update blobs set idle_since = idle_since - interval '2 hours' where idle_since is not null`,
  )
async function sweep() {
  while ((await buryIdleBlobs(database.pool)) > 0);
  await removeAllDeadBlobs(database.pool, bucket.store)
}
const rowsOf = async (table: 'blobs' | 'dead_blobs') =>
  (await database.pool.query(`select hash from ${table}`)).rows.length

describe('the cleanup of the object store removes only objects that no database row names', () => {
  test('unused objects in the store are removed after an hour, and objects that a database row names are kept', async () => {
    const [named] = [await keep(), await keep()]
    await name(named)
    await sweep()
    expect(bucket.names()).toHaveLength(2)
    await age()
    await sweep()
    expect(bucket.names()).toEqual([`purser/${named.toString('hex')}`])
    expect([await rowsOf('blobs'), await rowsOf('dead_blobs')]).toEqual([1, 0])
  })

  test.each([
    ['is deleted', 'delete from raw_mails where id = $1'],
    ['no longer names the object', 'update raw_mails set blob = null where id = $1'],
  ])('an object in the store is removed an hour after its database row %s', async (_what, sql) => {
    const { rows } = await name(await keep())
    await database.pool.query(sql, [rows[0].id])
    await sweep()
    expect(bucket.names()).toHaveLength(1)
    await age()
    await sweep()
    expect(bucket.names()).toEqual([])
  })

  test('an object in the store is kept as long as another database row still names it', async () => {
    const blob = await keep()
    const { rows } = await name(blob)
    await name(blob)
    await database.pool.query('delete from raw_mails where id = $1', [rows[0].id])
    await age()
    await sweep()
    expect(bucket.names()).toHaveLength(1)
    expect(await rowsOf('blobs')).toBe(1)
  })

  test('if an object’s database row is stored while the cleanup runs, the object is kept', async () => {
    const blob = await keep()
    await age()
    const client = await database.pool.connect()
    await client.query('begin')
    await name(blob, client)
    await sweep()
    await client.query('commit')
    client.release()
    await sweep()
    expect(bucket.names()).toHaveLength(1)
  })

  test('after the cleanup has marked an object for removal, no database row can name the object', async () => {
    const blob = await keep()
    await age()
    await buryIdleBlobs(database.pool)
    const error = await name(blob).catch((reason: Error) => reason)
    expect(String(error)).toMatch(/foreign key/)
  })

  test('the cleanup of the object store removes no object while a transaction can still see the message to which the object belongs', async () => {
    const { rows } = await name(await keep())
    const reader = await database.pool.connect()
    await reader.query('begin isolation level repeatable read read only')
    await reader.query('select 1')
    await database.pool.query('delete from raw_mails where id = $1', [rows[0].id])
    expect(await buryIdleBlobs(database.pool, 0)).toBe(0)
    expect(bucket.names()).toHaveLength(1)
    await reader.query('commit')
    reader.release()
    // PostgreSQL’s own autovacuum may also hold a database snapshot for a moment, so the test tries again.
    await waitFor('the removal', async () => (await buryIdleBlobs(database.pool, 0)) === 1)
    await sweep()
    expect(bucket.names()).toEqual([])
  })

  test('an object whose row another cleanup has locked does not delay the removal of the other objects', async () => {
    for (let n = 0; n < 2; n++) await keep()
    await age()
    await buryIdleBlobs(database.pool)
    const text = 'select from dead_blobs order by hash limit 1 for update'
    const remove = () => removeDeadBlobs(database.pool, bucket.store, null)
    const ended = await whileLocked(database.pool, { text, values: [] }, remove)
    expect(ended).toMatchObject({ removed: 1 })
    expect(await remove()).toMatchObject({ removed: 1 })
  })

  test('if the object store was unreachable during a cleanup, the next cleanup removes the remaining objects', async () => {
    for (let n = 0; n < 12; n++) await keep()
    await age()
    await buryIdleBlobs(database.pool)
    await bucket.proxy.cut()
    // The object store is unreachable, so the cleanup removes nothing, and the table `dead_blobs` keeps the rows of the
    // remaining objects.
    expect(await removeDeadBlobs(database.pool, bucket.store, null)).toMatchObject({ removed: 0 })
    expect(await rowsOf('dead_blobs')).toBe(12)
    await bucket.proxy.mend()
    await waitFor('the store', () =>
      bucket.store.get('x', 1).then(
        () => true,
        (error) => {
          if (error instanceof BlobsAwayError) return false
          throw error
        },
      ),
    )
    await sweep()
    expect(bucket.names()).toEqual([])
  })

  test('objects that the store refuses to remove do not delay the cleanup of other objects', async () => {
    const older = Array.from({ length: 450 }, () => randomBytes(32))
    await database.pool.query(
      `insert into dead_blobs (hash, died_at) select hash, now() - interval '1 day' from unnest($1::bytea[]) hash`,
      [older],
    )
    for (let n = 0; n < 3; n++) await keep()
    await age()
    await buryIdleBlobs(database.pool)
    const refused = new Set(older.map((hash) => hash.toString('hex')))
    const store = {
      ...bucket.store,
      remove: async (key: string) => {
        if (refused.has(key)) throw new Error('403 AccessDenied')
        await bucket.store.remove(key)
      },
    }
    expect(await removeAllDeadBlobs(database.pool, store).catch(String)).toBe(
      'Error: 403 AccessDenied',
    )
    expect([bucket.names(), await rowsOf('dead_blobs')]).toEqual([[], older.length])
    await sweep()
    expect(await rowsOf('dead_blobs')).toBe(0)
  })

  test('if two processes run the cleanup of the object store at once, each unused object is removed once', async () => {
    for (let n = 0; n < 10; n++) await keep()
    await age()
    const buried = await Promise.all([buryIdleBlobs(database.pool), buryIdleBlobs(database.pool)])
    expect(buried[0]! + buried[1]!).toBe(10)
    const removed = await Promise.all(
      [1, 2].map(() => removeDeadBlobs(database.pool, bucket.store, null)),
    )
    expect(removed[0]!.removed + removed[1]!.removed).toBe(10)
    expect(bucket.names()).toEqual([])
  })
})
