import { afterAll, beforeAll, expect, test } from 'bun:test'
import { startApi } from '../../../api/http/server.ts'
import { silentLog } from '../../support/logs.ts'
import { withinOneMinute } from '../../support/rateWindow.ts'
import { createClient, startTestService, type TestService } from '../../support/service.ts'
import '../../support/long.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService({
    smtp: false,
    workers: false,
    env: { RATE_LIMIT_REQUESTS: '200', RATE_LIMIT_AUTH: '60', TRUSTED_PROXIES: '127.0.0.0/8' },
  })
})
afterAll(() => service[Symbol.asyncDispose]())

const from = (ip: string) => ({ 'x-forwarded-for': ip })

test('each API key gets exactly 200 requests a minute, even if the requests go to two API processes', async () => {
  const other = startApi(service.config, service.database.url, silentLog)
  try {
    const agent = await service.newAgent()
    const clients = [agent, createClient(`http://127.0.0.1:${other.port}`, agent.key)]
    await withinOneMinute()
    const answers = await Promise.all(
      Array.from({ length: 260 }, (_, n) => clients[n % 2]!.get('/v0/messages?limit=1')),
    )
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(200)
    const refused = answers.filter(({ status }) => status === 429)
    expect(refused).toHaveLength(60)
    expect(refused[0]!.body).toEqual({
      error: 'rate_limited',
      message: 'Too many requests',
      status: 429,
    })
    const remaining = answers.map(({ headers }) => Number(headers.get('x-ratelimit-remaining')))
    expect(remaining.filter((value) => value > 0).toSorted((a, b) => b - a)).toEqual(
      Array.from({ length: 199 }, (_, n) => 199 - n),
    )
    const { headers } = refused[0]!
    expect(headers.get('x-ratelimit-limit')).toBe('200')
    const reset = Number(headers.get('x-ratelimit-reset'))
    expect(reset % 60).toBe(0)
    expect(reset - Date.now() / 1000).toBeWithin(0, 61)
    expect(Number(headers.get('retry-after'))).toBeWithin(1, 61)
    const neighbour = await service.newAgent()
    expect((await neighbour.get('/v0/messages')).status).toBe(200)
  } finally {
    await other.stop()
  }
})

test('an IP address gets 429 after 60 wrong API keys a minute, but a valid API key is still served', async () => {
  const agent = await service.newAgent()
  const wrong = createClient(service.url, `loid-${'0'.repeat(64)}`)
  await withinOneMinute()
  const ask = (ip: string) =>
    fetch(`${service.url}/v0/messages`, {
      headers: { ...from(ip), authorization: `Bearer loid-${'0'.repeat(64)}` },
    })
  const statuses = await Promise.all(
    Array.from({ length: 70 }, async () => (await ask('203.0.113.7')).status),
  )
  expect(statuses.filter((status) => status === 401)).toHaveLength(60)
  expect(statuses.filter((status) => status === 429)).toHaveLength(10)
  expect((await ask('203.0.113.8')).status).toBe(401)
  const right = await fetch(`${service.url}/v0/messages`, {
    headers: { ...from('203.0.113.7'), authorization: `Bearer ${agent.key}` },
  })
  expect(right.status).toBe(200)
  expect((await wrong.get('/v0/messages')).status).toBe(401)
})

test('IPv6 clients in the same /64 network share one rate limit, and addresses that a client adds to X-Forwarded-For are ignored', async () => {
  await withinOneMinute()
  const ask = async (forwarded: string) =>
    (await fetch(`${service.url}/v0/messages`, { headers: { 'x-forwarded-for': forwarded } }))
      .status
  for (let n = 0; n < 60; n++) await ask(`2001:db8:1:2::${n.toString(16)}`)
  expect(await ask('2001:db8:1:2:ffff::1')).toBe(429)
  expect(await ask('2001:db8:1:3::1')).toBe(401)
  // The service trusts only the last address in X-Forwarded-For that does not belong to a trusted proxy, so a client
  // cannot evade the rate limit by adding other addresses.
  for (let n = 0; n < 60; n++) await ask(`198.51.100.${n}, 192.0.2.77`)
  expect(await ask('198.51.100.200, 192.0.2.77')).toBe(429)
})

test('without a trusted proxy the X-Forwarded-For header has no effect', async () => {
  await using plain = await startTestService({
    smtp: false,
    workers: false,
    env: { RATE_LIMIT_AUTH: '5' },
  })
  await withinOneMinute()
  const statuses: number[] = []
  for (let n = 0; n < 7; n++) {
    statuses.push(
      (await fetch(`${plain.url}/v0/messages`, { headers: from(`203.0.113.${n}`) })).status,
    )
  }
  expect(statuses).toEqual([401, 401, 401, 401, 401, 429, 429])
})

test('every JSON response has the rate-limit headers', async () => {
  for (const path of ['/healthz', '/nothing', '/openapi.json', '/v0/messages']) {
    const { headers } = await fetch(service.url + path, { headers: from('192.0.2.200') })
    for (const name of ['limit', 'remaining', 'reset']) {
      expect(headers.get(`x-ratelimit-${name}`)).toMatch(/^\d+$/)
    }
  }
})

test('the x402 facilitator and the calls of a paywall have their own rate limits', async () => {
  const agent = await service.newAgent()
  const leftOf = ({ headers }: { headers: Headers }) => [
    headers.get('x-ratelimit-limit'),
    headers.get('x-ratelimit-remaining'),
  ]
  const supported = async () => leftOf(await agent.get('/v0/x402/supported'))
  const whoami = async () => leftOf(await agent.get('/v0/whoami'))
  const challenge = async () => leftOf(await agent.post('/v0/payments/challenge', {}))
  const redeem = async () => leftOf(await agent.post('/v0/payments/redeem', {}))
  await withinOneMinute()
  expect(await supported()).toEqual(['1200', '1199'])
  expect(await challenge()).toEqual(['200', '199'])
  expect(await redeem()).toEqual(['200', '199'])
  expect(await whoami()).toEqual(['200', '199'])
  expect(await supported()).toEqual(['1200', '1198'])
  expect(await challenge()).toEqual(['200', '198'])
  expect(await redeem()).toEqual(['200', '198'])
})
