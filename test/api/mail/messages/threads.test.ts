import { afterAll, beforeAll, expect, test } from 'bun:test'
import {
  type Agent,
  messagePath,
  startTestService,
  type TestService,
} from '../../../support/service.ts'
import '../../../support/long.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService({ smtp: false, workers: false })
})
afterAll(() => service[Symbol.asyncDispose]())

const send = async (agent: Agent, subject: string) =>
  (await agent.post('/v0/messages/send', { to: ['a@example.com'], subject, text: subject })).body

test('a send call starts a thread, replies join the thread, and the thread shows its messages oldest first', async () => {
  const agent = await service.newAgent()
  const sent = await send(agent, 'Offer')
  const replies: any[] = []
  for (const text of ['one', 'two']) {
    replies.push((await agent.post(`${messagePath(sent.messageId)}/reply`, { text })).body)
  }
  const { status, body } = await agent.get(`/v0/threads/${sent.threadId}`)
  expect(status).toBe(200)
  expect(body).toMatchObject({
    threadId: sent.threadId,
    inboxId: agent.address,
    subject: 'Offer',
    createdAt: sent.createdAt,
    updatedAt: replies[1].createdAt,
    totalMessages: 3,
  })
  expect(body.messages.map((message: any) => message.messageId)).toEqual([
    sent.messageId,
    replies[0].messageId,
    replies[1].messageId,
  ])
  expect(body.messages[0]).toEqual((await agent.get(messagePath(sent.messageId))).body)
  expect('extractedText' in body.messages[0]).toBe(false)
  const newest = (await agent.get(`/v0/threads/${sent.threadId}?limit=2`)).body
  expect(newest.totalMessages).toBe(3)
  expect(newest.messages.map((message: any) => message.text)).toEqual(['one', 'two'])
  const [item] = (await agent.get('/v0/threads')).body.threads
  expect(item).toEqual({
    threadId: sent.threadId,
    inboxId: agent.address,
    subject: 'Offer',
    messageCount: 3,
    createdAt: sent.createdAt,
    updatedAt: replies[1].createdAt,
  })
})

test('the thread list shows the most recently updated thread first', async () => {
  const agent = await service.newAgent()
  const [one, two] = [await send(agent, 'one'), await send(agent, 'two')]
  const order = async () =>
    (await agent.get('/v0/threads')).body.threads.map((thread: any) => thread.threadId)
  expect(await order()).toEqual([two.threadId, one.threadId])
  await agent.post(`${messagePath(one.messageId)}/reply`, { text: 'x' })
  expect(await order()).toEqual([one.threadId, two.threadId])
})

test('if threads move to the top while a client reads the list in pages, the client still gets each thread once', async () => {
  const agent = await service.newAgent()
  const sent = []
  for (let n = 0; n < 30; n++) sent.push(await send(agent, `t${n}`))
  const seen: string[] = []
  let token: string | undefined
  let oldest = 0
  do {
    const { body } = await agent.get(
      `/v0/threads?limit=4${token === undefined ? '' : `&pageToken=${token}`}`,
    )
    seen.push(...body.threads.map((thread: any) => thread.threadId))
    token = body.nextPageToken
    // The oldest threads, which the client has not seen so far, get replies and move to the top of the list. New
    // threads also appear there. The client must still get each thread once.
    for (let n = 0; n < 2 && oldest < 12; n++, oldest++) {
      await agent.post(`${messagePath(sent[oldest].messageId)}/reply`, { text: 'bump' })
    }
    await send(agent, 'new')
  } while (token !== undefined)
  expect(new Set(seen).size).toBe(seen.length)
  expect(sent.every((message) => seen.includes(message.threadId))).toBe(true)
})

test('if 300 threads all have the same time, a list that is read in pages of 7 still shows each of them once', async () => {
  const agent = await service.newAgent()
  await Promise.all(Array.from({ length: 300 }, (_, n) => send(agent, `t${n}`)))
  await service.database.pool.query(
    `update threads set updated_at = '2026-01-05T09:30:00.123Z' where project_id = $1`,
    [agent.project.id],
  )
  const seen: string[] = []
  let token: string | undefined
  do {
    const { body } = await agent.get(
      `/v0/threads?limit=7${token === undefined ? '' : `&pageToken=${token}`}`,
    )
    seen.push(...body.threads.map((thread: any) => thread.threadId))
    token = body.nextPageToken
  } while (token !== undefined)
  expect([seen.length, new Set(seen).size]).toEqual([300, 300])
})

test('a request for an unknown thread, or for a thread of another inbox, gets status 404', async () => {
  const [agent, stranger] = [await service.newAgent(), await service.newAgent()]
  const { threadId } = await send(agent, 'mine')
  for (const answer of [
    await stranger.get(`/v0/threads/${threadId}`),
    await agent.get('/v0/threads/thd_0'),
  ]) {
    expect(answer.body).toEqual({ error: 'not_found', message: 'Thread not found', status: 404 })
  }
})

test('a thread with large messages shows only the newest messages, and the total number of messages', async () => {
  const agent = await service.newAgent()
  const { messageId, threadId } = await send(agent, 'Large')
  const text = 'x'.repeat(1_900_000)
  for (let n = 0; n < 6; n++)
    await agent.post(`${messagePath(messageId)}/reply`, { text: `${n}${text}` })
  const { body } = await agent.get(`/v0/threads/${threadId}`)
  expect(body.totalMessages).toBe(7)
  expect(body.messages.map((message: any) => message.text[0])).toEqual(['1', '2', '3', '4', '5'])
})
