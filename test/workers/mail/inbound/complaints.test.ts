import { afterAll, beforeAll, expect, test } from 'bun:test'
import { copiesAt, sendMail, untilStatus } from '../../../support/mail/outbound.ts'
import { handOver, INBOUND_ENV } from '../../../support/mail/signedMail.ts'
import { type Sink, startSink } from '../../../support/mail/sink.ts'
import { deliverRaw } from '../../../support/mail/smtpTalk.ts'
import {
  type Agent,
  messagePath,
  startTestService,
  type TestService,
  waitForMessages,
} from '../../../support/service.ts'
import { waitFor } from '../../../support/waitFor.ts'
import '../../../support/long.ts'

let sink: Sink
let service: TestService
let operator: Agent
beforeAll(async () => {
  sink = await startSink()
  service = await startTestService({
    env: { ...INBOUND_ENV, SMTP_RELAY_URL: sink.url, POSTMASTER: 'operator@mail.test' },
  })
  operator = await service.newAgent({ emailName: 'operator' })
})
afterAll(async () => {
  await service[Symbol.asyncDispose]()
  await sink[Symbol.asyncDispose]()
})

/** Sends a message, and returns the copy that the relay got for each recipient. */
async function sent(agent: Agent, to: string[] = ['ada@example.com']) {
  const { messageId } = await sendMail(agent, { to })
  const copies = await copiesAt(sink, messageId, to)
  await untilStatus(agent, messageId, 'sent')
  return { messageId, copies: to.map((one) => copies.get(one)!) }
}

const suppressed = async (agent: Agent) =>
  (await agent.get('/v0/suppressions')).body.suppressions.map(({ address, reason }: any) => [
    address,
    reason,
  ])
const labelsOf = async (agent: Agent, messageId: string) =>
  (await agent.get(messagePath(messageId))).body.labels
const events = async (agent: Agent) => {
  const { rows } = await service.database.pool.query(
    `select data ->> 'messageId' as id from events where project_id = $1 and type = 'message.complained'`,
    [agent.project.id],
  )
  return rows.map(({ id }) => id)
}

let reports = 0
/** Returns a complaint report in the form of RFC 5965, as Yahoo sends it. */
const arf = ({ returnPath, type = 'abuse' }: { returnPath: string; type?: string }) =>
  `From: feedback@arf.mail.example\r\nTo: postmaster@mail.test\r\nMessage-ID: <arf${++reports}@arf.mail.example>
Subject: complaint\r\nMIME-Version: 1.0\r\nContent-Type: multipart/report; report-type=feedback-report; boundary=b

--b\r\nContent-Type: text/plain\r\n\r\nThis is an email abuse report.\r\n
--b\r\nContent-Type: message/feedback-report

Feedback-Type: ${type}\r\nUser-Agent: Loop/1.0\r\nVersion: 1\r\nOriginal-Mail-From: <redacted@mail.test>

--b\r\nContent-Type: message/rfc822

Return-Path: <${returnPath}>\r\nSubject: Subject\r\n\r\nText\r\n
--b--\r\n`.replace(/\r?\n/g, '\r\n')

/** Delivers a complaint report to the operator, and waits until the report is stored. */
async function report(raw: string) {
  const before = (await operator.get('/v0/messages?limit=100')).body.count
  expect(await deliverRaw(service.smtp!.port, 'postmaster@mail.test', raw)).toStartWith('250')
  await waitForMessages(operator, before + 1)
}

test('a spam complaint by mail labels its message, suppresses the recipient and sends one event, even if the complaint is repeated', async () => {
  const agent = await service.newAgent()
  const { messageId, copies } = await sent(agent, ['ada@example.com', 'bob@example.com'])
  await report(arf({ returnPath: copies[0]!.from }))
  expect(await suppressed(agent)).toEqual([['ada@example.com', 'complaint']])
  expect(await labelsOf(agent, messageId)).toEqual(['sent', 'complained'])
  expect(await events(agent)).toEqual([messageId])

  await agent.delete('/v0/suppressions/ada@example.com')
  await report(arf({ returnPath: copies[0]!.from }))
  expect([await suppressed(agent), await events(agent)]).toEqual([[], [messageId]])
})

test.each(['ALLOW', 'BLOCK'] as const)(
  'a spam complaint takes effect although an %s rule of the inbox refuses the complaint report',
  async (type) => {
    const agent = await service.newAgent()
    const { copies } = await sent(agent)
    const inbox = await service.newAgent()
    const value = type === 'ALLOW' ? '*@friend.example' : '*@late.example'
    await inbox.post('/v0/email-rules', { type, scope: 'RECEIVE', value })
    const raw = arf({ returnPath: copies[0]!.from }).replace(
      'From: feedback@arf.mail.example',
      'From: feedback@late.example',
    )
    expect(await deliverRaw(service.smtp!.port, inbox.address, raw)).toStartWith('250')
    await waitFor('the suppression', async () => (await suppressed(agent)).length > 0)
    expect(await suppressed(agent)).toEqual([['ada@example.com', 'complaint']])
    expect((await inbox.get('/v0/messages')).body.count).toBe(0)
  },
)

test('a complaint report without proof of its origin, and a report that is not a complaint, change nothing', async () => {
  const agent = await service.newAgent()
  const { messageId, copies } = await sent(agent)
  const { from } = copies[0]!
  for (const raw of [
    arf({ returnPath: agent.address }),
    arf({ returnPath: from.replace(/.(?=@)/, (last) => (last === 'a' ? 'b' : 'a')) }),
    arf({ returnPath: from, type: 'not-spam' }),
    arf({ returnPath: from, type: 'auth-failure' }),
  ]) {
    await report(raw)
  }
  expect([await suppressed(agent), await labelsOf(agent, messageId)]).toEqual([[], ['sent']])
})

/** Sends a request to the webhook of a mail domain through which Postmark reports bounces and complaints. */
async function postmark(domain: string, body: object, password?: string) {
  const { body: made } = await service.platform.post(`/v0/platform/domains/${domain}/inbound`)
  const url = new URL(made.postmarkUrl)
  const login = `${url.username}:${password ?? url.password}`
  return await handOver(
    service.smtp!.httpPort!,
    {
      method: 'POST',
      body: JSON.stringify(body),
      headers: { authorization: `Basic ${Buffer.from(login).toString('base64')}` },
    },
    url.pathname,
  )
}
const complaintOf = (id: string, more: object = {}) => ({
  RecordType: 'SpamComplaint',
  Type: 'SpamComplaint',
  ID: 42,
  MessageID: id,
  Email: 'Ada@example.com',
  From: 'x@mail.test',
  Details: 'spam complaint',
  ...more,
})

test('the message id in the relay’s SMTP reply 250 matches a complaint to its message, and a repeated complaint changes nothing', async () => {
  const agent = await service.newAgent()
  const { messageId, copies } = await sent(agent)
  const complaint = complaintOf(copies[0]!.id)
  expect((await postmark('mail.test', complaint, 'wrong')).status).toBe(401)
  expect(await suppressed(agent)).toEqual([])
  expect(await postmark('mail.test', complaint)).toMatchObject({
    status: 200,
    body: { recorded: true },
  })
  expect(await suppressed(agent)).toEqual([['ada@example.com', 'complaint']])
  expect(await events(agent)).toEqual([messageId])
  await agent.delete('/v0/suppressions/ada@example.com')
  expect((await postmark('mail.test', complaint)).body).toEqual({ recorded: false })
  expect(await suppressed(agent)).toEqual([])
})

test('a complaint without the id from the SMTP reply 250 is matched to its message by Message-ID or envelope sender', async () => {
  for (const content of [
    (id: string, _: string) => `Received: by x\r\nMessage-ID: ${id}\r\n\r\nText`,
    (_: string, from: string) => `Return-Path: <${from}>\r\nSubject: x\r\n\r\nText`,
  ]) {
    const agent = await service.newAgent()
    const { messageId, copies } = await sent(agent)
    const Content = content(messageId, copies[0]!.from)
    const found = complaintOf('another-id-0', { Content, From: agent.address })
    expect((await postmark('mail.test', { ...found, Email: 'eve@example.com' })).body).toEqual({
      recorded: false,
    })
    expect((await postmark('mail.test', found)).body).toEqual({ recorded: true })
    expect(await suppressed(agent)).toEqual([['ada@example.com', 'complaint']])
  }
})

test('a mail relay’s report about a hard bounce marks the message as bounced, but a report about a block or a delay does not', async () => {
  const agent = await service.newAgent()
  const { messageId, copies } = await sent(agent)
  const bounce = (Type: string) => ({
    ...complaintOf(copies[0]!.id),
    RecordType: 'Bounce',
    Type,
    Details: 'smtp;550 5.1.1 User unknown',
  })
  for (const type of ['Transient', 'Blocked', 'AutoResponder']) {
    expect((await postmark('mail.test', bounce(type))).body).toEqual({ recorded: false })
  }
  expect((await postmark('mail.test', bounce('HardBounce'))).body).toEqual({ recorded: true })
  expect((await postmark('mail.test', bounce('HardBounce'))).body).toEqual({ recorded: false })
  expect((await untilStatus(agent, messageId, 'bounced')).deliveryError).toBe(
    'ada@example.com: smtp;550 5.1.1 User unknown',
  )
  expect(await suppressed(agent)).toEqual([['ada@example.com', 'bounce']])
})

test('a mail relay’s report is recorded although the quoted SMTP reply contains characters that PostgreSQL refuses', async () => {
  const agent = await service.newAgent()
  const { messageId, copies } = await sent(agent)
  const bounce = {
    ...complaintOf(`${copies[0]!.id}\0`, { From: `x\0${agent.address}` }),
    RecordType: 'Bounce',
    Type: 'HardBounce',
    Details: 'smtp;550 5.1.1 \0User unknown\u001b[0m',
    Content: `Message-ID: ${messageId}\r\n\r\nText`,
  }
  expect(await postmark('mail.test', { ...bounce, MessageID: '\0' })).toMatchObject({
    status: 200,
    body: { recorded: false },
  })
  const report = { ...bounce, From: agent.address }
  expect(await postmark('mail.test', report)).toMatchObject({
    status: 200,
    body: { recorded: true },
  })
  expect((await untilStatus(agent, messageId, 'bounced')).deliveryError).toBe(
    'ada@example.com: smtp;550 5.1.1 User unknown [0m',
  )
})

test('a complaint report that is sent with the webhook key of one domain changes no message of another domain', async () => {
  const agent = await service.newAgent()
  const { copies } = await sent(agent)
  await service.platform.post('/v0/platform/domains', { domain: 'other.example' })
  expect((await postmark('other.example', complaintOf(copies[0]!.id))).body).toEqual({
    recorded: false,
  })
  expect(await suppressed(agent)).toEqual([])
})
