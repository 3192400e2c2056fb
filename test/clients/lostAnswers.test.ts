/**
 * Tests that a payer who lost the paid response gets it again for the same request. A different request with the same
 * payment does not get it.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { Purser } from '../../api/client/main.ts'
import { requirePayment as fetchPaywall } from '../../api/client/paywalls/fetchPaywall.ts'
import type { Agent } from '../support/service.ts'
import { newPayer, pay, startTestTill, type TestTill } from '../support/till/till.ts'
import { balanceOf } from './buyers.ts'
import { OUR_PAYWALLS } from './ourPaywalls.ts'
import '../support/whole.ts'

let till: TestTill
let seller: Agent
let isLost = false
/** Sets by how many milliseconds the test moves the recorded time of a payment's redeem call into the past. */
let grantedAgoMs = 0
beforeAll(async () => {
  till = await startTestTill({ env: { ALLOW_PRIVATE_NETWORKS: 'true' } })
  seller = await till.newSeller()
})
afterAll(() => till[Symbol.asyncDispose]())

/**
 * Creates an API client for one seller process. The test can drop the responses of the service to this client.
 */
const newPurser = () =>
  new Purser({
    apiKey: seller.key,
    baseUrl: till.service.url,
    retries: 0,
    fetch: async (request) => {
      const response = await fetch(request)
      if (isLost) throw new Error('lost')
      const body = (await response.json()) as Record<string, unknown>
      if (body.ok === true) body.grantedAt = new Date(Date.now() - grantedAgoMs).toISOString()
      return Response.json(body, { status: response.status })
    },
  })
const RESOURCE = 'https://api.example.com/report'
const price = () => ({ purser: newPurser(), amount: '0.01', resource: RESOURCE })

async function newPayment() {
  const account = await newPayer(till.client)
  const { header } = await pay({}, { account })
  return { account, headers: { 'x-payment': header, cookie: 'a=1' } }
}
const reasonOf = async (response: Response) => [
  response.status,
  ((await response.json()) as { error: string }).error,
]

for (const [name, open] of Object.entries(OUR_PAYWALLS)) {
  test(`after the seller restarts, the ${name} paywall serves a used payment only for the request whose first response was lost`, async () => {
    let served = 0
    const sell = () => new Response(`ha ${++served}`)
    const { account, headers } = await newPayment()
    {
      await using shop = await open(price(), sell)
      isLost = true
      try {
        expect((await fetch(`${shop.url}?a=1`, { headers })).status).toBe(503)
      } finally {
        isLost = false
      }
    }
    await using shop = await open(price(), sell)
    expect(await reasonOf(await fetch(`${shop.url}?a=2`, { headers }))).toEqual([
      402,
      'duplicate_settlement',
    ])
    const answer = await fetch(`${shop.url}?a=1`, { headers })
    expect([answer.status, await answer.text(), served]).toEqual([200, 'ha 1', 1])
    expect(await balanceOf(till, account.address)).toBe(990_000n)
  })

  test(`the ${name} paywall answers a repeated request with the same response, and runs the seller’s handler only once`, async () => {
    let served = 0
    await using shop = await open(price(), ({ method, target, body }) => {
      const headers = new Headers({ 'x-own': 'own', 'content-type': 'text/plain; charset=utf-8' })
      return new Response(`${++served} ${method} ${target} ${body} é`, { status: 201, headers })
    })
    const { headers } = await newPayment()
    const ask = (path = '?a=1', change: RequestInit = {}) =>
      fetch(shop.url + path, {
        method: 'POST',
        body: '{"city":"Oslo"}',
        headers: { ...headers, 'content-type': 'application/json' },
        ...change,
      })
    const answers = await Promise.all(Array.from({ length: 50 }, () => ask()))
    answers.push(await ask())
    for (const answer of answers) {
      expect([answer.status, await answer.text()]).toEqual([
        201,
        '1 POST /joke?a=1 {"city":"Oslo"} é',
      ])
      expect(answer.headers.get('x-own')).toBe('own')
      expect(answer.headers.get('content-type')).toBe('text/plain; charset=utf-8')
      expect(answer.headers.get('cache-control')).toBe('no-store')
      expect(answer.headers.get('x-payment-response')).toBeString()
    }
    // In this test, a thief sends the payment header with different requests: another query, method or body, or other
    // credentials.
    const json = { 'content-type': 'application/json' }
    for (const other of [
      await ask('?a=2'),
      await ask('?a=1', { method: 'PUT' }),
      await ask('?a=1', { body: '{"city":"Bergen"}' }),
      await ask('?a=1', { headers: { ...headers, ...json, cookie: 'a=2' } }),
      await ask('?a=1', { headers: { ...headers, ...json, authorization: 'Bearer x' } }),
    ]) {
      expect(await reasonOf(other)).toEqual([402, 'duplicate_settlement'])
    }
    expect(served).toBe(1)
  })

  test(`after the seller’s handler fails, the ${name} paywall serves the repeated request`, async () => {
    let served = 0
    await using shop = await open(price(), () => {
      served++
      if (served === 1) return new Response('later', { status: 500 })
      if (served === 2) throw new Error('broken')
      return new Response('ha')
    })
    const { account, headers } = await newPayment()
    const statuses = []
    for (let n = 0; n < 4; n++) statuses.push((await fetch(shop.url, { headers })).status)
    expect([statuses, served]).toEqual([[500, 500, 200, 200], 3])
    expect(await balanceOf(till, account.address)).toBe(990_000n)
  })

  test(`the ${name} paywall sends a long response completely, and refuses to send it again for the same payment`, async () => {
    const long = 'é'.repeat(200_000)
    let served = 0
    await using shop = await open(price(), () => {
      served++
      return new Response(long)
    })
    const { headers } = await newPayment()
    const answer = await fetch(shop.url, { headers })
    expect([answer.status, (await answer.text()) === long]).toEqual([200, true])
    expect(await reasonOf(await fetch(shop.url, { headers }))).toEqual([
      402,
      'duplicate_settlement',
    ])
    expect(served).toBe(1)
  })

  test(`the ${name} paywall passes a long request body completely to the handler, and runs the handler only once`, async () => {
    const city = 'O'.repeat(90_000)
    const seen: string[] = []
    await using shop = await open(price(), ({ body }) => {
      seen.push(body)
      return new Response('ha')
    })
    const { headers } = await newPayment()
    const ask = (body: string) =>
      fetch(shop.url, {
        method: 'POST',
        body,
        headers: { ...headers, 'content-type': 'application/json' },
      })
    const first = JSON.stringify({ city })
    expect((await ask(first)).status).toBe(200)
    expect((await ask(first)).status).toBe(200)
    expect(await reasonOf(await ask(JSON.stringify({ city: `${city}!` })))).toEqual([
      402,
      'duplicate_settlement',
    ])
    expect(seen).toEqual([first])
  })
}

test('if a seller creates a new paywall object for each request, a payment still pays for only one response', async () => {
  let served = 0
  const { headers } = await newPayment()
  for (let n = 0; n < 3; n++) {
    const weather = fetchPaywall(price(), () => new Response(`ha ${++served}`))
    const answer = await weather(new Request(RESOURCE, { headers }))
    expect([answer.status, await answer.text()]).toEqual([200, 'ha 1'])
  }
})

test('if a payment was redeemed more than ten minutes ago, a repeated request with this payment gets no new response', async () => {
  let served = 0
  await using shop = await OUR_PAYWALLS.fetch(price(), () => new Response(`ha ${++served}`))
  const { headers } = await newPayment()
  isLost = true
  try {
    expect((await fetch(shop.url, { headers })).status).toBe(503)
  } finally {
    isLost = false
  }
  grantedAgoMs = 11 * 60_000
  try {
    for (let n = 0; n < 2; n++) {
      expect(await reasonOf(await fetch(shop.url, { headers }))).toEqual([
        402,
        'duplicate_settlement',
      ])
    }
    expect(served).toBe(0)
  } finally {
    grantedAgoMs = 0
  }
})
