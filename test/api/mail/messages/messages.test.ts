import { afterAll, beforeAll, expect, test } from 'bun:test'
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

/** Creates an agent that sends `count` messages to an outside address. The tests read the sender's list of messages. */
async function agentWithMessages(count: number): Promise<Agent> {
  const agent = await service.newAgent()
  await Promise.all(
    Array.from({ length: count }, (_, n) =>
      agent.post('/v0/messages/send', {
        to: ['a@example.com'],
        subject: `Subject ${n}`,
        text: `Text ${n}`,
      }),
    ),
  )
  return agent
}

/** Reads every page of an API list and returns all items. `between` runs after each page. */
async function readAll(agent: Agent, path: string, key: string, between = async () => {}) {
  const items: any[] = []
  let token: string | undefined
  do {
    const { status, body } = await agent.get(
      `${path}${token === undefined ? '' : `&pageToken=${encodeURIComponent(token)}`}`,
    )
    expect(status).toBe(200)
    expect(body.count).toBe(body[key].length)
    items.push(...body[key])
    token = body.nextPageToken
    if (token !== undefined) expect(Number.isNaN(Date.parse(token))).toBe(false)
    await between()
  } while (token !== undefined)
  return items
}

test('if 1,000 messages all have the same time, a list that is read in pages of 7 still shows each of them once', async () => {
  const agent = await agentWithMessages(1_000)
  await service.database.pool.query(
    `update messages set created_at = '2026-01-05T09:30:00.123Z' where project_id = $1`,
    [agent.project.id],
  )
  const items = await readAll(agent, '/v0/messages?limit=7', 'messages')
  expect(items).toHaveLength(1_000)
  expect(new Set(items.map((item) => item.messageId)).size).toBe(1_000)
  expect(new Set(items.map((item) => item.createdAt))).toEqual(
    new Set(['2026-01-05T09:30:00.123Z']),
  )
})

test('if messages are added while a client reads a list in pages, the pages neither repeat nor lose a message', async () => {
  const agent = await agentWithMessages(60)
  const before = new Set(
    (await agent.get('/v0/messages?limit=100')).body.messages.map((item: any) => item.messageId),
  )
  const items = await readAll(agent, '/v0/messages?limit=7', 'messages', async () => {
    await agent.post('/v0/messages/send', { to: ['a@example.com'], subject: 'new', text: 'new' })
  })
  const seen = items.map((item) => item.messageId)
  expect(new Set(seen).size).toBe(seen.length)
  expect([...before].every((id) => seen.includes(id as string))).toBe(true)
})

test('the page size is 50 by default, must be a whole number of at least 1, and is at most 100', async () => {
  const agent = await agentWithMessages(101)
  expect((await agent.get('/v0/messages')).body.count).toBe(50)
  expect((await agent.get('/v0/messages?limit=1')).body.count).toBe(1)
  for (const limit of ['100', '101', '99999999999']) {
    expect((await agent.get(`/v0/messages?limit=${limit}`)).body.count).toBe(100)
  }
  for (const limit of ['0', '-1', '1.5', 'abc', '', '1e2', '0x10', '%201', '9'.repeat(30)]) {
    const { status, body } = await agent.get(`/v0/messages?limit=${limit}`)
    expect([limit, status, body.message]).toEqual([
      limit,
      400,
      'limit must be a whole number of at least 1',
    ])
  }
})

test('a list request with an invalid page token is refused', async () => {
  const agent = await agentWithMessages(2)
  const { nextPageToken } = (await agent.get('/v0/messages?limit=1')).body
  for (const token of [
    '',
    'x',
    '0',
    '2026-01-05T09:30:00.123Z',
    `${nextPageToken}0`,
    nextPageToken.replace('T', ' '),
  ]) {
    const { status, body } = await agent.get(`/v0/messages?pageToken=${encodeURIComponent(token)}`)
    expect([token, status, body.error]).toEqual([token, 400, 'bad_request'])
  }
})

test('the last page of a list has no page token, even if the page is full', async () => {
  const agent = await agentWithMessages(4)
  const first = (await agent.get('/v0/messages?limit=2')).body
  const second = (await agent.get(`/v0/messages?limit=2&pageToken=${first.nextPageToken}`)).body
  expect([second.count, 'nextPageToken' in second]).toEqual([2, false])
})

test('a page has fewer messages than requested if the messages are large, and the pages together contain every message', async () => {
  const agent = await service.newAgent()
  const text = 'x'.repeat(1_900_000)
  for (let n = 0; n < 8; n++) {
    await agent.post('/v0/messages/send', { to: ['a@example.com'], subject: `${n}`, text })
  }
  const first = (await agent.get('/v0/messages')).body
  expect(first.count).toBeLessThan(8)
  expect(first.nextPageToken).toBeDefined()
  const items = await readAll(agent, '/v0/messages?limit=100', 'messages')
  expect(items.map((item) => item.subject)).toEqual(['7', '6', '5', '4', '3', '2', '1', '0'])
})

test('the labels filter finds only messages with all given labels', async () => {
  const agent = await agentWithMessages(3)
  const [one, two] = (await agent.get('/v0/messages')).body.messages
  await agent.patch(messagePath(one.messageId), { addLabels: ['todo', 'très important'] })
  await agent.patch(messagePath(two.messageId), { addLabels: ['todo'] })
  const list = async (labels: string) =>
    (await agent.get(`/v0/messages?labels=${encodeURIComponent(labels)}`)).body.messages.map(
      (item: any) => item.messageId,
    )
  expect(await list('todo')).toEqual([one.messageId, two.messageId])
  expect(await list('todo,sent')).toEqual([one.messageId, two.messageId])
  expect(await list('todo,read')).toEqual([])
  expect(await list('très important , todo')).toEqual([one.messageId])
  expect(await list('sent')).toHaveLength(3)
  expect((await agent.get('/v0/messages?labels=a,,b')).status).toBe(400)
})

test('a label change adds and removes the given labels, and keeps all other labels of the message', async () => {
  const agent = await agentWithMessages(1)
  const [{ messageId }] = (await agent.get('/v0/messages')).body.messages
  const patch = async (body: unknown) =>
    (await agent.patch(messagePath(messageId), body)).body.labels
  expect(await patch({ addLabels: ['unread', 'a'] })).toEqual(['sent', 'unread', 'a'])
  expect(await patch({ addLabels: ['read'] })).toEqual(['sent', 'unread', 'a', 'read'])
  expect(await patch({ addLabels: ['read', 'unread'], removeLabels: ['a', 'absent'] })).toEqual([
    'sent',
    'unread',
    'read',
  ])
  expect(await patch({ removeLabels: ['read'] })).toEqual(['sent', 'unread'])
  expect(await patch({ addLabels: ['x'], removeLabels: ['x'] })).toEqual(['sent', 'unread'])
})

test('a request with an invalid label change is refused', async () => {
  const agent = await agentWithMessages(1)
  const [{ messageId }] = (await agent.get('/v0/messages')).body.messages
  const cases: [unknown, string][] = [
    [{}, 'addLabels or removeLabels must name at least one label'],
    [{ addLabels: [] }, 'addLabels or removeLabels must name at least one label'],
    [{ addLabels: 'a' }, 'addLabels must be an array of at most 50 items'],
    [{ addLabels: [''] }, 'addLabels[0] must be a string of 1 to 64 characters'],
    [{ removeLabels: ['x'.repeat(65)] }, 'removeLabels[0] must be a string of 1 to 64 characters'],
    [{ addLabels: [1] }, 'addLabels[0] must be a string of 1 to 64 characters'],
    // Commas separate the labels in the filter, so a filter cannot name a label that contains a comma.
    [
      { addLabels: ['a', 'b,c'] },
      'addLabels[1] must have no comma (the filter separates by it), and no blanks around it',
    ],
    [
      { addLabels: [' a'] },
      'addLabels[0] must have no comma (the filter separates by it), and no blanks around it',
    ],
    [
      { addLabels: ['a\u2003'] },
      'addLabels[0] must have no comma (the filter separates by it), and no blanks around it',
    ],
    [
      { addLabels: Array.from({ length: 50 }, (_, n) => `l${n}`) },
      'addLabels must leave at most 50 labels on the message',
    ],
  ]
  for (const [body, message] of cases) {
    const answer = await agent.patch(messagePath(messageId), body)
    expect([answer.status, answer.body.message]).toEqual([400, message])
  }
  expect((await agent.patch(messagePath('<no@where>'), { addLabels: ['a'] })).body).toEqual({
    error: 'not_found',
    message: 'Message not found',
    status: 404,
  })
})

test('if concurrent requests add labels to one message, no label is lost', async () => {
  const agent = await agentWithMessages(1)
  const [{ messageId }] = (await agent.get('/v0/messages')).body.messages
  await Promise.all(
    Array.from({ length: 30 }, (_, n) =>
      agent.patch(messagePath(messageId), { addLabels: [`l${n}`] }),
    ),
  )
  const { body } = await agent.get(messagePath(messageId))
  expect(body.labels).toHaveLength(31)
})

test('every URL spelling of a message id finds the message, but only in its own project', async () => {
  const agent = await agentWithMessages(1)
  const [{ messageId }] = (await agent.get('/v0/messages')).body.messages
  const bare = messageId.slice(1, -1)
  const odd = '<"a b"/c+d%e=f@ex.test>'
  await service.database.pool.query(
    `update messages set message_id = $2, message_id_hash = sha256($3) where project_id = $1 and message_id = $4`,
    [agent.project.id, odd, Buffer.from(odd), messageId],
  )
  expect((await agent.get(messagePath(odd))).body.messageId).toBe(odd)
  await service.database.pool.query(
    `update messages set message_id = $2, message_id_hash = sha256($3) where project_id = $1`,
    [agent.project.id, messageId, Buffer.from(messageId)],
  )
  for (const spelling of [`%3C${bare.replace('@', '%40')}%3E`, `%3C${bare}%3E`, `<${bare}>`]) {
    expect((await agent.get(`/v0/messages/${spelling}`)).body.messageId).toBe(messageId)
  }
  const stranger = await service.newAgent()
  for (const answer of [
    await stranger.get(messagePath(messageId)),
    await stranger.patch(messagePath(messageId), { addLabels: ['a'] }),
    await stranger.post(`${messagePath(messageId)}/reply`, { text: 'x' }),
  ]) {
    expect(answer.body).toEqual({ error: 'not_found', message: 'Message not found', status: 404 })
  }
})
