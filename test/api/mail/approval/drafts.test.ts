import { afterAll, beforeAll, expect, test } from 'bun:test'
import { sendMail, sunkAt, untilStatus } from '../../../support/mail/outbound.ts'
import { type Sink, startSink } from '../../../support/mail/sink.ts'
import {
  type Agent,
  messagePath,
  startTestService,
  type TestService,
} from '../../../support/service.ts'

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

const DRAFTS = '/v0/messages/drafts'
const create = async (agent: Agent, body: object) => {
  const answer = await agent.post(DRAFTS, body)
  expect([answer.status, answer.body.message]).toEqual([201, undefined])
  return answer.body
}
const send = (agent: Agent, draftId: string) => agent.post(`${DRAFTS}/${draftId}/send`)
const file = { filename: 'a.txt', contentType: 'text/plain', content: btoa('hello') }

test('an agent writes a draft in several steps, and sends the draft once', async () => {
  const agent = await service.newAgent()
  const { draftId } = await create(agent, { subject: 'Offer', html: '<p>x</p>' })
  expect((await send(agent, draftId)).body.message).toBe(
    'text must be in the draft before it is sent',
  )
  // A request may remove the recipients of a draft, but the draft then cannot be sent.
  const emptied = await agent.patch(`${DRAFTS}/${draftId}`, { to: [], text: 'Shall I?' })
  expect([emptied.status, emptied.body.to]).toEqual([200, []])
  expect((await send(agent, draftId)).body.message).toStartWith('to must')
  const change = { to: ['Ada <ada@example.com>'], text: 'Shall I?', attachments: [file] }
  const { body: changed } = await agent.patch(`${DRAFTS}/${draftId}`, {
    ...change,
    remove: ['html'],
  })
  const shown = {
    draftId,
    to: ['Ada <ada@example.com>'],
    subject: 'Offer',
    text: 'Shall I?',
    attachments: [{ filename: 'a.txt', contentType: 'text/plain', size: 5, contentId: null }],
  }
  expect(changed).toMatchObject(shown)
  expect(changed.html).toBeUndefined()
  expect((await agent.get(`${DRAFTS}/${draftId}`)).body).toEqual(changed)
  const { body: list } = await agent.get(DRAFTS)
  expect([list.count, list.drafts[0].draftId, list.drafts[0].text]).toEqual([1, draftId, undefined])
  expect((await agent.get('/v0/messages')).body.count).toBe(0)
  expect((await agent.get('/v0/threads')).body.count).toBe(0)

  const ends = await Promise.all(Array.from({ length: 8 }, () => send(agent, draftId)))
  expect(new Set(ends.map(({ status }) => status))).toEqual(new Set([201]))
  expect(new Set(ends.map(({ body }) => body.messageId)).size).toBe(1)
  expect((await send(agent, draftId)).body).toEqual(ends[0]!.body)
  const { messageId } = ends[0]!.body
  expect((await sunkAt(sink, messageId)).raw).toContain('aGVsbG8=')
  await untilStatus(agent, messageId, 'sent')
  expect(sink.mails.filter((mail) => mail.email.messageId === messageId)).toHaveLength(1)
  expect((await agent.get(DRAFTS)).body.count).toBe(0)
  expect((await agent.get(`${DRAFTS}/${draftId}`)).status).toBe(404)
  expect((await agent.get('/v0/messages')).body.count).toBe(1)
})

test('a draft can be sent even if the client has used the same Idempotency-Key for another call', async () => {
  const agent = await service.newAgent()
  const mail = { to: ['ada@example.com'], subject: 'Offer', text: 'Shall I?' }
  const { draftId } = await create(agent, mail)
  for (const key of [`draft:${draftId}`, `draft-${draftId}`, draftId]) {
    const { status } = await agent.post('/v0/messages/send', mail, { 'idempotency-key': key })
    expect([key, status]).toEqual([key, 201])
  }
  expect((await send(agent, draftId)).status).toBe(201)
})

test('a reply that is written as a draft joins the thread when it is sent, and a draft may set its sending time', async () => {
  const agent = await service.newAgent()
  const first = await sendMail(agent)
  const sendAt = new Date(Date.now() + 3_600_000).toISOString()
  const { draftId } = await create(agent, { inReplyTo: first.messageId, text: 'And?', sendAt })
  const { body } = await send(agent, draftId)
  expect([body.threadId, body.subject, body.deliveryStatus]).toEqual([
    first.threadId,
    'Re: Subject',
    'scheduled',
  ])
  expect((await agent.post(`${messagePath(body.messageId)}/cancel`)).status).toBe(200)
})

test('a draft whose sending time has passed can still be changed, and can be sent after this time is removed from it', async () => {
  const agent = await service.newAgent()
  const sendAt = new Date(Date.now() + 1_000).toISOString()
  const { draftId } = await create(agent, {
    to: ['a@example.com'],
    subject: 's',
    text: 't',
    sendAt,
  })
  const path = `${DRAFTS}/${draftId}`
  await Bun.sleep(Date.parse(sendAt) - Date.now() + 10)
  const { status, body } = await agent.patch(path, { text: 'new' })
  expect([status, body.text, body.sendAt]).toEqual([200, 'new', sendAt])
  expect((await agent.patch(path, { sendAt })).body.message).toStartWith('sendAt must lie in')
  expect((await send(agent, draftId)).body.message).toStartWith('sendAt must lie in the future')
  expect((await agent.patch(path, { sendAt, remove: ['sendAt'] })).status).toBe(200)
  expect((await send(agent, draftId)).status).toBe(201)
})

test('with the setting ANSWERS=full, a repeated call to send a draft gets the whole first answer', async () => {
  await using full = await startTestService({
    smtp: false,
    workers: false,
    env: { ANSWERS: 'full' },
  })
  const agent = await full.newAgent()
  const { draftId } = await create(agent, { to: ['a@example.com'], subject: 's', text: 'Hello' })
  const { body: sent } = await send(agent, draftId)
  expect(sent).toMatchObject({ text: 'Hello', extractedText: 'Hello' })
  expect((await send(agent, draftId)).body).toEqual(sent)
  const reply = await create(agent, { inReplyTo: sent.messageId, text: 'Well?' })
  const { body: replied } = await send(agent, reply.draftId)
  expect(replied).toMatchObject({ text: 'Well?', extractedText: 'Well?' })
  expect((await send(agent, reply.draftId)).body).toEqual(replied)
  expect((await agent.delete(messagePath(sent.messageId))).status).toBe(204)
  const { text: _, extractedText: __, ...rest } = sent
  expect((await send(agent, draftId)).body).toEqual(rest)
})

test('if a draft cannot be sent, the service keeps the draft', async () => {
  const agent = await service.newAgent()
  const to = Array.from({ length: 21 }, (_, n) => `a${n}@example.com`)
  const { draftId } = await create(agent, { to, subject: 's', text: 't' })
  expect((await send(agent, draftId)).status).toBe(429)
  const lost = await create(agent, { inReplyTo: '<none@x.test>', text: 't' })
  expect((await send(agent, lost.draftId)).status).toBe(404)
  expect((await agent.get(DRAFTS)).body.count).toBe(2)
})

test('if a draft is sent and changed at the same time, the service sends its newest version, or answers 409 and sends nothing', async () => {
  const agent = await service.newAgent()
  const { draftId } = await create(agent, { to: ['a@example.com'], subject: 's', text: 'first' })
  const [sent, changed] = await Promise.all([
    send(agent, draftId),
    agent.patch(`${DRAFTS}/${draftId}`, { text: 'second' }),
  ])
  if (sent.status === 201) {
    const { body } = await agent.get(messagePath(sent.body.messageId))
    expect(body.text).toBe(changed.status === 404 ? 'first' : 'second')
    expect((await agent.get(DRAFTS)).body.count).toBe(0)
  } else {
    expect([sent.status, changed.status]).toEqual([409, 200])
    expect((await agent.get(DRAFTS)).body.count).toBe(1)
  }
})

test.each([
  [{ to: ['nobody'] }, 'to[0] must be one email address'],
  [{ subject: 'a\r\nBcc: v@x.test' }, 'subject must be one line'],
  [{ replyAll: true }, 'replyAll must stand beside inReplyTo'],
  [{ inReplyTo: '<a@b>', subject: 's' }, 'subject must be absent beside inReplyTo'],
  [{ sendAt: '2020-01-01T00:00:00Z' }, 'sendAt must lie in the future'],
  [{ attachments: [{ ...file, content: '?' }] }, 'attachments[0].content must be base64'],
  [{ headers: { From: 'x' } }, ''],
])('a request to create a draft with %j gets status 400', async (body, said) => {
  const agent = await service.newAgent()
  const answer = await agent.post(DRAFTS, body)
  expect([answer.status, answer.body.error]).toEqual([400, 'bad_request'])
  expect(answer.body.message).toStartWith(said)
})

test('an API key sees only the drafts of its project, and needs mail:send to create a draft, up to the limit of 100 drafts', async () => {
  const [agent, stranger] = [await service.newAgent(), await service.newAgent()]
  const reader = await service.newAgent({ scopes: ['mail:read'] })
  const { draftId } = await create(agent, {})
  const path = `${DRAFTS}/${draftId}`
  expect((await stranger.get(path)).status).toBe(404)
  expect((await stranger.patch(path, { text: 'x' })).status).toBe(404)
  expect((await stranger.delete(path)).status).toBe(404)
  expect((await send(stranger, draftId)).status).toBe(404)
  expect((await reader.post(DRAFTS, {})).status).toBe(403)
  expect((await reader.get(DRAFTS)).status).toBe(200)
  for (let n = 1; n < 100; n++) await create(agent, {})
  const over = await agent.post(DRAFTS, {})
  expect([over.status, over.body.message]).toEqual([400, 'A project must have at most 100 drafts'])
  expect((await agent.delete(path)).status).toBe(204)
  expect((await agent.delete(path)).status).toBe(404)
  await create(agent, {})
})

test('all drafts of a project together may have at most 100 MB', async () => {
  const agent = await service.newAgent()
  await create(agent, {})
  await service.database.pool.query('update drafts set stored_bytes = $2 where project_id = $1', [
    agent.project.id,
    100 * 1024 * 1024,
  ])
  const over = await agent.post(DRAFTS, { text: 'x' })
  expect([over.status, over.body.error]).toEqual([413, 'quota_exceeded'])
})
