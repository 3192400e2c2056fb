import { afterAll, beforeAll, expect, test } from 'bun:test'
import { startEventFeed } from '../../../../api/events/eventFeed.ts'
import { type SmtpServer, startSmtp } from '../../../../api/smtp/server.ts'
import { silentLog } from '../../../support/logs.ts'
import { hurry, sendMail, untilStatus } from '../../../support/mail/outbound.ts'
import { handOver, INBOUND_ENV, signedRequest } from '../../../support/mail/signedMail.ts'
import { deliverRaw, talkSmtp } from '../../../support/mail/smtpTalk.ts'
import {
  type Agent,
  startTestService,
  type TestService,
  waitForMessages,
} from '../../../support/service.ts'
import { waitFor } from '../../../support/waitFor.ts'
import '../../../support/long.ts'

const MB = 1024 * 1024

let service: TestService
let smtp: SmtpServer
beforeAll(async () => {
  service = await startTestService({ smtp: false, env: { ...INBOUND_ENV, STORAGE_MB: '2' } })
  smtp = await startSmtp(service.config, service.database.url, silentLog, { quotaCheckMs: 20 })
})
afterAll(async () => {
  await smtp.stop()
  await service[Symbol.asyncDispose]()
})

const projectOf = async ({ project }: Agent) =>
  (await service.platform.get(`/v0/platform/projects/${project.id}`)).body

const setLimit = (agent: Agent, storageBytes: number | null) =>
  service.platform.patch(`/v0/platform/projects/${agent.project.id}`, { limits: { storageBytes } })

const mail = (subject: string) => `Subject: ${subject}\n\n${`${'x'.repeat(98)}\n`.repeat(12_000)}`

async function rcpt(to: string): Promise<string> {
  await using talk = await talkSmtp(smtp.port)
  await talk.say('MAIL FROM:<a@example.com>')
  return await talk.say(`RCPT TO:<${to}>`)
}

const send = (agent: Agent) =>
  agent.post('/v0/messages/send', { to: ['a@example.com'], subject: 's', text: 'x' })

test('an inbox whose storage is full neither receives nor sends mail until its owner deletes messages', async () => {
  const [agent, other] = [await service.newAgent(), await service.newAgent()]
  for (let n = 0; n < 2; n++) {
    expect(await deliverRaw(smtp.port, agent.address, mail(`mail ${n}`))).toStartWith('250')
  }
  const messages = await waitForMessages(agent, 2)
  await waitFor('a refusal', async () => (await rcpt(agent.address)).startsWith('452 4.2.2'))
  expect(await rcpt(other.address)).toStartWith('250')
  expect(await send(agent)).toMatchObject({
    status: 413,
    body: { error: 'quota_exceeded', message: expect.stringMatching(/delete messages/) },
  })
  expect((await send(other)).status).toBe(201)
  expect(await projectOf(agent)).toMatchObject({ limits: { storageBytes: 2 * MB } })
  expect((await projectOf(agent)).usage.storageBytes).toBeGreaterThan(2 * MB)

  await agent.delete(`/v0/messages/${encodeURIComponent(messages[0].messageId)}`)
  await waitFor('room', async () => (await rcpt(agent.address)).startsWith('250'))
  expect((await send(agent)).status).toBe(201)
})

test('the storage of a sent mail counts the bytes of its texts in UTF-8', async () => {
  const agent = await service.newAgent()
  const sent = {
    to: ['a@example.com'],
    subject: 's',
    text: '漢'.repeat(1_000),
    html: 'é'.repeat(10),
  }
  expect((await agent.post('/v0/messages/send', sent)).status).toBe(201)
  expect((await projectOf(agent)).usage.storageBytes).toBe(3_020)
})

test('the operator changes the storage limit of one project', async () => {
  const agent = await service.newAgent()
  expect((await send(agent)).status).toBe(201)
  expect(await setLimit(agent, 1)).toMatchObject({
    status: 200,
    body: { usage: { storageBytes: 1 }, limits: { storageBytes: 1 } },
  })
  expect((await send(agent)).status).toBe(413)
  expect((await setLimit(agent, null)).body.limits.storageBytes).toBe(2 * MB)
  expect((await send(agent)).status).toBe(201)
  expect(await setLimit(agent, -1)).toMatchObject({
    status: 400,
    body: {
      message: "limits.storageBytes must be a number of bytes, or null for the service's limit",
    },
  })
})

test('while the recipient’s storage is full, mail from another project of the service waits, as mail from outside does', async () => {
  const [full, other] = [await service.newAgent(), await service.newAgent()]
  expect((await send(full)).status).toBe(201)
  await setLimit(full, 1)
  const { messageId } = await sendMail(other, { to: [full.address, other.address] })
  const { deliveryError } = await untilStatus(other, messageId, 'deferred')
  expect(deliveryError).toBe(`${full.address}: 452 4.2.2 The inbox is full`)
  await waitForMessages(other, 1, '&labels=received')
  expect((await full.get('/v0/messages?labels=received')).body.count).toBe(0)
  await setLimit(full, null)
  await hurry(service, messageId)
  await untilStatus(other, messageId, 'sent')
  await waitForMessages(full, 1, '&labels=received')
  expect((await other.get('/v0/messages?labels=received')).body.count).toBe(1)
})

test('if one recipient of a mail over HTTP has a full inbox, the others get the mail at once, and this inbox gets it later', async () => {
  const [full, other] = [await service.newAgent(), await service.newAgent()]
  expect((await send(full)).status).toBe(201)
  await setLimit(full, 1)
  await waitFor('a refusal', async () => (await rcpt(full.address)).startsWith('452 4.2.2'))
  const request = signedRequest({ to: [full.address, other.address] })
  const hand = () => handOver(smtp.httpPort!, request)
  for (let n = 0; n < 2; n++) {
    const { status, body } = await hand()
    expect([status, body.message]).toEqual([503, '4.2.2 The inbox is full'])
  }
  await waitForMessages(other, 1)
  await setLimit(full, null)
  await waitFor('room', async () => (await rcpt(full.address)).startsWith('250'))
  expect(await hand()).toMatchObject({
    status: 200,
    body: { accepted: [full.address, other.address], refused: [] },
  })
  await waitForMessages(full, 1, '&labels=received')
  expect((await other.get('/v0/messages')).body.count).toBe(1)
})

test('the stored size of a project stays correct, whichever process stores or deletes its messages', async () => {
  const { pool } = service.database
  const agents = await Promise.all(Array.from({ length: 4 }, () => service.newAgent()))
  await Promise.all(agents.flatMap((agent) => Array.from({ length: 10 }, () => send(agent))))
  const messages = (await agents[0]!.get('/v0/messages')).body.messages
  await agents[0]!.delete(`/v0/messages/${encodeURIComponent(messages[0].messageId)}`)
  for (const agent of agents) {
    const { rows } = await pool.query(
      'select coalesce(sum(stored_bytes), 0)::int as bytes from messages where project_id = $1',
      [agent.project.id],
    )
    expect((await projectOf(agent)).usage.storageBytes).toBe(rows[0].bytes)
  }
})

test('a project may have at most 1,000 open event streams and waiting calls, and these do not reduce the number that another project may have', async () => {
  const [agent, other] = [await service.newAgent(), await service.newAgent()]
  const { url, pool } = service.database
  const feed = startEventFeed(url, pool, silentLog)
  try {
    const open = ({ project }: Agent) => feed.open(project.id, null)
    const opened = await Promise.all(Array.from({ length: 1_000 }, () => open(agent)))
    await expect(open(agent)).rejects.toMatchObject({ status: 429, code: 'rate_limited' })
    await open(other)
    opened[0]!.reader.close()
    await open(agent)
  } finally {
    feed.release()
    await feed.stop()
  }
})
