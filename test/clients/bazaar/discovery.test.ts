/** Tests the public list of paid resources with the client of @x402/extensions. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { HTTPFacilitatorClient } from '@x402/core/server'
import { withBazaar } from '@x402/extensions/bazaar'
import { changeProject } from '../../support/changeProject.ts'
import { createClient } from '../../support/service.ts'
import { NETWORK, requirementV2 } from '../../support/till/headers/x402v2.ts'
import { payTo, startTestTill, type TestTill } from '../../support/till/till.ts'
import { waitFor } from '../../support/waitFor.ts'
import { type Seller, startSellers } from '../sellers.ts'

let till: TestTill
let sellers: Record<string, Seller>
let agent: Awaited<ReturnType<TestTill['newSeller']>>

beforeAll(async () => {
  till = await startTestTill({
    env: { ALLOW_PRIVATE_NETWORKS: 'true' },
    parts: { pools: ['webhooks'] },
  })
  agent = await till.newSeller()
  sellers = await startSellers({ service: till.service, seller: agent })
  await put('our fetch paywall', { description: 'Rain in Oslo' })
  await put('@x402/express', { description: 'Snow in Bergen', discoverable: true })
  await put('x402-express', { description: 'Sun in Oslo', discoverable: true })
  await put('our hono paywall', { description: 'Snow in Oslo', discoverable: true })
  await agent.put('/v0/sellers/endpoints', {
    urlPattern: 'http://127.0.0.1:1/nobody',
    priceUsdc: '0.01',
    discoverable: true,
  })
  await waitFor('the verifications', async () => {
    const { body } = await agent.get('/v0/sellers/endpoints?limit=100')
    const checked = body.endpoints.filter((one: any) => one.verification.status === 'verified')
    return checked.length === 4
  })
})
afterAll(async () => {
  await Promise.all(Object.values(sellers).map(({ stop }) => stop()))
  await till[Symbol.asyncDispose]()
})

async function put(name: string, more: Record<string, unknown>) {
  const { status, body } = await agent.put('/v0/sellers/endpoints', {
    urlPattern: sellers[name]!.url,
    priceUsdc: '0.01',
    ...more,
  })
  expect([status, body.discoverable]).toEqual([201, more.discoverable ?? false])
}

const bazaar = () =>
  withBazaar(new HTTPFacilitatorClient({ url: `${till.service.url}/v0/x402` })).extensions.bazaar
const urlsOf = (items: { resource: string }[]) => items.map(({ resource }) => resource)
const urls = (...names: string[]) => names.map((name) => sellers[name]!.url)

test('the public list of paid resources contains the verified endpoints of sellers who opted in, and can be read without an API key', async () => {
  const { x402Version, items, pagination } = await bazaar().listResources()
  expect([x402Version, pagination]).toEqual([
    2,
    { limit: 50, offset: 0, total: 3, cursor: null },
  ] as never)
  expect(urlsOf(items)).toEqual(urls('@x402/express', 'x402-express', 'our hono paywall'))
  expect(items[0]).toEqual({
    resource: sellers['@x402/express']!.url,
    type: 'http',
    x402Version: 2,
    accepts: [requirementV2({ maxTimeoutSeconds: 120 })] as never,
    lastUpdated: expect.stringMatching(/Z$/),
    description: 'Snow in Bergen',
  })
  expect(items[1]).toMatchObject({
    x402Version: 1,
    accepts: [{ network: 'base-sepolia', maxAmountRequired: '10000' }],
  })
})

test('the public list of paid resources filters by network, payee, type and scheme, and has pages', async () => {
  const list = async (query: object) => (await bazaar().listResources(query)).items
  expect(urlsOf(await list({ limit: 1, offset: 1 }))).toEqual(urls('x402-express'))
  expect(await list({ network: NETWORK, payTo: payTo.toLowerCase(), type: 'http' })).toHaveLength(3)
  expect(await list({ scheme: 'exact', network: 'base-sepolia' })).toHaveLength(3)
  for (const none of [
    { network: 'eip155:8453' },
    { network: 'solana:1' },
    { type: 'mcp' },
    { scheme: 'upto' },
    { payTo: '0x0000000000000000000000000000000000000001' },
    { extensions: 'bazaar' },
  ]) {
    expect(await list(none)).toEqual([])
  }
})

test('a search in the public endpoint list finds endpoints by words, and lists the best match first', async () => {
  const search = async (query: string, more = {}) => bazaar().search({ query, ...more })
  expect(urlsOf((await search('SNOW oslo')).resources)).toEqual(
    urls('our hono paywall', '@x402/express', 'x402-express'),
  )
  const first = await search('oslo', { limit: 1 })
  expect(urlsOf(first.resources)).toEqual(urls('x402-express'))
  const { cursor } = first.pagination!
  const second = await search('oslo', { limit: 1, cursor: cursor! })
  expect([urlsOf(second.resources), second.pagination]).toEqual([
    urls('our hono paywall'),
    { limit: 1, cursor: null },
  ])
  expect((await search("100% '_ hail")).resources).toEqual([])
})

test('if a query of the public endpoint list has a wrong parameter, it is refused, and the error names the parameter', async () => {
  const client = createClient(till.service.url, null)
  for (const [path, message] of [
    ['resources?limit=0', /^limit must/],
    ['resources?offset=-1', /^offset must/],
    ['resources?offset=100000', /^offset must/],
    ['search', /^query must/],
    [`search?query=${'x'.repeat(201)}`, /^query must/],
  ] as const) {
    const { status, body } = await client.get(`/v0/x402/discovery/${path}`)
    expect([status, body.message]).toEqual([400, expect.stringMatching(message)])
  }
})

test('the public list of endpoints omits sellers that accept no payments, and endpoints whose seller has opted out', async () => {
  const { pool } = till.service.database
  await changeProject(pool, agent.project.id, { paymentsEnabled: false })
  expect((await bazaar().listResources()).items).toEqual([])
  await changeProject(pool, agent.project.id, { paymentsEnabled: true })
  const { body } = await agent.get('/v0/sellers/endpoints?limit=100')
  const mine = body.endpoints.find((one: any) => one.urlPattern === sellers['x402-express']!.url)
  await agent.patch(`/v0/sellers/endpoints/${mine.endpointId}`, { discoverable: false })
  expect((await bazaar().listResources()).pagination.total).toBe(2)
})
