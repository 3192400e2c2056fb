import { afterAll, beforeAll, expect, test } from 'bun:test'
import { callTool, connectMcp } from '../../../support/mcp.ts'
import {
  type Agent,
  messagePath,
  startTestService,
  type TestService,
} from '../../../support/service.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService({ smtp: false, workers: false })
})
afterAll(() => service[Symbol.asyncDispose]())

const MAIL = { to: ['ada@example.com'], subject: 'Offer', text: 'Shall I order?' }
const keyed = (key: string) => ({ 'idempotency-key': key })
const countSent = async (agent: Agent) => {
  const { rows } = await service.database.pool.query(
    `select (select count(*) from messages where project_id = $1)::int as messages,
            (select count(*) from threads where project_id = $1)::int as threads,
            (select count(*) from outbound_mails where project_id = $1)::int as outgoing`,
    [agent.project.id],
  )
  return rows[0]
}

test('a repeated send request with the same Idempotency-Key gets the first response again, and only one mail is sent', async () => {
  const agent = await service.newAgent()
  const first = await agent.post('/v0/messages/send', MAIL, keyed('k-1'))
  expect(first.status).toBe(201)
  const { text, subject, to } = MAIL
  for (const body of [MAIL, { text, subject, to }]) {
    const again = await agent.post('/v0/messages/send', body, keyed('k-1'))
    expect([again.status, again.body]).toEqual([201, first.body])
  }
  expect(await countSent(agent)).toEqual({ messages: 1, threads: 1, outgoing: 1 })
  const other = await agent.post('/v0/messages/send', MAIL, keyed('k-2'))
  const none = await agent.post('/v0/messages/send', MAIL)
  const ids = new Set([first, other, none].map(({ body }) => body.messageId))
  expect(ids.size).toBe(3)
  const stranger = await service.newAgent()
  const theirs = await stranger.post('/v0/messages/send', MAIL, keyed('k-1'))
  expect([theirs.status, ids.has(theirs.body.messageId)]).toEqual([201, false])
})

test('a reply that is repeated with the same Idempotency-Key gets the first response, even after the answered message was deleted', async () => {
  const agent = await service.newAgent()
  const { messageId } = (await agent.post('/v0/messages/send', MAIL)).body
  const path = `${messagePath(messageId)}/reply`
  const first = await agent.post(path, { text: 'x' }, keyed('r-1'))
  expect(first.status).toBe(201)
  await agent.delete(messagePath(messageId))
  expect((await agent.post(path, { text: 'x' }, keyed('r-1'))).body).toEqual(first.body)
  expect((await agent.post(path, { text: 'x' }, keyed('r-2'))).status).toBe(404)
  expect((await countSent(agent)).messages).toBe(1)
})

test('if another send request has used an Idempotency-Key, a different request with this key gets status 409 and sends no mail', async () => {
  const agent = await service.newAgent()
  const { messageId } = (await agent.post('/v0/messages/send', MAIL, keyed('k'))).body
  for (const [path, body] of [
    ['/v0/messages/send', { ...MAIL, text: 'Another.' }],
    ['/v0/messages/send', { ...MAIL, cc: ['bob@example.com'] }],
    [`${messagePath(messageId)}/reply`, { text: MAIL.text }],
  ] as const) {
    const { status, body: answer } = await agent.post(path, body, keyed('k'))
    expect([status, answer.error, answer.message]).toEqual([
      409,
      'conflict',
      'Idempotency-Key was used for another request',
    ])
  }
  expect((await countSent(agent)).messages).toBe(1)
})

test('an Idempotency-Key has 1 to 255 visible ASCII characters', async () => {
  const agent = await service.newAgent()
  for (const key of ['', 'a b', 'x'.repeat(256)]) {
    const { status, body } = await agent.post('/v0/messages/send', MAIL, keyed(key))
    expect([key, status, body.message]).toEqual([
      key,
      400,
      'Idempotency-Key must be 1 to 255 visible ASCII characters',
    ])
  }
  const long = await agent.post('/v0/messages/send', MAIL, keyed('x'.repeat(255)))
  expect(long.status).toBe(201)
})

test('if a send request is refused, its Idempotency-Key can be used again', async () => {
  const agent = await service.newAgent()
  const bad = await agent.post('/v0/messages/send', { ...MAIL, to: ['nobody'] }, keyed('k'))
  expect(bad.status).toBe(400)
  expect((await agent.post('/v0/messages/send', MAIL, keyed('k'))).status).toBe(201)
})

test('if two API processes get equal send requests at the same time, only one mail is sent, and all requests get the same response', async () => {
  const agent = await service.newAgent()
  const { startApi } = await import('../../../../api/http/server.ts')
  const { createClient } = await import('../../../support/service.ts')
  const { silentLog } = await import('../../../support/logs.ts')
  const second = startApi(service.config, service.database.url, silentLog)
  try {
    const elsewhere = createClient(`http://127.0.0.1:${second.port}`, agent.key)
    const answers = await Promise.all(
      Array.from({ length: 240 }, (_, n) =>
        (n % 2 === 0 ? agent : elsewhere).post('/v0/messages/send', MAIL, keyed(`twin-${n % 5}`)),
      ),
    )
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([201]))
    for (let key = 0; key < 5; key++) {
      const own = answers.filter((_, n) => n % 5 === key).map(({ body }) => JSON.stringify(body))
      expect(new Set(own).size).toBe(1)
    }
    expect(await countSent(agent)).toEqual({ messages: 5, threads: 5, outgoing: 5 })
  } finally {
    await second.stop()
  }
})

test('an Idempotency-Key can be used again after 24 hours', async () => {
  const agent = await service.newAgent()
  const first = await agent.post('/v0/messages/send', MAIL, keyed('k'))
  await service.database.pool.query(
    `update idempotency_keys set created_at = created_at - interval '24 hours 1 second' where project_id = $1`,
    [agent.project.id],
  )
  const later = await agent.post('/v0/messages/send', { ...MAIL, text: 'Another.' }, keyed('k'))
  expect(later.status).toBe(201)
  expect(later.body.messageId).not.toBe(first.body.messageId)
  const again = await agent.post('/v0/messages/send', { ...MAIL, text: 'Another.' }, keyed('k'))
  expect(again.body).toEqual(later.body)
})

test('in MCP the Idempotency-Key is an argument of the tool, with the same effect as the HTTP header', async () => {
  const agent = await service.newAgent()
  await using mcp = await connectMcp(service.url, agent.key)
  const first = await callTool(mcp, 'mail.send', { ...MAIL, idempotencyKey: 'k' })
  expect(await callTool(mcp, 'mail.send', { ...MAIL, idempotencyKey: 'k' })).toEqual(first)
  const { messageId } = first
  const reply = { messageId, text: 'More.', idempotencyKey: 'k2' }
  expect(await callTool(mcp, 'mail.reply', reply)).toEqual(await callTool(mcp, 'mail.reply', reply))
  expect((await agent.post('/v0/messages/send', MAIL, keyed('k'))).body).toEqual(first)
  expect((await countSent(agent)).messages).toBe(2)
})
