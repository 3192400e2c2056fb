/** Runs the jobs of approval requests alone on a test database, with a smarthost on this machine. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { findApproval, findApprovalOf } from '../../../sql/account/approvals.ts'
import {
  createAnnounceApproval,
  createExpireApproval,
} from '../../../workers/mail/announceApproval.ts'
import { createRelayTransport } from '../../../workers/mail/outbound/relay/relayTransport.ts'
import type { Transport } from '../../../workers/mail/outbound/transport.ts'
import { Lanes, MAIL_LIMITS } from '../../../workers/queue/lanes.ts'
import { changingBefore } from '../../support/database/beforeStatement.ts'
import { noBlobs } from '../../support/database/blobs.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database/database.ts'
import { silentLog } from '../../support/logs.ts'
import { eventsOf, newSent } from '../../support/mail/mailRows.ts'
import { type Sink, startSink } from '../../support/mail/sink.ts'
import { newKeyring } from '../../support/purse/purseRows.ts'
import { dropJobs, newProject } from '../../support/till/tillRows.ts'
import { waitFor } from '../../support/waitFor.ts'

const ADA = 'ada@owner.example'

let database: TestDatabase
let pool: TestDatabase['pool']
let sink: Sink
let transport: ReturnType<typeof createRelayTransport>
let announce: (approvalId: string) => Promise<void>
let expire: (approvalId: string) => Promise<void>

beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
  sink = await startSink()
  transport = createRelayTransport(
    { relayUrl: sink.url, relayTls: 'opportunistic', relayCaFile: undefined },
    { ownName: 'mail.test', log: silentLog },
  )
  const keyring = await newKeyring(pool)
  const outcomes = { record: (work: () => unknown) => work() }
  const context = { pool, outcomes, lanes: new Lanes(32, MAIL_LIMITS) } as never
  const announcing = createAnnounceApproval(context, {
    ...{ mailDomain: 'mail.test', baseUrl: 'https://purser.example', transport, blobs: noBlobs },
    keyring: async () => keyring,
    approvalTokens: (id, address) => `${id}${address}`,
  })
  announce = (approvalId) => announcing({ approvalId }, { attempt: 1 })
  const expiring = createExpireApproval(context)
  expire = (approvalId) => expiring({ approvalId }, { attempt: 1 })
})
afterAll(async () => {
  transport.close()
  await sink[Symbol.asyncDispose]()
  await database[Symbol.asyncDispose]()
})
beforeEach(() => {
  sink.mails.length = 0
  sink.refuseRecipient = () => null
})

/** Stores a mail that waits for the approval of its project's approver. */
async function hold() {
  const { projectId, messageId } = await newSent(pool, { held: true })
  await pool.query('update projects set approver_email = $2 where id = $1', [projectId, ADA])
  await dropJobs(pool)
  return (await findApprovalOf(pool, { projectId, kind: 'mail', subject: messageId }))!
}
const change = (id: string, set: string) =>
  pool.query(`update approvals set ${set} where id = $1`, [id])

/** Returns the seconds until the job that announces an approval request runs, or null if there is no such job. */
async function announcedInS(id: string): Promise<number | null> {
  const { rows } = await pool.query(
    `select extract(epoch from run_at - clock_timestamp())::float8 as s from graphile_worker.jobs where key = $1`,
    [`announce_approval:${id}`],
  )
  return rows[0]?.s ?? null
}
const isNotified = async (id: string) => {
  const { rows } = await pool.query('select notified_at from approvals where id = $1', [id])
  return rows[0].notified_at !== null
}

test('the approver of a waiting mail gets one notification with a link', async () => {
  const { id, projectId } = await hold()
  await announce(id)
  await announce(id)
  expect(sink.mails.map(({ to }) => to)).toEqual([[ADA]])
  expect(sink.mails[0]!.email.text).toContain(`https://purser.example/approve/${id}${ADA}`)
  expect([await isNotified(id), await announcedInS(id)]).toEqual([true, null])
  expect(await eventsOf(pool, projectId)).toEqual(['message.held'])
})

test('a notification that the smarthost defers is sent again after growing pauses', async () => {
  const { id } = await hold()
  sink.refuseRecipient = () => ({ code: 450, message: '4.2.1 later' })
  await announce(id)
  expect(await announcedInS(id)).toBeWithin(5, 15.1)
  await announce(id)
  expect(await announcedInS(id)).toBeWithin(50, 60.1)
  expect(await isNotified(id)).toBe(false)
})

test('if the smarthost still defers a notification after a day, the service does not send it any more', async () => {
  const { id } = await hold()
  await change(id, `requested_at = requested_at - interval '1 day'`)
  sink.refuseRecipient = () => ({ code: 450, message: '4.2.1 later' })
  await announce(id)
  expect([await isNotified(id), await announcedInS(id)]).toEqual([true, null])
})

test('while the mail host of an approver hangs, the project’s notifications use only two job slots, and the next notification is postponed', async () => {
  const held = Promise.withResolvers<void>()
  let hanging = 0
  const hangs: Transport = {
    ...transport,
    route: 'direct',
    async send({ envelopes }, report) {
      hanging++
      await held.promise
      await report(envelopes.map(({ to }) => ({ address: to, state: 'sent', error: null })))
    },
  }
  const { id, projectId } = await hold()
  const lanes = new Lanes(32, MAIL_LIMITS)
  const outcomes = { record: (work: () => unknown) => work() }
  const send = createAnnounceApproval({ pool, outcomes, lanes } as never, {
    ...{ mailDomain: 'mail.test', baseUrl: 'https://purser.example', blobs: noBlobs },
    ...{ transport: hangs, keyring: async () => await newKeyring(pool) },
    approvalTokens: (approvalId, address) => `${approvalId}${address}`,
  })
  const runs = [1, 2].map(() => send({ approvalId: id }, { attempt: 1 }))
  await waitFor('the notices to hang', () => hanging === 2)
  await send({ approvalId: id }, { attempt: 1 })
  expect(await announcedInS(id)).toBeWithin(0, 60)
  expect((await lanes.enter('good.test', projectId)).granted).toBe(true)
  held.resolve()
  await Promise.all(runs)
  expect(hanging).toBe(2)
})

test('nobody gets a notification about an approval request that is unknown or decided', async () => {
  const { id } = await hold()
  await change(id, `state = 'rejected'`)
  await announce(id)
  await announce('apr_none')
  expect(sink.mails).toEqual([])
})

test('nobody gets a notification about a mail that is deleted before or during the announcement', async () => {
  const deleteMail = (messageId: string) =>
    pool.query('delete from messages where message_id = $1', [messageId])
  const before = await hold()
  await deleteMail(before.subject)
  await announce(before.id)
  expect(await eventsOf(pool, before.projectId)).not.toContain('message.held')
  const during = await hold()
  await changingBefore(
    'left(m.text_body',
    () => deleteMail(during.subject),
    () => announce(during.id),
  )
  expect([sink.mails, await isNotified(during.id)]).toEqual([[], false])
})

test('nobody gets a notification about a payment whose purchase no longer exists', async () => {
  const projectId = await newProject(pool)
  await pool.query('update projects set approver_email = $2 where id = $1', [projectId, ADA])
  await pool.query(
    `insert into approvals (id, project_id, kind, subject, expires_at)
     values ('apr_gone', $1, 'payment', 'pur_none', now() + interval '1 hour')`,
    [projectId],
  )
  await announce('apr_gone')
  expect([sink.mails, await isNotified('apr_gone')]).toEqual([[], false])
})

test('an approval request that nobody has decided ends at its expiry; an unknown or decided request stays unchanged', async () => {
  const [waiting, decided] = [await hold(), await hold()]
  for (const { id } of [waiting, decided]) await change(id, 'expires_at = now()')
  await change(decided.id, `state = 'approved'`)
  for (const id of [waiting.id, decided.id, 'apr_none']) await expire(id)
  const states = [waiting, decided].map(async ({ id }) => (await findApproval(pool, id))?.state)
  expect(await Promise.all(states)).toEqual(['expired', 'approved'])
})
