import { afterAll, beforeAll, expect, test } from 'bun:test'
import {
  type Agent,
  startTestService,
  type TestService,
  waitForMessages,
} from '../../support/service.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService()
})
afterAll(() => service[Symbol.asyncDispose]())

const mail = (agent: Agent, id: string, extra: object = {}) =>
  service.deliver({
    from: 'ada@example.com',
    to: agent.address,
    subject: `About ${id}`,
    text: `Body of ${id}`,
    messageId: `<${id}@example.com>`,
    ...extra,
  })

async function threadsOf(agent: Agent, count: number): Promise<Record<string, string>> {
  const items = await waitForMessages(agent, count)
  return Object.fromEntries(
    items.map((item) => [item.messageId.slice(1).split('@')[0], item.threadId]),
  )
}

test('the headers In-Reply-To and References join a message to a thread, even if the subject differs', async () => {
  const agent = await service.newAgent()
  await mail(agent, 'a')
  await waitForMessages(agent, 1)
  await mail(agent, 'b', { inReplyTo: '<a@example.com>' })
  await mail(agent, 'c', { references: '<unseen@example.com> <a@example.com>' })
  await mail(agent, 'd')
  const threads = await threadsOf(agent, 4)
  expect(threads.b).toBe(threads.a!)
  expect(threads.c).toBe(threads.a!)
  expect(threads.d).not.toBe(threads.a!)
})

test('a reply that arrives before the message it answers is in the same thread as this message', async () => {
  const agent = await service.newAgent()
  await mail(agent, 'child', { inReplyTo: '<parent@example.com>' })
  await waitForMessages(agent, 1)
  await mail(agent, 'sibling', { inReplyTo: '<parent@example.com>' })
  await mail(agent, 'parent')
  const threads = await threadsOf(agent, 3)
  expect(threads.parent).toBe(threads.child!)
  expect(threads.sibling).toBe(threads.child!)
})

test('the References header of a mail does not add it to a thread of another inbox, and does not reveal whether this thread exists', async () => {
  const [one, two] = [await service.newAgent(), await service.newAgent()]
  await mail(one, 'secret')
  const [secret] = await waitForMessages(one, 1)
  await mail(two, 'forged', {
    inReplyTo: '<secret@example.com>',
    references: '<secret@example.com>',
  })
  const [forged] = await waitForMessages(two, 1)
  expect(forged.threadId).not.toBe(secret.threadId)
  expect((await two.get(`/v0/threads/${secret.threadId}`)).body).toEqual({
    error: 'not_found',
    message: 'Thread not found',
    status: 404,
  })
  expect((await one.get(`/v0/threads/${secret.threadId}`)).body.totalMessages).toBe(1)
})

test('concurrent messages of one conversation form one thread', async () => {
  const agent = await service.newAgent()
  await Promise.all(
    Array.from({ length: 12 }, (_, n) =>
      mail(agent, `m${n}`, { references: '<root@example.com>' }),
    ),
  )
  const threads = await threadsOf(agent, 12)
  expect(new Set(Object.values(threads)).size).toBe(1)
  const { body } = await agent.get('/v0/threads')
  expect(body.threads).toHaveLength(1)
  expect(body.threads[0].messageCount).toBe(12)
})

test('a message is stored even if it has an identifier of 2,000 characters or refers to itself', async () => {
  const agent = await service.newAgent()
  const long = `<${'x'.repeat(1_980)}@example.com>`
  await mail(agent, 'long', { references: long })
  await mail(agent, 'self', { inReplyTo: '<self@example.com>', references: '<self@example.com>' })
  const threads = await threadsOf(agent, 2)
  expect(threads.long).not.toBe(threads.self!)
})

test('a reply without In-Reply-To and References joins a thread with the same subject and the same people within 30 days', async () => {
  const agent = await service.newAgent()
  await mail(agent, 'offer', { subject: 'Offer  no. 7' })
  await waitForMessages(agent, 1)
  const cases: [id: string, extra: object, joins: boolean][] = [
    ['plain', { subject: 'Re: offer no. 7' }, true],
    ['german', { subject: 'AW: Re[2]: Offer no. 7' }, true],
    ['chinese', { subject: '回复：Offer no. 7' }, true],
    ['no-prefix', { subject: 'Offer no. 7' }, false],
    ['other-subject', { subject: 'Re: Offer no. 8' }, false],
    ['empty', { subject: 'Re:' }, false],
    ['stranger', { subject: 'Re: Offer no. 7', from: 'mallory@example.com' }, false],
    ['more-people', { subject: 'Re: Offer no. 7', cc: 'carl@example.com' }, false],
    ['names-another', { subject: 'Re: Offer no. 7', inReplyTo: '<elsewhere@example.com>' }, false],
  ]
  for (const [n, [id, extra]] of cases.entries()) {
    await mail(agent, id, extra)
    await waitForMessages(agent, n + 2)
  }
  const threads = await threadsOf(agent, cases.length + 1)
  for (const [id, , joins] of cases) {
    expect([id, threads[id] === threads.offer]).toEqual([id, joins])
  }
  await service.database.pool.query(
    `update threads set updated_at = updated_at - interval '31 days'`,
  )
  await mail(agent, 'late', { subject: 'Re: Offer no. 7' })
  expect((await threadsOf(agent, cases.length + 2)).late).not.toBe(threads.offer!)
})

test('a reply without reference headers joins the thread of a sent message', async () => {
  const agent = await service.newAgent()
  const { body } = await agent.post('/v0/messages/send', {
    to: ['ada@example.com'],
    subject: 'Question',
    text: '?',
  })
  await mail(agent, 'answer', { subject: 'RE: Question' })
  const items = await waitForMessages(agent, 2)
  expect(items.map((item) => item.threadId)).toEqual([body.threadId, body.threadId])
})
