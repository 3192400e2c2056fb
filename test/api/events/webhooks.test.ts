import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createHmac } from 'node:crypto'
import { EVENT_SCOPES } from '../../../shared/events/events.ts'
import { transaction } from '../../../sql/db.ts'
import { type NewEvent, recordEvents } from '../../../sql/events/events.ts'
import { type Receiver, startReceiver, status } from '../../support/events/receiver.ts'
import {
  type Agent,
  messagePath,
  startTestService,
  type TestService,
  waitForMessages,
} from '../../support/service.ts'
import { whileHeld } from '../../support/till/tillRows.ts'
import { waitFor } from '../../support/waitFor.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService({
    pools: ['inbound', 'outbound', 'webhooks'],
    env: { ALLOW_PRIVATE_NETWORKS: 'true' },
  })
})
afterAll(() => service[Symbol.asyncDispose]())

const deliver = (agent: Agent, subject: string) =>
  service.deliver({
    from: 'ada@example.com',
    to: agent.address,
    subject,
    text: 'Hello',
    messageId: `<${subject}@example.com>`,
  })

const register = async (agent: Agent, receiver: Receiver, events: string[], more: object = {}) => {
  const { status: got, body } = await agent.post('/v0/webhooks', {
    url: receiver.url,
    events,
    ...more,
  })
  expect([got, body.message]).toEqual([201, undefined])
  return body
}

const arrived = (receiver: Receiver, count: number) =>
  waitFor(`${count} webhooks`, () => receiver.requests.length >= count)

test('a webhook receives signed events of received and sent mail', async () => {
  await using receiver = await startReceiver()
  const agent = await service.newAgent()
  const { webhookId, secret } = await register(agent, receiver, [
    'message.received',
    'message.sent',
  ])
  expect(secret).toMatch(/^whsec_[0-9a-f]{64}$/)
  await deliver(agent, 'first')
  await arrived(receiver, 1)
  const { headers, body } = receiver.requests[0]!
  expect(headers['x-service-event']).toBe('message.received')
  expect(headers['x-service-delivery-attempt']).toBe('1')
  expect(headers['x-service-signature']).toBe(
    `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`,
  )
  const told = JSON.parse(body.toString())
  expect(told).toEqual({
    type: 'message.received',
    createdAt: expect.stringMatching(/Z$/),
    data: {
      messageId: '<first@example.com>',
      threadId: expect.stringMatching(/^thd_/),
      inboxId: agent.address,
      from: ['ada@example.com'],
      to: [agent.address],
      subject: 'first',
      labels: ['received', 'unread'],
    },
  })
  await agent.post(`${messagePath('<first@example.com>')}/reply`, { text: 'Yes' })
  await arrived(receiver, 2)
  expect(receiver.requests[1]!.headers['x-service-event']).toBe('message.sent')
  const { body: log } = await agent.get(`/v0/webhooks/deliveries?webhookId=${webhookId}`)
  await waitFor('their ends', async () => {
    const { body } = await agent.get('/v0/webhooks/deliveries?status=delivered')
    return body.count === 2
  })
  expect(log.deliveries.at(-1)).toMatchObject({
    webhookId,
    endpointId: null,
    paymentId: null,
    messageId: '<first@example.com>',
  })
})

const SUBJECTS: [event: NewEvent['type'], data: object, shown: object][] = [
  ['attachment.read', { messageId: '<a@b.example>' }, { messageId: '<a@b.example>' }],
  ['payment.settled', { paymentId: 'pay_1' }, { paymentId: 'pay_1' }],
  ['payment.refunded', { refundId: 'rfd_1', refundOf: 'pay_1' }, { paymentId: 'pay_1' }],
  ['purse.paid', { purchaseId: 'pur_1' }, {}],
  ['vault.used', { useId: 'use_1' }, {}],
  ['purse.low', { address: '0x1' }, {}],
]

test('a webhook delivery names a message or a payment only if its event is about a message or a payment', async () => {
  const scopes = ['mail:read', 'payments:accept', 'purse:read', 'vault:use']
  const agent = await service.newAgent({ scopes })
  await using receiver = await startReceiver()
  await register(
    agent,
    receiver,
    SUBJECTS.map(([event]) => event),
  )
  await transaction(service.database.pool, (db) =>
    recordEvents(
      db,
      SUBJECTS.map(([type, data]) => ({ projectId: agent.project.id, type, data: data as never })),
    ),
  )
  const { deliveries } = (await agent.get('/v0/webhooks/deliveries')).body
  const none = { messageId: null, paymentId: null }
  for (const [event, data, shown] of SUBJECTS) {
    const { messageId, paymentId, subjectId } = deliveries.find((one: any) => one.event === event)
    const subject = Object.values({ ...data, ...shown }).at(-1)
    expect({ event, messageId, paymentId, subjectId }).toEqual({
      ...{ event, ...none, subjectId: subject as string },
      ...shown,
    } as never)
  }
  const { body } = await agent.get('/v0/webhooks/deliveries?paymentId=pay_1')
  expect(body.deliveries.map((one: any) => one.event).toSorted()).toEqual([
    'payment.refunded',
    'payment.settled',
  ])
})

test('a webhook receives only its event types and only its project’s events', async () => {
  await using one = await startReceiver()
  await using two = await startReceiver()
  const [agent, other] = [await service.newAgent(), await service.newAgent()]
  await register(agent, one, ['message.sent'])
  await register(agent, two, ['message.received'])
  await register(other, one, ['message.received'])
  await deliver(agent, 'mine')
  await arrived(two, 1)
  await waitForMessages(agent, 1)
  expect(one.requests).toHaveLength(0)
  expect(two.requests).toHaveLength(1)
})

test('a failed webhook delivery is retried, and an operator can send it again later, signed with a rotated secret', async () => {
  await using receiver = await startReceiver()
  let failures = 1
  receiver.answer = (_request, response) => status(failures-- > 0 ? 500 : 200)(_request, response)
  const agent = await service.newAgent()
  const { webhookId } = await register(agent, receiver, ['message.received'], {
    secret: 'a-secret-of-my-own',
  })
  await deliver(agent, 'again')
  await arrived(receiver, 2)
  const keys = receiver.requests.map(({ headers }) => headers['x-service-idempotency-key'])
  expect(new Set(keys).size).toBe(1)
  expect(receiver.requests.map(({ headers }) => headers['x-service-delivery-attempt'])).toEqual([
    '1',
    '2',
  ])
  const signature = (secret: string, body: Buffer) =>
    `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`
  const first = receiver.requests[0]!
  expect(first.headers['x-service-signature']).toBe(signature('a-secret-of-my-own', first.body))
  const rotated = await agent.post(`/v0/webhooks/${webhookId}/rotate-secret`)
  expect(rotated.status).toBe(200)
  expect((await agent.post(`/v0/webhooks/deliveries/${keys[0]}/replay`)).status).toBe(200)
  await arrived(receiver, 3)
  const third = receiver.requests[2]!
  expect(third.body.equals(first.body)).toBe(true)
  expect(third.headers['x-service-signature']).toBe(signature(rotated.body.secret, third.body))
})

test('the API lists webhooks without their secrets, changes them, and deletes them with their pending deliveries', async () => {
  await using receiver = await startReceiver((_request, response) =>
    status(500)(_request, response),
  )
  const agent = await service.newAgent()
  const made = await register(agent, receiver, ['message.received'])
  const { body: list } = await agent.get('/v0/webhooks')
  expect(list).toEqual({
    webhooks: [{ ...made, secret: undefined }].map(({ secret, ...rest }) => rest),
    count: 1,
  })
  const changed = await agent.patch(`/v0/webhooks/${made.webhookId}`, {
    events: ['message.received', 'message.bounced'],
  })
  expect(changed.body.events).toEqual(['message.received', 'message.bounced'])
  await deliver(agent, 'doomed')
  await arrived(receiver, 1)
  expect((await agent.delete(`/v0/webhooks/${made.webhookId}`)).status).toBe(204)
  expect((await agent.delete(`/v0/webhooks/${made.webhookId}`)).status).toBe(404)
  await waitFor('the end', async () => {
    const { body } = await agent.get('/v0/webhooks/deliveries')
    return body.deliveries[0]?.status === 'aborted'
  })
  const { body } = await agent.get('/v0/webhooks/deliveries')
  const replay = await agent.post(`/v0/webhooks/deliveries/${body.deliveries[0].deliveryId}/replay`)
  expect(replay.status).toBe(409)
  expect((await agent.get('/v0/webhooks')).body.count).toBe(0)
})

test('if a webhook is deleted while other requests change it, those requests get status 404', async () => {
  await using receiver = await startReceiver()
  const agent = await service.newAgent()
  const { webhookId } = await register(agent, receiver, ['message.received'])
  const path = `/v0/webhooks/${webhookId}`
  const late = await whileHeld(
    service.database.pool,
    'update project_webhooks set deleted_at = now() where id = $1',
    [webhookId],
    () => [
      agent.patch(path, { events: ['message.sent'] }),
      agent.post(`${path}/rotate-secret`),
      agent.delete(path),
    ],
  )
  expect(late.map(({ status, body }) => [status, body.message])).toEqual(
    late.map(() => [404, 'Webhook not found']),
  )
})

test('if the owner adds an event to a webhook while requests of an API key without the scope of this event change it, those requests get status 403', async () => {
  await using receiver = await startReceiver()
  const agent = await service.newAgent({ scopes: ['mail:read'] })
  const made = await register(agent, receiver, ['message.received'])
  const path = `/v0/webhooks/${made.webhookId}`
  const events = ['message.received', 'message.code']
  const late = await whileHeld(
    service.database.pool,
    'update project_webhooks set events = $2 where id = $1',
    [made.webhookId, events],
    () => [
      agent.patch(path, { url: 'https://elsewhere.example/' }),
      agent.post(`${path}/rotate-secret`),
      agent.delete(path),
    ],
  )
  expect(late.map(({ status, body }) => [status, body.message])).toEqual(
    late.map(() => [403, 'Missing required scope: mail:codes']),
  )
  const { secret: _, ...kept } = { ...made, events, url: new URL(receiver.url).origin }
  expect((await agent.get('/v0/webhooks')).body.webhooks).toEqual([kept])
})

test('no request changes a webhook with an event type that only a newer version of the service knows', async () => {
  await using receiver = await startReceiver()
  const agent = await service.newAgent()
  const { webhookId } = await register(agent, receiver, ['message.received'])
  await service.database.pool.query(
    `update project_webhooks set events = events || '{message.imagined}' where id = $1`,
    [webhookId],
  )
  const path = `/v0/webhooks/${webhookId}`
  for (const answer of [
    await agent.patch(path, { url: 'https://elsewhere.example/' }),
    await agent.post(`${path}/rotate-secret`),
    await agent.delete(path),
  ]) {
    expect([answer.status, answer.body.message]).toEqual([
      403,
      'This version of the service does not know the event message.imagined',
    ])
  }
})

test('if a project is deleted while a request registers a webhook, the request gets 401, because its API key is no longer valid', async () => {
  const agent = await service.newAgent()
  const [late] = await whileHeld(
    service.database.pool,
    'update projects set deleted_at = now() where id = $1',
    [agent.project.id],
    () => [agent.post('/v0/webhooks', { url: 'https://a.example/', events: ['message.received'] })],
  )
  expect([late!.status, late!.body.message]).toEqual([401, 'Invalid API key'])
})

test('an API key can register webhooks, and list and replay deliveries, only for event types that its scopes allow', async () => {
  await using receiver = await startReceiver()
  const seller = await service.newAgent({ scopes: ['payments:accept'] })
  const mail = { url: receiver.url, events: ['message.received'] }
  const refused = await seller.post('/v0/webhooks', mail)
  expect([refused.status, refused.body.message]).toEqual([403, 'Missing required scope: mail:read'])
  const agent = await service.newAgent()
  const { webhookId } = await register(agent, receiver, ['message.received'])
  await deliver(agent, 'scoped')
  await arrived(receiver, 1)
  const [{ deliveryId }] = (await agent.get('/v0/webhooks/deliveries')).body.deliveries
  await service.platform.patch(`/v0/platform/projects/${agent.project.id}`, {
    removeScopes: ['mail:read'],
  })
  expect((await agent.get('/v0/webhooks/deliveries')).body.count).toBe(0)
  expect((await agent.get(`/v0/webhooks/deliveries/${deliveryId}`)).status).toBe(404)
  expect((await agent.post(`/v0/webhooks/deliveries/${deliveryId}/replay`)).status).toBe(404)
  expect(
    (await agent.patch(`/v0/webhooks/${webhookId}`, { url: `${receiver.url}/else` })).status,
  ).toBe(403)
  expect((await agent.delete(`/v0/webhooks/${webhookId}`)).status).toBe(403)
  const { body: listed } = await agent.get('/v0/webhooks')
  expect(listed.webhooks.map(({ url }: { url: string }) => url)).toEqual([
    new URL(receiver.url).origin,
  ])
  const vaultOnly = await service.newAgent({ scopes: ['vault:read'] })
  expect((await vaultOnly.get('/v0/webhooks/deliveries')).status).toBe(403)
  expect((await service.platform.get('/v0/webhooks')).status).toBe(403)
})

test('the delivery log shows a webhook’s URL, and lets a client search for it, only if the API key may also list webhooks', async () => {
  await using receiver = await startReceiver()
  const scopes = [...new Set(Object.values(EVENT_SCOPES))]
  const agent = await service.newAgent({ scopes })
  const { origin } = new URL(receiver.url)
  const urls = ['readable', 'mixed', 'moved', 'deleted'].map((name) => `${origin}/${name}?token=1`)
  const hooks: { webhookId: string }[] = []
  for (const [n, url] of urls.entries()) {
    const events = n === 1 ? ['message.sent', 'vault.used'] : ['message.sent']
    hooks.push(await register(agent, receiver, events, { url }))
  }
  const data = { messageId: '<a@b.example>' } as never
  await transaction(service.database.pool, (db) =>
    recordEvents(db, [{ projectId: agent.project.id, type: 'message.sent', data }]),
  )
  await arrived(receiver, 4)
  await agent.patch(`/v0/webhooks/${hooks[2]!.webhookId}`, { url: `${origin}/new` })
  await agent.delete(`/v0/webhooks/${hooks[3]!.webhookId}`)

  const path = '/v0/webhooks/deliveries'
  const shown = async () => {
    const { deliveries } = (await agent.get(path)).body
    const ids = hooks.map(({ webhookId }) => {
      const found = deliveries.find((one: any) => one.webhookId === webhookId)
      return [found.deliveryId, found.url]
    })
    return Promise.all(
      ids.map(async ([id, listed], n) => {
        const { body } = await agent.get(`${path}/${id}`)
        const replayed = n === 3 ? { body } : await agent.post(`${path}/${id}/replay`)
        const q = new URL(urls[n]!).pathname
        const found = (await agent.get(`${path}?q=${q}`)).body.count
        expect((await agent.get(`${path}/stats?q=${q}`)).body.total).toBe(found)
        expect([body.url, replayed.body.url]).toEqual([listed, listed])
        return [listed, found]
      }),
    )
  }
  expect(await shown()).toEqual(urls.map((url) => [url, 1]))
  const patch = { removeScopes: ['vault:use'] }
  await service.platform.patch(`/v0/platform/projects/${agent.project.id}`, patch)
  expect(await shown()).toEqual([[urls[0], 1], ...urls.slice(1).map(() => [origin, 0])])
  expect((await agent.get(`${path}?q=${origin}`)).body.count).toBe(4)
})

test('the API refuses a webhook with invalid input, with a private address, or above the limit of twenty webhooks', async () => {
  await using strict = await startTestService({
    smtp: false,
    workers: false,
    env: { ALLOW_PRIVATE_NETWORKS: 'false' },
  })
  const agent = await strict.newAgent()
  const url = 'https://example.com/hooks'
  for (const [body, message] of [
    [
      { url: 'http://127.0.0.1/x', events: ['message.received'] },
      /^url must be reachable from the public internet/,
    ],
    [{ url: 'ftp://example.com', events: ['message.received'] }, /^url /],
    [{ url, events: [] }, /^events must /],
    [{ url, events: ['message.eaten'] }, /^events\[0\] must be one of/],
    [{ url, events: ['message.received'], secret: 'short' }, /^secret must /],
  ] as const) {
    const answer = await agent.post('/v0/webhooks', body)
    expect([body, answer.status]).toEqual([body, 400])
    expect(answer.body.message).toMatch(message)
  }
  const answers = await Promise.all(
    Array.from({ length: 25 }, () =>
      agent.post('/v0/webhooks', { url, events: ['message.received'] }),
    ),
  )
  expect(answers.filter(({ status }) => status === 201)).toHaveLength(20)
  expect(answers.filter(({ status }) => status === 400)).toHaveLength(5)
})

test('after the deletion of a project, only API keys remain in the tables that have a project id', async () => {
  await using receiver = await startReceiver()
  const agent = await service.newAgent()
  await register(agent, receiver, ['message.received'])
  await deliver(agent, 'gone')
  await arrived(receiver, 1)
  await agent.post('/v0/email-rules', { type: 'BLOCK', scope: 'RECEIVE', value: 'a@b.c' })
  await agent.delete(messagePath('<gone@example.com>'))
  await deliver(agent, 'also-gone')
  await waitForMessages(agent, 1)
  const mail = { to: ['ada@example.com'], subject: 's', text: 't' }
  await agent.post('/v0/messages/send', mail, { 'idempotency-key': 'once' })
  await agent.put('/v0/vault/key', { type: 'API_KEY', data: { key: 'k' } })
  const { pool } = service.database
  const { rows: tables } = await pool.query<{ name: string }>(
    `select table_name as name from information_schema.columns
     where table_schema = 'public' and column_name = 'project_id'`,
  )
  const holding = async () => {
    const found = await Promise.all(
      tables.map(async ({ name }) => {
        const text = `select from ${name} where project_id = $1 limit 1`
        return (await pool.query(text, [agent.project.id])).rowCount === 1 ? [name] : []
      }),
    )
    return found.flat().toSorted().join()
  }
  await waitFor('the requests to be counted', async () =>
    (await holding()).includes('project_usage'),
  )
  expect(await holding()).toBe(
    'api_keys,audit_log,credentials,deleted_messages,email_rules,event_streams,events,idempotency_keys,inbound_mails,' +
      'message_labels,messages,outbound_mails,project_storage,project_usage,project_webhooks,search_pending,send_quotas,thread_identifiers,threads,webhook_deliveries',
  )
  await service.platform.delete(`/v0/platform/projects/${agent.project.id}`)
  await waitFor('the purge', async () => (await holding()) === 'api_keys')
})
