/** Tests that strangers who fill the table of consent requests do not remove the request of anybody else. */
import { afterAll, beforeEach, expect, test } from 'bun:test'
import { createRequest, findRequest } from '../../../../sql/account/oauth/oauthRequests.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'

let database: TestDatabase
beforeEach(async () => {
  await database?.[Symbol.asyncDispose]()
  database = await createTestDatabase()
})
afterAll(() => database[Symbol.asyncDispose]())

const ask = (network: string) =>
  createRequest(
    database.pool,
    'mine',
    {
      ...{ clientId: 'https://app.example/a.json', clientName: 'App', clientHost: 'app.example' },
      ...{ redirectUri: 'https://app.example/cb', state: null, challenge: 'c'.repeat(43) },
      ...{ scopes: ['mail:read'], resource: 'https://api.example/mcp' },
    },
    network,
  )
const isOpen = async (id: string | null) =>
  (await findRequest(database.pool, id ?? '', 'mine')) !== null

/**
 * Fills the table with 10,000 open requests for consent, the oldest first. The times of the requests differ by at most
 * ten seconds. `age` is the age of the oldest request.
 */
const fill = (networks: number, age = '5 minutes') =>
  database.pool.query(
    `insert into oauth_requests (id, browser_hash, client_id, client_name, redirect_uri, challenge, scopes, resource,
       expires_at, network)
     select 'flood' || n, '', 'flood', 'Flood', 'https://flood.example/cb', 'c', '{mail:read}', 'r',
       clock_timestamp() + interval '10 minutes' - $2::interval + n * interval '1 millisecond', 'flood' || n % $1::int
     from generate_series(1, 10000) n`,
    [networks, age],
  )
/** Looks up the first consent requests of the flood, and returns the numbers of the removed ones. */
const gone = async () =>
  (
    await database.pool.query<{ n: number }>(
      `select n from generate_series(1, 10000) n
       where not exists (select from oauth_requests r where r.id = 'flood' || n) order by n`,
    )
  ).rows.map(({ n }) => n)
const count = async () =>
  (await database.pool.query('select count(*)::int as n from oauth_requests')).rows[0].n

test('if one network fills the table of requests for consent, a new request replaces the oldest request of this network', async () => {
  const early = await ask('198.51.100.1')
  await fill(1)
  const late = await ask('203.0.113.1')
  const again = await ask('flood0')
  expect([await isOpen(early), await isOpen(late), await isOpen(again)]).toEqual([true, true, true])
  expect(await gone()).toEqual([1, 2])
  expect(await count()).toBe(10_001)
})

test.each([
  ['an expired', `expires_at = clock_timestamp() - interval '1 second'`],
  ['a decided', 'decided_at = clock_timestamp()'],
])(
  'if the table of requests for consent is full, a new request first replaces %s request',
  async (_, over) => {
    await fill(2)
    await database.pool.query(
      `update oauth_requests set ${over}, network = '198.51.100.1' where id = 'flood7'`,
    )
    expect(await isOpen(await ask('203.0.113.1'))).toBe(true)
    expect(await gone()).toEqual([7])
  },
)

test('if many networks with few requests for consent fill the table, a new request replaces the oldest request', async () => {
  await fill(1_112, '3 minutes 1 second')
  expect(await isOpen(await ask('203.0.113.1'))).toBe(true)
  expect(await isOpen(await ask('203.0.113.2'))).toBe(true)
  expect(await gone()).toEqual([1, 2])
})

test('if the table of requests for consent is full, several new requests at the same time are all stored', async () => {
  await fill(10_000, '2 minutes 50 seconds')
  expect(await ask('203.0.113.1')).toBeNull()
  expect(await gone()).toEqual([])
})

test('if the table of requests for consent is full, several new requests at the same time are all stored', async () => {
  await fill(1)
  const asked = await Promise.all(Array.from({ length: 8 }, (_, n) => ask(`203.0.113.${n}`)))
  expect(await Promise.all(asked.map(isOpen))).toEqual(Array(8).fill(true))
  expect(await count()).toBe(10_000)
})
