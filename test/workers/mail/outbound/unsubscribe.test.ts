import { afterAll, beforeAll, expect, test } from 'bun:test'
import { sendMail, sunkAt } from '../../../support/mail/outbound.ts'
import { type Sink, startSink } from '../../../support/mail/sink.ts'
import { startTestService, type TestService } from '../../../support/service.ts'

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

test('a message with the field unsubscribe has List-Unsubscribe headers for one-click unsubscribing', async () => {
  const agent = await service.newAgent()
  const url = 'https://news.example.com/leave?who=42'
  const both = await sendMail(agent, { unsubscribe: { url, mailto: 'leave@example.com' } })
  const { email } = await sunkAt(sink, both.messageId)
  const header = (name: string) => email.headers.find(({ key }) => key === name)?.value
  expect(header('list-unsubscribe')?.replace(/\s+/g, ' ')).toBe(
    `<${url}>, <mailto:leave@example.com>`,
  )
  expect(header('list-unsubscribe-post')).toBe('List-Unsubscribe=One-Click')
  const plain = await sunkAt(sink, (await sendMail(agent)).messageId)
  expect(plain.raw).not.toMatch(/^list-/im)
})

test('the error for an invalid unsubscribe value names the wrong field', async () => {
  const agent = await service.newAgent()
  for (const [unsubscribe, message] of [
    [{}, 'unsubscribe must hold url or mailto'],
    [
      { url: 'http://example.com' },
      'unsubscribe.url must be an https URL of at most 900 characters',
    ],
    [
      { url: 'http://example.com', mailto: 'leave@example.com' },
      'unsubscribe.url must be an https URL of at most 900 characters',
    ],
    [
      { mailto: 'a, b@example.com' },
      'unsubscribe.mailto must be one email address, such as leave@example.com',
    ],
    [
      { url: 'https://example.com', mailto: 'x' },
      'unsubscribe.mailto must be one email address, such as leave@example.com',
    ],
  ] as const) {
    const mail = { to: ['a@example.com'], subject: 's', text: 't', unsubscribe }
    const { status, body } = await agent.post('/v0/messages/send', mail)
    expect([status, body.message]).toEqual([400, message])
  }
})
