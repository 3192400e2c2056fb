import { expect, test } from 'bun:test'
import { PurchaseError, Purser } from '../../../api/client/main.ts'

const URL_PAID = 'https://seller.example/weather'
type Call = { method: string; path: string; key: string | null; body: unknown }

/** Returns a client whose calls get the given purchases one after another, and the list of its calls. */
function buying(...purchases: object[]) {
  const calls: Call[] = []
  const purser = new Purser({
    apiKey: `loid-${'0'.repeat(64)}`,
    fetch: async (request) => {
      const { pathname, search } = new URL(request.url)
      const text = await request.text()
      calls.push({
        method: request.method,
        path: pathname + search,
        key: request.headers.get('idempotency-key'),
        body: text === '' ? null : JSON.parse(text),
      })
      return Response.json(purchases[calls.length - 1])
    },
  })
  const buy = (more: object = {}) => purser.fetch(URL_PAID, { maxAmount: '0.05', ...more })
  return { calls, buy }
}

const answered = (response: object | null, more: object = {}) => ({
  ...{ purchaseId: 'pur_1', state: 'answered', endedAt: '2026-01-31T09:30:00Z' },
  ...{ reason: null, detail: null },
  response: response && {
    ...{ status: 200, statusText: 'OK', headers: {}, body: 'fine' },
    ...response,
  },
  ...more,
})

test('a fetch that pays waits until the purchase has ended, and returns the seller’s response', async () => {
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

test('headers and the status text of a paid response keep non-ASCII characters, which are read as single bytes as in fetch', async () => {
  const headers = { 'x-city': '\u6771\u4eac', 'set-cookie': 'city=\u6771\u4eac\nb=2' }
  const response = await buying(answered({ headers, statusText: '\u5b8c\u4e86' })).buy()
  const text = (value: string | null) => Buffer.from(value ?? '', 'latin1').toString('utf8')
  expect(text(response.headers.get('x-city'))).toBe('\u6771\u4eac')
  expect(response.headers.getSetCookie().map(text)).toEqual(['city=\u6771\u4eac', 'b=2'])
  expect(text(response.statusText)).toBe('\u5b8c\u4e86')
  expect(await response.text()).toBe('fine')
})

test('a response has an empty body if its status (such as 204 or 304) does not allow a body', async () => {
  for (const [status, body] of [
    [200, 'fine'],
    [204, ''],
    [205, ''],
    [304, ''],
    [404, 'fine'],
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
