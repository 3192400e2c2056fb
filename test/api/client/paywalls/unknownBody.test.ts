/** Tests paid requests whose body the paywall cannot hash. */
import { expect, test } from 'bun:test'
import { requirePayment } from '../../../../api/client/paywalls/fetchPaywall.ts'
import {
  newPaymentHeader,
  RESOURCE,
  refusal,
  shopService,
} from '../../../support/till/headers/shopService.ts'

const LONG = 'a'.repeat(1024 * 1024 + 1)

function open(handler: (served: number) => Response | Promise<Response>, retries = 0) {
  const service = shopService(retries)
  const state = { served: 0, service }
  const serve = requirePayment({ purser: service.purser, amount: '0.01' }, () =>
    handler(++state.served),
  )
  const ask = async (payment: string, body = LONG, { path = '', headers = {} } = {}) => {
    const sent = { method: 'POST', body, headers: { ...headers, 'x-payment': payment } }
    const response = await serve(new Request(RESOURCE + path, sent))
    const text = await response.text()
    return [response.status, response.status === 402 ? JSON.parse(text).error : text]
  }
  return Object.assign(state, { ask, serve })
}
const LIMITED = { status: 429, headers: { 'retry-after': '30' } }
const DUPLICATE = [402, 'duplicate_settlement']

test('if the handler fails, the payer may repeat a request with a long body and the same payment until the paywall has sent a paid response', async () => {
  const shop = open((served) => new Response(`ha ${served}`, { status: served < 3 ? 503 : 200 }))
  const payment = newPaymentHeader()
  expect(await shop.ask(payment)).toEqual([503, 'ha 1'])
  expect(await shop.ask(payment, LONG, { path: '?other' })).toEqual(DUPLICATE)
  expect(await shop.ask(payment, LONG, { headers: { cookie: 'other' } })).toEqual(DUPLICATE)
  expect(await shop.ask(payment)).toEqual([503, 'ha 2'])
  expect(await shop.ask(payment)).toEqual([200, 'ha 3'])
  for (const body of [LONG, `${LONG}a`]) expect(await shop.ask(payment, body)).toEqual(DUPLICATE)
  expect(shop.served).toBe(3)
})

test('if the paywall does not get the service’s response, the payer may repeat a request with a long body and the same payment, and gets the content', async () => {
  const shop = open(() => new Response('ha'))
  const payment = newPaymentHeader()
  shop.service.answer = () => {
    throw new TypeError('the connection broke')
  }
  expect((await shop.ask(payment))[0]).toBe(503)
  shop.service.answer = null
  expect(await shop.ask(payment)).toEqual([200, 'ha'])
  expect(new Set(shop.service.keys()).size).toBe(1)
})

test('if the service temporarily refuses to repeat a call with a lost response, the payer may repeat a request with a long body, and gets the content', async () => {
  const shop = open(() => new Response('ha'), 1)
  const payment = newPaymentHeader()
  let calls = 0
  shop.service.answer = (call) => {
    if (++calls === 1) {
      shop.service.usual(call)
      throw new TypeError('the connection broke')
    }
    return Response.json({ error: 'rate_limited', message: 'Too many requests' }, LIMITED)
  }
  expect((await shop.ask(payment))[0]).toBe(503)
  shop.service.answer = null
  expect(await shop.ask(payment)).toEqual([200, 'ha'])
  expect(new Set(shop.service.keys()).size).toBe(1)
})

test('a payer who disconnects during the response cannot use the same payment for a request with another body', async () => {
  // The handler sends the first bytes of its response and never ends it, so that the payer can disconnect during the
  // response.
  const shop = open(
    () =>
      new Response(
        new ReadableStream({
          start: (controller) => controller.enqueue(new TextEncoder().encode('nearly all')),
        }),
      ),
  )
  const payment = newPaymentHeader()
  const response = await shop.serve(
    new Request(RESOURCE, { method: 'POST', body: LONG, headers: { 'x-payment': payment } }),
  )
  const reader = response.body!.getReader()
  expect(new TextDecoder().decode((await reader.read()).value)).toBe('nearly all')
  await reader.cancel()
  expect(await shop.ask(payment, `${LONG}a`)).toEqual(DUPLICATE)
  expect(shop.served).toBe(1)
})

test('if several requests with long bodies arrive at once with the same payment, the handler runs only once', async () => {
  const gate = Promise.withResolvers<void>()
  const shop = open(async () => {
    await gate.promise
    return new Response('ha')
  })
  const payment = newPaymentHeader()
  const asked = Promise.all([1, 2, 3].map((n) => shop.ask(payment, LONG + 'a'.repeat(n))))
  gate.resolve()
  expect((await asked).toSorted()).toEqual([[200, 'ha'], DUPLICATE, DUPLICATE])
  expect(shop.served).toBe(1)
})

test('long requests with payments that cannot be decoded never share an idempotency key', async () => {
  const shop = open(() => new Response('later', { status: 503 }))
  for (const payment of ['a', 'b', 'b']) expect((await shop.ask(payment))[0]).not.toBe(200)
  expect(new Set(shop.service.keys()).size).toBe(3)
})

test('after the service has refused a payment, a repeated request with a long body gets a new idempotency key', async () => {
  const shop = open(() => new Response('ha'))
  const payment = newPaymentHeader()
  shop.service.answer = () => refusal('insufficient_funds')
  for (let n = 0; n < 2; n++) expect(await shop.ask(payment)).toEqual([402, 'insufficient_funds'])
  expect(new Set(shop.service.keys()).size).toBe(2)
})
