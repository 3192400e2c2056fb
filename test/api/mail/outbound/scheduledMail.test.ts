import { afterAll, beforeAll, expect, test } from 'bun:test'
import { sendMail, sunkAt, untilStatus } from '../../../support/mail/outbound.ts'
import { type Sink, startSink } from '../../../support/mail/sink.ts'
import { startProcess } from '../../../support/process/process.ts'
import {
  type Agent,
  messagePath,
  startTestService,
  type TestService,
} from '../../../support/service.ts'
import { waitFor } from '../../../support/waitFor.ts'
import '../../../support/long.ts'

let sink: Sink
let service: TestService
beforeAll(async () => {
  sink = await startSink()
  service = await startTestService({
    smtp: false,
    env: { SMTP_RELAY_URL: sink.url, DAILY_SEND_LIMIT: '20' },
  })
})
afterAll(async () => {
  await service[Symbol.asyncDispose]()
  await sink[Symbol.asyncDispose]()
})

const inMs = (ms: number) => new Date(Date.now() + ms).toISOString()
const cancel = (agent: Agent, messageId: string) => agent.post(`${messagePath(messageId)}/cancel`)
const usedToday = async (agent: Agent) => {
  const { rows } = await service.database.pool.query(
    'select used from send_quotas where project_id = $1',
    [agent.project.id],
  )
  return rows[0].used
}
const jobs = async (messageId: string, of = service) => {
  const { rows } = await of.database.pool.query(
    `select j.run_at from graphile_worker.jobs j join messages m on j.key = 'send_mail:' || m.row
     where m.message_id = $1`,
    [messageId],
  )
  return rows
}

test('a mail with sendAt has the delivery status scheduled and the label scheduled until that time', async () => {
  const agent = await service.newAgent()
  const sendAt = inMs(3_600_000)
  const sent = await sendMail(agent, { sendAt })
  expect([sent.deliveryStatus, sent.sendAt, sent.labels]).toEqual([
    'scheduled',
    sendAt,
    ['sent', 'scheduled'],
  ])
  const { body: waiting } = await agent.get(messagePath(sent.messageId))
  expect([waiting.deliveryStatus, waiting.sendAt]).toEqual(['scheduled', sendAt])
  const listed = await agent.get('/v0/messages?labels=scheduled')
  expect(listed.body.messages.map((one: any) => one.messageId)).toEqual([sent.messageId])
})

test('a mail with sendAt is sent at that time, and not earlier', async () => {
  const agent = await service.newAgent()
  const sendAt = inMs(3_000)
  const sent = await sendMail(agent, { sendAt })
  expect(sent.deliveryStatus).toBe('scheduled')
  const copy = await sunkAt(sink, sent.messageId)
  expect(Date.now()).toBeGreaterThanOrEqual(Date.parse(sendAt))
  expect(new Date(copy.email.date!).getTime()).toBe(Math.floor(Date.parse(sendAt) / 1000) * 1000)
  const done = await untilStatus(agent, sent.messageId, 'sent')
  expect(done.labels).toEqual(['sent'])
})

test('a reply with sendAt is scheduled, and a repeated call after this time gets the first response again', async () => {
  const agent = await service.newAgent()
  const first = await sendMail(agent)
  const reply = { text: 'Later', sendAt: inMs(3_000) }
  const path = `${messagePath(first.messageId)}/reply`
  const key = { 'idempotency-key': 'later' }
  const { status, body } = await agent.post(path, reply, key)
  expect([status, body.deliveryStatus, body.threadId]).toEqual([201, 'scheduled', first.threadId])
  await untilStatus(agent, body.messageId, 'sent')
  expect((await agent.post(path, reply, key)).body).toEqual(body)
})

test.each([
  ['yesterday', 'be an ISO 8601 time'],
  ['2026-01-31', 'be an ISO 8601 time'],
  ['2026-01-31T09:30:00', 'be an ISO 8601 time'],
  [new Date(Date.now() - 1_000).toISOString(), 'lie in the future'],
  [new Date(Date.now() + 367 * 86_400_000).toISOString(), 'at most 366 days ahead'],
])('a send request with sendAt %s gets status 400', async (sendAt, said) => {
  const agent = await service.newAgent()
  const mail = { to: ['a@example.com'], subject: 's', text: 't', sendAt }
  const { status, body } = await agent.post('/v0/messages/send', mail)
  expect([status, body.error]).toEqual([400, 'bad_request'])
  expect(body.message).toStartWith('sendAt must')
  expect(body.message).toContain(said)
})

test('a cancelled mail is never sent, and its recipients no longer count against the quota', async () => {
  const agent = await service.newAgent()
  const { messageId } = await sendMail(agent, {
    to: ['a@example.com', 'b@example.com'],
    sendAt: inMs(3_600_000),
  })
  expect(await usedToday(agent)).toBe(2)
  expect(await jobs(messageId)).toHaveLength(1)
  const ends = await Promise.all([cancel(agent, messageId), cancel(agent, messageId)])
  for (const { status, body } of ends) {
    expect([status, body.deliveryStatus, body.labels]).toEqual([200, 'cancelled', ['sent']])
  }
  expect([await usedToday(agent), await jobs(messageId)]).toEqual([0, []])
  const stranger = await service.newAgent()
  expect((await cancel(stranger, messageId)).status).toBe(404)
})

test('a scheduled mail that is deleted leaves no job in the queue', async () => {
  const agent = await service.newAgent()
  const { messageId } = await sendMail(agent, { sendAt: inMs(3_600_000) })
  const { rows } = await service.database.pool.query(
    'select row from messages where message_id = $1',
    [messageId],
  )
  expect((await agent.delete(messagePath(messageId))).status).toBe(204)
  const left = await service.database.pool.query(
    `select from graphile_worker.jobs where key = 'send_mail:' || $1`,
    [rows[0].row],
  )
  expect(left.rowCount).toBe(0)
})

test('once the sending of a mail has begun, the mail cannot be cancelled', async () => {
  const agent = await service.newAgent()
  const { messageId } = await sendMail(agent)
  await untilStatus(agent, messageId, 'sent')
  const { status, body } = await cancel(agent, messageId)
  expect([status, body.error]).toEqual([409, 'conflict'])
})

test('if a scheduled mail is cancelled exactly when it is due, it is either cancelled or sent, but not both', async () => {
  const agent = await service.newAgent()
  const ends = await Promise.all(
    Array.from({ length: 12 }, async (_, n) => {
      const { messageId } = await sendMail(agent, { sendAt: inMs(3_000 + n * 5) })
      const { sendAt } = (await agent.get(messagePath(messageId))).body
      await waitFor('its time', () => Date.now() >= Date.parse(sendAt) - 20)
      const { status } = await cancel(agent, messageId)
      const end = await waitFor('an end', async () => {
        const { deliveryStatus } = (await agent.get(messagePath(messageId))).body
        return ['sent', 'cancelled'].includes(deliveryStatus) ? deliveryStatus : null
      })
      return { messageId, status, end }
    }),
  )
  for (const { messageId, status, end } of ends) {
    expect([status, end]).toEqual(status === 200 ? [200, 'cancelled'] : [409, 'sent'])
    const copies = sink.mails.filter((mail) => mail.email.messageId === messageId)
    expect(copies).toHaveLength(end === 'sent' ? 1 : 0)
  }
})

test('if the worker that handles a scheduled mail is killed, the mail is still sent', async () => {
  await using idle = await startTestService({ smtp: false, workers: false })
  const agent = await idle.newAgent()
  const env = {
    DATABASE_URL: idle.database.url,
    SMTP_RELAY_URL: sink.url,
    MAIL_DOMAIN: 'mail.test',
    DATA_DIR: idle.config.dataDir,
    LOG_LEVEL: 'silent',
  }
  await using doomed = startProcess('workers/main.ts', env, ['--pool', 'mail'])
  const first = await sendMail(agent)
  await untilStatus(agent, first.messageId, 'sent')
  const { messageId, sendAt } = await sendMail(agent, { sendAt: inMs(3_000) })
  doomed.child.kill('SIGKILL')
  await doomed.exited
  expect(await jobs(messageId, idle)).toHaveLength(1)
  await using heir = startProcess('workers/main.ts', env, ['--pool', 'mail'])
  await sunkAt(sink, messageId)
  expect(Date.now()).toBeGreaterThanOrEqual(Date.parse(sendAt))
  await untilStatus(agent, messageId, 'sent')
  heir.child.kill('SIGTERM')
  await heir.exited
})
