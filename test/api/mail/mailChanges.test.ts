import { afterAll, beforeAll, expect, test } from 'bun:test'
import {
  type Agent,
  messagePath,
  startTestService,
  type TestService,
  waitForMessages,
} from '../../support/service.ts'
import { deliverRaw } from '../../support/smtpTalk.ts'
import { waitFor } from '../../support/waitFor.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService()
})
afterAll(() => service[Symbol.asyncDispose]())

const deliver = (to: string, id: string, more = '') =>
  deliverRaw(
    service.smtp!.port,
    to,
    `From: ada@example.com\nMessage-ID: <${id}@example.com>\n${more}Subject: ${id}\n\nText of ${id}.\n`,
  )

/** An inbox with one thread of these messages. */
async function newThread(ids: string[]): Promise<Agent> {
  const agent = await service.newAgent()
  for (const [n, id] of ids.entries()) {
    await deliver(agent.address, id, n === 0 ? '' : `In-Reply-To: <${ids[0]}@example.com>\n`)
    await waitForMessages(agent, n + 1)
  }
  return agent
}

const threads = async (agent: Agent) => (await agent.get('/v0/threads')).body.threads
/** How many of the raw mails that are kept hold this text. */
const keptWith = async (text: string) => {
  const { rows } = await service.database.pool.query(
    'select from raw_mails where position($1::bytea in bytes) > 0',
    [Buffer.from(text)],
  )
  return rows.length
}
const rawCount = async () =>
  (await service.database.pool.query('select count(*)::int as n from raw_mails')).rows[0].n

test('a deleted message is gone, with its bytes; its thread goes with its last message', async () => {
  const before = await rawCount()
  const agent = await newThread(['d1', 'd2'])
  const [thread] = await threads(agent)
  expect((await agent.delete(messagePath('<d2@example.com>'))).status).toBe(204)
  expect((await agent.get(messagePath('<d2@example.com>'))).status).toBe(404)
  expect((await agent.get(`${messagePath('<d2@example.com>')}/raw`)).status).toBe(404)
  expect((await agent.get('/v0/messages?q=d2')).body.count).toBe(0)
  const [rest] = await threads(agent)
  expect(rest).toMatchObject({ threadId: thread.threadId, messageCount: 1 })
  const [message] = (await agent.get('/v0/messages')).body.messages
  expect(rest.updatedAt >= message.createdAt && rest.updatedAt < thread.updatedAt).toBe(true)
  expect((await agent.delete(messagePath('<d2@example.com>'))).status).toBe(404)
  expect((await agent.delete(messagePath('<d1@example.com>'))).status).toBe(204)
  expect(await threads(agent)).toEqual([])
  expect(await rawCount()).toBe(before)
})

test('a deleted message that is sent again stays deleted', async () => {
  const agent = await newThread(['again'])
  await agent.delete(messagePath('<again@example.com>'))
  await deliver(agent.address, 'again')
  await deliver(agent.address, 'after')
  expect((await waitForMessages(agent, 1))[0].messageId).toBe('<after@example.com>')
  const { rows } = await service.database.pool.query(
    'select state from inbound_mails where project_id = $1 order by id',
    [agent.project.id],
  )
  expect(rows.map((row) => row.state)).toEqual(['retransmission', 'stored'])
  expect(await keptWith('Text of again.')).toBe(0)
})

test('what a rule refuses is not kept, but for those inboxes that take it', async () => {
  const [refusing, taking] = [await service.newAgent(), await service.newAgent()]
  await refusing.post('/v0/email-rules', {
    type: 'BLOCK',
    scope: 'RECEIVE',
    value: 'spam@example.com',
  })
  const deliverTo = (to: string[], text: string) =>
    service.deliver({
      envelope: { from: 'list@example.com', to },
      from: 'spam@example.com',
      messageId: `<${text}@example.com>`,
      text,
    })
  await deliverTo([refusing.address], 'refused')
  await deliverTo([refusing.address, taking.address], 'for-one')
  const path = messagePath('<for-one@example.com>')
  await waitFor('the inbound mails', async () => {
    const { rows } = await service.database.pool.query(
      `select from inbound_mails where project_id = any ($1) and state <> 'accepted'`,
      [[refusing.project.id, taking.project.id]],
    )
    return rows.length === 3
  })
  expect([await keptWith('refused'), await keptWith('for-one')]).toEqual([0, 1])
  expect((await refusing.get('/v0/messages')).body.count).toBe(0)
  expect((await taking.get(path)).body.text.trim()).toBe('for-one')
  expect((await taking.delete(path)).status).toBe(204)
  expect(await keptWith('for-one')).toBe(0)
})

test('a message that is deleted while it is composed is not sent, and not kept', async () => {
  const agent = await service.newAgent()
  const before = await rawCount()
  const lock = await service.database.pool.connect()
  try {
    // Composing reads the keys that sign; deleting does not.
    await lock.query('begin; lock table dkim_keys in access exclusive mode')
    const { body } = await agent.post('/v0/messages/send', {
      to: ['ada@example.com', agent.address],
      subject: 's',
      text: 't',
    })
    const openJobs = async () =>
      (
        await service.database.pool.query(
          `select locked_at from graphile_worker.jobs where task_identifier = 'send_mail'`,
        )
      ).rows
    await waitFor('its composition', async () => {
      const { rows } = await service.database.pool.query(
        `select from pg_stat_activity where wait_event_type = 'Lock' and query ilike '%dkim_keys%'
           and datname = current_database()`,
      )
      return rows.length > 0
    })
    expect((await agent.delete(messagePath(body.messageId))).status).toBe(204)
    await lock.query('commit')
    await waitFor('the end of its job', async () => (await openJobs()).length === 0)
    expect(await rawCount()).toBe(before)
    expect((await agent.get('/v0/messages')).body.count).toBe(0)
  } finally {
    await lock.query('rollback')
    lock.release()
  }
})

test('a reply to a deleted message still joins its thread', async () => {
  const agent = await newThread(['p1', 'p2'])
  await agent.delete(messagePath('<p2@example.com>'))
  await deliver(agent.address, 'p3', 'In-Reply-To: <p2@example.com>\n')
  await waitForMessages(agent, 2)
  expect(await threads(agent)).toHaveLength(1)
})

test('a message in two inboxes is deleted from one', async () => {
  const [one, two] = [await service.newAgent(), await service.newAgent()]
  await service.deliver({
    from: 'ada@example.com',
    to: [one.address, two.address],
    messageId: '<both@example.com>',
    text: 'For both.',
  })
  await Promise.all([waitForMessages(one, 1), waitForMessages(two, 1)])
  const path = messagePath('<both@example.com>')
  await one.delete(path)
  expect((await two.get(path)).status).toBe(200)
  const raw = await fetch(`${service.url}${path}/raw`, {
    headers: { authorization: `Bearer ${two.key}` },
  })
  expect(await raw.text()).toContain('For both.')
})

test('a message that is deleted before it is sent is not sent', async () => {
  await using idle = await startTestService({ smtp: false, workers: false })
  const agent = await idle.newAgent()
  const { body } = await agent.post('/v0/messages/send', {
    to: ['a@example.com'],
    subject: 's',
    text: 't',
  })
  expect((await agent.delete(messagePath(body.messageId))).status).toBe(204)
  const { rows } = await idle.database.pool.query('select from outbound_mails')
  expect(rows).toEqual([])
})

test('a thread is deleted with all its messages', async () => {
  const agent = await newThread(['t1', 't2', 't3'])
  await deliver(agent.address, 'other')
  await waitForMessages(agent, 4)
  const doomed = (await threads(agent)).find((thread: any) => thread.messageCount === 3)
  expect((await agent.delete(`/v0/threads/${doomed.threadId}`)).status).toBe(204)
  expect((await agent.delete(`/v0/threads/${doomed.threadId}`)).status).toBe(404)
  expect((await agent.get('/v0/messages')).body.messages.map((one: any) => one.subject)).toEqual([
    'other',
  ])
})

test('labels of a thread are those of all its messages', async () => {
  const agent = await newThread(['l1', 'l2'])
  const [{ threadId }] = await threads(agent)
  const { status, body } = await agent.patch(`/v0/threads/${threadId}`, {
    addLabels: ['read', 'x'],
    removeLabels: ['received'],
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

test('deleting and labelling need mail:manage, and reach no other inbox', async () => {
  const agent = await newThread(['s1'])
  const [{ threadId }] = await threads(agent)
  const reader = await service.newAgent({ scopes: ['mail:read', 'mail:send'] })
  const stranger = await service.newAgent()
  for (const path of [messagePath('<s1@example.com>'), `/v0/threads/${threadId}`]) {
    for (const [who, status] of [
      [reader, 403],
      [stranger, 404],
    ] as const) {
      expect([path, (await who.delete(path)).status]).toEqual([path, status])
      expect([path, (await who.patch(path, { addLabels: ['x'] })).status]).toEqual([path, status])
    }
  }
  expect((await agent.get(messagePath('<s1@example.com>'))).status).toBe(200)
})

test('messages arrive while their thread is deleted: each is there or not, and every count is right', async () => {
  const agent = await newThread(['r0'])
  const [{ threadId }] = await threads(agent)
  const arriving = Array.from({ length: 20 }, (_, n) =>
    deliver(agent.address, `r${n + 1}`, 'In-Reply-To: <r0@example.com>\n'),
  )
  await Promise.all([
    ...arriving.slice(0, 10),
    agent.delete(`/v0/threads/${threadId}`),
    ...arriving.slice(10),
  ])
  await waitFor('the inbound mails', async () => {
    const { rows } = await service.database.pool.query(
      `select from inbound_mails where project_id = $1 and state = 'accepted'`,
      [agent.project.id],
    )
    return rows.length === 0
  })
  const { rows } = await service.database.pool.query(
    `select from threads t where project_id = $1
       and message_count <> (select count(*) from messages m where m.thread_row = t.row)`,
    [agent.project.id],
  )
  expect(rows).toEqual([])
  const total = (await agent.get('/v0/messages?limit=100')).body.count
  const inThreads = (await threads(agent)).reduce(
    (sum: number, one: any) => sum + one.messageCount,
    0,
  )
  expect(inThreads).toBe(total)
})
