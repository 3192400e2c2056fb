/** Tests the HTTP part of the paywalls: payment headers, CORS, pages for browsers, and the paid resource. */
import { expect, test } from 'bun:test'
import {
  createHttpPaywall,
  type HttpPaywallOptions,
  type HttpRequest,
  httpAnswer,
  isSold,
} from '../../../../api/client/paywalls/httpPaywall.ts'
import {
  newPaymentHeader,
  RESOURCE,
  refusal,
  shopService,
} from '../../../support/till/headers/shopService.ts'
import '../../../support/long.ts'

const KEY = /^[0-9a-f]{64}$/
const BROWSER = 'text/html,application/xhtml+xml,*/*;q=0.8'
const EXPOSED = 'PAYMENT-REQUIRED, PAYMENT-RESPONSE, X-PAYMENT-RESPONSE'

type Sent = Partial<Omit<HttpRequest, 'header'>> & { headers?: Record<string, string> }

function open(options: Partial<HttpPaywallOptions> = {}) {
  const service = shopService()
  const judge = createHttpPaywall({ purser: service.purser, amount: '0.01', ...options })
  const ask = ({ headers = {}, ...sent }: Sent = {}) =>
    judge({
      method: 'GET',
      protocol: 'https',
      host: 'shop.example',
      target: '/joke?a=1',
      header: (name) => headers[name],
      headerNames: () => Object.keys(headers),
      hashBody: async () => '',
      ...sent,
    })
  return { service, ask }
}

test('the paywall answers a CORS preflight request only if the seller has allowed an origin', async () => {
  const METHOD = { 'access-control-request-method': 'POST' }
  for (const [cors, method, headers, kind] of [
    ['https://page.example', 'OPTIONS', METHOD, 'preflight'],
    ['https://page.example', 'OPTIONS', {}, 'refused'],
    ['https://page.example', 'POST', METHOD, 'refused'],
    [undefined, 'OPTIONS', METHOD, 'refused'],
  ] as const) {
    const verdict = await open(cors === undefined ? {} : { cors }).ask({ method, headers })
    expect([cors, method, headers, verdict.kind]).toEqual([cors, method, headers, kind])
  }
  const { service, ask } = open({ cors: '*' })
  const allowed = {
    'access-control-allow-origin': '*',
    'access-control-allow-methods': 'POST',
    'access-control-allow-headers':
      'PAYMENT-SIGNATURE, X-PAYMENT, Access-Control-Expose-Headers, Content-Type',
  }
  expect(await ask({ method: 'OPTIONS', headers: METHOD })).toEqual({
    kind: 'preflight',
    headers: allowed,
  })
  const wanted = { ...METHOD, 'access-control-request-headers': 'x-own' }
  expect(await ask({ method: 'OPTIONS', headers: wanted })).toEqual({
    kind: 'preflight',
    headers: { ...allowed, 'access-control-allow-headers': 'x-own' },
  })
  expect(service.calls).toEqual([])
})

test('the CORS headers let a page of the allowed origin read the payment headers of refusals and of paid responses', async () => {
  for (const cors of ['https://page.example', undefined]) {
    const { ask } = open(cors === undefined ? {} : { cors })
    for (const headers of [{}, { 'x-payment': newPaymentHeader() }]) {
      const verdict = await ask({ headers })
      if (verdict.kind === 'answered') throw new Error(verdict.kind)
      expect([
        verdict.headers['access-control-allow-origin'],
        verdict.headers['access-control-expose-headers'],
        verdict.headers['cache-control'],
      ]).toEqual([cors!, cors && EXPOSED, 'no-store'])
    }
  }
})

test('the paywall reads a payment from PAYMENT-SIGNATURE or X-PAYMENT, and prefers PAYMENT-SIGNATURE if both headers are present', async () => {
  const { service, ask } = open()
  const [one, two] = [newPaymentHeader(), newPaymentHeader()]
  expect((await ask({ headers: { 'x-payment': one } })).kind).toBe('paid')
  expect((await ask({ headers: { 'payment-signature': two, 'x-payment': one } })).kind).toBe('paid')
  expect(service.calls.map(({ body }) => body.paymentHeader)).toEqual([one, two])
})

test('the paywall refuses a request without payment before reading the request body', async () => {
  const { ask } = open()
  const hashBody = () => Promise.reject(new Error('the body was read'))
  expect((await ask({ hashBody })).kind).toBe('refused')
})

test('the paywall repeats a stored response only if method, target, body and the headers that identify the request are the same', async () => {
  const { service, ask } = open({ cors: '*' })
  const paid = { 'x-payment': newPaymentHeader(), cookie: 'a=1' }
  const first = await ask({ headers: paid })
  if (first.kind !== 'paid') throw new Error(first.kind)
  const answer = { status: 200, headers: [], body: new Uint8Array() }
  first.sale.sold({ answer, bytes: 0 })
  const again = await ask({ headers: { ...paid, 'user-agent': 'x', 'mcp-session-id': 's2' } })
  expect(again).toEqual({ kind: 'answered', answer })
  const others: Sent[] = [
    { method: 'PUT', headers: paid },
    { target: '/joke?a=2', headers: paid },
    { hashBody: async () => 'other', headers: paid },
  ]
  for (const name of [
    ...['authorization', 'cookie', 'accept', 'accept-encoding', 'accept-language'],
    ...['content-type', 'range', 'x-api-key', 'x-auth-token', 'proxy-authorization'],
    ...['x-session-id', 'cf-access-jwt-assertion', 'x-forwarded-user', 'x-ms-client-principal'],
  ]) {
    others.push({ headers: { ...paid, [name]: 'other' } })
  }
  for (const other of others) {
    expect([other, await ask(other)]).toMatchObject([
      other,
      { kind: 'refused', body: { error: 'duplicate_settlement' } },
    ])
  }
  expect(new Set(service.keys()).size).toBe(1 + others.length)
})

test('if the body of a paid request is unknown, the paywall treats no other request as its repetition', async () => {
  const { service, ask } = open()
  const headers = { 'x-payment': newPaymentHeader() }
  for (let n = 0; n < 2; n++) await ask({ headers, hashBody: async () => null })
  const [first, second] = service.keys()
  expect(first).not.toMatch(KEY)
  expect(second).not.toBe(first!)
})

test('a browser gets an HTML page with the payment offer, or with the reason why there is no offer', async () => {
  const { service, ask } = open()
  const headers = { accept: BROWSER }
  const offer = await ask({ headers })
  if (offer.kind !== 'refused') throw new Error(offer.kind)
  expect(offer.page).toContain('0.01 USDC')
  expect(offer.headers['content-type']).toBe('text/html; charset=utf-8')
  expect(offer.headers['PAYMENT-REQUIRED']).toBeString()
  const plain = await ask({ headers: { accept: '*/*' } })
  expect(plain).toMatchObject({ kind: 'refused', page: null })
  expect('content-type' in (plain as { headers: object }).headers).toBe(false)
  service.answer = () => refusal('settlement_pending')
  const pending = await ask({ headers: { ...headers, 'x-payment': newPaymentHeader() } })
  if (pending.kind !== 'refused') throw new Error(pending.kind)
  expect(pending.page).toContain('<p>The payment is refused: settlement_pending</p>')
  expect(pending.page).not.toContain('USDC')
})

test('the paid resource is the URL that the seller sets, or else the request’s own URL with the host that a trusted proxy names', async () => {
  const forwarded = {
    'x-forwarded-proto': 'http, https',
    'x-forwarded-host': ' outer.example , inner.example',
  }
  for (const [options, sent, resource] of [
    [{}, {}, RESOURCE],
    [{}, { target: '/' }, 'https://shop.example/'],
    [{ resource: 'https://a.example/b' }, { headers: forwarded }, 'https://a.example/b'],
    [{}, { headers: forwarded }, RESOURCE],
    [{ trustProxy: true }, { headers: forwarded }, 'http://outer.example/joke'],
    [{ trustProxy: true }, {}, RESOURCE],
    [
      { trustProxy: true },
      { headers: { 'x-forwarded-proto': '', 'x-forwarded-host': ' ' } },
      RESOURCE,
    ],
  ] as const) {
    const { service, ask } = open(options)
    await ask(sent)
    expect([options, sent, service.calls[0]?.body.resource]).toEqual([options, sent, resource])
  }
})

test('a response uses up its payment unless the status is 408, 425, 429, or 500 or above', () => {
  for (const [status, sold] of [
    [200, true],
    [404, true],
    [408, false],
    [425, false],
    [429, false],
    [499, true],
    [500, false],
    [503, false],
  ] as const) {
    expect([status, isSold(status)]).toEqual([status, sold])
  }
})

test('a stored response keeps its whole body, but no header that is valid only for the connection of the first request', () => {
  const headers: [string, string][] = [
    ['Connection', 'close'],
    ['content-length', '3'],
    ['Date', 'x'],
    ['Transfer-Encoding', 'chunked'],
    ['set-cookie', 'a'],
    ['set-cookie', 'b'],
  ]
  expect(httpAnswer(201, headers, [Uint8Array.of(1, 2), Uint8Array.of(3)])).toEqual({
    answer: { status: 201, headers: headers.slice(4), body: Uint8Array.of(1, 2, 3) },
    bytes: 3,
  })
})
