/**
 * Tests the paywalls of the client library with x402 version 2. One 402 response serves wallets of both x402 versions.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { decodePaymentRequiredHeader } from '@x402/core/http'
import { isPaymentRequired } from '@x402/core/schemas'
import { ExactEvmScheme } from '@x402/evm'
import {
  decodeSignedOffers,
  extractOffersFromPaymentRequired,
  extractReceiptFromResponse,
  findAcceptsObjectFromSignedOffer,
  verifyOfferSignatureJWS,
  verifyReceiptMatchesOffer,
  verifyReceiptSignatureJWS,
} from '@x402/extensions/offer-receipt'
import { appendPaymentIdentifierToExtensions } from '@x402/extensions/payment-identifier'
import { x402Client } from '@x402/fetch'
import type express from 'express'
import { PaymentRequirementsSchema } from 'x402/types'
import { Purser } from '../../../api/client/main.ts'
import { requirePayment as expressPaywall } from '../../../api/client/paywalls/expressPaywall.ts'
import { requirePayment as fetchPaywall } from '../../../api/client/paywalls/fetchPaywall.ts'
import type { Agent } from '../../support/service.ts'
import {
  decodeHeader,
  encodeHeader,
  NETWORK,
  payloadV2,
} from '../../support/till/headers/x402v2.ts'
import { newPayer, pay, startTestTill, type TestTill } from '../../support/till/till.ts'
import { waitFor } from '../../support/waitFor.ts'
import { type Account, balanceOf, buyers } from '../buyers.ts'
import { onExpress, type Seller } from '../sellers.ts'
import '../../support/whole.ts'

let till: TestTill
let agent: Agent
let purser: Purser
let shop: Seller
/** Holds the paths of the requests that the paywalls send to the service. */
let asked: string[] = []

beforeAll(async () => {
  till = await startTestTill({ env: { ALLOW_PRIVATE_NETWORKS: 'true' } })
  agent = await till.newSeller()
  purser = new Purser({
    apiKey: agent.key,
    baseUrl: till.service.url,
    fetch: (request) => {
      asked.push(new URL(request.url).pathname)
      return fetch(request)
    },
  })
  const paywall = expressPaywall({ purser, amount: '0.01', cors: 'https://page.example' })
  shop = await onExpress(paywall as express.RequestHandler, [1, 2])
  await purser.sellers.put({ urlPattern: shop.url, priceUsdc: '0.01' })
})
afterAll(async () => {
  await shop.stop()
  await till[Symbol.asyncDispose]()
})

const bring = (headers: Record<string, string>, query = '') => fetch(shop.url + query, { headers })

/** Signs a payment for the offered price with the wallet of @x402/core. */
async function sign(account: Account, change: (payload: any) => void = () => {}) {
  const client = new x402Client().register('eip155:*', new ExactEvmScheme(account as never))
  const required = decodePaymentRequiredHeader((await bring({})).headers.get('payment-required')!)
  const payload = await client.createPaymentPayload(required)
  change(payload)
  return encodeHeader(payload)
}

test('a wallet that knows only x402 version 2 pays at a paywall', async () => {
  const account = await newPayer(till.client)
  const { status, v2 } = await buyers['@x402/fetch (v2)']!.buy(account, shop.url)
  expect([status, decodeHeader(v2!).network]).toEqual([200, NETWORK])
})

test('the 402 response of a paywall is valid in both x402 versions, and its header is smaller than 3 kB', async () => {
  const response = await bring({})
  const header = response.headers.get('payment-required')!
  const body = (await response.json()) as any
  expect([response.status, response.headers.get('cache-control')]).toEqual([402, 'no-store'])
  expect(Object.keys(body).toSorted()).toEqual(['accepts', 'error', 'x402Version'])
  expect(header.length).toBeLessThan(3_000)
  expect(body.accepts.map((one: unknown) => PaymentRequirementsSchema.parse(one))).toHaveLength(1)
  expect(isPaymentRequired(body)).toBe(true)
  expect(isPaymentRequired(decodePaymentRequiredHeader(header))).toBe(true)
})

test('a paywall that is set to one x402 version offers only this version', async () => {
  const challenge = async (versions: (1 | 2)[]) => {
    const serve = fetchPaywall(
      { purser, amount: '0.01', resource: shop.url, versions },
      () => new Response('ha'),
    )
    const response = await serve(new Request(shop.url))
    return [
      response.headers.has('payment-required'),
      'accepts' in ((await response.json()) as object),
    ]
  }
  expect(await challenge([1])).toEqual([false, true])
  expect(await challenge([2])).toEqual([true, false])
  expect(await challenge([1, 2])).toEqual([true, true])
})

test('if both payment headers of a request contain the same payment, the service takes the payment once', async () => {
  const account = await newPayer(till.client)
  const payment = await sign(account)
  asked = []
  const paid = await bring({ 'payment-signature': payment, 'x-payment': payment })
  expect([paid.status, paid.headers.get('x-payment-response')]).toEqual([200, null])
  expect(paid.headers.get('payment-response')).toBeString()
  expect(asked).toEqual(['/v0/payments/redeem'])
  expect(await balanceOf(till, account.address)).toBe(990_000n)
  // The payment payload decides the x402 version, whichever HTTP header contains it.
  const other = await bring({ 'x-payment': await sign(account) })
  expect([other.status, decodeHeader(other.headers.get('payment-response')!).network]).toEqual([
    200,
    NETWORK,
  ])
})

test('a request gets status 402 if its PAYMENT-SIGNATURE header cannot be read', async () => {
  const garbage = ['x', '', 'e30=', 'bnVsbA==', '%%%', encodeHeader({ x402Version: 2 })]
  for (const header of [...garbage, 'A'.repeat(12_000)]) {
    const response = await bring({ 'payment-signature': header })
    expect(response.status).toBe(402)
    const required = decodeHeader(response.headers.get('payment-required')!)
    expect(required.error).toBe('invalid_payload')
  }
})

test('a request with a refused payment gets a new offer and the reason of the refusal', async () => {
  const { authorization, signature } = await pay({ value: 9_999n })
  const response = await bring({
    'payment-signature': encodeHeader(payloadV2({ authorization, signature })),
  })
  expect([response.status, response.headers.get('payment-response')]).toEqual([402, null])
  expect(decodeHeader(response.headers.get('payment-required')!).error).toBe(
    'invalid_exact_evm_payload_authorization_value_mismatch',
  )
})

test('if a settlement fails, the response has the reason of the failure and a new offer', async () => {
  const payment = await sign(await newPayer(till.client))
  expect((await bring({ 'payment-signature': payment })).status).toBe(200)
  const response = await bring({ 'payment-signature': payment }, '?of=another')
  expect(response.status).toBe(402)
  expect(decodeHeader(response.headers.get('payment-response')!)).toMatchObject({
    success: false,
    errorReason: 'duplicate_settlement',
    network: NETWORK,
  })
  expect(response.headers.get('payment-required')).toBeString()
})

test('a request with a pending payment gets no new offer, and the paywall accepts the same payment later', async () => {
  await using slow = await startTestTill({ env: { SETTLEMENT_WAIT_MS: '300' } })
  const owner = await slow.newSeller()
  const resource = 'https://api.example.com/report'
  const own = new Purser({ apiKey: owner.key, baseUrl: slow.service.url })
  const serve = fetchPaywall({ purser: own, amount: '0.01', resource }, () => new Response('ha'))
  const account = await newPayer(slow.client)
  await slow.client.setAutomine(false)
  for (const version of [1, 2] as const) {
    const signed = await pay({}, { account })
    const name = version === 2 ? 'payment-signature' : 'x-payment'
    const header = version === 2 ? encodeHeader(payloadV2(signed)) : signed.header
    const ask = () => serve(new Request(resource, { headers: { [name]: header } }))
    const pending = await ask()
    expect([pending.status, pending.headers.get('retry-after')]).toEqual([402, '5'])
    expect(pending.headers.get('payment-required')).toBeNull()
    const body = (await pending.json()) as any
    expect(body).toMatchObject({ error: 'settlement_pending', paymentId: expect.any(String) })
    expect([body.accepts, isPaymentRequired(body)]).toEqual([undefined, false])
    const response = version === 2 ? 'payment-response' : 'x-payment-response'
    expect(decodeHeader(pending.headers.get(response)!)).toMatchObject({
      success: false,
      errorReason: 'settlement_pending',
    })
    await slow.client.setAutomine(true)
    await slow.client.mine({ blocks: 1 })
    const paid = await waitFor('the served payment', async () => {
      const answer = await ask()
      return answer.status === 200 ? answer : null
    })
    expect(paid.headers.get(response)).toBeString()
    await slow.client.setAutomine(false)
  }
  expect(await balanceOf(slow, account.address)).toBe(980_000n)
})

test('a web page of the allowed origin may send and read the payment headers', async () => {
  const origin = 'https://page.example'
  // The wallets of x402 also send access-control-expose-headers as a request header, so the preflight response must
  // allow this header.
  const names = 'access-control-expose-headers,payment-signature'
  const preflight = await fetch(shop.url, {
    method: 'OPTIONS',
    headers: {
      origin,
      'access-control-request-method': 'GET',
      'access-control-request-headers': names,
    },
  })
  expect(preflight.status).toBe(204)
  expect(preflight.headers.get('access-control-allow-origin')).toBe(origin)
  expect(preflight.headers.get('access-control-allow-methods')).toBe('GET')
  expect(preflight.headers.get('access-control-allow-headers')).toBe(names)
  const payment = await sign(await newPayer(till.client))
  for (const response of [await bring({}), await bring({ 'payment-signature': payment })]) {
    expect(response.headers.get('access-control-allow-origin')).toBe(origin)
    expect(response.headers.get('access-control-expose-headers')).toBe(
      'PAYMENT-REQUIRED, PAYMENT-RESPONSE, X-PAYMENT-RESPONSE',
    )
  }
})

test('if 50 parallel requests have the same authorization, the paywall serves one of them', async () => {
  const account = await newPayer(till.client)
  const payment = await sign(account)
  const answers = await Promise.all(
    Array.from({ length: 50 }, (_, n) => bring({ 'payment-signature': payment }, `?n=${n}`)),
  )
  const statuses = answers.map(({ status }) => status).toSorted()
  expect(statuses).toEqual([200, ...Array<number>(49).fill(402)])
  expect(await balanceOf(till, account.address)).toBe(990_000n)
})

test('the service signs the offer in a 402 response, and the receipt of the payment matches this offer', async () => {
  const account = await newPayer(till.client)
  const required = decodePaymentRequiredHeader((await bring({})).headers.get('payment-required')!)
  const offers = extractOffersFromPaymentRequired(required)
  const [offer] = decodeSignedOffers(offers)
  expect(findAcceptsObjectFromSignedOffer(offer!, required.accepts)).toEqual(required.accepts[0])
  const { keys } = (await (await fetch(`${till.service.url}/.well-known/jwks.json`)).json()) as any
  expect(await verifyOfferSignatureJWS(offers[0] as never, keys[0])).toMatchObject({
    resourceUrl: shop.url,
    network: NETWORK,
    amount: '10000',
  })
  const paid = await bring({ 'payment-signature': await sign(account) })
  const receipt = extractReceiptFromResponse(paid)!
  expect(verifyReceiptMatchesOffer(receipt, offer!, [account.address])).toBe(true)
  expect(await verifyReceiptSignatureJWS(receipt as never, keys[0])).toMatchObject({
    payer: account.address,
  })
})

test('the record of a payment has the payment-identifier that the wallet sent', async () => {
  const id = `pay_${crypto.randomUUID().replaceAll('-', '')}`
  const payment = await sign(await newPayer(till.client), ({ extensions }) => {
    appendPaymentIdentifierToExtensions(extensions, id)
  })
  expect((await bring({ 'payment-signature': payment })).status).toBe(200)
  const { payments } = await purser.payments.list({ limit: 1 })
  expect(payments[0]).toMatchObject({ paymentIdentifier: id, x402Version: 2 })
})
