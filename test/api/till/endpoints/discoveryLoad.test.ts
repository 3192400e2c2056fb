/**
 * Tests that clients without an API key who read the public list of paid resources do not slow down the projects of the
 * service.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { LoopTime } from '../../../../api/http/limits/loopTime.ts'
import { startTestService, type TestService } from '../../../support/service.ts'
import {
  connectChain,
  listEndpoint,
  newListedSeller,
} from '../../../support/till/listedEndpoints.ts'
import { waitFor } from '../../../support/waitFor.ts'

let service: TestService
beforeAll(async () => {
  const env = { TRUSTED_PROXIES: '127.0.0.0/8', DATABASE_POOL: '16' }
  service = await startTestService({
    ...{ smtp: false, workers: false, env },
    // Each network's allowance of processor time is enough for two large pages of the public list. The test clock
    // stands still, so that the allowance is not refilled during a test.
    loopTime: new LoopTime(() => 0, { burstMs: 250, perSecondMs: 1 }),
  })
  await connectChain(service.database.pool)
})
afterAll(() => service[Symbol.asyncDispose]())

const get = (path: string, ip: string) =>
  fetch(service.url + path, { headers: { 'x-forwarded-for': ip } })

test('while fifty clients without an API key wait for searches of paid resources, a project can still read and search its mail', async () => {
  const agent = await service.newAgent()
  const { pool } = service.database
  const lock = await pool.connect()
  await lock.query('begin')
  await lock.query('lock table seller_endpoints')
  const paths = [
    ...['/v0/x402/discovery/search?query=a%20b', '/v0/x402/discovery/resources'],
    '/.well-known/x402',
  ]
  const asked = Array.from({ length: 50 }, (_, n) => get(paths[n % 3]!, `192.0.2.${n}`))
  await waitFor('a read of the list that waits for the lock', async () => {
    const { rows } = await pool.query(
      `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
         and query like '%seller_endpoints%'`,
    )
    return rows.length > 0
  })
  const reads = [await agent.get('/v0/messages'), await agent.get('/v0/messages?q=word')]
  await lock.query('rollback')
  lock.release()
  expect(reads.map(({ status }) => status)).toEqual([200, 200])
  const answers = await Promise.all(asked)
  expect(answers.map(({ status }) => status)).toEqual(Array(50).fill(200))
})

test('if one IP network begins twenty reads of the public endpoint list at once, six are answered and fourteen refused, and other networks are still served', async () => {
  const lock = await service.database.pool.connect()
  await lock.query('begin')
  await lock.query('lock table seller_endpoints')
  const many = Array.from({ length: 20 }, () => get('/.well-known/x402', '203.0.113.1'))
  const [refused] = await Promise.all(many.slice(-1))
  const other = get('/.well-known/x402', '203.0.113.2')
  await lock.query('rollback')
  lock.release()
  expect([refused!.status, refused!.headers.get('cache-control')]).toEqual([429, 'no-store'])
  expect((await other).status).toBe(200)
  const answers = await Promise.all(many)
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(6)
})

test('if the database is too slow for the public list of endpoints, a client without an API key gets 503, and no cache may store this response', async () => {
  const lock = await service.database.pool.connect()
  await lock.query('begin')
  await lock.query('lock table seller_endpoints')
  const answer = await get('/.well-known/x402', '203.0.113.3')
  await lock.query('rollback')
  lock.release()
  expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '60'])
  expect(answer.headers.get('cache-control')).toBe('no-store')
})

test('an IP network that reads many large pages of the list of paid resources is refused, while another network is served', async () => {
  const { pool } = service.database
  const seller = await newListedSeller(pool)
  const description = 'x'.repeat(40_000)
  for (let n = 0; n < 100; n++) {
    await listEndpoint(pool, seller, `https://a.test/${n}`, { description })
  }
  const path = '/v0/x402/discovery/resources?limit=100'
  const answers: unknown[] = []
  for (let n = 0; n < 3; n++) {
    const answer = await get(path, '198.51.100.1')
    const body: any = await answer.json()
    answers.push([answer.status, body.error])
    if (n === 2) expect(Number(answer.headers.get('retry-after'))).toBePositive()
  }
  expect(answers).toEqual([
    [200, undefined],
    [200, undefined],
    [429, 'rate_limited'],
  ])
  expect((await get(path, '198.51.100.2')).status).toBe(200)
})
