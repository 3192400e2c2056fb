import { afterAll, beforeAll, expect, test } from 'bun:test'
import { copiesAt, sendMail } from '../../support/mail/outbound.ts'
import { type Sink, startSink } from '../../support/mail/sink.ts'
import { talkSmtp } from '../../support/mail/smtpTalk.ts'
import {
  messagePath,
  startTestService,
  type TestService,
  waitForMessages,
} from '../../support/service.ts'

let sink: Sink
let service: TestService
beforeAll(async () => {
  sink = await startSink()
  service = await startTestService({ env: { SMTP_RELAY_URL: sink.url } })
})
afterAll(async () => {
  await service[Symbol.asyncDispose]()
  await sink[Symbol.asyncDispose]()
})

const JOHN = '"john doe"@example.com'

test('mail can be sent to an address with a quoted local part, and the service removes unnecessary quotation marks', async () => {
  const agent = await service.newAgent()
  const to = [JOHN, 'Ann <"ann.lee"@example.com>']
  const sent = await sendMail(agent, { to })
  expect(sent.to).toEqual([JOHN, 'ann.lee@example.com'])
  const copies = await copiesAt(sink, sent.messageId, [JOHN, 'ann.lee@example.com'])
  expect(copies.get(JOHN)!.raw).toMatch(
    /^To: <"john doe"@example\.com>, Ann <ann\.lee@example\.com>/m,
  )
})

test('an agent answers a mail whose sender address has a quoted local part', async () => {
  const agent = await service.newAgent()
  await using talk = await talkSmtp(service.smtp!.port)
  expect(await talk.say(`MAIL FROM:<${JOHN}>`)).toStartWith('250')
  expect(await talk.say(`RCPT TO:<${agent.address}>`)).toStartWith('250')
  expect(await talk.say('DATA')).toStartWith('354')
  const mail = `From: John <${JOHN}>\r\nReply-To: ${JOHN}\r\nMessage-ID: <q@example.com>\r\n\r\nHi.\r\n.\r\n`
  expect(await talk.send(mail)).toStartWith('250')
  const [item] = await waitForMessages(agent, 1)
  expect(item.from).toEqual([JOHN])
  const reply = await agent.post(`${messagePath(item.messageId)}/reply`, { text: 'Yes.' })
  expect([reply.status, reply.body.to]).toEqual([201, [JOHN]])
})

test('an address is refused if its quoted local part contains characters that are not allowed', async () => {
  const agent = await service.newAgent()
  for (const to of [
    '"v@x.test v"@example.com',
    '"a,b"@example.com',
    '"a\\"b"@example.com',
    '""@x.test',
  ]) {
    const { status } = await agent.post('/v0/messages/send', { to: [to], subject: 's', text: 't' })
    expect([to, status]).toEqual([to, 400])
  }
})

test('an SMTP path (address in angle brackets) with a quoted local part is refused if a parameter after the path is malformed', async () => {
  await using talk = await talkSmtp(service.smtp!.port)
  const plain = await talk.say('MAIL FROM:<a@example.com> ENVID=a+0Db')
  expect(plain).toStartWith('501')
  expect(await talk.say(`MAIL FROM:<${JOHN}> ENVID=a+0Db`)).toBe(plain)
  expect(await talk.say(`MAIL FROM:<${JOHN}>`)).toStartWith('250')
})
