import { afterAll, beforeAll, expect, test } from 'bun:test'
import { sendMail, sunkAt } from '../../../support/mail/outbound.ts'
import { type Sink, startSink } from '../../../support/mail/sink.ts'
import { messagePath, startTestService, type TestService } from '../../../support/service.ts'

let sink: Sink
let service: TestService
beforeAll(async () => {
  sink = await startSink()
  service = await startTestService({ smtp: false, env: { SMTP_RELAY_URL: sink.url } })
})
afterAll(async () => {
  await service[Symbol.asyncDispose]()
  await sink[Symbol.asyncDispose]()
})

const headerOf = async (messageId: string) => {
  const { email } = await sunkAt(sink, messageId)
  return (name: string) => email.headers.filter(({ key }) => key === name).map(({ value }) => value)
}

test('a sent mail or reply contains the additional headers from the send request', async () => {
  const agent = await service.newAgent()
  const headers = { 'X-Order': '5521; state=paid', 'List-Id': '<news.example.com>' }
  const { messageId } = await sendMail(agent, { headers })
  const sent = await headerOf(messageId)
  expect(sent('x-order')).toEqual(['5521; state=paid'])
  expect(sent('list-id')).toEqual(['<news.example.com>'])
  const reply = await agent.post(`${messagePath(messageId)}/reply`, {
    text: 'And one more.',
    headers: { 'Auto-Submitted': 'auto-replied', 'x-trace': 'a'.repeat(900) },
  })
  expect(reply.status).toBe(201)
  const replied = await headerOf(reply.body.messageId)
  expect(replied('auto-submitted')).toEqual(['auto-replied'])
  expect(replied('x-trace')).toEqual(['a'.repeat(900)])
})

test.each([
  [{ Subject: 'x' }, 'headers.Subject must be X-*, List-* or Auto-Submitted'],
  [
    { 'X-A: b\r\nBcc': 'v@example.com' },
    'headers must be named by at most 76 letters, digits and hyphens',
  ],
  [
    { 'X-A': 'b\r\nBcc: v@example.com' },
    'headers.X-A must be one line of 1 to 900 visible ASCII characters',
  ],
  [{ 'X-A': 'b\nc' }, 'headers.X-A must be one line of 1 to 900 visible ASCII characters'],
  [{ 'X-A': '' }, 'headers.X-A must be one line of 1 to 900 visible ASCII characters'],
  [{ 'X-A': 'ü' }, 'headers.X-A must be one line of 1 to 900 visible ASCII characters'],
  [{ 'X-A': 'a'.repeat(901) }, 'headers.X-A must be one line of 1 to 900 visible ASCII characters'],
  [{ 'X-A': '1', 'x-a': '2' }, 'headers.x-a must differ from the earlier ones'],
  [
    Object.fromEntries(Array.from({ length: 21 }, (_, n) => [`X-${n}`, 'a'])),
    'headers must name at most 20 fields',
  ],
])(
  'a send request with the headers %j is refused with the expected message',
  async (headers, message) => {
    const agent = await service.newAgent()
    const mail = { to: ['a@example.com'], subject: 's', text: 't', headers }
    const { status, body } = await agent.post('/v0/messages/send', mail)
    expect([status, body.message]).toEqual([400, message])
  },
)

test('a send request with the header List-Unsubscribe and the field unsubscribe is refused', async () => {
  const agent = await service.newAgent()
  const { status, body } = await agent.post('/v0/messages/send', {
    to: ['a@example.com'],
    subject: 's',
    text: 't',
    unsubscribe: { mailto: 'leave@example.com' },
    headers: { 'List-Unsubscribe': '<mailto:leave@example.com>' },
  })
  expect([status, body.message]).toEqual([
    400,
    'headers.List-Unsubscribe must not stand beside unsubscribe',
  ])
})
