import { afterAll, beforeAll, expect, test } from 'bun:test'
import {
  deliverNamed,
  expectOnlyManagers,
  listThreads,
  newThread,
} from '../../../support/mail/mailThreads.ts'
import {
  messagePath,
  startTestService,
  type TestService,
  waitForMessages,
} from '../../../support/service.ts'
import { waitFor } from '../../../support/waitFor.ts'
import '../../../support/long.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService()
})
afterAll(() => service[Symbol.asyncDispose]())

test('the deletion of a thread deletes all its messages', async () => {
  const agent = await newThread(service, ['t1', 't2', 't3'])
  await deliverNamed(service, agent.address, 'other')
  await waitForMessages(agent, 4)
  const doomed = (await listThreads(agent)).find((thread: any) => thread.messageCount === 3)
  expect((await agent.delete(`/v0/threads/${doomed.threadId}`)).status).toBe(204)
  expect((await agent.delete(`/v0/threads/${doomed.threadId}`)).status).toBe(404)
  expect((await agent.get('/v0/messages')).body.messages.map((one: any) => one.subject)).toEqual([
    'other',
  ])
})

test('a change of a thread’s labels applies to all messages of the thread', async () => {
  const agent = await newThread(service, ['l1', 'l2'])
  const [{ threadId }] = await listThreads(agent)
  const { status, body } = await agent.patch(`/v0/threads/${threadId}`, {
    addLabels: ['read', 'x'],
    removeLabels: ['received', 'unread'],
  })
  expect(status).toBe(200)
  expect(body.messages.map((one: any) => one.labels)).toEqual([
    ['read', 'x'],
    ['read', 'x'],
  ])
  await agent.patch(messagePath('<l2@example.com>'), {
    addLabels: Array.from({ length: 40 }, (_, n) => `a${n}`),
  })
  const refused = await agent.patch(`/v0/threads/${threadId}`, {
    addLabels: Array.from({ length: 10 }, (_, n) => `b${n}`),
  })
  expect([refused.status, refused.body.message]).toEqual([
    400,
    'addLabels must leave at most 50 labels on the message',
  ])
  expect((await agent.get(messagePath('<l1@example.com>'))).body.labels).toEqual(['read', 'x'])
  expect((await agent.patch('/v0/threads/thd_none', { addLabels: ['x'] })).status).toBe(404)
  expect((await agent.patch(`/v0/threads/${threadId}`, {})).status).toBe(400)
})

test('the deletion or labelling of a thread requires mail:manage in the project of the thread', async () => {
  const agent = await newThread(service, ['s1'])
  const [{ threadId }] = await listThreads(agent)
  await expectOnlyManagers(service, `/v0/threads/${threadId}`)
  expect((await agent.get(messagePath('<s1@example.com>'))).status).toBe(200)
})

test('message counts stay correct if messages arrive while their thread is being deleted', async () => {
  const agent = await newThread(service, ['r0'])
  const [{ threadId }] = await listThreads(agent)
  const arriving = Array.from({ length: 20 }, (_, n) =>
    deliverNamed(service, agent.address, `r${n + 1}`, 'In-Reply-To: <r0@example.com>\n'),
  )
  await Promise.all([
    ...arriving.slice(0, 10),
    agent.delete(`/v0/threads/${threadId}`),
    ...arriving.slice(10),
  ])
  // The service has replied 250 to this mail, but may not have stored it in the database yet. The mail may still be in
  // the spool (the file of accepted mail), so the test waits.
  await waitFor('all mails to be stored or deleted', async () => {
    const { rows } = await service.database.pool.query(
      `select (select count(*) from messages where project_id = $1)
         + (select count(*) from deleted_messages where project_id = $1) as n`,
      [agent.project.id],
    )
    return Number(rows[0].n) === 21
  })
  const { rows } = await service.database.pool.query(
    `select from threads t where project_id = $1
       and message_count <> (select count(*) from messages m where m.thread_row = t.row)`,
    [agent.project.id],
  )
  expect(rows).toEqual([])
  const total = (await agent.get('/v0/messages?limit=100')).body.count
  const inThreads = (await listThreads(agent)).reduce(
    (sum: number, one: any) => sum + one.messageCount,
    0,
  )
  expect(inThreads).toBe(total)
})
