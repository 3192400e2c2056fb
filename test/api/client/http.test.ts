/** Tests the client's retries, time limits and cancellation against a server with scripted faults. */
import { afterAll, expect, test } from 'bun:test'
import {
  ConnectionError,
  Purser,
  RateLimitError,
  ServerError,
  TimeoutError,
} from '../../../api/client/main.ts'
import { closeServers, serve } from '../../support/process/localServer.ts'

type Step = { status: number; headers?: Record<string, string>; body?: string } | 'break' | 'hang'

afterAll(closeServers)

/**
 * Returns a client, and the list of the requests that it sends to the test server. The test server answers as the
 * script says, and repeats its last step for all further requests.
 */
async function misbehaving(script: Step[], options: { timeoutMs?: number; retries?: number } = {}) {
  const requests: { method: string; path: string; key: string | undefined }[] = []
  const port = await serve((request, response) => {
    const { method = '', url = '', headers } = request
    requests.push({ method, path: url, key: headers['idempotency-key'] as string | undefined })
    const step = script[Math.min(requests.length, script.length) - 1]!
    if (step === 'hang') return
    if (step === 'break') {
      response.writeHead(200, { 'content-length': '100' })
      response.write('{', () => request.socket.destroy())
      return
    }
    response.writeHead(step.status, step.headers)
    response.end(step.body ?? '{"ok":true}')
  })
  const baseUrl = `http://127.0.0.1:${port}`
  const purser = new Purser({ apiKey: `loid-${'0'.repeat(64)}`, baseUrl, ...options })
  return { purser, requests, baseUrl }
}

const NOT_NOW: Step = { status: 503, headers: { 'retry-after': '0' } }
const LIMITED: Step = {
  status: 429,
  headers: { 'retry-after': '1' },
  body: '{"error":"rate_limited","message":"Too many requests","status":429}',
}
const FINE: Step = { status: 200 }
const MAIL = { to: ['a@example.com'], subject: 's', text: 't' }
const PAYMENT = { paymentHeader: 'e30=', amount: '0.01', resource: 'https://a.test/' }

const rejection = (promise: Promise<unknown>): Promise<any> =>
  promise.then(
    () => {
      throw new Error('was not rejected')
    },
    (error) => error,
  )

test('the client retries a repeatable call after 502, 503, 504 and a broken connection', async () => {
  for (const step of [NOT_NOW, { status: 502 }, { status: 504 }, 'break'] as Step[]) {
    const { purser, requests } = await misbehaving([step, FINE])
    expect(await purser.whoami()).toEqual({ ok: true } as never)
    expect(requests).toHaveLength(2)
  }
  const { purser, requests } = await misbehaving([NOT_NOW, FINE])
  await purser.messages.updateLabels('<a@b>', { addLabels: ['x'] })
  await purser.sellers.delete('se_1')
  expect(requests.map(({ method }) => method)).toEqual(['PATCH', 'PATCH', 'DELETE'])
})

test('the client retries a POST only with an idempotency key', async () => {
  for (const [step, error] of [
    [NOT_NOW, ServerError],
    ['break', ConnectionError],
  ] as const) {
    const { purser, requests } = await misbehaving([step, FINE])
    expect(await rejection(purser.messages.send(MAIL))).toBeInstanceOf(error)
    expect(requests).toHaveLength(1)
    const keyed = await misbehaving([step, step, FINE])
    await keyed.purser.messages.send(MAIL, { idempotencyKey: 'k-1' })
    expect(keyed.requests.map(({ key }) => key)).toEqual(['k-1', 'k-1', 'k-1'])
  }
})

test('each redeem call has its own idempotency key, and all attempts of the call send this key', async () => {
  const { purser, requests } = await misbehaving(['break', NOT_NOW, FINE])
  await purser.payments.redeem(PAYMENT)
  await purser.payments.redeem(PAYMENT)
  const [first, second, third, other] = requests.map(({ key }) => key)
  expect(first).toMatch(/^[\x21-\x7e]{1,255}$/)
  expect([second, third]).toEqual([first!, first!])
  expect(other).not.toBe(first)
})

test('the client retries every HTTP method after status 429, but only after the time in Retry-After', async () => {
  const { purser, requests } = await misbehaving([LIMITED, FINE])
  const startedMs = performance.now()
  await purser.messages.send(MAIL)
  expect(requests).toHaveLength(2)
  expect(performance.now() - startedMs).toBeGreaterThanOrEqual(990)
})

test('a call fails at once if Retry-After is longer than the time limit of the call', async () => {
  const { purser, requests } = await misbehaving(
    [{ ...LIMITED, headers: { 'retry-after': '30' } }],
    {
      timeoutMs: 5_000,
    },
  )
  const error = await rejection(purser.whoami())
  expect(error).toBeInstanceOf(RateLimitError)
  expect([error.retryAfterS, error.status, requests.length]).toEqual([30, 429, 1])
  const date = new Date(Date.now() + 60_000).toUTCString()
  const dated = await misbehaving([{ status: 503, headers: { 'retry-after': date } }], {
    timeoutMs: 5_000,
  })
  const { retryAfterS } = await rejection(dated.purser.whoami())
  expect(retryAfterS).toBeWithin(50, 61)
})

test('the client limits the number of attempts of a call', async () => {
  const { purser, requests } = await misbehaving([NOT_NOW], { retries: 2 })
  expect(await rejection(purser.whoami())).toBeInstanceOf(ServerError)
  expect(requests).toHaveLength(3)
  const once = await misbehaving([NOT_NOW], { retries: 0 })
  expect(await rejection(once.purser.whoami())).toBeInstanceOf(ServerError)
  expect(once.requests).toHaveLength(1)
})

test('the client does not retry a call after a permanent error', async () => {
  for (const status of [400, 401, 403, 404, 409, 410, 500]) {
    const { purser, requests } = await misbehaving([
      { status, body: '{"error":"x","message":"y"}' },
    ])
    const error = await rejection(purser.whoami())
    expect([error.status, error.code, error.message, requests.length]).toEqual([
      status,
      'x',
      'y',
      1,
    ])
  }
})

test('one timeout covers all attempts of a call and the waits between the attempts', async () => {
  const hanging = await misbehaving(['hang'])
  const error = await rejection(hanging.purser.whoami({ timeoutMs: 100 }))
  expect(error).toBeInstanceOf(TimeoutError)
  expect(error.message).toBe('No answer within 100 ms')
  expect(hanging.requests).toHaveLength(1)
})

test('an AbortSignal ends a running attempt and the wait for the next attempt', async () => {
  const stop = new AbortController()
  const hanging = await misbehaving(['hang'])
  const underWay = rejection(hanging.purser.whoami({ signal: stop.signal }))
  stop.abort('enough')
  expect(await underWay).toBe('enough')

  const later = new AbortController()
  const waiting = await misbehaving([{ ...LIMITED, headers: { 'retry-after': '20' } }, FINE])
  const wait = rejection(waiting.purser.whoami({ signal: later.signal }))
  while (waiting.requests.length === 0) await Bun.sleep(1)
  setTimeout(() => later.abort('enough'), 20)
  expect(await wait).toBe('enough')
  expect(waiting.requests).toHaveLength(1)

  const before = await misbehaving([FINE])
  expect(await rejection(before.purser.whoami({ signal: AbortSignal.abort('early') }))).toBe(
    'early',
  )
  expect(before.requests).toHaveLength(0)
})

test('the client does not follow a redirect, because the target would get the API key', async () => {
  const target = await misbehaving([FINE])
  const { purser } = await misbehaving([
    { status: 302, headers: { location: `${target.baseUrl}/v0/whoami` } },
  ])
  expect((await rejection(purser.whoami())).code).toBe('unexpected_answer')
  expect(target.requests).toHaveLength(0)
})

test('the client reports a response that is not JSON as an error', async () => {
  const { purser } = await misbehaving([{ status: 200, body: '<html>' }])
  expect((await rejection(purser.whoami())).message).toBe(
    'The answer is not JSON: is baseUrl the URL of the service?',
  )
})
