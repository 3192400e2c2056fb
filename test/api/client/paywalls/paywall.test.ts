/**
 * Tests what the paywall decides about a request: it sends an offer, accepts the payment, repeats a stored response, or
 * tells the payer to wait.
 */
import { afterEach, expect, setSystemTime, test } from 'bun:test'
import { ForbiddenError, PaywallError } from '../../../../api/client/errors.ts'
import { requestKey } from '../../../../api/client/paywalls/paidRequest.ts'
import {
  createPaywall,
  type PaywallOptions,
  type Verdict,
} from '../../../../api/client/paywalls/paywall.ts'
import { Purser } from '../../../../api/client/purser.ts'
import {
  CHALLENGE,
  grant,
  newPaymentHeader,
  RESOURCE,
  refusal,
  shopService,
} from '../../../support/till/headers/shopService.ts'

const KEY = /^[0-9a-f]{64}$/
const { headers: REQUIRED, ...OFFER } = CHALLENGE
const NO_STORE = { 'cache-control': 'no-store' }
const PENDING = 'settlement_pending'

afterEach(() => setSystemTime())

function open(options: Partial<PaywallOptions> = {}) {
  const service = shopService()
  const judge = createPaywall<string>({ purser: service.purser, amount: '0.01', ...options })
  const ask = (payment: string | object | null, asked: readonly unknown[] | null = ['GET']) =>
    judge({ payment, resource: RESOURCE, asked })
  return { service, ask }
}

/**
 * Returns the accepted sale from the paywall's decision about a request. Throws an error if the paywall has not
 * accepted the request as paid.
 */
function saleOf(verdict: Verdict<string>) {
  if (verdict.kind !== 'paid') throw new Error(`the verdict is ${verdict.kind}`)
  return verdict.sale
}
const briefly = (verdict: Verdict<unknown>) =>
  verdict.kind === 'refused' ? [verdict.status, verdict.body.error ?? null] : [verdict.kind]
const DUPLICATE = [402, 'duplicate_settlement']
const AWAY = [503, 'unavailable']

test('a request without payment gets the service’s offer, and the paywall sends only those price fields that the seller has set', async () => {
  const plain = open()
  expect(await plain.ask(null)).toStrictEqual({
    kind: 'refused',
    status: 402,
    headers: { ...NO_STORE, ...REQUIRED },
    body: OFFER,
    challenge: OFFER,
  })
  expect(plain.service.calls[0]?.body).toStrictEqual({ amount: '0.01', resource: RESOURCE })
  const full = open({ description: 'A joke', mimeType: 'text/plain' })
  await full.ask(null)
  expect(full.service.calls[0]?.body).toStrictEqual({
    amount: '0.01',
    resource: RESOURCE,
    description: 'A joke',
    mimeType: 'text/plain',
  })
})

test('an offer has the body of x402 version 1 and the header of x402 version 2, unless the seller wants only one version', async () => {
  for (const [versions, hasHeader, hasBody] of [
    [undefined, true, true],
    [[1, 2], true, true],
    [[1], false, true],
    [[2], true, false],
  ] as const) {
    const verdict = await open(versions && { versions }).ask(null)
    if (verdict.kind !== 'refused') throw new Error(verdict.kind)
    expect([versions, 'PAYMENT-REQUIRED' in verdict.headers, 'accepts' in verdict.body]).toEqual([
      versions,
      hasHeader,
      hasBody,
    ])
  }
  const { service, ask } = open()
  service.answer = () => ({ ...CHALLENGE, headers: {} })
  expect(await ask(null)).toMatchObject({ status: 402 })
  expect(Object.keys(((await ask(null)) as { headers: object }).headers)).toEqual(['cache-control'])
})

test('a paid request is accepted with payment headers, and its idempotency key depends on the payment and the request', async () => {
  const { service, ask } = open({ description: 'A joke' })
  const payment = newPaymentHeader()
  const verdict = await ask(payment)
  expect(verdict).toMatchObject({
    kind: 'paid',
    grant: { paymentId: 'pay_1' },
    headers: { ...NO_STORE, ...grant().headers },
  })
  expect(service.calls.map(({ path, body }) => [path, body])).toEqual([
    [
      '/v0/payments/redeem',
      { paymentHeader: payment, amount: '0.01', resource: RESOURCE, description: 'A joke' },
    ],
  ])
  expect(service.keys()[0]).toMatch(KEY)
  const cheaper = createPaywall({ purser: service.purser, amount: '0.02' })
  await cheaper({ payment, resource: RESOURCE, asked: ['GET'] })
  await ask(payment, ['PUT'])
  expect(new Set(service.keys()).size).toBe(3)
})

test('a repeated paid request gets the stored response, and the paywall does not call the service again', async () => {
  const { service, ask } = open()
  const payment = newPaymentHeader()
  saleOf(await ask(payment)).sold({ answer: 'ha', bytes: 2 })
  expect(await ask(payment)).toEqual({ kind: 'answered', answer: 'ha' })
  expect(service.calls).toHaveLength(1)
})

test('a repeated paid request gets the error duplicate_settlement if the first response was too long to store', async () => {
  const { ask } = open()
  const payment = newPaymentHeader()
  saleOf(await ask(payment)).sold(null)
  expect(briefly(await ask(payment))).toEqual(DUPLICATE)
})

test('if the first response to a paid request failed, a repeated request is accepted again with the same idempotency key', async () => {
  const { service, ask } = open()
  const payment = newPaymentHeader()
  saleOf(await ask(payment)).unsold()
  expect(briefly(await ask(payment))).toEqual(['paid'])
  const [first, second] = service.keys()
  expect(second).toBe(first!)
})

test('if two equal paid requests run at the same time and the first fails, the paywall asks the second to try again in 5 seconds', async () => {
  const { service, ask } = open()
  const payment = newPaymentHeader()
  service.answer = async () => {
    // The fake service computes 50 idempotency keys, which takes longer than the second request needs to compute its
    // own key. From then on the second request waits for the first.
    for (let n = 0; n < 50; n++) await requestKey(payment, [n])
    return refusal('insufficient_funds')
  }
  // Either of the two equal requests may be the first one, because their idempotency keys are computed at the same
  // time.
  const outcomes = await Promise.all([ask(payment), ask(payment)])
  const waited = outcomes.findIndex((outcome) => 'status' in outcome && outcome.status === 503)
  expect(briefly(outcomes[1 - waited]!)).toEqual([402, 'insufficient_funds'])
  expect(outcomes[waited]).toMatchObject({
    kind: 'refused',
    headers: { ...NO_STORE, 'retry-after': '5' },
    challenge: null,
  })
  expect(service.calls).toHaveLength(1)
})

test('if the paywall cannot recognise repetitions of a paid request, it accepts the payment only once', async () => {
  const ended = { payload: { authorization: { validBefore: '1' } } }
  for (const [payment, asked] of [
    [newPaymentHeader(), null],
    [ended, ['GET']],
  ] as const) {
    const { service, ask } = open()
    saleOf(await ask(payment, asked)).unsold()
    expect(briefly(await ask(payment, asked))).toEqual(DUPLICATE)
    for (const key of service.keys()) expect(key).not.toMatch(KEY)
  }
})

test('a repeated paid request without a stored response is refused if the service accepted the payment more than ten minutes ago', async () => {
  setSystemTime(new Date())
  for (const [agoMs, kinds] of [
    [10 * 60_000, ['paid']],
    [10 * 60_000 + 1, DUPLICATE],
    [null, ['paid']],
  ] as const) {
    const { service, ask } = open()
    const payment = newPaymentHeader()
    saleOf(await ask(payment)).unsold()
    service.answer = ({ key }) => {
      if (key !== service.keys()[0]) return refusal('duplicate_settlement')
      const { grantedAt: _, ...old } = grant()
      return agoMs === null
        ? old
        : { ...old, grantedAt: new Date(Date.now() - agoMs).toISOString() }
    }
    expect([agoMs, ...briefly(await ask(payment))]).toEqual([agoMs, ...kinds])
  }
})

test('a payment that the paywall presents to the service for the first time is accepted, even if the seller’s clock is ahead of the service’s clock', async () => {
  const { service, ask } = open()
  const grantedAt = new Date(Date.now() - 20 * 60_000).toISOString()
  service.answer = () =>
    service.calls.length === 1 ? grant({ grantedAt }) : refusal('duplicate_settlement')
  expect(briefly(await ask(newPaymentHeader(), null))).toEqual(['paid'])
})

test('the paywall uses the service’s clock to measure how long ago a payment was accepted', async () => {
  for (const [aheadMs, agoMs, kinds] of [
    [11 * 60_000, 0, ['paid']],
    [11 * 60_000, 12 * 60_000, DUPLICATE],
    [-24 * 60 * 60_000, 12 * 60_000, DUPLICATE],
    [-24 * 60 * 60_000, 0, ['paid']],
  ] as const) {
    const { service, ask } = open()
    service.answer = ({ key }) => {
      const nowMs = Date.now() - aheadMs
      const grantedAt = new Date(nowMs - agoMs).toISOString()
      const isKnown = key === service.keys()[0]
      const answer = isKnown ? grant({ grantedAt }) : refusal('duplicate_settlement')
      return Response.json(answer, { headers: { date: new Date(nowMs).toUTCString() } })
    }
    const verdict = await ask(newPaymentHeader())
    expect([aheadMs, agoMs, ...briefly(verdict)]).toEqual([aheadMs, agoMs, ...kinds])
  }
})

test('a request with a refused payment gets a new offer and the reason, and its payer may try again', async () => {
  const { service, ask } = open()
  const payment = newPaymentHeader()
  service.answer = () => refusal('insufficient_funds', { txHash: '0xab' })
  const offer = { ...OFFER, error: 'insufficient_funds' }
  expect(await ask(payment)).toStrictEqual({
    kind: 'refused',
    status: 402,
    headers: { ...NO_STORE, ...refusal('insufficient_funds').headers },
    body: offer,
    challenge: offer,
  })
  service.answer = null
  expect(briefly(await ask(payment))).toEqual(['paid'])
})

test('a request whose payment is pending gets no new offer, but gets the transaction hash if it is known', async () => {
  const { service, ask } = open()
  for (const txHash of [{}, { txHash: '0xab' }]) {
    service.answer = () =>
      refusal(PENDING, { paymentId: 'pay_1', headers: { 'PAYMENT-RESPONSE': 'x' }, ...txHash })
    expect(await ask(newPaymentHeader())).toStrictEqual({
      kind: 'refused',
      status: 402,
      headers: { ...NO_STORE, 'PAYMENT-RESPONSE': 'x', 'retry-after': '5' },
      body: {
        error: PENDING,
        message: `The payment is refused: ${PENDING}`,
        status: 402,
        paymentId: 'pay_1',
        ...txHash,
      },
      challenge: null,
    })
  }
})

test('while the service fails or is overloaded, the paywall tells the payer in Retry-After when to try again', async () => {
  const failing = (status: number, headers = {}) =>
    Response.json({ error: 'x', message: 'y' }, { status, headers })
  for (const [name, answer, retryAfter] of [
    ['broken', () => Promise.reject(new Error('away')), '5'],
    ['500', () => failing(500), '5'],
    ['503', () => failing(503, { 'retry-after': '7' }), '7'],
    ['429', () => failing(429, { 'retry-after': '9' }), '9'],
    ['429 without wait', () => failing(429), '5'],
  ] as const) {
    for (const payment of [null, newPaymentHeader()]) {
      const { service, ask } = open()
      service.answer = answer
      const verdict = await ask(payment)
      expect([name, verdict]).toMatchObject([
        name,
        {
          kind: 'refused',
          status: 503,
          headers: { ...NO_STORE, 'retry-after': retryAfter },
          body: { error: 'unavailable', status: 503 },
          challenge: null,
        },
      ])
      service.answer = null
      expect(briefly(await ask(payment))).toEqual(payment === null ? [402, OFFER.error] : ['paid'])
    }
  }
})

test('while the service refuses calls, a request without payment gets the last payment offer for the same price for up to one minute', async () => {
  const { service, ask } = open()
  expect(briefly(await ask(null))).toEqual([402, OFFER.error])
  service.answer = () => Response.json({ error: 'x', message: 'y' }, { status: 429 })
  setSystemTime(Date.now() + 59_000)
  expect(await ask(null)).toStrictEqual({
    kind: 'refused',
    status: 402,
    headers: { ...NO_STORE, ...REQUIRED },
    body: OFFER,
    challenge: OFFER,
  })
  const dearer = createPaywall({ purser: service.purser, amount: '0.02' })
  expect(briefly(await dearer({ payment: null, resource: RESOURCE, asked: [] }))).toEqual(AWAY)
  setSystemTime(Date.now() + 2_000)
  expect(briefly(await ask(null))).toEqual(AWAY)
})

test('while the service refuses calls because of a rate limit, a request without payment gets 503 at once', async () => {
  let calls = 0
  const purser = new Purser({
    apiKey: `loid-${'0'.repeat(64)}`,
    fetch: async () => {
      calls++
      return Response.json(
        { error: 'x', message: 'y' },
        { status: 429, headers: { 'retry-after': '50' } },
      )
    },
  })
  const judge = createPaywall({ purser, amount: '0.01' })
  expect(briefly(await judge({ payment: null, resource: RESOURCE, asked: [] }))).toEqual(AWAY)
  expect(calls).toBe(1)
})

test('if only the seller can repair an error, the paywall throws the error and sends no answer to the payer', async () => {
  const { service, ask } = open()
  service.answer = () => Response.json({ error: 'forbidden', message: 'No scope' }, { status: 403 })
  for (const payment of [null, newPaymentHeader()]) {
    const error = await ask(payment).catch((reason) => reason)
    expect(error).toBeInstanceOf(PaywallError)
    expect([error.message, error.cause instanceof ForbiddenError]).toEqual([
      'The paywall is misconfigured: No scope',
      true,
    ])
  }
})

test('if the program of the seller contains a bug, the paywall throws the original error', async () => {
  expect(
    await open()
      .ask({ amount: 1n }, null)
      .catch((error) => error),
  ).toBeInstanceOf(TypeError)
  const paid = open({ amount: 1n as never }).ask(newPaymentHeader(), null)
  expect(await paid.catch((error) => error)).toBeInstanceOf(TypeError)
})

test('a request whose payment the service cannot read gets a payment offer, and no error about a misconfigured paywall', async () => {
  for (const payment of [
    { x: '\u0000' },
    { x: '\ud800' },
    { x: 'x'.repeat(1_000_000) },
    { x: Array.from({ length: 15_000 }, () => 1) },
    'x'.repeat(16_385),
  ]) {
    const { service, ask } = open()
    expect(briefly(await ask(payment))).toEqual([402, OFFER.error])
    expect(service.calls.map(({ path }) => path)).toEqual(['/v0/payments/challenge'])
  }
})

test('the paywall redeems a payment even if it is large, or contains an escape or an emoji', async () => {
  for (const payment of [
    'x'.repeat(16_384),
    { extensions: 'x'.repeat(100_000) },
    { x: '\\u0000' },
    { x: '😀' },
  ]) {
    const { service, ask } = open()
    await ask(payment)
    expect(service.calls.map(({ path }) => path)).toEqual(['/v0/payments/redeem'])
  }
})
