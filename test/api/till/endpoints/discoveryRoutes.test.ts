/** Tests the public list of paid resources: its filters, its pages and its items. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { getAddress } from 'viem'
import { createClient, startTestService, type TestService } from '../../../support/service.ts'
import { NETWORK } from '../../../support/till/headers/x402v2.ts'
import {
  connectChain,
  LISTED_PAY_TO,
  listEndpoint,
  newListedSeller,
} from '../../../support/till/listedEndpoints.ts'

const [FIRST, OLD, TOOL] = ['https://a.test/joke', 'https://b.test/old', 'mcp://tool/weather']
const SERVER = 'https://mcp.test/mcp'

let service: TestService
beforeAll(async () => {
  service = await startTestService({ smtp: false, workers: false })
  const { pool } = service.database
  await connectChain(pool)
  const seller = await newListedSeller(pool)
  await listEndpoint(pool, seller, FIRST, {
    ...{ description: 'Snow in Oslo', metadata: { tags: ['Sky'] } },
    seen: { bazaar: { info: { input: {} } } },
  })
  await listEndpoint(pool, seller, OLD, { versions: [1], priceAtomic: 20_000 })
  await listEndpoint(pool, seller, TOOL, { versions: [], metadata: { mcpUrl: SERVER } })
})
afterAll(() => service[Symbol.asyncDispose]())

const get = (path: string) => createClient(service.url, null).get(`/v0/x402/discovery/${path}`)
const resourcesOf = (items: { resource: string }[]) => items.map(({ resource }) => resource)
const ALL = [FIRST, OLD, SERVER]

test('an entry in the public list of paid resources shows the current x402 challenge, and no texts but the seller’s own', async () => {
  const { body, headers } = await get('resources')
  expect(headers.get('cache-control')).toBe('public, max-age=60')
  expect(body.items).toMatchObject([
    {
      ...{ resource: FIRST, type: 'http', x402Version: 2, description: 'Snow in Oslo' },
      ...{ tags: ['Sky'], extensions: { bazaar: { info: { input: {} } } } },
      accepts: [{ network: NETWORK, amount: '10', payTo: getAddress(LISTED_PAY_TO) }],
    },
    {
      ...{ resource: OLD, type: 'http', x402Version: 1 },
      accepts: [{ network: 'base-sepolia', maxAmountRequired: '20000' }],
    },
    { resource: SERVER, type: 'mcp', x402Version: 2, accepts: [{ network: NETWORK }] },
  ])
  expect(Object.keys(body.items[1]).toSorted()).toEqual([
    'accepts',
    'lastUpdated',
    'resource',
    'type',
    'x402Version',
  ])
})

test('both the public list of endpoints and its search return only entries that match every filter', async () => {
  for (const [query, found] of [
    ['', ALL],
    ['type=http', [FIRST, OLD]],
    ['type=mcp', [SERVER]],
    ['type=ftp', []],
    ['scheme=exact', ALL],
    ['scheme=upto', []],
    [`network=${NETWORK}`, ALL],
    ['network=base-sepolia', ALL],
    ['network=base', []],
    ['network=solana:1', []],
    ['extensions=bazaar', [FIRST]],
    ['extensions=other', []],
    ['type=http&scheme=upto', []],
    ['type=ftp&extensions=bazaar', []],
    ['scheme=upto&extensions=bazaar', []],
    ['tag=sky', [FIRST]],
    [`payTo=${LISTED_PAY_TO.toLowerCase()}`, ALL],
    ['minPriceUsdc=0.02', [OLD]],
    ['maxPriceUsdc=0.019999', [FIRST, SERVER]],
  ] as const) {
    const { body: list } = await get(`resources?${query}`)
    expect([query, resourcesOf(list.items), list.pagination.total]).toEqual([
      query,
      [...found],
      found.length,
    ])
    const { body: search } = await get(`search?query=t&${query}`)
    expect([query, resourcesOf(search.resources)]).toEqual([query, [...found]])
  }
})

test('the public list of endpoints has pages by cursor and by offset, and the last page has no cursor', async () => {
  const page = async (query: string) => {
    const { items, pagination } = (await get(`resources?${query}`)).body
    return { found: resourcesOf(items), ...pagination }
  }
  const first = await page('limit=2')
  expect(first).toMatchObject({ found: [FIRST, OLD], limit: 2, offset: 0, total: 3 })
  expect(first.cursor).toBeString()
  expect(await page(`limit=2&cursor=${first.cursor}&offset=1`)).toMatchObject({
    ...{ found: [SERVER], offset: 0, total: 3, cursor: null },
  })
  expect(await page('limit=1&offset=2')).toMatchObject({
    ...{ found: [SERVER], offset: 2, cursor: null },
  })
  expect(await page('limit=3')).toMatchObject({ found: ALL, cursor: null })
  expect(await page('')).toMatchObject({ limit: 50, cursor: null })
  expect(await page('limit=1000')).toMatchObject({ limit: 100 })
})

test('the search of the public endpoint list has pages, and the page with the last match has no cursor', async () => {
  const page = async (query: string) => {
    const { resources, pagination } = (await get(`search?query=t&${query}`)).body
    return [resourcesOf(resources), pagination.cursor]
  }
  expect(await page('limit=2')).toEqual([[FIRST, OLD], '2'])
  expect(await page('limit=2&cursor=2')).toEqual([[SERVER], null])
  expect(await page('limit=2&cursor=1')).toEqual([[OLD, SERVER], null])
  expect(await page('limit=2&cursor=3')).toEqual([[], null])
})
