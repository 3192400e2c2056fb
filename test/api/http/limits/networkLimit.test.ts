/** Tests the rate limits for all requests that the /64 networks of one /48 network make together. */
import { afterAll, beforeEach, expect, test } from 'bun:test'
import { consoleClient } from '../../../support/console/consoleSession.ts'
import { withinOneMinute } from '../../../support/rateWindow.ts'
import { startTestService, type TestService } from '../../../support/service.ts'

/** Sets how many sign-ins a /64 network and a /48 network may begin in a minute. */
const PER_MINUTE = 30
const PER_MINUTE_WIDE = 60

let service: TestService
beforeEach(async () => {
  service ??= await startTestService({
    smtp: false,
    workers: false,
    env: { BASE_URL: 'http://purser.example', TRUSTED_PROXIES: '127.0.0.0/8' },
  })
  await withinOneMinute()
})
afterAll(() => service[Symbol.asyncDispose]())

/** Begins sign-ins from a /64 network of the given /48 network, one after another. @returns the HTTP statuses */
async function begin(wide: string, narrow: number, count = 1): Promise<number[]> {
  const client = consoleClient(service.url, '')
  const from = {
    origin: 'http://purser.example',
    'x-forwarded-for': `${wide}:${narrow.toString(16)}::1`,
  }
  const statuses: number[] = []
  for (let n = 0; n < count; n++) {
    statuses.push((await client.post('/passkey-sessions/options', {}, from)).status)
  }
  return statuses
}
const statusesOf = (status: number, count: number) => Array<number>(count).fill(status)

test('once a /48 network has reached its limit, requests from its other /64 networks add no rows to the database', async () => {
  const wide = '2001:db8:1'
  const statuses: number[] = []
  for (let n = 0; n < PER_MINUTE_WIDE + 20; n++) statuses.push(...(await begin(wide, n)))
  expect(statuses).toEqual([...statusesOf(200, PER_MINUTE_WIDE), ...statusesOf(429, 20)])
  const { rowCount } = await service.database.pool.query(
    `select from rate_windows where subject like 'sign-in:' || $1 || ':%'`,
    [wide],
  )
  expect(rowCount).toBe(PER_MINUTE_WIDE + 1)
})

test('refused requests of a /64 network do not count against the limit of its /48 network', async () => {
  const wide = '2001:db8:2'
  expect(await begin(wide, 1, PER_MINUTE + 40)).toEqual([
    ...statusesOf(200, PER_MINUTE),
    ...statusesOf(429, 40),
  ])
  expect(await begin(wide, 2, PER_MINUTE)).toEqual(statusesOf(200, PER_MINUTE))
  expect(await begin(wide, 3)).toEqual([429])
  expect(await begin('2001:db8:3', 1)).toEqual([200])
})

test('a /48 network that reached its limit in an earlier minute can begin sign-ins again', async () => {
  const wide = '2001:db8:4'
  await service.database.pool.query(
    `insert into rate_windows (subject, window_start, used)
     values ($1, date_trunc('minute', clock_timestamp()) - interval '1 minute', $2)`,
    [`sign-in:${wide}::/48`, PER_MINUTE_WIDE],
  )
  expect(await begin(wide, 1)).toEqual([200])
})
