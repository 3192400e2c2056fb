/** Tests the paywalls of the client library with real x402 wallets. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Elysia } from 'elysia'
import express from 'express'
import { Hono } from 'hono'
import { createPaymentHeader } from 'x402/client'
import { PaywallError, Purser, verifyReceipt } from '../../../api/client/main.ts'
import { requirePayment as expressPaywall } from '../../../api/client/paywalls/expressPaywall.ts'
import { requirePayment as fetchPaywall } from '../../../api/client/paywalls/fetchPaywall.ts'
import { requirePayment as honoPaywall } from '../../../api/client/paywalls/honoPaywall.ts'
import type { Agent } from '../../support/service.ts'
import { decodeHeader } from '../../support/till/headers/x402v2.ts'
import { newPayer, pay, payTo, startTestTill, type TestTill } from '../../support/till/till.ts'
import { balanceOf, buyers, versionPaid } from '../buyers.ts'
import '../../support/whole.ts'

let till: TestTill
let seller: Agent
let purser: Purser
const stops: (() => Promise<unknown>)[] = []
const urls: Record<string, string> = {}
/** Counts the requests that each seller has served. */
const served: Record<string, number> = {}

/**
 * Is called by the paywalls in place of `fetch` for each call to the service. If it is null, the calls reach the
 * service unchanged.
 */
let disturb: ((request: Request) => Promise<Response>) | null = null

beforeAll(async () => {
  till = await startTestTill({ env: { ALLOW_PRIVATE_NETWORKS: 'true' } })
  seller = await till.newSeller()
  purser = new Purser({
    apiKey: seller.key,
    baseUrl: till.service.url,
    retries: 0,
    fetch: (request) => (disturb ?? fetch)(request),
  })
  const price = { purser, amount: '0.01' }
  const serve = (name: string) => {
    served[name] = (served[name] ?? 0) + 1
    return 'ha'
  }
  // Every route of the sellers allows caching, so the paywall itself must forbid the caching of paid responses.
  const PUBLIC = { 'cache-control': 'public, max-age=600' }

  const app = express()
  app.get('/joke', expressPaywall(price), (_request, response) => {
    response.set(PUBLIC).send(serve('Express'))
  })
  app.use(((error, _request, response, _next) => {
    response.status(error.status ?? 500).send(failure(error))
  }) satisfies express.ErrorRequestHandler)
  const server = await new Promise<Server>((done) => {
    const started = app.listen(0, '127.0.0.1', () => done(started))
  })
  stops.push(async () => server.close())
  urls.Express = `http://127.0.0.1:${(server.address() as AddressInfo).port}/joke`

  const hono = new Hono()
  hono.get('/joke', honoPaywall(price), (context) => context.text(serve('Hono'), 200, PUBLIC))
  hono.onError((error, context) => context.text(failure(error), 500))
  urls.Hono = start(hono.fetch)

  urls['Bun.serve'] = start(
    fetchPaywall(price, () => new Response(serve('Bun.serve'), { headers: PUBLIC })),
  )

  const joke = fetchPaywall(price, () => new Response(serve('Elysia'), { headers: PUBLIC }))
  const elysia = new Elysia()
    .onError(({ error }) => failure(error))
    .get('/joke', ({ request }) => joke(request))
  urls.Elysia = start(elysia.handle)

  for (const urlPattern of Object.values(urls)) {
    await purser.sellers.put({ urlPattern, priceUsdc: '0.01' })
  }
})

/** Returns the text of an error that the seller's error handler receives. */
const failure = (error: unknown): string =>
  error instanceof PaywallError ? 'set up wrongly' : String(error)

function start(handler: (request: Request) => Response | Promise<Response>): string {
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: (request) => handler(request),
    error: (error) => new Response(failure(error), { status: 500 }),
  })
  stops.push(() => server.stop(true))
  return `http://127.0.0.1:${server.port}/joke`
}

afterAll(async () => {
  await Promise.all(stops.map((stop) => stop()))
  await till[Symbol.asyncDispose]()
})

const SELLERS = ['Express', 'Hono', 'Bun.serve', 'Elysia']

for (const name of SELLERS) {
  for (const [buyerName, buyer] of Object.entries(buyers)) {
    const version = versionPaid(buyer, [1, 2])
    if (version === null) continue
    test(`the buyer ${buyerName} pays at the paywall on ${name}`, async () => {
      const account = await newPayer(till.client)
      const before = await balanceOf(till, payTo)
      const times = served[name] ?? 0
      const { status, v1, v2 } = await buyer.buy(account, urls[name]!)
      expect([status, served[name]]).toEqual([200, times + 1])
      const settled = decodeHeader((version === 1 ? v1 : v2)!)
      expect(settled).toMatchObject({ success: true, payer: account.address })
      expect(await balanceOf(till, account.address)).toBe(990_000n)
      expect((await balanceOf(till, payTo)) - before).toBe(10_000n)
      const { payments } = await purser.payments.list({ limit: 1 })
      expect(payments[0]).toMatchObject({
        status: 'settled',
        txHash: settled.transaction,
        resourceUrl: urls[name],
      })
      const keys = (await (await fetch(`${till.service.url}/.well-known/jwks.json`)).json()) as any
      const receipt = await verifyReceipt({ receipt: payments[0]!.signedReceipt, keys })
      expect(receipt.txHash).toBe(settled.transaction)
    })
  }

  test(`the paywall on ${name} serves the resource only after the settlement, and once for each payment`, async () => {
    const url = urls[name]!
    const times = served[name] ?? 0
    const unpaid = await fetch(url)
    expect([unpaid.status, unpaid.headers.get('cache-control')]).toEqual([402, 'no-store'])
    const challenge = (await unpaid.json()) as any
    expect(challenge).toMatchObject({ x402Version: 1, error: 'X-PAYMENT header is required' })
    expect(challenge.accepts[0]).toMatchObject({ maxAmountRequired: '10000', resource: url })

    const { header: tooLittle } = await pay({ value: 9_999n })
    for (const [payment, reason] of [
      ['x', 'invalid_payload'],
      [tooLittle, 'invalid_exact_evm_payload_authorization_value'],
    ] as const) {
      const refused = await fetch(url, { headers: { 'x-payment': payment } })
      expect([refused.status, refused.headers.get('cache-control')]).toEqual([402, 'no-store'])
      expect(((await refused.json()) as any).error).toBe(reason)
    }
    expect(served[name] ?? 0).toBe(times)

    const account = await newPayer(till.client)
    const payment = await createPaymentHeader(account as never, 1, challenge.accepts[0])
    const bring = () => fetch(`${url}?again=1`, { headers: { 'x-payment': payment } })
    const paid = await bring()
    expect([paid.status, await paid.text(), paid.headers.get('cache-control')]).toEqual([
      200,
      'ha',
      'no-store',
    ])
    expect(paid.headers.get('x-payment-response')).toBeString()
    const again = await bring()
    expect([again.status, await again.text()]).toEqual([200, 'ha'])
    const other = await fetch(url, { headers: { 'x-payment': payment } })
    expect([other.status, ((await other.json()) as any).error]).toEqual([
      402,
      'duplicate_settlement',
    ])
    expect(served[name]).toBe(times + 1)
    expect(await balanceOf(till, account.address)).toBe(990_000n)
  })

  test(`the paywall on ${name} responds with 503 while the service is unreachable, so that the payer pays only once`, async () => {
    const url = urls[name]!
    const times = served[name] ?? 0
    const { accepts } = (await (await fetch(url)).json()) as any
    const account = await newPayer(till.client)
    const payment = await createPaymentHeader(account as never, 1, accepts[0])
    const bring = () => fetch(url, { headers: { 'x-payment': payment } })
    try {
      disturb = () => Promise.reject(new Error('away'))
      // The paywall keeps each offer for a minute. Therefore it answers 402 to a request without payment even while the
      // service is away.
      expect((await fetch(url)).status).toBe(402)
      const response = await bring()
      expect([response.status, response.headers.get('cache-control')]).toEqual([503, 'no-store'])
      expect(response.headers.get('retry-after')).toBe('5')
      expect(((await response.json()) as any).error).toBe('unavailable')
      // In this test the payment is settled and redeemed, and only the service's response to the paywall is lost.
      disturb = async (request) => {
        await fetch(request)
        throw new Error('lost')
      }
      expect((await bring()).status).toBe(503)
    } finally {
      disturb = null
    }
    expect(served[name] ?? 0).toBe(times)
    const answers = await Promise.all([bring(), bring(), bring()])
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200])
    expect(served[name]).toBe(times + 1)
    expect(await balanceOf(till, account.address)).toBe(990_000n)
  })

  test(`the paywall on ${name} responds to a configuration error of the seller with 500, not 402`, async () => {
    const url = urls[name]!
    const times = served[name] ?? 0
    try {
      disturb = async () =>
        Response.json(
          { error: 'forbidden', message: 'Payments are not enabled', status: 403 },
          { status: 403 },
        )
      const response = await fetch(url, { headers: { 'x-payment': 'e30=' } })
      expect([response.status, await response.text()]).toEqual([500, 'set up wrongly'])
    } finally {
      disturb = null
    }
    expect(served[name] ?? 0).toBe(times)
  })
}

test('behind a trusted proxy, the paid resource is the URL that the payer requested', async () => {
  const urlPattern = 'https://shop.example.com/joke'
  await purser.sellers.put({ urlPattern, priceUsdc: '0.01' })
  const app = (trustProxy: boolean) =>
    fetchPaywall({ purser, amount: '0.01', trustProxy }, () => new Response('ha'))
  const headers = { 'x-forwarded-proto': 'https, http', 'x-forwarded-host': 'shop.example.com' }
  const request = () => new Request(`${urls.Hono}?x=1`, { headers })
  const resource = async (response: Response) =>
    ((await response.json()) as any).accepts[0].resource
  expect(await resource(await app(true)(request()))).toBe(urlPattern)
  expect(await resource(await app(false)(request()))).toBe(urls.Hono)
  const fixed = fetchPaywall({ purser, amount: '0.01', resource: urlPattern }, () => new Response())
  expect(await resource(await fixed(request()))).toBe(urlPattern)
})
