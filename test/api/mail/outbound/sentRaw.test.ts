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

test('just after a mail is sent, its stored original has the same bytes as the copies that the recipients got', async () => {
  const agent = await service.newAgent()
  const html = '<p>Boundaries differ each time they are drawn.</p>'
  const sent = await Promise.all(Array.from({ length: 8 }, () => sendMail(agent, { html })))
  for (const { messageId } of sent) {
    const read = () =>
      fetch(`${service.url}${messagePath(messageId)}/raw`, {
        headers: { authorization: `Bearer ${agent.key}` },
      })
    const [first, second] = await Promise.all([read(), read()])
    expect([first.status, second.status]).toEqual([200, 200])
    const raw = Buffer.from(await first.arrayBuffer()).toString('latin1')
    expect(Buffer.from(await second.arrayBuffer()).toString('latin1')).toBe(raw)
    expect((await sunkAt(sink, messageId)).raw).toBe(raw)
  }
})

test('the original of a sent message can be read before the first delivery attempt, but only by its own project', async () => {
  await using idle = await startTestService({ smtp: false, workers: false })
  const agent = await idle.newAgent()
  const { messageId } = await sendMail(agent, { text: 'Grüße' })
  const stranger = await idle.newAgent()
  const read = (key: string) =>
    fetch(`${idle.url}${messagePath(messageId)}/raw`, {
      headers: { authorization: `Bearer ${key}` },
    })
  expect((await read(stranger.key)).status).toBe(404)
  const first = await read(agent.key)
  expect(first.status).toBe(200)
  const raw = await first.text()
  expect(raw).toContain(`Message-ID: ${messageId}`)
  expect(await (await read(agent.key)).text()).toBe(raw)
})
