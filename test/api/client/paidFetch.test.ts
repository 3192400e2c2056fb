import { expect, spyOn, test } from 'bun:test'
import {
  type CallOptions,
  OpenPurchaseError,
  PurchaseError,
  Purser,
  RateLimitError,
} from '../../../api/client/main.ts'
import { waitFor } from '../../support/waitFor.ts'
import '../../support/long.ts'

const URL_PAID = 'https://seller.example/weather'
type Call = { method: string; path: string; key: string | null; body: unknown }

/**
 * Returns a client whose calls get the given purchases one after another, and the list of its calls. All calls after
 * the last purchase get this purchase again. An error in the list simulates a lost connection.
 */
const buying = (...purchases: object[]) => retrying(0, purchases)

/** Returns a client like that of {@link buying}, which repeats each of its calls up to `retries` times. */
function retrying(retries: number, purchases: readonly object[]) {
  const calls: Call[] = []
  const purser = new Purser({
    apiKey: `loid-${'0'.repeat(64)}`,
    retries,
    fetch: async (request) => {
      const { pathname, search } = new URL(request.url)
      const text = await request.text()
      calls.push({
        method: request.method,
        path: pathname + search,
        key: request.headers.get('idempotency-key'),
        body: text === '' ? null : JSON.parse(text),
      })
      const next = purchases[Math.min(calls.length, purchases.length) - 1]!
      if (next instanceof Error) throw next
      return next instanceof Response ? (next.clone() as Response) : Response.json(next)
    },
  })
  const buy = (more: object = {}, options?: CallOptions) =>
    purser.fetch(URL_PAID, { maxAmount: '0.05', ...more }, options)
  return { calls, buy }
}

const answered = (response: object | null, more: object = {}) => ({
  ...{ purchaseId: 'pur_1', state: 'answered', endedAt: '2026-01-31T09:30:00Z' },
  ...{ reason: null, detail: null },
  response: response && {
    ...{ status: 200, statusText: 'OK', headers: {}, body: 'fine', bodyOmitted: null },
    ...response,
  },
  ...more,
})

test('a paid fetch waits until the purchase has ended, and returns the seller’s response', async () => {
  const pending = { ...answered(null), state: 'pending', endedAt: null }
  const { calls, buy } = buying(pending, pending, answered({ status: 201, statusText: 'Created' }))
  const response = await buy({ method: 'POST', body: { city: 'Lima' }, why: 'a trip', key: 'k-1' })
  expect([response.status, response.statusText, await response.text()]).toEqual([
    201,
    'Created',
    'fine',
  ])
  expect(response.headers.get('purser-purchase-id')).toBe('pur_1')
  expect(calls).toEqual([
    {
      ...{ method: 'POST', path: '/v0/purse/pay?timeout=40', key: 'k-1' },
      body: {
        ...{ url: URL_PAID, maxAmount: '0.05', method: 'POST' },
        ...{ body: { city: 'Lima' }, why: 'a trip' },
      },
    },
    { method: 'GET', path: '/v0/purse/payments/pur_1?timeout=40', key: null, body: null },
    { method: 'GET', path: '/v0/purse/payments/pur_1?timeout=40', key: null, body: null },
  ])
})

test('two paid fetches have different idempotency keys', async () => {
  const { calls, buy } = buying(answered({}), answered({}))
  await buy()
  await buy()
  expect(calls[0]!.key).toBeString()
  expect(calls[1]!.key).not.toBe(calls[0]!.key)
})

test('the returned response has all headers of the seller, except the headers that describe the compressed body', async () => {
  const headers = {
    'content-type': 'text/plain',
    'content-encoding': 'gzip',
    'content-length': '7',
    'set-cookie': 'a=1\nb=2',
    'x-own': 'own',
  }
  const response = await buying(answered({ headers })).buy()
  expect(response.headers.getSetCookie()).toEqual(['a=1', 'b=2'])
  expect(Object.fromEntries(response.headers)).toMatchObject({
    'content-type': 'text/plain',
    'x-own': 'own',
  })
  for (const name of ['content-encoding', 'content-length']) {
    expect([name, response.headers.has(name)]).toEqual([name, false])
  }
})

test('headers and the status text of a paid response keep non-ASCII characters, one byte for each character as in fetch', async () => {
  const headers = { 'x-city': '\u6771\u4eac', 'set-cookie': 'city=\u6771\u4eac\nb=2' }
  const response = await buying(answered({ headers, statusText: '\u5b8c\u4e86' })).buy()
  const text = (value: string | null) => Buffer.from(value ?? '', 'latin1').toString('utf8')
  expect(text(response.headers.get('x-city'))).toBe('\u6771\u4eac')
  expect(response.headers.getSetCookie().map(text)).toEqual(['city=\u6771\u4eac', 'b=2'])
  expect(text(response.statusText)).toBe('\u5b8c\u4e86')
  expect(await response.text()).toBe('fine')
})

test('a paid response has an empty body if its status (such as 204 or 304) allows no body', async () => {
  for (const [status, body] of [
    [200, 'fine'],
    [204, ''],
    [205, ''],
    [304, ''],
    [404, 'fine'],
    [599, 'fine'],
  ] as const) {
    const response = await buying(answered({ status })).buy()
    expect([response.status, await response.text()]).toEqual([status, body])
  }
})

test('if a purchase ends without a response of the seller, the client throws an error with the reason', async () => {
  for (const [purchase, message] of [
    [answered(null, { state: 'refused', reason: 'frozen' }), 'refused: frozen'],
    [answered(null, { state: 'failed', detail: 'no route', reason: 'x' }), 'failed: no route'],
    [answered(null, { state: 'unknown' }), 'unknown: pur_1'],
    [answered({ status: 100 }), 'answered: pur_1'],
    [answered({ status: 199 }), 'answered: pur_1'],
    [answered({ status: 600 }), 'answered: pur_1'],
    [answered({ status: 999 }), 'answered: pur_1'],
  ] as const) {
    const error = await buying(purchase)
      .buy()
      .catch((reason) => reason)
    expect(error).toBeInstanceOf(PurchaseError)
    expect([error.message, error.purchase]).toEqual([message, purchase])
  }
})

const PENDING = { ...answered(null), state: 'pending', endedAt: null }
const AWAY = new Error('the connection broke')
const BUSY = Response.json({ error: 'unavailable', message: 'busy' }, { status: 503 })

test('if the connection breaks or the service is busy, the client reads the same purchase again', async () => {
  const { calls, buy } = buying(AWAY, BUSY, PENDING, AWAY, BUSY, answered({}))
  expect(await (await buy({ key: 'k-1' })).text()).toBe('fine')
  const pay = ['POST', '/v0/purse/pay', 'k-1']
  const status = ['GET', '/v0/purse/payments/pur_1', null]
  expect(calls.map(({ method, path, key }) => [method, path.split('?')[0], key])).toEqual([
    ...[pay, pay, pay],
    ...[status, status, status],
  ])
})

test('if a purchase does not end in time, the error names the idempotency key with which a later call continues the purchase', async () => {
  for (const [answers, purchase] of [
    [[PENDING], PENDING],
    [[PENDING, AWAY], PENDING],
    [[AWAY], null],
  ] as const) {
    const { calls, buy } = buying(...answers)
    const error = await buy({}, { timeoutMs: 50 }).catch((reason) => reason)
    expect(error).toBeInstanceOf(OpenPurchaseError)
    expect([error.key, error.purchase]).toEqual([calls[0]!.key, purchase])
    expect(error.message).toContain(error.key)
  }
})

test('if the service refuses a purchase, the client throws the error of the service at once', async () => {
  for (const status of [400, 403]) {
    const { calls, buy } = buying(Response.json({ error: 'x', message: 'y' }, { status }))
    const error = await buy().catch((reason) => reason)
    expect([error.status, calls.length]).toEqual([status, 1])
  }
  const limited = buying(Response.json({ error: 'x', message: 'y' }, { status: 429 }))
  const error = await limited.buy({}, { timeoutMs: 50 }).catch((reason) => reason)
  expect(error).toBeInstanceOf(RateLimitError)
})

test('if a purchase may have begun despite an error, the error names the idempotency key of the purchase', async () => {
  const failure = (status: number) => Response.json({ error: 'x', message: 'y' }, { status })
  for (const [answers, purchase, status] of [
    [[failure(500)], null, 500],
    [[new Response('<html>')], null, 200],
    [[AWAY, failure(400)], null, 400],
    [[PENDING, failure(401)], PENDING, 401],
    [[PENDING, failure(500)], PENDING, 500],
  ] as const) {
    const { calls, buy } = buying(...answers)
    const error = await buy().catch((reason) => reason)
    expect(error).toBeInstanceOf(OpenPurchaseError)
    expect([error.key, error.purchase, error.cause.status]).toEqual([
      calls[0]!.key,
      purchase,
      status,
    ])
  }
})

test('if the service refuses the repetition of a purchase whose response was lost, the error names the idempotency key', async () => {
  for (const lost of [AWAY, BUSY]) {
    for (const status of [403, 429]) {
      const refused = Response.json({ error: 'x', message: 'y' }, { status })
      const { calls, buy } = retrying(1, [lost, refused])
      const error = await buy({}, { timeoutMs: 1_500 }).catch((reason) => reason)
      expect(error).toBeInstanceOf(OpenPurchaseError)
      expect([error.key, error.cause.status]).toEqual([calls[0]!.key, status])
    }
  }
})

test('if the caller aborts an open purchase, the error names its idempotency key and the reason of the abort', async () => {
  for (const [answers, purchase] of [
    [[AWAY], null],
    [[PENDING], PENDING],
  ] as const) {
    const stop = new AbortController()
    const { calls, buy } = buying(...answers)
    const bought = buy({}, { signal: stop.signal, timeoutMs: 4_000 }).catch((reason) => reason)
    await waitFor('the first call', () => calls.length > 0)
    stop.abort('enough')
    const error = await bought
    expect(error).toBeInstanceOf(OpenPurchaseError)
    expect([error.key, error.purchase, error.cause]).toEqual([
      calls[0]!.key,
      purchase,
      expect.anything(),
    ])
  }
})

test('if the caller aborts before the purchase begins, the client sends nothing', async () => {
  const { calls, buy } = buying(answered({}))
  const error = await buy({}, { signal: AbortSignal.abort('enough') }).catch((reason) => reason)
  expect([error, calls.length]).toEqual(['enough', 0])
})

test('the client passes whole numbers as time limits of a call, because Node refuses a fraction', async () => {
  const limits = spyOn(AbortSignal, 'timeout')
  try {
    await buying(PENDING, answered({})).buy({}, { timeoutMs: 5_000.5 })
    expect(limits.mock.calls.length).toBe(2)
    for (const [ms] of limits.mock.calls) expect(Number.isInteger(ms)).toBe(true)
  } finally {
    limits.mockRestore()
  }
})

test('a seller’s response body that is not text is returned as the bytes that the seller sent', async () => {
  const omitted = { body: null, bodyOmitted: 'not-text', bodyBase64: '/9j/4AAQ' }
  const response = await buying(answered(omitted)).buy()
  expect([...new Uint8Array(await response.arrayBuffer())]).toEqual([
    0xff, 0xd8, 0xff, 0xe0, 0x00, 0x10,
  ])
})

test('a seller’s response body in an unknown encoding is returned with the header that names the encoding', async () => {
  const headers = { 'content-encoding': 'zstd2', 'content-length': '3' }
  const omitted = { body: null, bodyOmitted: 'unknown-encoding', bodyBase64: 'AQID', headers }
  const response = await buying(answered(omitted)).buy()
  expect([...new Uint8Array(await response.arrayBuffer())]).toEqual([1, 2, 3])
  expect(response.headers.get('content-encoding')).toBe('zstd2')
})

test('if the service omits the body of the paid response, the client throws an error with the reason', async () => {
  for (const more of [{}, { bodyBase64: null }]) {
    const purchase = answered({ body: null, bodyOmitted: 'too-large', ...more })
    const error = await buying(purchase)
      .buy()
      .catch((reason) => reason)
    expect(error).toBeInstanceOf(PurchaseError)
    expect(error.message).toBe('answered: the body was left out (too-large)')
  }
})
