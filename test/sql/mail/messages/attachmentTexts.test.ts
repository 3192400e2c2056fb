/**
 * Tests how the text of an attachment is recorded: once, together with the codes, links and events that the text
 * causes.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { ReadInvite } from '../../../../shared/mail/calendar/invite.ts'
import { readCalendar } from '../../../../shared/mail/calendar/readCalendar.ts'
import { CODES_MAX } from '../../../../shared/mail/codes/codes.ts'
import { deleteProject } from '../../../../sql/account/projects/deleteProject.ts'
import {
  insertPendingTexts,
  queueWaitingReading,
} from '../../../../sql/mail/messages/attachmentTexts.ts'
import { findMessage } from '../../../../sql/mail/messages/messages.ts'
import { recordTexts, type TextOutcome } from '../../../../sql/mail/messages/recordTexts.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import { whileFailing } from '../../../support/database/failingStatements.ts'
import { calendarFile } from '../../../support/mail/calendar/invitations.ts'
import { eventsOf, messageOf, newSent, receive } from '../../../support/mail/mailRows.ts'
import { dropJobs, newProject } from '../../../support/till/tillRows.ts'

let database: TestDatabase
let pool: TestDatabase['pool']
beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
})
afterAll(() => database[Symbol.asyncDispose]())

type Found = { projectId: string; row: string }

/** Stores a received message with the given attachments, which wait until the reading job reads them. */
async function received(ids: readonly string[] = ['att_1'], projectId?: string): Promise<Found> {
  const owner = projectId ?? (await newProject(pool))
  const { messageId } = await receive(pool, owner)
  const { row } = (await messageOf(pool, owner, messageId))!
  await describeFiles(row, ids)
  await insertPendingTexts(pool, { projectId: owner, messageRow: row }, ids)
  return { projectId: owner, row }
}
const describeFiles = (row: string, ids: readonly string[]) =>
  pool.query('update messages set attachments = $2 where row = $1', [
    row,
    JSON.stringify(
      ids.map((attachmentId) => ({ attachmentId, filename: `${attachmentId}.txt`, text: PENDING })),
    ),
  ])
const PENDING = { state: 'pending', chars: 0, omitted: [] }

const record = ({ projectId, row }: Found, changes: Partial<TextOutcome> = {}) =>
  recordTexts(pool, projectId, [outcomeOf(row, changes)])
const outcomeOf = (row: string, changes: Partial<TextOutcome> = {}): TextOutcome => ({
  ...{ messageRow: row, attachmentId: 'att_1', state: 'ready', kind: 'text', reason: null },
  ...{ text: 'Text', omitted: [], codes: [], links: [], invites: [], label: null },
  ...{ bytes: 10, cpuMs: 5 },
  ...changes,
})
const code = (value: string) => ({ value, kind: 'code' }) as never
const link = (href: string) => ({ href, purpose: 'sign-in' }) as never
const messageAt = async ({ row }: Found) =>
  (await pool.query('select * from messages where row = $1', [row])).rows[0]
const valuesOf = async (found: Found) =>
  (await messageAt(found)).codes?.map(({ value }: { value: string }) => value)
const hrefsOf = async (found: Found) =>
  (await messageAt(found)).links?.map(({ href }: { href: string }) => href)
const readingOf = async (projectId: string) => {
  const { rows } = await pool.query<{ bytes: number; ms: number }>(
    'select bytes::int, cpu_ms::int as ms from attachment_reading where project_id = $1',
    [projectId],
  )
  return rows.map(({ bytes, ms }) => [bytes, ms])
}
const jobsOf = async (projectId: string) => {
  const { rows } = await pool.query('select from graphile_worker.jobs where key = $1', [
    `read_attachments:${projectId}`,
  ])
  return rows.length
}
const newEvents = async ({ projectId }: Found) =>
  (await eventsOf(pool, projectId)).filter((type) => type !== 'message.received')

describe('the text of an attachment is recorded once, and becomes searchable with its message', () => {
  test('the text of an attachment is recorded once, and only under its own attachment and message', async () => {
    const found = await received(['att_1', 'att_2'])
    const other = await received(['att_1'], found.projectId)
    expect(await record(found, { text: 'a😀b' })).toBe(false)
    await record(found, { text: 'other text', state: 'failed' })
    const { rows } = await pool.query(
      `select message_row, attachment_id, state, content, chars from attachment_texts
       where project_id = $1 order by message_row, attachment_id`,
      [found.projectId],
    )
    const waits = { state: 'pending', content: null, chars: 0 }
    expect(rows).toEqual([
      { message_row: found.row, attachment_id: 'att_1', state: 'ready', content: 'a😀b', chars: 3 },
      { message_row: found.row, attachment_id: 'att_2', ...waits },
      { message_row: other.row, attachment_id: 'att_1', ...waits },
    ])
    expect(await newEvents(found)).toEqual(['attachment.read'])
    expect(await record(found, { attachmentId: 'att_2' })).toBe(true)
  })

  test('a message shows each attachment’s state at once, but the database row of the message is written only after the last attachment', async () => {
    const found = await received(['att_1', 'att_2'])
    const shown = async () => {
      const { message_id: messageId } = await messageAt(found)
      const message = await findMessage(pool, found.projectId, messageId)
      return message!.attachments.map(({ text }) => text)
    }
    const [ready, failed] = [
      { state: 'ready', chars: 4, omitted: ['tiny-text'] },
      { state: 'failed', chars: 0, reason: 'malformed', omitted: [] },
    ]
    await record(found, { omitted: ['tiny-text'] })
    expect(await shown()).toEqual([ready, PENDING] as never)
    expect((await messageAt(found)).attachments).toMatchObject([
      { attachmentId: 'att_1', filename: 'att_1.txt', text: PENDING },
      { attachmentId: 'att_2', filename: 'att_2.txt', text: PENDING },
    ])
    await record(found, { attachmentId: 'att_2', state: 'failed', reason: 'malformed', text: null })
    expect(await shown()).toEqual([ready, failed] as never)
    expect((await messageAt(found)).attachments).toEqual([
      { attachmentId: 'att_1', filename: 'att_1.txt', text: ready },
      { attachmentId: 'att_2', filename: 'att_2.txt', text: failed },
    ])
  })

  test('attachments that are recorded together are recorded once, with one event for each attachment in order', async () => {
    const found = await received(['att_1', 'att_2', 'att_3'])
    await record(found, { attachmentId: 'att_2' })
    const outcomes = ['att_1', 'att_2', 'att_3'].map((attachmentId, n) =>
      outcomeOf(found.row, { attachmentId, text: `Text ${n}`, codes: [code('1111')] }),
    )
    for (let n = 0; n < 2; n++)
      expect(await recordTexts(pool, found.projectId, outcomes)).toBe(true)
    const { rows } = await pool.query(
      `select type, data -> 'attachment' ->> 'attachmentId' as id from events
       where project_id = $1 and type <> 'message.received' order by seq`,
      [found.projectId],
    )
    expect(rows.map(({ type, id }) => [type, id])).toEqual([
      ['attachment.read', 'att_2'],
      ['attachment.read', 'att_1'],
      ['message.code', null],
      ['attachment.read', 'att_3'],
    ])
    expect((await messageAt(found)).codes).toMatchObject([{ value: '1111', attachmentId: 'att_1' }])
    expect(await readingOf(found.projectId)).toEqual([[30, 15]])
  })

  test('if two transactions record the last two attachments at the same time, the message becomes searchable', async () => {
    for (let n = 0; n < 5; n++) {
      const found = await received(['att_1', 'att_2'])
      const [first, second] = await Promise.all([
        record(found),
        record(found, { attachmentId: 'att_2' }),
      ])
      expect([first, second].filter((isLast) => isLast)).toHaveLength(1)
      const { attachments } = await messageAt(found)
      expect(attachments.map(({ text }: any) => text.state)).toEqual(['ready', 'ready'])
    }
  })

  test('a message gets the label of an attachment’s text once, and shows the reason why an attachment has no text', async () => {
    const found = await received(['att_1', 'att_2'])
    const concealing = { state: 'none', text: null, reason: 'encrypted', label: 'hidden' } as const
    for (const attachmentId of ['att_1', 'att_2'])
      await record(found, { attachmentId, ...concealing })
    const { labels, attachments } = await messageAt(found)
    expect(labels.filter((label: string) => label === 'hidden')).toEqual(['hidden'])
    expect(attachments[0].text).toEqual({
      state: 'none',
      chars: 0,
      reason: 'encrypted',
      omitted: [],
    })
  })

  test('the daily totals of a project count each attachment once, and begin at zero each day', async () => {
    const found = await received(['att_1', 'att_2', 'att_3'])
    await record(found, { bytes: 10, cpuMs: 4.2 })
    await record(found, { bytes: 10, cpuMs: 4.2 })
    await record(found, { attachmentId: 'att_2', bytes: 1, cpuMs: 1 })
    expect(await readingOf(found.projectId)).toEqual([[11, 6]])
    await pool.query('update attachment_reading set day = day - 1 where project_id = $1', [
      found.projectId,
    ])
    await record(found, { attachmentId: 'att_3', bytes: 3, cpuMs: 2 })
    expect(await readingOf(found.projectId)).toEqual([[3, 2]])
  })

  test('reading an attachment of a deleted project does not change the daily totals', async () => {
    const found = await received()
    await deleteProject(pool, found.projectId, null)
    await record(found)
    expect(await readingOf(found.projectId)).toEqual([])
  })
})

describe('codes and links in an attachment are added to its message', () => {
  test('of the codes in a message’s attachments, only the first that is found sends an event', async () => {
    const found = await received(['att_1', 'att_2', 'att_3'])
    await record(found, { links: [link('https://a.example/')] })
    expect(await newEvents(found)).toEqual(['attachment.read'])
    await record(found, { attachmentId: 'att_2', codes: [code('1111')] })
    expect(await newEvents(found)).toEqual(['attachment.read', 'attachment.read', 'message.code'])
    await record(found, { attachmentId: 'att_3', codes: [code('1111'), code('2222')] })
    expect((await newEvents(found)).filter((type) => type === 'message.code').length).toBe(1)
    expect(await valuesOf(found)).toEqual(['1111', '2222'])
    expect((await messageAt(found)).codes[1]).toMatchObject({
      part: 'attachment',
      attachmentId: 'att_3',
    })
    expect(await hrefsOf(found)).toEqual(['https://a.example/'])
  })

  test('a link from an attachment is not added if the message already has it', async () => {
    const found = await received(['att_1', 'att_2'])
    await record(found, { links: [link('https://a.example/'), link('https://b.example/')] })
    await record(found, {
      attachmentId: 'att_2',
      links: [link('https://b.example/'), link('https://c.example/')],
    })
    expect(await hrefsOf(found)).toEqual([
      'https://a.example/',
      'https://b.example/',
      'https://c.example/',
    ])
    expect(await valuesOf(found)).toEqual([])
  })

  test('a message stores only the first CODES_MAX codes from its attachments', async () => {
    const found = await received()
    const codes = Array.from({ length: CODES_MAX + 1 }, (_, n) => code(`${1000 + n}`))
    await record(found, { codes })
    expect((await valuesOf(found)).length).toBe(CODES_MAX)
  })
})

describe('if the database refuses a value of an attachment, only this attachment is recorded as failed', () => {
  /** Makes an invitation whose organizer is too long for the calendar. */
  const tooLong = (): ReadInvite => {
    const [invite] = readCalendar(Buffer.from(calendarFile()), Date.now())
    return { ...invite!, organizer: { address: `${'x'.repeat(400)}@a.example`, name: null } }
  }
  const rowsOf = async ({ row }: Found) => {
    const { rows } = await pool.query(
      `select attachment_id as id, state, kind, reason, content from attachment_texts
       where message_row = $1 order by attachment_id`,
      [row],
    )
    return rows
  }
  const ready = { state: 'ready', kind: 'text', reason: null, content: 'Text' }
  const failed = { state: 'failed', kind: 'text', reason: 'malformed', content: null }

  test.each<[what: string, changes: () => Partial<TextOutcome>]>([
    ['an invite that breaks a check', () => ({ invites: [tooLong()] })],
    ['a text with U+0000', () => ({ text: 'a\u0000b' })],
    ['a code with half a character', () => ({ codes: [code('\ud83d')] })],
  ])(
    'the database refuses %s, so that only the attachment with this value fails permanently',
    async (_, changes) => {
      const ids = ['att_1', 'att_2', 'att_3']
      const found = await received(ids)
      const outcomes = ids.map((attachmentId) =>
        outcomeOf(found.row, {
          attachmentId,
          codes: [code(`code-${attachmentId}`)],
          ...(attachmentId === 'att_2' ? changes() : {}),
        }),
      )
      expect(await recordTexts(pool, found.projectId, outcomes)).toBe(true)
      expect(await rowsOf(found)).toEqual([
        { id: 'att_1', ...ready },
        { id: 'att_2', ...failed },
        { id: 'att_3', ...ready },
      ])
      expect(await valuesOf(found)).toEqual(['code-att_1', 'code-att_3'])
      expect(await readingOf(found.projectId)).toEqual([[30, 15]])
      expect(await newEvents(found)).toEqual([
        'attachment.read',
        'message.code',
        'attachment.read',
        'attachment.read',
      ])
      const { attachments, invites } = await messageAt(found)
      expect(attachments.map(({ text }: any) => text.state)).toEqual(['ready', 'failed', 'ready'])
      expect(invites).toBeNull()
      const { rows } = await pool.query('select from calendar_events where project_id = $1', [
        found.projectId,
      ])
      expect(rows).toEqual([])
    },
  )

  test('if recording attachments fails with an error that is not about a refused value, all of them stay waiting', async () => {
    const found = await received(['att_1', 'att_2'])
    const outcomes = ['att_1', 'att_2'].map((attachmentId) =>
      outcomeOf(found.row, { attachmentId }),
    )
    const holder = await pool.connect()
    try {
      await holder.query('alter table attachment_reading rename to absent_reading')
      await expect(recordTexts(pool, found.projectId, outcomes)).rejects.toThrow('does not exist')
    } finally {
      await holder.query('alter table absent_reading rename to attachment_reading')
      holder.release()
    }
    expect((await rowsOf(found)).map(({ state }) => state)).toEqual(['pending', 'pending'])
  })

  test('if the database stops after it has refused an attachment, the other attachments stay waiting', async () => {
    const found = await received(['att_1', 'att_2'])
    const outcomes = [
      outcomeOf(found.row),
      outcomeOf(found.row, { attachmentId: 'att_2', text: 'a\u0000b' }),
    ]
    const faults: unknown[] = []
    const log = { error: (fields: unknown) => faults.push(fields) } as never
    const work = whileFailing('attachment_reading', () =>
      recordTexts(pool, found.projectId, outcomes, log),
    )
    await expect(work).rejects.toThrow('the server stops')
    expect(faults).toEqual([])
    expect((await rowsOf(found)).map(({ state }) => state)).toEqual(['pending', 'pending'])
  })
})

test('reading the attachments of a sent message sends no event', async () => {
  const { projectId, row } = await newSent(pool)
  await describeFiles(row, ['att_1', 'att_2'])
  await insertPendingTexts(pool, { projectId, messageRow: row }, ['att_1', 'att_2'])
  await record({ projectId, row })
  expect(await valuesOf({ projectId, row })).toBeUndefined()
  await record({ projectId, row }, { attachmentId: 'att_2', codes: [code('1111')] })
  expect(await eventsOf(pool, projectId)).toEqual([])
})

test('a message gets a job for reading attachments only if an attachment waits', async () => {
  const [none, read, waits] = [await received([]), await received(), await received()]
  expect([await jobsOf(none.projectId), await jobsOf(waits.projectId)]).toEqual([0, 1])
  await record(read)
  await dropJobs(pool)
  for (const { projectId, row } of [none, read, waits])
    await queueWaitingReading(pool, projectId, row)
  const jobs = [none, read, waits].map(({ projectId }) => jobsOf(projectId))
  expect(await Promise.all(jobs)).toEqual([0, 0, 1])
})
