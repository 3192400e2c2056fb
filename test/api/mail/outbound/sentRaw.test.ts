import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { heldAgent, heldPath, requestOf } from '../../../support/mail/held.ts'
import { sendMail, sunkAt } from '../../../support/mail/outbound.ts'
import { type Sink, startSink } from '../../../support/mail/sink.ts'
import { messagePath, startTestService, type TestService } from '../../../support/service.ts'

const FILE = { filename: 'a.txt', contentType: 'text/plain', content: btoa('hello') }

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

test('a scheduled mail is sent with the project settings of its sending time, even if a client read its original before', async () => {
  const agent = await service.newAgent()
  const sendAt = new Date(Date.now() + 2_500).toISOString()
  const { messageId } = await sendMail(agent, { sendAt, attachments: [FILE] })
  const project = `/v0/platform/projects/${agent.project.id}`
  const read = async () => {
    const answer = await fetch(`${service.url}${messagePath(messageId)}/raw`, {
      headers: { authorization: `Bearer ${agent.key}` },
    })
    expect(answer.status).toBe(200)
    return Buffer.from(await answer.arrayBuffer()).toString('latin1')
  }
  await service.platform.patch(project, { displayName: 'Old Name' })
  const before = await read()
  expect(before).toContain('Old Name')
  expect(before).toContain(FILE.content)
  await service.platform.patch(project, { displayName: 'New Name' })
  expect(await read()).toContain('New Name')
  const { raw } = await sunkAt(sink, messageId)
  expect(raw).toContain('New Name')
  expect(await read()).toBe(raw)
})

test('the bytes of a scheduled mail that the owner approved stay the same, even if the settings change', async () => {
  const agent = await heldAgent(service)
  const sendAt = new Date(Date.now() + 3_000).toISOString()
  const { messageId } = await sendMail(agent, { sendAt })
  const held = await requestOf(service, agent, messageId)
  const { status } = await service.platform.post(`${heldPath(agent, held.approvalId)}/approve`, {
    sha256: held.sha256,
  })
  expect(status).toBe(200)
  const name = { displayName: 'New Name' }
  await service.platform.patch(`/v0/platform/projects/${agent.project.id}`, name)
  const answer = await fetch(`${service.url}${messagePath(messageId)}/raw`, {
    headers: { authorization: `Bearer ${agent.key}` },
  })
  const shown = Buffer.from(await answer.arrayBuffer())
  expect(createHash('sha256').update(shown).digest('hex')).toBe(held.sha256)
  expect((await sunkAt(sink, messageId)).raw).toBe(shown.toString('latin1'))
})
