/** Tests which attachment a run of the reading job reads next, and when a project may read its next attachment. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { randomUUID } from 'node:crypto'
import {
  findNextSender,
  findSearched,
  findTextPage,
  giveBackTexts,
  nextTextAt,
  requeueLostReadings,
  takePendingTexts,
} from '../../../../sql/mail/messages/pendingTexts.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import { messageOf, newSent, receive } from '../../../support/mail/mailRows.ts'
import { dropJobs, failJobs, newProject } from '../../../support/till/tillRows.ts'

const UNLIMITED = { bytes: null, cpuSeconds: null }
const MINUTE_MS = 60_000
const WAITING = ['scheduled', 'held', 'cancelled', 'rejected', 'expired']

let database: TestDatabase
let pool: TestDatabase['pool']
beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
})
afterAll(() => database[Symbol.asyncDispose]())

type TextColumns = { state?: string; claimed_at?: Date; content?: string; chars?: number }

/** Stores a sent message with an attachment that no job has read yet. */
async function waiting(
  projectId: string,
  status: string | null = 'queued',
  columns: TextColumns = {},
): Promise<string> {
  const { row } = await newSent(pool, { projectId })
  await pool.query('update messages set delivery_status = $2 where row = $1', [row, status])
  await addText(row, projectId, columns)
  return row
}

async function addText(
  row: string,
  projectId: string,
  columns: TextColumns & { id?: string } = {},
): Promise<void> {
  const { id = 'att_1', ...changes } = columns
  const given = { message_row: row, attachment_id: id, project_id: projectId, ...changes }
  const names = Object.keys(given)
  await pool.query(
    `insert into attachment_texts (${names}) values (${names.map((_, n) => `$${n + 1}`)})`,
    Object.values(given),
  )
}

const take = async (projectId: string, claim: string = randomUUID()) =>
  (await takePendingTexts(pool, projectId, { claim, limit: 1 }))[0] ?? null
const ago = (ms: number) => new Date(Date.now() - ms)

describe('each run of the job that reads attachments takes one attachment that no other run is reading', () => {
  test('a job run takes the oldest waiting attachment of its project that no other run is reading', async () => {
    const [projectId, other] = [await newProject(pool), await newProject(pool)]
    await waiting(other)
    await waiting(projectId, 'sent', { state: 'ready' })
    const [first, second] = [await waiting(projectId), await waiting(projectId, null)]
    const taken = [await take(projectId), await take(projectId), await take(projectId)]
    expect(taken.map((one) => one?.messageRow)).toEqual([first, second, undefined])
    expect(taken[0]).toMatchObject({ attachmentId: 'att_1', tries: 1, filename: '' })
  })

  test('before a job run takes an attachment, it learns who sent the attachment', async () => {
    const projectId = await newProject(pool)
    const received = async (remoteIp: string) => {
      const { messageId } = await receive(pool, projectId, undefined, { remoteIp })
      await addText((await messageOf(pool, projectId, messageId))!.row, projectId)
    }
    expect((await findNextSender(pool, projectId)).remoteIp).toBeNull()
    await waiting(projectId, 'scheduled')
    await received('192.0.2.1')
    await received('192.0.2.2')
    await waiting(projectId)
    await received('192.0.2.3')
    for (const sender of ['192.0.2.1', '192.0.2.2', null, '192.0.2.3', null]) {
      expect((await findNextSender(pool, projectId)).remoteIp).toBe(sender)
      await take(projectId)
    }
  })

  test.each(WAITING)('a job run takes no attachment of a mail that is %s', async (status) => {
    const projectId = await newProject(pool)
    await waiting(projectId, status)
    expect(await take(projectId)).toBeNull()
  })

  test('if a job run asks twice for an attachment, it gets the same attachment again, even if an older attachment is waiting', async () => {
    const projectId = await newProject(pool)
    const older = await waiting(projectId, 'held')
    const row = await waiting(projectId)
    const claim = randomUUID()
    expect(await take(projectId, claim)).toMatchObject({ messageRow: row, tries: 1 })
    await pool.query(`update messages set delivery_status = 'queued' where row = $1`, [older])
    expect(await take(projectId, claim)).toMatchObject({ messageRow: row, tries: 2 })
    expect(await take(projectId)).toMatchObject({ messageRow: older, tries: 1 })
  })

  test('two minutes after a job run took an attachment, another job run may take it', async () => {
    const [early, late] = [await newProject(pool), await newProject(pool)]
    await waiting(early, 'queued', { claimed_at: ago(1.9 * MINUTE_MS) })
    const row = await waiting(late, 'queued', { claimed_at: ago(2.1 * MINUTE_MS) })
    expect([await take(early), (await take(late))?.messageRow]).toEqual([null, row])
  })

  test('a job run skips an attachment that another transaction has locked', async () => {
    const projectId = await newProject(pool)
    const row = await waiting(projectId)
    const holder = await pool.connect()
    try {
      await holder.query('begin')
      await holder.query('select from attachment_texts where message_row = $1 for update', [row])
      expect(await take(projectId)).toBeNull()
    } finally {
      await holder.query('rollback')
      holder.release()
    }
  })
})

describe('a job run takes several small attachments of one message together', () => {
  const SMALL = 4096
  /** Stores a sent message with attachments of the given sizes, which no job has read yet. */
  async function withFiles(projectId: string, sizes: readonly number[]): Promise<string> {
    const { row } = await newSent(pool, { projectId })
    for (const [n, size] of sizes.entries()) {
      await addText(row, projectId, { id: `att_${n + 1}` })
      await pool.query(
        'insert into message_attachments (message_row, attachment_id, bytes) values ($1, $2, $3)',
        [row, `att_${n + 1}`, Buffer.alloc(size)],
      )
    }
    return row
  }
  const takeMany = (projectId: string, limit: number, claim: string = randomUUID()) =>
    takePendingTexts(pool, projectId, { claim, limit })
  const idsOf = (texts: readonly { attachmentId: string }[]) =>
    texts.map(({ attachmentId }) => attachmentId)
  const setTries = (row: string, id: string, tries: number) =>
    pool.query(
      'update attachment_texts set tries = $3 where message_row = $1 and attachment_id = $2',
      [row, id, tries],
    )

  test('a job run takes no more attachments than its limit, and all of them from one message', async () => {
    const projectId = await newProject(pool)
    const [first, second] = [
      await withFiles(projectId, [1, 1, 1]),
      await withFiles(projectId, [1, 1]),
    ]
    const taken = [
      await takeMany(projectId, 2),
      await takeMany(projectId, 9),
      await takeMany(projectId, 9),
    ]
    expect(taken.map((texts) => texts.map(({ messageRow }) => messageRow))).toEqual([
      [first, first],
      [first],
      [second, second],
    ])
    expect(taken[0]![0]).toMatchObject({ tries: 1, stored: { bytes: Buffer.alloc(1), blob: null } })
    expect(await takeMany(projectId, 9)).toEqual([])
  })

  test('if a job run claims several attachments to read together, at most the first of them may be large', async () => {
    const projectId = await newProject(pool)
    await withFiles(projectId, [SMALL + 1, SMALL, SMALL + 1])
    expect(idsOf(await takeMany(projectId, 9))).toEqual(['att_1', 'att_2'])
    expect(idsOf(await takeMany(projectId, 9))).toEqual(['att_3'])
  })

  test('an attachment that an earlier job run began to read but did not finish is the only attachment that the next job run takes', async () => {
    const projectId = await newProject(pool)
    const row = await withFiles(projectId, [1, 1, 1])
    await setTries(row, 'att_1', 1)
    await setTries(row, 'att_2', 1)
    const taken: string[][] = []
    for (let n = 0; n < 3; n++) taken.push(idsOf(await takeMany(projectId, 9)))
    expect(taken.toSorted()).toEqual([['att_1'], ['att_2'], ['att_3']])
  })

  test('if a job run asks twice for attachments, it gets the same attachments again', async () => {
    const projectId = await newProject(pool)
    await withFiles(projectId, [1, 1, 1])
    const claim = randomUUID()
    const taken = idsOf(await takeMany(projectId, 2, claim))
    expect(idsOf(await takeMany(projectId, 2, claim))).toEqual(taken)
  })

  test('an attachment that a job run gives back can be taken at once, and does not count as an attempt', async () => {
    const projectId = await newProject(pool)
    await withFiles(projectId, [1, 1, 1])
    const claim = randomUUID()
    const [first, ...rest] = await takeMany(projectId, 9, claim)
    await giveBackTexts(pool, claim, rest)
    const again = await takeMany(projectId, 9)
    expect(idsOf(again)).toEqual(idsOf(rest))
    expect(again.map(({ tries }) => tries)).toEqual([1, 1])
    expect(first).toMatchObject({ tries: 1 })
    await giveBackTexts(pool, claim, again)
    expect(await takeMany(projectId, 9)).toEqual([])
  })
})

describe('the next attachment of a project is read as soon as it is due and the daily limits allow it', () => {
  const at = async (projectId: string, limits = UNLIMITED as Parameters<typeof nextTextAt>[2]) =>
    (await nextTextAt(pool, projectId, limits))?.getTime()
  const read = (projectId: string, { bytes = 0, cpuMs = 0, days = 0 }) =>
    pool.query(
      `insert into attachment_reading (project_id, day, bytes, cpu_ms)
       values ($1, (now() at time zone 'UTC')::date - $4::int, $2, $3)`,
      [projectId, bytes, cpuMs, days],
    )

  test('the next attachment of a project is read at once if one is waiting', async () => {
    const [projectId, none] = [await newProject(pool), await newProject(pool)]
    await waiting(projectId)
    await waiting(none, 'sent', { state: 'ready' })
    for (const status of WAITING.filter((one) => one !== 'scheduled')) await waiting(none, status)
    expect([await at(projectId), await at(none)]).toEqual([0, undefined])
  })

  test('if a job run has taken an attachment, the next job comes two minutes later, or at once if another attachment waits', async () => {
    const projectId = await newProject(pool)
    const claimed_at = ago(MINUTE_MS)
    await waiting(projectId, 'queued', { claimed_at })
    expect(await at(projectId)).toBe(claimed_at.getTime() + 2 * MINUTE_MS)
    await waiting(projectId)
    expect(await at(projectId)).toBe(0)
  })

  test('the attachment of a scheduled mail is read a second after the mail’s scheduled time', async () => {
    const projectId = await newProject(pool)
    const row = await waiting(projectId, 'scheduled')
    const sendAt = new Date(Date.now() + 5 * MINUTE_MS)
    await pool.query('update messages set send_at = $2 where row = $1', [row, sendAt])
    expect(await at(projectId)).toBe(sendAt.getTime() + 1_000)
  })

  test('a thousand attachments of scheduled mails do not delay other attachments', async () => {
    const projectId = await newProject(pool)
    const sendAt = (minutes: number) => new Date(Date.now() + minutes * MINUTE_MS)
    const schedule = (row: string, time: Date) =>
      pool.query('update messages set send_at = $2 where row = $1', [row, time])
    const late = await waiting(projectId, 'scheduled')
    await schedule(late, sendAt(60))
    await pool.query(
      `insert into attachment_texts (project_id, message_row, attachment_id)
       select project_id, message_row, 'more_' || n from attachment_texts, generate_series(1, 1000) n
       where message_row = $1`,
      [late],
    )
    const soon = sendAt(5)
    await schedule(await waiting(projectId, 'scheduled'), soon)
    expect(await at(projectId)).toBe(soon.getTime() + 1_000)
    await waiting(projectId)
    expect(await at(projectId)).toBe(0)
  })

  test.each([
    ['below both limits', { bytes: 9, cpuMs: 1_999 }, false],
    ['at the limit of bytes', { bytes: 10 }, true],
    ['at the limit of seconds', { cpuMs: 2_000 }, true],
    ['above the limits on the day before', { bytes: 99, cpuMs: 9_000, days: 1 }, false],
  ])(
    'for a project that is %s, attachments are read at once or on the next day',
    async (_, used, isFull) => {
      const projectId = await newProject(pool)
      await waiting(projectId)
      await read(projectId, used)
      const midnight = new Date()
      midnight.setUTCHours(24, 0, 0, 0)
      const limits = { bytes: 10, cpuSeconds: 2 }
      expect(await at(projectId, limits)).toBe(isFull ? midnight.getTime() : 0)
      expect(await at(projectId)).toBe(0)
    },
  )

  test('the project’s own daily limits on reading attachments replace the service’s limits', async () => {
    const projectId = await newProject(pool)
    await waiting(projectId)
    await read(projectId, { bytes: 10 })
    await pool.query('insert into project_limits (project_id, daily_text_bytes) values ($1, 11)', [
      projectId,
    ])
    expect(await at(projectId, { bytes: 1, cpuSeconds: null })).toBe(0)
  })
})

test('a project whose attachments wait to be read without a job gets one job', async () => {
  await pool.query('delete from attachment_texts')
  await dropJobs(pool)
  const ids: string[] = []
  for (const status of ['queued', 'queued', 'scheduled', 'held', 'queued']) {
    const projectId = await newProject(pool)
    await waiting(projectId, status, ids.length === 4 ? { state: 'ready' } : {})
    ids.push(projectId)
  }
  await waiting(ids[0]!)
  const jobs = async () => {
    const { rows } = await pool.query<{ key: string }>(
      `select key from graphile_worker.jobs where key like 'read_attachments:%'`,
    )
    return rows.map(({ key }) => ids.indexOf(key.slice('read_attachments:'.length))).toSorted()
  }
  expect([await requeueLostReadings(pool), await jobs()]).toEqual([3, [0, 1, 2]])
  expect(await requeueLostReadings(pool)).toBe(0)
  await failJobs(pool)
  expect(await requeueLostReadings(pool)).toBe(3)
})

test('a page of an attachment’s text begins at the requested character, and only the project can read the page', async () => {
  const projectId = await newProject(pool)
  const { row, messageId } = await newSent(pool, { projectId })
  await pool.query('update messages set attachments = $2 where row = $1', [
    row,
    JSON.stringify([
      { attachmentId: 'att_1', filename: 'a.txt', contentType: 'text/plain' },
      { attachmentId: 'att_2', filename: 'b.png', contentType: 'image/png' },
    ]),
  ])
  await addText(row, projectId, { state: 'ready', content: 'öabcdef', chars: 7 })
  const page = (changes: object = {}) =>
    findTextPage(pool, {
      projectId,
      messageId,
      attachmentId: 'att_1',
      offset: 0,
      limit: 3,
      ...changes,
    })
  expect(await page()).toMatchObject({ filename: 'a.txt', state: 'ready', chars: 7, text: 'öab' })
  expect(await page({ offset: 2, limit: 2 })).toMatchObject({ text: 'bc' })
  expect(await page({ attachmentId: 'att_2' })).toMatchObject({
    filename: 'b.png',
    state: 'none',
    chars: 0,
    omitted: [],
    text: null,
  })
  expect(await page({ attachmentId: 'att_3' })).toBe('no attachment')
  expect(await page({ messageId: '<other@mail.test>' })).toBeNull()
  expect(await page({ projectId: await newProject(pool) })).toBeNull()
})

test('a search finds words in the attachments of a received message, but not of a sent message', async () => {
  const projectId = await newProject(pool)
  const { messageId } = await receive(pool, projectId)
  const { row } = (await messageOf(pool, projectId, messageId))!
  await addText(row, projectId, { state: 'ready', content: 'from the first file' })
  await addText(row, projectId, { id: 'att_2', state: 'none' })
  const other = await newSent(pool, { projectId })
  await addText(other.row, projectId, { state: 'ready', content: 'from another message' })
  const searched = await findSearched(pool, row)
  expect(searched).toMatchObject({ subject: 'Subject', from: ['ada@example.com'] })
  expect(searched!.text).toMatch(/^Text \d+\s+from the first file$/)
  expect(await findSearched(pool, other.row)).toBeNull()
})
