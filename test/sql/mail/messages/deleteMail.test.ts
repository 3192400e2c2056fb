/**
 * Tests the deletion of mail. The deletion locks the inbox, because other transactions may store mail at the same time.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { storeParsedMails } from '../../../../sql/mail/inbound/storeParsedMails.ts'
import {
  deleteMessage,
  deleteThread,
  forgetDeletedMessages,
} from '../../../../sql/mail/messages/deleteMail.ts'
import { acceptIntents } from '../../../../sql/mail/outbound/acceptIntents.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import {
  begin,
  messageOf,
  newIntent,
  newSent,
  rawMail,
  readInboundMail,
  readRaw,
  receive,
  recordSent,
  takeIn,
} from '../../../support/mail/mailRows.ts'
import { blocked, newProject, whileHeld } from '../../../support/till/tillRows.ts'

let database: TestDatabase
let pool: TestDatabase['pool']

beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
})
afterAll(() => database[Symbol.asyncDispose]())

const threadOf = async (threadRow: string) =>
  (await pool.query('select * from threads where row = $1', [threadRow])).rows[0]
const remembered = async (projectId: string) =>
  (await pool.query('select from deleted_messages where project_id = $1', [projectId])).rowCount
const answer = (messageId: string) => rawMail({ headers: `In-Reply-To: ${messageId}\r\n` })
const INBOX = 'select from projects where id = $1 for no key update'

test('a message is deleted only by its project, and no other message is deleted', async () => {
  const [owner, stranger] = [await newProject(pool), await newProject(pool)]
  const [first, second] = [await receive(pool, owner), await receive(pool, owner)]
  const { threadRow } = (await messageOf(pool, owner, first.messageId))!
  const { id } = await threadOf(threadRow)
  expect(await deleteMessage(pool, stranger, first.messageId)).toBe(false)
  expect(await deleteThread(pool, stranger, id)).toBe(false)
  expect(await messageOf(pool, owner, first.messageId)).toBeDefined()
  expect(await deleteMessage(pool, owner, first.messageId)).toBe(true)
  expect(await deleteMessage(pool, owner, first.messageId)).toBe(false)
  expect(await readRaw(pool, first.rawId)).toBeUndefined()
  expect(await threadOf(threadRow)).toBeUndefined()
  expect(await messageOf(pool, owner, second.messageId)).toBeDefined()
  expect(await remembered(owner)).toBe(1)
})

test('if a thread loses a message, its time becomes the time of its last remaining message', async () => {
  const sent = await newSent(pool)
  const { messageId } = await receive(pool, sent.projectId, answer(sent.messageId))
  await pool.query('update threads set updated_at = now() where row = $1', [sent.threadRow])
  expect(await deleteMessage(pool, sent.projectId, messageId)).toBe(true)
  const { rows } = await pool.query('select added_at from messages where row = $1', [sent.row])
  const left = await threadOf(sent.threadRow)
  expect([left.message_count, left.updated_at]).toEqual([1, rows[0].added_at])
})

test('a thread is deleted with all its messages and no other messages', async () => {
  const sent = await newSent(pool)
  const { messageId } = await receive(pool, sent.projectId, answer(sent.messageId))
  const other = await newSent(pool, { projectId: sent.projectId })
  const { id } = await threadOf(sent.threadRow)
  expect(await deleteThread(pool, sent.projectId, id)).toBe(true)
  expect(await threadOf(sent.threadRow)).toBeUndefined()
  expect(await messageOf(pool, sent.projectId, messageId)).toBeUndefined()
  expect(await messageOf(pool, sent.projectId, other.messageId)).toBeDefined()
  expect(await deleteThread(pool, sent.projectId, id)).toBe(false)
})

test('a thread without messages is deleted', async () => {
  const projectId = await newProject(pool)
  const { messageId } = await receive(pool, projectId)
  const { threadRow } = (await messageOf(pool, projectId, messageId))!
  const { id } = await threadOf(threadRow)
  await pool.query('delete from messages where thread_row = $1', [threadRow])
  expect(await deleteThread(pool, projectId, id)).toBe(true)
  expect(await threadOf(threadRow)).toBeUndefined()
})

test('no hash against a second delivery is stored when a sent message is deleted, because no mail host delivers a sent message again', async () => {
  const sent = await newSent(pool)
  await deleteMessage(pool, sent.projectId, sent.messageId)
  expect(await remembered(sent.projectId)).toBe(0)
})

test('if mail is deleted and stored in one inbox at the same time, the second transaction waits for the first', async () => {
  const sent = await newSent(pool)
  const { id } = await threadOf(sent.threadRow)
  const [inboundId] = await takeIn(pool, [sent.projectId], answer(sent.messageId))
  const received = await readInboundMail(pool, inboundId!)
  const [outcome, isDeleted] = await whileHeld<unknown>(pool, INBOX, [sent.projectId], () => [
    storeParsedMails(pool, [received]),
    blocked(pool, 1).then(() => deleteThread(pool, sent.projectId, id)),
  ])
  expect([outcome, isDeleted]).toEqual([['stored'], true])
  expect(await messageOf(pool, sent.projectId, received.mail.links.messageId)).toBeUndefined()
})

test('two concurrent deletions in a thread leave no empty thread', async () => {
  const sent = await newSent(pool)
  const { messageId } = await receive(pool, sent.projectId, answer(sent.messageId))
  await whileHeld(pool, INBOX, [sent.projectId], () =>
    [sent.messageId, messageId].map((id) => deleteMessage(pool, sent.projectId, id)),
  )
  expect(await threadOf(sent.threadRow)).toBeUndefined()
})

test('if a message is deleted while its sending attempt is recorded, the second transaction waits for the first', async () => {
  const sent = await newSent(pool)
  const mail = await begin(pool, sent)
  const hold = 'select from outbound_mails where message_row = $1 for update'
  const [isRecorded, isDeleted] = await whileHeld(pool, hold, [sent.row], () => [
    recordSent(pool, mail),
    blocked(pool, 1).then(() => deleteMessage(pool, sent.projectId, sent.messageId)),
  ])
  expect([isRecorded, isDeleted]).toEqual([true, true])
})

test('the hash of a deleted message, which prevents a redelivery, is kept for a week, once per inbox', async () => {
  const projectId = await newProject(pool)
  for (let n = 0; n < 2; n++) {
    const { messageId } = await receive(pool, projectId)
    await deleteMessage(pool, projectId, messageId)
  }
  await pool.query(
    `update deleted_messages d set deleted_at = now() - case when d.content_hash = x.first
       then interval '7 days 1 minute' else interval '6 days 23 hours' end
     from (select min(content_hash::text)::bytea as first from deleted_messages where project_id = $1) x
     where project_id = $1`,
    [projectId],
  )
  await forgetDeletedMessages(pool)
  expect(await remembered(projectId)).toBe(1)
})

test('a deleted message counts against the quota of the day only if the service has begun to send it', async () => {
  const projectId = await newProject(pool)
  const intents = [
    newIntent(projectId, {
      to: ['a@b.example', 'c@b.example'],
      sendAt: new Date(Date.now() + 3_600_000),
    }),
    newIntent(projectId, {
      held: true,
      refused: [{ address: 'd@b.example', reason: 'rule' }],
      cc: ['d@b.example'],
    }),
    newIntent(projectId),
    newIntent(projectId, { sendAt: new Date(Date.now() + 3_600_000) }),
  ]
  const outcomes = await acceptIntents(pool, intents, 100)
  expect(outcomes.map(({ kind }) => kind)).toEqual(intents.map(() => 'accepted'))
  const used = async () =>
    (await pool.query('select used from send_quotas where project_id = $1', [projectId])).rows[0]
      .used
  const counts = [await used()]
  for (const { messageId } of intents.slice(0, 3)) {
    expect(await deleteMessage(pool, projectId, messageId)).toBe(true)
    counts.push(await used())
  }
  const { threadRow } = (await messageOf(pool, projectId, intents[3]!.messageId))!
  expect(await deleteThread(pool, projectId, (await threadOf(threadRow)).id)).toBe(true)
  expect([...counts, await used()]).toEqual([5, 3, 2, 2, 1])
})

test('the deletion of a message that was scheduled on an earlier day gives back no quota today', async () => {
  const sent = await newSent(pool, { sendAt: new Date(Date.now() + 3_600_000) })
  await acceptIntents(pool, [newIntent(sent.projectId)], 100)
  await pool.query(
    `update messages set created_at = created_at - interval '1 day' where row = $1`,
    [sent.row],
  )
  const used = async () =>
    (await pool.query('select used from send_quotas where project_id = $1', [sent.projectId]))
      .rows[0]
  const before = await used()
  expect(await deleteMessage(pool, sent.projectId, sent.messageId)).toBe(true)
  expect(await used()).toEqual(before)
})

test('the deletion of a message and a concurrent reply in the same thread do not deadlock', async () => {
  const sent = await newSent(pool)
  const { projectId, threadRow } = sent
  const { messageId } = await receive(pool, projectId, answer(sent.messageId))
  await acceptIntents(pool, [newIntent(projectId)], 100)
  const results = await whileHeld<unknown>(
    pool,
    'select from send_quotas where project_id = $1 for update',
    [projectId],
    () => [
      acceptIntents(pool, [newIntent(projectId, { threadRow })], 100),
      blocked(pool, 1).then(() => deleteMessage(pool, projectId, messageId)),
    ],
  )
  expect(results).toEqual([[expect.objectContaining({ kind: 'accepted' })], true])
  expect((await threadOf(threadRow)).message_count).toBe(2)
})

/**
 * Reads what is still stored about a reply to the message of row `first`: the used quota, the approval request and the
 * jobs.
 */
async function traceOf(projectId: string, messageId: string, first: string) {
  const message = await messageOf(pool, projectId, messageId)
  const { rows } = await pool.query(
    `select (select used from send_quotas where project_id = $1) as used,
       (select state from approvals where project_id = $1 and subject = $2) as approval,
       (select count(*)::int from graphile_worker.jobs
        where key like 'send_mail:%' and substr(key, 11)::bigint > $3) as jobs`,
    [projectId, messageId, first],
  )
  return { isStored: message !== undefined, ...rows[0] }
}

const WAITING = [
  ['held', { held: true }, 'withdrawn'],
  ['scheduled', { sendAt: new Date(Date.now() + 3_600_000) }, null],
] as const

test.each(WAITING)(
  'a %s reply that is stored during the deletion of its thread is deleted like every other message',
  async (_, changes, approval) => {
    const projectId = await newProject(pool)
    await acceptIntents(pool, [newIntent(projectId)], 100)
    const { row, threadRow } = await newSent(pool, { projectId })
    const reply = newIntent(projectId, { threadRow, ...changes })
    const { id } = await threadOf(threadRow)
    const results = await whileHeld<unknown>(
      pool,
      'select from threads where row = $1 for update',
      [threadRow],
      () => [
        acceptIntents(pool, [reply], 100),
        blocked(pool, 1).then(() => deleteThread(pool, projectId, id)),
      ],
    )
    expect(results).toEqual([[expect.objectContaining({ kind: 'accepted' })], true])
    expect(await threadOf(threadRow)).toBeUndefined()
    const trace = await traceOf(projectId, reply.messageId, row)
    expect(trace).toEqual({ isStored: false, used: 1, approval, jobs: 0 })
  },
)

test('a reply to a thread that is being deleted waits for the deletion, and is then refused because the thread is missing', async () => {
  const projectId = await newProject(pool)
  await acceptIntents(pool, [newIntent(projectId)], 100)
  const { row, threadRow } = await newSent(pool, { projectId })
  const reply = newIntent(projectId, { threadRow, held: true })
  const { id } = await threadOf(threadRow)
  const results = await whileHeld<unknown>(
    pool,
    'select from threads where row = $1 for update',
    [threadRow],
    () => [
      deleteThread(pool, projectId, id),
      blocked(pool, 1).then(() => acceptIntents(pool, [reply], 100)),
    ],
  )
  expect(results).toEqual([true, [{ kind: 'no thread' }]])
  const trace = await traceOf(projectId, reply.messageId, row)
  expect(trace).toEqual({ isStored: false, used: 1, approval: null, jobs: 0 })
})
