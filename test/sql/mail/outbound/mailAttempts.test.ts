/**
 * Tests the attempts to send an outbound mail. Only the newest attempt is recorded, and the result for the same
 * recipients is recorded only once.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { deleteProject } from '../../../../sql/account/projects/deleteProject.ts'
import { insertInboundMails } from '../../../../sql/mail/inbound/inboundMails.ts'
import {
  type RecordedOutcome,
  requeueLostMail,
} from '../../../../sql/mail/outbound/mailAttempts.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import { whileLocked } from '../../../support/database/whileLocked.ts'
import {
  addressOf,
  begin,
  eventsOf,
  newSent,
  recipientsOf,
  recordSent,
  spooled,
} from '../../../support/mail/mailRows.ts'
import { dropJobs, failJobs, newProject, whileHeld } from '../../../support/till/tillRows.ts'

let database: TestDatabase
let pool: TestDatabase['pool']

beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
})
afterAll(() => database[Symbol.asyncDispose]())

const LATER = new Date(Date.now() + 3_600_000)
const failed = (address: string, more: object = {}): RecordedOutcome => ({
  address,
  state: 'failed',
  error: '550 no',
  nextAttemptAt: null,
  ...more,
})
const deferred = (address: string): RecordedOutcome => ({
  address,
  state: 'deferred',
  error: '450 later',
  nextAttemptAt: LATER,
})
const outbound = async (messageRow: string) =>
  (await pool.query('select * from outbound_mails where message_row = $1', [messageRow])).rows[0]
const shownOf = async (messageRow: string) =>
  (
    await pool.query('select delivery_status, delivery_error from messages where row = $1', [
      messageRow,
    ])
  ).rows[0]
const jobOf = async (messageRow: string) =>
  (
    await pool.query('select run_at from graphile_worker.jobs where key = $1', [
      `send_mail:${messageRow}`,
    ])
  ).rows[0]
const inboundMailsOf = async (projectId: string) =>
  (await pool.query('select id from inbound_mails where project_id = $1', [projectId])).rowCount
const storeRaw = async () => {
  const mail = spooled([await addressOf(pool, await newProject(pool))])
  await insertInboundMails(pool, [mail])
  const { rows } = await pool.query('select id from raw_mails where source_key = $1', [
    mail.sourceKey,
  ])
  return rows[0].id as string
}

describe('if two attempts to send a mail overlap, only the newer attempt decides how the mail ends', () => {
  test('if two attempts to send a mail overlap, the older attempt is not recorded', async () => {
    const sent = await newSent(pool)
    const [older, newer] = [await begin(pool, sent), await begin(pool, sent)]
    expect([older.attempt, newer.attempt]).toEqual([1, 2])
    const gone = failed('ada@example.com', { noSuchMailbox: true })
    expect(await recordSent(pool, older, { recipients: [gone] })).toBe(false)
    expect((await recipientsOf(pool, sent))[0]).toMatchObject({ state: 'queued', attempts: 0 })
    expect((await outbound(sent.row)).state).toBe('queued')
    expect(await eventsOf(pool, sent.projectId)).toEqual([])
    expect(await recordSent(pool, newer)).toBe(true)
    expect((await recipientsOf(pool, sent))[0]).toMatchObject({ state: 'sent', attempts: 1 })
  })

  test('if the older of two overlapping attempts reached a recipient, this is recorded, but the newer attempt ends the mail', async () => {
    const sent = await newSent(pool)
    const [older, newer] = [await begin(pool, sent), await begin(pool, sent)]
    expect(await recordSent(pool, older)).toBe(false)
    expect((await recipientsOf(pool, sent))[0]).toMatchObject({ state: 'sent', attempts: 1 })
    expect((await outbound(sent.row)).state).toBe('queued')
    const refused = failed('ada@example.com')
    expect(await recordSent(pool, newer, { recipients: [refused] })).toBe(true)
    expect((await recipientsOf(pool, sent))[0]).toMatchObject({ state: 'sent', attempts: 1 })
    expect(await eventsOf(pool, sent.projectId)).toEqual(['message.sent'])
  })

  test('the older of two overlapping attempts records nothing about recipients in the service’s own inboxes', async () => {
    const sent = await newSent(pool)
    const inbox = await newProject(pool)
    const [older] = [await begin(pool, sent), await begin(pool, sent)]
    const own = { localInboxes: [await addressOf(pool, inbox)], rawId: await storeRaw() }
    expect(await recordSent(pool, older, own)).toBe(false)
    expect((await recipientsOf(pool, sent))[0]).toMatchObject({ state: 'queued' })
  })

  test('the result of a finished attempt to send a mail is recorded only once', async () => {
    const sent = await newSent(pool)
    const inbox = await newProject(pool)
    const mail = await begin(pool, sent)
    expect(await recordSent(pool, mail)).toBe(true)
    const localInboxes = [await addressOf(pool, inbox)]
    const again = { localInboxes, rawId: await storeRaw() }
    expect(await recordSent(pool, mail, again)).toBe(false)
    expect(await inboundMailsOf(inbox)).toBe(0)
    expect(await eventsOf(pool, sent.projectId)).toEqual(['message.sent'])
  })

  test('a second record of the same sending attempt waits for the first record and changes nothing', async () => {
    const sent = await newSent(pool)
    const mail = await begin(pool, sent)
    const ended = `update outbound_mails set state = 'done' where message_row = $1`
    const results = await whileHeld(pool, ended, [sent.row], () => [recordSent(pool, mail)])
    expect(results).toEqual([false])
    expect(await eventsOf(pool, sent.projectId)).toEqual([])
  })
})

describe('the result of a sending attempt for some of its recipients is recorded before the attempt ends', () => {
  test('recording the result for some recipients of an attempt changes only these recipients, and the attempt continues', async () => {
    const to = ['a@one.example', 'b@two.example', 'c@three.example']
    const sent = await newSent(pool, { to })
    const neighbour = await newSent(pool, { to })
    const mail = await begin(pool, sent)
    const [first, second, third] = to as [string, string, string]
    expect(await recordSent(pool, mail, { recipients: [deferred(first)], last: false })).toBe(true)
    expect((await outbound(sent.row)).state).toBe('queued')
    const postponed = {
      address: second,
      state: 'postponed',
      error: null,
      nextAttemptAt: LATER,
    } as const
    expect(await recordSent(pool, mail, { recipients: [postponed], last: false })).toBe(true)
    expect(await recordSent(pool, mail, { recipients: [failed(third)] })).toBe(true)
    expect(await recipientsOf(pool, sent)).toEqual(
      [
        { address: first, state: 'deferred', error: '450 later', attempts: 1 },
        { address: third, state: 'failed', error: '550 no', attempts: 1 },
        { address: second, state: 'queued', error: null, attempts: 0 },
      ].toSorted((a, b) => a.address.localeCompare(b.address)),
    )
    for (const { state, attempts } of await recipientsOf(pool, neighbour))
      expect([state, attempts]).toEqual(['queued', 0])
    expect(await shownOf(sent.row)).toEqual({
      delivery_status: 'failed',
      delivery_error: `${third}: 550 no`,
    })
    expect(await shownOf(neighbour.row)).toMatchObject({ delivery_status: 'queued' })
    const { state, next_attempt_at: next } = await outbound(sent.row)
    expect(state).toBe('deferred')
    // The time moves by the difference between the clocks of the process and of the database.
    expect(next.getTime()).toBeWithin(LATER.getTime() - 100, LATER.getTime() + 100)
    expect((await jobOf(sent.row)).run_at).toEqual(next)
    expect(await eventsOf(pool, sent.projectId)).toEqual([])
  })

  test('recording the result for the last recipients of a mail completes this mail, and does not complete other mails', async () => {
    const sent = await newSent(pool)
    await newSent(pool, { projectId: sent.projectId })
    await pool.query(
      'select graphile_worker.complete_jobs(array(select id from graphile_worker.jobs))',
    )
    await recordSent(pool, await begin(pool, sent))
    expect((await outbound(sent.row)).state).toBe('done')
    expect(await jobOf(sent.row)).toBeUndefined()
    expect(await eventsOf(pool, sent.projectId)).toEqual(['message.sent'])
  })

  test('the record of a sending attempt neither undoes an earlier bounce nor sends a second webhook event', async () => {
    const sent = await newSent(pool)
    const mail = await begin(pool, sent)
    await pool.query(
      `update outbound_recipients set state = 'bounced', error = 'returned' where message_row = $1`,
      [sent.row],
    )
    expect(await recordSent(pool, mail)).toBe(true)
    expect((await recipientsOf(pool, sent))[0]).toMatchObject({
      state: 'bounced',
      error: 'returned',
    })
    expect(await shownOf(sent.row)).toMatchObject({ delivery_status: 'bounced' })
    expect(await eventsOf(pool, sent.projectId)).toEqual([])
  })

  test('the record of a sending attempt suppresses only addresses that have no mailbox', async () => {
    const sent = await newSent(pool, { to: ['a@example.com', 'b@example.com'] })
    const recipients = [
      failed('a@example.com'),
      failed('b@example.com', { noSuchMailbox: true as const }),
    ]
    await recordSent(pool, await begin(pool, sent), { recipients })
    const { rows } = await pool.query('select address from suppressions where project_id = $1', [
      sent.projectId,
    ])
    expect(rows).toEqual([{ address: 'b@example.com' }])
    expect(await eventsOf(pool, sent.projectId)).toEqual(['message.failed'])
  })

  test('when the service records a sending attempt, it delivers the mail once to each recipient that is an active inbox of the service', async () => {
    const sent = await newSent(pool)
    const [inbox, deleted] = [await newProject(pool), await newProject(pool)]
    const localInboxes = [await addressOf(pool, inbox), await addressOf(pool, deleted)]
    await deleteProject(pool, deleted, null)
    const rawId = await storeRaw()
    const mail = await begin(pool, sent)
    for (const last of [false, true]) await recordSent(pool, mail, { rawId, localInboxes, last })
    expect(await inboundMailsOf(inbox)).toBe(1)
    expect(await inboundMailsOf(deleted)).toBe(0)
  })
})

test('if the job of an overdue mail is missing or has failed permanently, this mail is queued again, and no other mail', async () => {
  await pool.query('delete from outbound_mails')
  await dropJobs(pool)
  const overdue = async (row: string, seconds: number) =>
    pool.query(
      `update outbound_mails set next_attempt_at = clock_timestamp() - make_interval(secs => $2) where message_row = $1`,
      [row, seconds],
    )
  const [lost, recent, held, done] = [
    await newSent(pool),
    await newSent(pool),
    await newSent(pool, { held: true }),
    await newSent(pool),
  ]
  await recordSent(pool, await begin(pool, done))
  await dropJobs(pool)
  const waiting = await newSent(pool)
  for (const { row } of [lost, held, done, waiting]) await overdue(row, 61)
  await overdue(recent.row, 40)
  const text = 'select from outbound_mails where message_row = $1 for update'
  const requeue = () => requeueLostMail(pool)
  expect(await whileLocked(pool, { text, values: [lost.row] }, requeue)).toBe(0)
  expect(await requeueLostMail(pool)).toBe(1)
  expect(await jobOf(lost.row)).toBeDefined()
  expect(await requeueLostMail(pool)).toBe(0)
  await failJobs(pool)
  expect(await requeueLostMail(pool)).toBe(2)
  expect(await requeueLostMail(pool)).toBe(0)
})
