import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { ObjectTooLargeError } from '../../../shared/blobs/objectStore.ts'
import { createBlobs } from '../../../sql/blobs/blobs.ts'
import { moveBlobs, type Progress } from '../../../sql/blobs/moveBlobs.ts'
import { findRaw } from '../../../sql/mail/messages/attachments.ts'
import { readBacklog } from '../../../sql/operations/statistics.ts'
import { changingBefore } from '../../support/database/beforeStatement.ts'
import { type Bucket, startBucket } from '../../support/database/bucket.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database/database.ts'
import { rawMail, receive } from '../../support/mail/mailRows.ts'
import { startProcess } from '../../support/process/process.ts'
import { newProject } from '../../support/till/tillRows.ts'
import '../../support/long.ts'

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

/** Returns a mail of 150 KB with an attachment of 90 KB. Each value of `n` gives a different mail. */
function largeMail(n: number): string {
  const content = createHash('sha512').update(`${n}`).digest('hex').repeat(700)
  const encoded = Buffer.from(content).toString('base64').replace(/.{76}/g, '$&\r\n')
  return rawMail({
    id: `${n}@example.com`,
    headers: [
      'MIME-Version: 1.0',
      'Content-Type: application/octet-stream; name=a.bin',
      'Content-Disposition: attachment; filename=a.bin',
      'Content-Transfer-Encoding: base64',
      '',
    ].join('\r\n'),
    text: encoded,
  })
}

async function move(to: string, env: object = bucket.env) {
  await using running = startProcess(
    'sql/blobs/moveMain.ts',
    { DATABASE_URL: database.url, ...env } as Record<string, string>,
    [to],
  )
  const code = await running.exited
  return { code, output: running.stdout() + running.stderr() }
}

const contents = async () => {
  const { rows } = await database.pool.query(
    `select sum(octet_length(bytes))::int as bytes, count(blob)::int as objects from (
       select bytes, blob from raw_mails union all select bytes, blob from message_attachments) c`,
  )
  return rows[0] as { bytes: number; objects: number }
}

test('large mail contents can move to the object store and back without any changed byte, and small contents stay in the database', async () => {
  const { pool } = database
  const projectId = await newProject(pool)
  const mails = Array.from({ length: 6 }, (_, n) => largeMail(n))
  for (const mail of mails) await receive(pool, projectId, mail)
  const small = rawMail()
  const { messageId: smallId } = await receive(pool, projectId, small)
  const blobs = createBlobs(pool, bucket.store)
  const same = async () => {
    for (const [n, mail] of mails.entries()) {
      const raw = await findRaw(pool, blobs, projectId, `<${n}@example.com>`)
      expect(raw?.toString('latin1') === mail).toBe(true)
    }
    expect((await findRaw(pool, blobs, projectId, smallId))?.toString()).toBe(small)
  }
  const before = await contents()
  expect(before.objects).toBe(0)

  const there = await move('store')
  expect([there.code, there.output]).toEqual([
    0,
    expect.stringContaining('12 contents moved to the object store'),
  ])
  expect(there.output).toMatch(/100 % {2}12 moved/)
  expect((await contents()).objects).toBe(12)
  expect((await contents()).bytes).toBeLessThan(1_000)
  await same()
  expect((await move('store')).output).toContain('0 contents moved')

  const back = await move('database')
  expect([back.code, back.output]).toEqual([
    0,
    expect.stringContaining('12 contents moved to the database'),
  ])
  expect(await contents()).toEqual(before)
  await same()
})

test('a move of contents back to the database also removes the objects that no row has named for an hour', async () => {
  await using other = await startBucket()
  await using own = await createTestDatabase()
  const { pool } = own
  const projectId = await newProject(pool)
  await receive(pool, projectId, largeMail(1))
  await moveBlobs(pool, other.store, 'store', () => {})
  expect(other.names()).toHaveLength(2)
  const env = { ...other.env, DATABASE_URL: own.url }
  const first = await move('database', env)
  expect([first.code, first.output]).toEqual([
    0,
    expect.stringContaining('2 objects are still in the object store; run this again in an hour'),
  ])
  await pool.query(`update blobs set idle_since = idle_since - interval '2 hours'`)
  const second = await move('database', env)
  expect([second.code, second.output]).toEqual([
    0,
    expect.stringContaining('the object store has no object of this service'),
  ])
  expect(other.names()).toEqual([])
  const { blobsWaiting, blobsOldestDueS } = await readBacklog(pool)
  expect([blobsWaiting, blobsOldestDueS]).toEqual([0, 0])
})

test('if the object store becomes unreachable while mail contents are moved, the next run of the command continues the work', async () => {
  const { pool } = database
  await bucket.proxy.cut()
  const away = await move('store')
  expect([away.code, away.output]).toEqual([1, expect.stringContaining('run this again')])
  expect((await contents()).objects).toBe(0)
  await bucket.proxy.mend()
  expect((await move('store')).code).toBe(0)
  expect((await contents()).objects).toBe(12)
  await moveBlobs(pool, bucket.store, 'database', () => {})
})

test('if one object is lost from the object store, all other stored mail contents still move back to the database', async () => {
  const { pool } = database
  await moveBlobs(pool, bucket.store, 'store', () => {})
  const { rows } = await pool.query<{ name: string }>(
    `select encode(blob, 'hex') as name from raw_mails where blob is not null order by id limit 1`,
  )
  const { name } = rows[0]!
  const object = await bucket.store.get(name, 1024 * 1024)
  await bucket.store.remove(name)
  const back = await move('database')
  expect([back.code, back.output]).toEqual([
    1,
    expect.stringContaining('11 contents moved to the database'),
  ])
  expect(back.output).toContain('1 content is missing or damaged in the object store')
  expect((await contents()).objects).toBe(1)
  await bucket.store.put(name, object!)
  expect(await moveBlobs(pool, bucket.store, 'database', () => {})).toBe(1)
})

test('if the object store refuses one mail content because of its size, the other contents still move', async () => {
  const { pool } = database
  const before = await contents()
  let isFirst = true
  const limited: typeof bucket.store = {
    ...bucket.store,
    async put(name, bytes) {
      const refuses = isFirst
      isFirst = false
      if (refuses) throw new ObjectTooLargeError('413')
      await bucket.store.put(name, bytes)
    },
  }
  const seen: Progress[] = []
  expect(await moveBlobs(pool, limited, 'store', (now) => seen.push(now))).toBe(11)
  expect(seen.at(-1)).toEqual({ moved: 11, lost: 0, tooLarge: 1, seen: 1 })
  expect((await contents()).objects).toBe(11)
  await moveBlobs(pool, bucket.store, 'database', () => {})
  expect(await contents()).toEqual(before)
})

test('if a stored mail content changes while it moves to the object store, the service keeps the change', async () => {
  const { pool } = database
  let puts = 0
  const changed = () => Buffer.alloc(80_000, `changed ${puts} `)
  const racing: typeof bucket.store = {
    ...bucket.store,
    async put(name, bytes) {
      await bucket.store.put(name, bytes)
      puts++
      await pool.query('update raw_mails set bytes = $1 where octet_length(bytes) > 65536', [
        changed(),
      ])
    },
  }
  await moveBlobs(pool, racing, 'store', () => {})
  const { rows } = await pool.query(
    `select count(*)::int as n from raw_mails where blob is null and convert_from(bytes, 'UTF8') like 'changed %'`,
  )
  expect(rows[0].n).toBe(6)
})

test('if a content is deleted while contents move to the object store, it is left out, and the other contents move', async () => {
  await using own = await createTestDatabase()
  const { pool } = own
  const projectId = await newProject(pool)
  for (const n of [1, 2]) await receive(pool, projectId, largeMail(n))
  const remove = () => pool.query('delete from message_attachments')
  await changingBefore('select bytes, blob from message_attachments', remove, () =>
    moveBlobs(pool, bucket.store, 'store', () => {}),
  )
  const { rows } = await pool.query(
    'select count(blob)::int as moved, count(*)::int as whole from raw_mails',
  )
  expect(rows).toEqual([{ moved: 2, whole: 2 }])
})

test.each([
  [['neither'], {}, 'usage: bun run blobs:move store|database'],
  [['store'], { BLOB_STORE: '' }, 'BLOB_STORE: must be set'],
  [['store'], { S3_SECRET_ACCESS_KEY: '' }, 'S3_SECRET_ACCESS_KEY: it is missing'],
  [['store'], { BLOB_STORE: 'https://bucket' }, 'BLOB_STORE: its value must be s3://bucket'],
])(
  'the command that moves contents to %p with the settings %p prints how to use it, or names the wrong setting',
  async ([to], env, message) => {
    const { code, output } = await move(to!, { ...bucket.env, ...env })
    expect([code, output]).toEqual([78, expect.stringContaining(message)])
  },
)
