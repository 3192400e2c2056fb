/** Tests that old rows are removed in bounded batches, and that rows of unfinished work stay. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { RETENTION_NAMES, type RetentionClass } from '../../../shared/retention.ts'
import { beginIdempotent, findIdempotent } from '../../../sql/account/idempotency.ts'
import { storeServiceRetention, updateRetention } from '../../../sql/account/projects/retention.ts'
import { deleteMessage } from '../../../sql/mail/messages/deleteMail.ts'
import { expireMail } from '../../../sql/mail/messages/expireMail.ts'
import { findDue, removeExpired, WALK_START } from '../../../sql/operations/retention.ts'
import { recordHead } from '../../../sql/till/watch/chainStatus.ts'
import { recordFinal } from '../../../sql/till/watch/finality.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database/database.ts'
import { whileLocked } from '../../support/database/whileLocked.ts'
import { newDelivery } from '../../support/events/eventRows.ts'
import {
  begin,
  messageOf,
  newSent,
  rawMail,
  readRaw,
  receive,
  recordSent,
  takeIn,
} from '../../support/mail/mailRows.ts'
import { expireAll } from '../../support/retention.ts'
import { newPayment, newProject, newSettled, row } from '../../support/till/tillRows.ts'

let database: TestDatabase
let pool: TestDatabase['pool']

beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
})
afterAll(() => database[Symbol.asyncDispose]())

/** Makes a project that keeps rows of a retention class for the given number of days. */
async function keeping(name: RetentionClass, days: number, projectId?: string): Promise<string> {
  const id = projectId ?? (await newProject(pool))
  const actor = { projectId: id, keyPrefix: 'lopk-test', requestId: 'req' }
  await updateRetention(pool, id, { [name]: days }, actor)
  return id
}

/** Makes the rows of a project look older. */
const age = (table: string, projectId: string, days: number, column = 'created_at') =>
  pool.query(
    `update ${table} set ${column} = ${column} - $2 * interval '1 day' where project_id = $1`,
    [projectId, days],
  )
const countOf = async (table: string, projectId: string) =>
  (await pool.query(`select from ${table} where project_id = $1`, [projectId])).rowCount
const storedBytes = async (projectId: string) =>
  (
    await pool.query(
      `select (select bytes from project_storage where project_id = $1)::int as counted,
         (select coalesce(sum(stored_bytes), 0) from messages where project_id = $1)::int as stored`,
      [projectId],
    )
  ).rows[0]

test('after the retention time, old mail is removed with its thread, original and labels, and younger mail stays with its thread', async () => {
  const projectId = await keeping('mail', 10)
  const neighbour = await newProject(pool)
  const first = await receive(pool, projectId)
  const alone = await receive(pool, projectId)
  const ids = await takeIn(pool, [projectId, neighbour])
  await receive(pool, neighbour)
  await age('messages', projectId, 11)
  await age('messages', neighbour, 11)
  const answer = rawMail({ headers: `In-Reply-To: ${first.messageId}\r\n` })
  const young = await receive(pool, projectId, answer)
  const { threadRow } = (await messageOf(pool, projectId, young.messageId))!
  await expireAll(pool)
  expect(await messageOf(pool, projectId, first.messageId)).toBeUndefined()
  expect(await messageOf(pool, projectId, alone.messageId)).toBeUndefined()
  expect(await readRaw(pool, alone.rawId)).toBeUndefined()
  expect(await countOf('threads', projectId)).toBe(1)
  expect(await countOf('message_labels', projectId)).toBe(2)
  const thread = await pool.query('select * from threads where row = $1', [threadRow])
  const { rows } = await pool.query('select added_at from messages where project_id = $1', [
    projectId,
  ])
  expect([thread.rows[0].message_count, thread.rows[0].updated_at]).toEqual([1, rows[0].added_at])
  const { counted, stored } = await storedBytes(projectId)
  expect([counted > 0, counted]).toEqual([true, stored])
  expect(await countOf('messages', neighbour)).toBe(1)
  expect((await row(pool, 'inbound_mails', ids[0]!)).state).toBe('accepted')
})

test('the retention removes sent mail, but never mail that was not sent yet', async () => {
  const projectId = await keeping('mail', 10)
  const waiting = await newSent(pool, { projectId })
  const done = await newSent(pool, { projectId })
  await recordSent(pool, await begin(pool, done))
  await age('messages', projectId, 400)
  await age('outbound_mails', projectId, 400, 'accepted_at')
  await expireAll(pool)
  expect(await messageOf(pool, projectId, waiting.messageId)).toBeDefined()
  expect(await messageOf(pool, projectId, done.messageId)).toBeUndefined()
})

test('the retention removes the old record of a mail that arrived a second time, and keeps a mail that is accepted but not processed', async () => {
  const projectId = await keeping('mail', 10)
  const raw = rawMail()
  const { messageId } = await receive(pool, projectId, raw)
  await deleteMessage(pool, projectId, messageId)
  expect((await receive(pool, projectId, raw)).outcome).toBe('retransmission')
  await takeIn(pool, [projectId])
  expect(await countOf('inbound_mails', projectId)).toBe(2)
  await age('inbound_mails', projectId, 11, 'received_at')
  await expireAll(pool)
  const { rows } = await pool.query('select state from inbound_mails where project_id = $1', [
    projectId,
  ])
  expect(rows).toEqual([{ state: 'accepted' }])
})

test('the retention removes old records of repeated mails even if another transaction has locked one of them', async () => {
  const projectId = await keeping('mail', 10)
  for (const raw of [rawMail(), rawMail()]) {
    const { messageId } = await receive(pool, projectId, raw)
    await deleteMessage(pool, projectId, messageId)
    expect((await receive(pool, projectId, raw)).outcome).toBe('retransmission')
  }
  await age('inbound_mails', projectId, 11, 'received_at')
  const before = new Date()
  const text = 'select from inbound_mails where project_id = $1 order by id limit 1 for update'
  const expire = () => expireMail(pool, projectId, before)
  expect(await whileLocked(pool, { text, values: [projectId] }, expire)).toBe(1)
  expect(await expire()).toBe(1)
})

test('the retention removes the old raw bytes of a message but keeps the message, and keeps raw bytes that another inbox still needs', async () => {
  const projectId = await keeping('rawMail', 5)
  const neighbour = await newProject(pool)
  const raw = rawMail()
  const own = await receive(pool, projectId)
  const waiting = await newSent(pool, { projectId })
  const mine = await receive(pool, projectId, raw)
  const { rawId: theirs } = await receive(pool, neighbour, raw)
  await pool.query('update messages set raw_id = $1 where raw_id = $2', [theirs, mine.rawId])
  await age('messages', projectId, 6)
  await expireAll(pool)
  expect(await readRaw(pool, own.rawId)).toBe('')
  expect(await readRaw(pool, theirs)).toBe(raw)
  expect(await countOf('messages', projectId)).toBe(3)
  const { rows } = await pool.query(
    'select raw_expired from messages where project_id = $1 order by row',
    [projectId],
  )
  expect(rows.map(({ raw_expired }) => raw_expired)).toEqual([true, false, true])
  await age('messages', neighbour, 6)
  await keeping('rawMail', 5, neighbour)
  await expireAll(pool)
  expect(await readRaw(pool, theirs)).toBe('')
  expect(await messageOf(pool, projectId, waiting.messageId)).toBeDefined()
})

test('the retention removes ended webhook deliveries with their attempts, and keeps a pending delivery', async () => {
  const projectId = await keeping('deliveries', 3)
  const [pending, ended] = [
    await newDelivery(pool, { projectId }),
    await newDelivery(pool, { projectId }),
  ]
  await pool.query(
    `update webhook_deliveries set status = 'exhausted', next_attempt_at = null where id = $1`,
    [ended],
  )
  await pool.query(
    'insert into webhook_attempts (delivery_id, n, started_at, ended_at) values ($1, 1, now(), now())',
    [ended],
  )
  await age('webhook_deliveries', projectId, 4)
  await expireAll(pool)
  const { rows } = await pool.query('select id from webhook_deliveries where project_id = $1', [
    projectId,
  ])
  expect(rows).toEqual([{ id: pending }])
})

test('the audit log records a change of its own retention, and keeps entries for the number of days that the retention sets', async () => {
  const projectId = await keeping('logs', 120)
  await age('audit_log', projectId, 119, 'at')
  await expireAll(pool)
  expect(await countOf('audit_log', projectId)).toBe(1)
  await keeping('logs', 30, projectId)
  await expireAll(pool)
  const { rows } = await pool.query(
    'select action, actor, detail from audit_log where project_id = $1',
    [projectId],
  )
  expect(rows).toEqual([{ action: 'project.retention', actor: 'lopk-test', detail: 'logs 30' }])
})

test('an idempotency key is kept for the days that its project sets, or else for the service’s days', async () => {
  const projectId = await keeping('idempotencyKeys', 3)
  const other = await newProject(pool)
  const hash = Buffer.alloc(32, 1)
  const keyOf = (id: string) => ({ projectId: id, operation: 'redeem', key: 'k' })
  for (const id of [projectId, other]) {
    await beginIdempotent(pool, { ...keyOf(id), hash })
    await age('idempotency_keys', id, 2)
  }
  await expireAll(pool)
  expect(await findIdempotent(pool, keyOf(projectId))).not.toBeNull()
  expect(await findIdempotent(pool, keyOf(other))).toBeNull()
  expect(await countOf('idempotency_keys', other)).toBe(0)
  const again = await beginIdempotent(pool, { ...keyOf(projectId), hash: Buffer.alloc(32, 2) })
  expect(again.requestHash).toEqual(hash)
  const none = {
    mail: null,
    rawMail: null,
    deliveries: null,
    logs: null,
    idempotencyKeys: null,
    paymentDetails: null,
  }
  await storeServiceRetention(pool, { ...none, idempotencyKeys: 5 })
  await beginIdempotent(pool, { ...keyOf(other), hash })
  await age('idempotency_keys', other, 4)
  expect(await findIdempotent(pool, keyOf(other))).not.toBeNull()
  await storeServiceRetention(pool, none)
  expect(await findIdempotent(pool, keyOf(other))).toBeNull()
})

test('after its retention, a final payment loses its details but no amount; a payment that is not final keeps all details', async () => {
  const projectId = await keeping('paymentDetails', 7)
  const detailed = {
    projectId,
    description: 'A report on Ada',
    resourceUrl: 'https://api.example.com/report?name=ada#x',
  }
  const final = await newSettled(pool, detailed)
  await recordFinal(pool, [final.id])
  const settled = await newSettled(pool, detailed)
  const verified = await newPayment(pool, detailed)
  const usable = await newPayment(pool, detailed)
  const expired = await newPayment(pool, { ...detailed, validBefore: 1_000n })
  await pool.query(
    `update payments set state = 'failed', failure_stage = 'settle', failure_reason = 'x', failure_detail = 'y'
     where id = any ($1)`,
    [[usable, expired]],
  )
  const whole = await row(pool, 'payments', final.id)
  await age('payments', projectId, 8)
  const before = new Map<string, unknown>()
  for (const id of [settled.id, verified, usable]) before.set(id, await row(pool, 'payments', id))
  await expireAll(pool)
  const left = await row(pool, 'payments', final.id)
  expect(left).toEqual({
    ...whole,
    created_at: left.created_at,
    details_removed_at: left.details_removed_at,
    signature: '',
    description: null,
    resource_url: 'https://api.example.com/report',
  })
  expect(left.details_removed_at).toBeInstanceOf(Date)
  for (const [id, payment] of before) expect(await row(pool, 'payments', id)).toEqual(payment)
  expect((await row(pool, 'payments', expired)).signature).toBe('')
})

test('a payment on a former chain of the service loses its details after its retention, but only if its authorization ended over a day ago', async () => {
  const projectId = await keeping('paymentDetails', 7)
  const head = { number: 7n, hash: '0x7' } as const
  await recordHead(pool, { ...head, network: 'base-sepolia', chainId: 84532 })
  const over = Math.floor(Date.now() / 1000) - 86_401
  const usable = BigInt(over + 60)
  const ids: string[] = []
  for (const validBefore of [BigInt(over), usable]) {
    ids.push(await newPayment(pool, { projectId, validBefore }))
    ids.push((await newSettled(pool, { projectId, validBefore })).id)
  }
  await age('payments', projectId, 8)
  const detailed = async () => {
    await expireAll(pool)
    return Promise.all(
      ids.map(async (id) => (await row(pool, 'payments', id)).details_removed_at === null),
    )
  }
  expect(await detailed()).toEqual([true, true, true, true])
  await recordHead(pool, { ...head, network: 'base', chainId: 8453 })
  expect(await detailed()).toEqual([false, false, true, true])
  await pool.query('delete from chain_status')
})

test('a row whose age is exactly the retention time stays, and a row that is a millisecond older is removed', async () => {
  const projectId = await newProject(pool)
  for (const name of RETENTION_NAMES) await keeping(name, 30, projectId)
  await pool.query('delete from audit_log where project_id = $1', [projectId])
  const LIMIT = new Date('2020-01-02T03:04:05.678Z')
  const older = new Date(LIMIT.getTime() - 1)
  const at = async (table: string, column: string, time: Date) => {
    await pool.query(`update ${table} set ${column} = $2 where project_id = $1`, [projectId, time])
  }
  const tables: [RetentionClass, string, string, () => Promise<unknown>][] = [
    ['rawMail', 'messages', 'created_at', () => receive(pool, projectId)],
    ['mail', 'messages', 'created_at', async () => {}],
    ['deliveries', 'webhook_deliveries', 'created_at', () => endedDelivery(projectId)],
    ['logs', 'audit_log', 'at', () => keeping('logs', 30, projectId)],
    ['idempotencyKeys', 'idempotency_keys', 'created_at', () => keptKey(projectId)],
    ['paymentDetails', 'payments', 'created_at', () => finalPayment(projectId)],
  ]
  for (const [name, table, column, make] of tables) {
    await make()
    const counts = []
    for (const time of [LIMIT, older]) {
      await at(table, column, time)
      counts.push(await removeExpired(pool, { projectId, name, before: LIMIT }))
    }
    expect([name, ...counts]).toEqual([name, 0, 1])
  }
  const raw = rawMail()
  const { messageId } = await receive(pool, projectId, raw)
  await deleteMessage(pool, projectId, messageId)
  await receive(pool, projectId, raw)
  const counts = []
  for (const time of [LIMIT, older]) {
    await at('inbound_mails', 'received_at', time)
    counts.push(await removeExpired(pool, { projectId, name: 'mail', before: LIMIT }))
  }
  expect(counts).toEqual([0, 1])
})

test('if an owner raises the retention days during a removal, the running removal deletes no more rows by the shorter time', async () => {
  const projectId = await newProject(pool)
  for (const name of RETENTION_NAMES) await keeping(name, 10, projectId)
  await endedDelivery(projectId)
  await keptKey(projectId)
  await finalPayment(projectId)
  await receive(pool, projectId)
  for (const table of ['messages', 'webhook_deliveries', 'idempotency_keys', 'payments']) {
    await age(table, projectId, 11)
  }
  await age('audit_log', projectId, 11, 'at')
  const found = (await findDue(pool, WALK_START, 1_000)).due
  const due = found.filter((one) => one.projectId === projectId)
  expect(due.map(({ name }) => name).toSorted()).toEqual(RETENTION_NAMES.toSorted())
  for (const name of RETENTION_NAMES) await keeping(name, 365, projectId)
  for (const one of due) expect([one.name, await removeExpired(pool, one)]).toEqual([one.name, 0])
  const mail = due.find(({ name }) => name === 'mail')!
  // If the number of days in a retention setting is null, the rows stay for ever.
  await pool.query('update project_retention set mail_days = null where project_id = $1', [
    projectId,
  ])
  expect(await removeExpired(pool, mail)).toBe(0)
  await keeping('mail', 10, projectId)
  expect(await removeExpired(pool, mail)).toBe(1)
})

async function endedDelivery(projectId: string): Promise<void> {
  const id = await newDelivery(pool, { projectId })
  await pool.query(
    `update webhook_deliveries set status = 'exhausted', next_attempt_at = null where id = $1`,
    [id],
  )
}

const keptKey = (projectId: string) =>
  beginIdempotent(pool, { projectId, operation: 'redeem', key: 'k', hash: Buffer.alloc(32, 1) })

async function finalPayment(projectId: string): Promise<void> {
  const { id } = await newSettled(pool, { projectId })
  await recordFinal(pool, [id])
}

test('two workers together remove the old rows, and each batch is limited and waits for no lock', async () => {
  const projectId = await keeping('mail', 10)
  await receive(pool, projectId)
  await pool.query(
    `insert into messages (project_id, thread_row, direction, message_id, message_id_hash, content_hash, created_at, stored_bytes)
     select project_id, thread_row, direction, 'copy' || n, h, h, created_at, 10
     from messages, generate_series(1, 449) n, sha256(('copy' || n)::bytea) h where project_id = $1`,
    [projectId],
  )
  await pool.query('update threads set message_count = 450 where project_id = $1', [projectId])
  await age('messages', projectId, 11)
  const due = { projectId, name: 'mail' as const, before: new Date() }
  const client = await pool.connect()
  await client.query('begin')
  await client.query('select from projects where id = $1 for no key update', [projectId])
  expect(await removeExpired(pool, due)).toBe(0)
  await client.query('commit')
  client.release()
  expect(await removeExpired(pool, due)).toBe(50)
  const thread = async () =>
    (await pool.query('select message_count from threads where project_id = $1', [projectId])).rows
  expect(await thread()).toEqual([{ message_count: 400 }])
  await Promise.all([expireAll(pool), expireAll(pool)])
  await expireAll(pool)
  expect([await countOf('messages', projectId), await thread()]).toEqual([0, []])
  expect(await storedBytes(projectId)).toEqual({ counted: 0, stored: 0 })
})

test('when old rows are removed, a locked row is removed only in the next batch', async () => {
  const projectId = await keeping('logs', 30)
  await pool.query(
    `insert into audit_log (project_id, action, actor, request_id, outcome)
     values ($1, 'vault.get', 'a', 'r', 'ok')`,
    [projectId],
  )
  await age('audit_log', projectId, 31, 'at')
  const due = { projectId, name: 'logs' as const, before: new Date() }
  const client = await pool.connect()
  await client.query('begin')
  await client.query(
    `select from audit_log where project_id = $1 and action = 'vault.get' for update`,
    [projectId],
  )
  expect(await removeExpired(pool, due)).toBe(1)
  await client.query('commit')
  client.release()
  expect(await removeExpired(pool, due)).toBe(1)
})
