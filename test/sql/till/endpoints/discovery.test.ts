/** Tests which endpoints the public list of paid resources contains, and in which order. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { USDC_NETWORKS } from '../../../../shared/till/usdc.ts'
import {
  type DiscoveryFilter,
  discoverEndpoints,
} from '../../../../sql/till/endpoints/discovery.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import {
  connectChain,
  LISTED_PAY_TO,
  listEndpoint,
  newListedSeller,
} from '../../../support/till/listedEndpoints.ts'

const { network } = USDC_NETWORKS['base-sepolia']

let database: TestDatabase
let pool: TestDatabase['pool']
beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
  await connectChain(pool)
})
beforeEach(() => pool.query('delete from seller_endpoints'))
afterAll(() => database[Symbol.asyncDispose]())

const newSeller = (payTo?: string) => newListedSeller(pool, payTo)
const list = (
  ...given: Parameters<typeof listEndpoint> extends [unknown, ...infer Rest] ? Rest : never
) => listEndpoint(pool, ...given)

const discover = (filter: Partial<DiscoveryFilter> = {}) =>
  discoverEndpoints(pool, {
    ...{ payTo: null, network: null, words: null, type: null, tag: null, minAtomic: null },
    ...{ maxAtomic: null, hasBazaar: false, after: null, limit: 10, offset: 0 },
    ...filter,
  })
const urls = async (filter?: Partial<DiscoveryFilter>) =>
  (await discover(filter)).endpoints.map(({ url }) => url)

test('the public list of paid resources contains the endpoints that match every filter', async () => {
  const [seller, other] = [await newSeller(), await newSeller(`0x${'12'.repeat(20)}`)]
  await list(seller, 'https://a.test/', { priceAtomic: 10, description: 'Weather of Lima' })
  await list(seller, 'https://b.test/', { priceAtomic: 20, metadata: { tags: ['Sky', 'sea'] } })
  await list(other, 'mcp://tool/c', {
    priceAtomic: 30,
    seen: { serviceName: 'WEATHER', bazaar: {} },
  })
  await list(other, 'https://d.test/', { priceAtomic: 40, metadata: { input: {} } })
  const [a, b, c, d] = ['https://a.test/', 'https://b.test/', 'mcp://tool/c', 'https://d.test/']
  for (const [filter, found] of [
    [{}, [a, b, c, d]],
    [{ payTo: LISTED_PAY_TO.toLowerCase() }, [a, b]],
    [{ payTo: `0x${'34'.repeat(20)}` }, []],
    [{ network }, [a, b, c, d]],
    [{ network: 'base' }, []],
    [{ words: ['weather'] }, [a, c]],
    [{ words: ['sea'] }, [b]],
    [{ words: ['nothing'] }, []],
    [{ words: ['lima', 'weather'] }, [a, c]],
    [{ words: ['weather', 'tool'] }, [c, a]],
    [{ type: 'mcp' }, [c]],
    [{ type: 'http' }, [a, b, d]],
    [{ tag: 'sky' }, [b]],
    [{ tag: 'sk' }, []],
    [{ minAtomic: 20n }, [b, c, d]],
    [{ maxAtomic: 20n }, [a, b]],
    [{ minAtomic: 20n, maxAtomic: 30n }, [b, c]],
    [{ hasBazaar: true }, [c, d]],
  ] as [Partial<DiscoveryFilter>, string[]][]) {
    expect([filter, await urls(filter)]).toEqual([filter, found])
    expect([filter, (await discover(filter)).total]).toEqual([filter, found.length])
  }
})

test('a page of the public list of paid resources begins after a given row or a given offset, and states the length of the whole list', async () => {
  const seller = await newSeller()
  const all = ['a', 'b', 'c'].map((name) => `https://${name}.test/`)
  for (const url of all) await list(seller, url)
  const { endpoints, total } = await discover({ limit: 2 })
  expect([endpoints.map(({ url }) => url), total]).toEqual([all.slice(0, 2), 3])
  expect(await urls({ after: endpoints[1]!.row })).toEqual([all[2]!])
  expect(await urls({ offset: 1, limit: 1 })).toEqual([all[1]!])
})

test('the public list of paid resources omits endpoints that cannot sell, or whose seller does not want them in the list', async () => {
  for (const [table, change] of [
    ['seller_endpoints', 'discoverable = false'],
    ['seller_endpoints', 'deleted_at = now()'],
    ['seller_endpoints', 'paused_at = now()'],
    ['seller_endpoints', `verification_status = 'failed'`],
    ['seller_endpoints', `network = 'base'`],
    ['projects', 'deleted_at = now()'],
    ['projects', 'payments_enabled = false'],
    ['projects', 'payments_enabled = false, pay_to = null'],
  ] as const) {
    const seller = await newSeller()
    const id = await list(seller, 'https://a.test/')
    expect(await urls()).toEqual(['https://a.test/'])
    await pool.query(`update ${table} set ${change} where id = $1`, [
      table === 'projects' ? seller : id,
    ])
    expect([change, await urls()]).toEqual([change, []])
    await pool.query('delete from seller_endpoints')
  }
})

test('the seller’s own metadata have priority over the metadata in the endpoint’s 402 response', async () => {
  const seller = await newSeller()
  await list(seller, 'https://a.test/', {
    metadata: { serviceName: 'Given' },
    seen: { serviceName: 'Seen', iconUrl: 'https://a.test/i.png' },
  })
  const { endpoints } = await discover()
  expect(endpoints[0]).toMatchObject({
    ...{ payTo: LISTED_PAY_TO, priceAtomic: 10n, network, versions: [2] },
    metadata: { serviceName: 'Given', iconUrl: 'https://a.test/i.png' },
  })
})

test('the public list of paid resources omits an endpoint whose 402 response names only payTo addresses of other projects', async () => {
  const id = await list(await newSeller(), 'https://a.test/')
  const name = (payees: string[]) =>
    pool.query('update seller_endpoints set challenge_pay_to = $2 where id = $1', [id, payees])
  await name([`0x${'12'.repeat(20)}`])
  expect([await urls(), (await discover()).total]).toEqual([[], 0])
  await name([`0x${'12'.repeat(20)}`, LISTED_PAY_TO.toLowerCase()])
  expect(await urls()).toEqual(['https://a.test/'])
})
