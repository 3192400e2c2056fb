import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { parseResourceUrl } from '../../../../shared/till/resourceUrl.ts'
import { ENDPOINTS_MAX } from '../../../../sql/till/endpoints/endpointChanges.ts'
import { findEndpointByResource } from '../../../../sql/till/endpoints/endpoints.ts'
import { recordHead, recordRpcTrouble } from '../../../../sql/till/watch/chainStatus.ts'
import { startReceiver } from '../../../support/events/receiver.ts'
import {
  register,
  sendEvent,
  startWebhookService,
  waitForEnd,
} from '../../../support/events/webhooks.ts'
import { type Agent, createClient, type TestService } from '../../../support/service.ts'

const PATH = '/v0/sellers/endpoints'
let service: TestService
let agent: Agent
beforeAll(async () => {
  service = await startWebhookService()
  agent = await service.newAgent()
})
afterAll(() => service[Symbol.asyncDispose]())

const put = (owner: Agent, more: Record<string, unknown> = {}) =>
  owner.put(PATH, { urlPattern: 'http://127.0.0.1:1/a', priceUsdc: '0.01', ...more })
const resourceOf = (owner: Agent, url: string) =>
  findEndpointByResource(service.database.pool, owner.project.id, parseResourceUrl(url).matchKey)

test('an endpoint registered without a network gets the chain to which the payment workers are connected', async () => {
  const env = { RPC_URL: 'http://127.0.0.1:1' }
  await using apart = await startWebhookService({ env, pools: [] })
  const owner = await apart.newAgent()
  const { pool } = apart.database
  const unknown = await put(owner)
  expect([unknown.status, unknown.body.message]).toEqual([
    503,
    'No payment worker has connected to the chain yet',
  ])
  await recordRpcTrouble(pool, 'no answer')
  expect((await put(owner)).status).toBe(503)
  const hash = `0x${'11'.repeat(32)}`
  await recordHead(pool, { network: 'base', chainId: 8453, number: 1n, hash })
  const { status: code, body } = await put(owner)
  expect([code, body.network]).toEqual([201, 'base'])
  const messageFor = async (network: string) => (await put(owner, { network })).body.message
  expect(await messageFor('base-sepolia')).toBe(
    'network must be "base" or left out: "base-sepolia" is not the chain of this service',
  )
  expect(await messageFor('moon')).toBe('network must be "base" or left out: "moon" is unknown')
})

describe('a PUT request registers a new endpoint, or changes the endpoint of the same URL', () => {
  test('a PUT registers the endpoint, and only its response shows the webhook secret', async () => {
    const owner = await service.newAgent()
    const { status: code, body } = await put(owner, {
      urlPattern: 'HTTP://LocalHost:80/Weather?city=x#y',
      priceUsdc: '0.010',
      description: 'Weather',
      webhookUrl: 'http://127.0.0.1:1/hook?token=1',
    })
    expect(code).toBe(201)
    expect(body).toEqual({
      endpointId: expect.stringMatching(/^se_[0-9a-f]{24}$/),
      urlPattern: 'http://localhost/Weather',
      priceUsdc: '0.01',
      network: 'base-sepolia',
      description: 'Weather',
      webhookUrl: 'http://127.0.0.1:1/hook?token=1',
      webhookSecret: expect.stringMatching(/^whsec_[0-9a-f]{64}$/),
      discoverable: false,
      serviceName: null,
      tags: [],
      iconUrl: null,
      mcpUrl: null,
      input: null,
      output: null,
      openApi: null,
      active: true,
      verification: { status: 'pending', checkedAt: null, detail: null },
      createdAt: expect.stringMatching(/^\d{4}-.*\.\d{3}Z$/),
    })
    const { webhookSecret: _secret, verification: _verification, ...shown } = body
    const got = await owner.get(`${PATH}/${body.endpointId}`)
    expect(got.body).toMatchObject({ ...shown, callCount: 0, revenueUsdcRaw: '0' })
    expect(JSON.stringify([got.body, (await owner.get(PATH)).body])).not.toContain('whsec_')
  })

  test('a PUT accepts the network in both spellings of x402', async () => {
    const owner = await service.newAgent()
    for (const network of ['eip155:84532', 'base-sepolia']) {
      expect((await put(owner, { network })).body.network).toBe('base-sepolia')
    }
    expect((await put(owner, { network: 'eip155:8453' })).body.message).toMatch(/^network must be/)
  })

  test('a PUT changes the endpoint of the same host and path, and keeps the fields that the request omits', async () => {
    const owner = await service.newAgent()
    const first = await put(owner, { description: 'one', webhookUrl: 'http://127.0.0.1:1/hook' })
    const again = await put(owner, { urlPattern: 'http://127.0.0.1:1/a?b=c', priceUsdc: '2' })
    expect(again.status).toBe(200)
    expect(again.body).toMatchObject({
      endpointId: first.body.endpointId,
      priceUsdc: '2',
      description: 'one',
      webhookUrl: 'http://127.0.0.1:1/hook',
    })
    expect(again.body).not.toHaveProperty('webhookSecret')
    const moved = await put(owner, { webhookUrl: 'http://127.0.0.1:1/other' })
    expect(moved.body).not.toHaveProperty('webhookSecret')
    const own = 'my-own-secret-1234'
    expect((await put(owner, { webhookSecret: own })).body.webhookSecret).toBe(own)
    const cut = await put(owner, { description: 'x'.repeat(501) })
    expect([cut.status, cut.body.description]).toEqual([200, 'x'.repeat(500)])
    const removed = await put(owner, { webhookUrl: null, description: null })
    expect(removed.body).toMatchObject({ webhookUrl: null, description: null })
    const fresh = await put(owner, { webhookUrl: 'http://127.0.0.1:1/hook' })
    expect(fresh.body.webhookSecret).toMatch(/^whsec_/)
    expect(fresh.body.webhookSecret).not.toBe(first.body.webhookSecret)
  })

  test('twenty concurrent PUT requests for one URL create one endpoint with one secret', async () => {
    const owner = await service.newAgent()
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => put(owner, { webhookUrl: 'http://127.0.0.1:1/hook' })),
    )
    expect(answers.map(({ status: code }) => code).toSorted()).toEqual([
      ...Array(19).fill(200),
      201,
    ])
    expect(new Set(answers.map(({ body }) => body.endpointId)).size).toBe(1)
    expect(answers.filter(({ body }) => 'webhookSecret' in body)).toHaveLength(1)
    expect((await owner.get(PATH)).body.count).toBe(1)
  })

  const long = 'x'.repeat(3_000)
  test.each<[string, Record<string, unknown>]>([
    ['urlPattern', { urlPattern: 'not a url' }],
    ['urlPattern', { urlPattern: '/path' }],
    ['urlPattern', { urlPattern: 'ftp://a.example/x' }],
    ['urlPattern', { urlPattern: 'http://user:pw@a.example/x' }],
    ['urlPattern', { urlPattern: `http://a.example/${long}` }],
    ['urlPattern', { urlPattern: 5 }],
    ['priceUsdc', { priceUsdc: '0' }],
    ['priceUsdc', { priceUsdc: '-1' }],
    ['priceUsdc', { priceUsdc: '1e2' }],
    ['priceUsdc', { priceUsdc: '0.0000001' }],
    ['priceUsdc', { priceUsdc: '1000000000000000' }],
    ['priceUsdc', { priceUsdc: 0.01 }],
    ['network', { network: 'base' }],
    ['network', { network: 'solana' }],
    ['description', { description: 7 }],
    ['webhookUrl', { webhookUrl: 'javascript:alert(1)' }],
    ['webhookUrl', { webhookUrl: 'http://a:b@c.example/' }],
    ['webhookUrl', { webhookUrl: `http://a.example/?${long}` }],
    ['webhookUrl', { webhookUrl: 'http://a.example/\n' }],
    ['webhookSecret', { webhookUrl: 'http://a.example/', webhookSecret: 'short' }],
    ['webhookSecret', { webhookUrl: 'http://a.example/', webhookSecret: 'x'.repeat(257) }],
    ['webhookSecret', { webhookUrl: 'http://a.example/', webhookSecret: 'ü'.repeat(20) }],
    ['webhookSecret', { webhookSecret: 'x'.repeat(20) }],
  ])(
    'a PUT of an endpoint with an invalid value in the field %s is refused: %j',
    async (field, more) => {
      const { status: code, body } = await put(await service.newAgent(), more)
      expect([code, body.error]).toEqual([400, 'bad_request'])
      expect(body.message).toStartWith(`${field} `)
    },
  )

  test('a PUT is refused when the project has the maximum number of endpoints', async () => {
    const owner = await service.newAgent()
    await service.database.pool.query(
      `insert into seller_endpoints (id, project_id, url_pattern, match_key, price_atomic, network)
       select 'se_' || lpad(n::text, 24, '0'), $1, 'http://a.example/' || n, 'a.example/' || n, 1, 'base-sepolia'
       from generate_series(1, $2::int) n`,
      [owner.project.id, ENDPOINTS_MAX],
    )
    expect(await put(owner)).toMatchObject({
      status: 400,
      body: { message: `A project must have at most ${ENDPOINTS_MAX} endpoints` },
    })
    expect((await put(owner, { urlPattern: 'https://A.example/7' })).status).toBe(200)
    await owner.delete(`${PATH}/se_${'1'.padStart(24, '0')}`)
    expect((await put(owner)).status).toBe(201)
    const seen = new Set<string>()
    for (let token = ''; ; ) {
      const { body } = await owner.get(`${PATH}?limit=100${token}`)
      for (const { endpointId } of body.endpoints) seen.add(endpointId)
      if (body.nextPageToken === undefined) break
      token = `&pageToken=${encodeURIComponent(body.nextPageToken)}`
    }
    expect(seen.size).toBe(ENDPOINTS_MAX)
  })
})

describe('a seller can change and delete only an existing endpoint of its own project', () => {
  test('a PATCH request changes an endpoint', async () => {
    const owner = await service.newAgent()
    const { endpointId } = (await put(owner)).body
    const path = `${PATH}/${endpointId}`
    expect(await owner.patch(path, {})).toMatchObject({ status: 400 })
    const { body } = await owner.patch(path, {
      priceUsdc: '3.5',
      webhookUrl: 'http://127.0.0.1:1/h',
    })
    expect(body).toMatchObject({ endpointId, priceUsdc: '3.5', webhookUrl: 'http://127.0.0.1:1/h' })
    expect(body.webhookSecret).toMatch(/^whsec_/)
    expect(await resourceOf(owner, 'https://127.0.0.1:1/a?x')).toEqual(
      expect.objectContaining({
        id: endpointId,
        priceAtomic: 3_500_000n,
        network: 'base-sepolia',
        webhookUrl: 'http://127.0.0.1:1/h',
      }),
    )
  })

  test('a request to replace the webhook secret of an endpoint without a webhook gets status 409', async () => {
    const { endpointId } = (await put(await service.newAgent())).body
    const owner = await service.newAgent()
    const own = (await put(owner)).body.endpointId
    expect(await owner.post(`${PATH}/${own}/rotate-secret`)).toMatchObject({ status: 409 })
    expect(await owner.post(`${PATH}/${endpointId}/rotate-secret`)).toMatchObject({ status: 404 })
  })

  test('a deleted endpoint no longer exists, and its URL can be registered again', async () => {
    const owner = await service.newAgent()
    const { endpointId } = (await put(owner)).body
    expect((await owner.delete(`${PATH}/${endpointId}`)).status).toBe(204)
    expect((await owner.delete(`${PATH}/${endpointId}`)).status).toBe(404)
    for (const change of [{ priceUsdc: '2' }, { tags: ['weather'] }]) {
      expect((await owner.patch(`${PATH}/${endpointId}`, change)).status).toBe(404)
    }
    expect(await owner.get(`${PATH}/${endpointId}`)).toMatchObject({
      status: 404,
      body: { message: 'Endpoint not found' },
    })
    expect((await owner.get(PATH)).body).toEqual({ endpoints: [], count: 0 })
    expect(await resourceOf(owner, 'http://127.0.0.1:1/a')).toBeNull()
    const again = await put(owner)
    expect(again.status).toBe(201)
    expect(again.body.endpointId).not.toBe(endpointId)
  })

  test('an endpoint is deleted together with its project', async () => {
    const owner = await service.newAgent()
    await put(owner)
    expect(await resourceOf(owner, 'http://127.0.0.1:1/a')).not.toBeNull()
    await service.platform.delete(`/v0/platform/projects/${owner.project.id}`)
    expect(await resourceOf(owner, 'http://127.0.0.1:1/a')).toBeNull()
  })
})

test('another project, or an API key without the scope, can neither see nor change an endpoint', async () => {
  await using receiver = await startReceiver()
  const stranger = await service.newAgent()
  const endpoint = await register(agent, receiver.url)
  const id = await sendEvent(service.database, agent, endpoint)
  await waitForEnd(agent, id)
  const [path, log] = [`${PATH}/${endpoint.endpointId}`, `/v0/webhooks/deliveries/${id}`]
  const bare = await service.newAgent({ scopes: ['vault:read'] })
  for (const [who, code] of [
    [stranger, 404],
    [bare, 403],
    [service.platform, 403],
    [createClient(service.url, null), 401],
  ] as const) {
    const calls = [
      who.get(path),
      who.patch(path, { priceUsdc: '1' }),
      who.delete(path),
      who.post(`${path}/rotate-secret`),
      who.get(log),
      who.post(`${log}/replay`),
    ]
    for (const answer of await Promise.all(calls)) expect(answer.status).toBe(code)
  }
  expect((await stranger.get(PATH)).body.count).toBe(0)
  expect((await stranger.get('/v0/webhooks/deliveries')).body.count).toBe(0)
  const filtered = await stranger.get(`/v0/webhooks/deliveries?endpointId=${endpoint.endpointId}`)
  expect(filtered.body.deliveries).toEqual([])
  expect(await resourceOf(stranger, endpoint.webhookUrl)).toBeNull()
  expect(receiver.requests).toHaveLength(1)
})

test('the list of webhook deliveries has pages and filters', async () => {
  const owner = await service.newAgent()
  await using receiver = await startReceiver()
  const [one, two] = [await register(owner, receiver.url), await register(owner, receiver.url)]
  const ids: string[] = []
  for (let n = 0; n < 7; n++) {
    ids.push(await sendEvent(service.database, owner, n % 2 === 0 ? one : two))
  }
  for (const id of ids) await waitForEnd(owner, id)
  const list = (query: string) => owner.get(`/v0/webhooks/deliveries?${query}`)
  const seen: string[] = []
  let token = ''
  for (;;) {
    const { body } = await list(`limit=3${token}`)
    seen.push(...body.deliveries.map(({ deliveryId }: any) => deliveryId))
    if (body.nextPageToken === undefined) break
    token = `&pageToken=${encodeURIComponent(body.nextPageToken)}`
  }
  expect(seen).toEqual(ids.toReversed())
  expect((await list(`endpointId=${one.endpointId}&status=delivered`)).body.count).toBe(4)
  expect((await list('status=pending')).body.count).toBe(0)
  expect(await list('status=lost')).toMatchObject({ status: 400 })
  expect(await list('limit=0')).toMatchObject({ status: 400 })
  expect(await list('pageToken=x')).toMatchObject({ status: 400 })
})
