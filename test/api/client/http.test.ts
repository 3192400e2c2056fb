/** Tests the client's retries, time limits and cancellation against a server with scripted faults. */
import { afterAll, afterEach, describe, expect, setSystemTime, test } from 'bun:test'
import { ApiError, errorOf } from '../../../api/client/errors.ts'
import { type ClientOptions, Http } from '../../../api/client/http.ts'
import {
  ConnectionError,
  NotFoundError,
  Purser,
  PurserPlatform,
  RateLimitError,
  ServerError,
  TimeoutError,
} from '../../../api/client/main.ts'
import { closeServers, serve } from '../../support/process/localServer.ts'

type Step =
  | { status: number; headers?: Record<string, string>; body?: string }
  | 'break'
  | 'drop'
  | 'hang'

afterAll(closeServers)
afterEach(() => setSystemTime())

const KEY = `loid-${'0'.repeat(64)}`

/**
 * Returns a client, and the list of the requests that it sends to the test server. The test server follows the steps of
 * the script in order, and repeats the last step for all further requests.
 */
async function misbehaving(script: Step[], options: { timeoutMs?: number; retries?: number } = {}) {
  const requests: { method: string; path: string; key: string | undefined }[] = []
  const port = await serve((request, response) => {
    const { method = '', url = '', headers } = request
    requests.push({ method, path: url, key: headers['idempotency-key'] as string | undefined })
    const step = script[Math.min(requests.length, script.length) - 1]!
    if (step === 'hang') return
    if (step === 'drop') {
      request.socket.destroy()
      return
    }
    if (step === 'break') {
      response.writeHead(200, { 'content-length': '100' })
      response.write('{', () => request.socket.destroy())
      return
    }
    response.writeHead(step.status, step.headers)
    response.end(step.body ?? '{"ok":true}')
  })
  const baseUrl = `http://127.0.0.1:${port}`
  const purser = new Purser({ apiKey: KEY, baseUrl, ...options })
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

const MISSING: Step = {
  status: 404,
  body: '{"error":"not_found","message":"Message not found","status":404}',
}

test('if the response to a deletion is lost and the retry finds nothing, the client counts the deletion as done', async () => {
  for (const step of [NOT_NOW, { status: 502 }, 'break'] as Step[]) {
    const { purser, requests } = await misbehaving([step, MISSING])
    expect(await purser.messages.delete('<a@b.example>')).toBeUndefined()
    expect(requests).toHaveLength(2)
  }
})

test('the client reports a deletion that finds nothing as an error, unless an earlier attempt may have deleted the object', async () => {
  for (const steps of [[MISSING], [LIMITED, MISSING]]) {
    const { purser } = await misbehaving(steps)
    expect(await rejection(purser.messages.delete('<a@b.example>'))).toBeInstanceOf(NotFoundError)
  }
  const { purser } = await misbehaving([NOT_NOW, MISSING])
  expect(await rejection(purser.messages.get('<a@b.example>'))).toBeInstanceOf(NotFoundError)
})

test('the client retries a repeatable call after the status 502, 503 or 504 and after a broken connection', async () => {
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

test('if the response to a call that waits for a message is lost, the repeated call returns a message that arrived in the meantime', async () => {
  for (const step of [
    NOT_NOW,
    'break',
    { ...LIMITED, headers: { 'retry-after': '0' } },
  ] as Step[]) {
    const startMs = Date.now()
    const { purser, requests } = await misbehaving([step, FINE])
    await purser.messages.wait({ from: 'shop.example', timeout: 20 })
    const [first, second] = requests.map(({ path }) => new URLSearchParams(path.split('?')[1]))
    expect([first?.get('after'), first?.get('timeout')]).toEqual([null, '20'])
    expect(second?.get('from')).toBe('shop.example')
    // The server that the test imitates states its time in whole seconds, so the time in the parameter `after` may
    // differ by a second.
    expect(Date.parse(second?.get('after') ?? '')).toBeWithin(startMs - 1_100, startMs + 1_100)
    expect(Number(second?.get('timeout'))).toBeWithin(15, 21)
  }
  // The client does not know the time of the service, because its first call got no response. Therefore the repeated
  // call has no parameter `after`.
  const urls: string[] = []
  const unreached = new Purser({
    apiKey: KEY,
    fetch: async ({ url }) => {
      urls.push(url)
      if (urls.length === 1) throw new TypeError('refused')
      return Response.json({})
    },
  })
  await unreached.messages.wait()
  expect(urls.map((url) => url.includes('after='))).toEqual([false, false])
  const after = '2026-01-01T00:00:00.000Z'
  const { purser, requests } = await misbehaving([NOT_NOW, FINE])
  await purser.messages.wait({ after })
  for (const { path } of requests) expect(path).toContain(encodeURIComponent(after))
})

test('if the client repeats a call that waits for a message, it does not get a message that an earlier call returned', async () => {
  const createdAt = new Date(Date.now() + 60_000).toISOString()
  const { purser, requests } = await misbehaving([
    { status: 200, body: JSON.stringify({ createdAt }) },
    NOT_NOW,
    FINE,
  ])
  await purser.messages.wait()
  await purser.messages.wait()
  const last = new URLSearchParams(requests.at(-1)!.path.split('?')[1])
  expect(last.get('after')).toBe(createdAt)
})

test('if two calls wait for messages, and one of them returns a message, a repetition of the other still finds earlier messages', async () => {
  const startMs = Date.now()
  const date = () => ({ date: new Date().toUTCString(), 'retry-after': '0' })
  const gate = Promise.withResolvers<void>()
  const repeated: (string | null)[] = []
  const purser = new Purser({
    apiKey: KEY,
    fetch: async ({ url }) => {
      const query = new URL(url).searchParams
      if (query.get('from') === 'a.example') {
        return Response.json(
          { createdAt: new Date(startMs + 5_000).toISOString() },
          { headers: date() },
        )
      }
      repeated.push(query.get('after'))
      await gate.promise
      return repeated.length === 1
        ? new Response('{}', { status: 503, headers: date() })
        : Response.json({ createdAt: new Date(startMs + 4_000).toISOString() })
    },
  })
  const other = purser.messages.wait({ from: 'b.example' })
  await purser.messages.wait({ from: 'a.example' })
  gate.resolve()
  await other
  expect(Date.parse(repeated[1] ?? '')).toBeWithin(startMs - 1_100, startMs + 1_100)
})

test('the client does not repeat a call whose lost response may have shown a generated webhook secret', async () => {
  const urlPattern = 'https://shop.example/a'
  const webhookUrl = 'https://shop.example/hook'
  const calls: [times: number, (purser: Purser) => Promise<unknown>][] = [
    [1, ({ sellers }) => sellers.put({ urlPattern, priceUsdc: '0.01', webhookUrl })],
    [1, ({ sellers }) => sellers.update('se_1', { webhookUrl })],
    [2, ({ sellers }) => sellers.put({ urlPattern, priceUsdc: '0.01' })],
    [2, ({ sellers }) => sellers.update('se_1', { webhookUrl: null })],
    [2, ({ sellers }) => sellers.update('se_1', { webhookUrl, webhookSecret: 'w'.repeat(32) })],
  ]
  for (const [times, call] of calls) {
    const { purser, requests } = await misbehaving(['break', FINE])
    const error = await call(purser).catch((thrown: unknown) => thrown)
    expect([requests.length, error instanceof ConnectionError]).toEqual([times, times === 1])
  }
})

test('if a kept connection closes without a response, the client repeats a deletion, but no call that may have shown a new secret', async () => {
  const webhookUrl = 'https://shop.example/hook'
  const endpoint = { urlPattern: 'https://shop.example/a', priceUsdc: '0.01', webhookUrl }
  const secret = await misbehaving([FINE, 'drop', FINE])
  await secret.purser.whoami()
  expect(await rejection(secret.purser.sellers.put(endpoint))).toBeInstanceOf(ConnectionError)
  expect(secret.requests).toHaveLength(2)

  const deletion = await misbehaving([FINE, 'drop', MISSING])
  await deletion.purser.whoami()
  expect(await deletion.purser.messages.delete('<a@b.example>')).toBeUndefined()
  expect(deletion.requests).toHaveLength(3)

  const waiting = await misbehaving([FINE, 'drop', FINE])
  await waiting.purser.whoami()
  await waiting.purser.messages.wait()
  expect(waiting.requests.map(({ path }) => path.includes('after='))).toEqual([false, false, true])
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

test('each redeem call (for a payment) has a new idempotency key, and all attempts of the call send this key', async () => {
  const { purser, requests } = await misbehaving(['break', NOT_NOW, FINE])
  await purser.payments.redeem(PAYMENT)
  await purser.payments.redeem(PAYMENT)
  const [first, second, third, other] = requests.map(({ key }) => key)
  expect(first).toMatch(/^[\x21-\x7e]{1,255}$/)
  expect([second, third]).toEqual([first!, first!])
  expect(other).not.toBe(first)
})

test('the client retries a call of every HTTP method after the status 429, but only after the time in Retry-After', async () => {
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

test('an AbortSignal ends the running attempt of a client call and the wait for the next attempt', async () => {
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

test('a call fails at once if its time limit would end exactly when the wait in Retry-After ends', async () => {
  setSystemTime(new Date())
  const { purser, requests } = await misbehaving(
    [{ ...LIMITED, headers: { 'retry-after': '5' } }],
    { timeoutMs: 5_000 },
  )
  expect(await rejection(purser.whoami())).toBeInstanceOf(RateLimitError)
  expect(requests).toHaveLength(1)
})

test('the constructor of the client throws an error for a wrong API key or base URL', () => {
  const key = 'apiKey must be a key that starts with loid-'
  const url = 'baseUrl must be an http(s) URL'
  for (const [options, message] of [
    [{ apiKey: undefined }, key],
    [{ apiKey: 7 }, key],
    [{ apiKey: 'lopk-0' }, key],
    [{ baseUrl: 'ftp://a.example' }, url],
    [{ baseUrl: 'a.example' }, url],
  ] as const) {
    const open = () => new Purser({ apiKey: KEY, ...options } as ClientOptions)
    expect(open).toThrow(new TypeError(message))
  }
  expect(() => new PurserPlatform({ apiKey: KEY })).toThrow(TypeError)
})

describe('the client builds correct HTTP requests, and returns the response or throws an error', () => {
  /** Returns a client whose requests get the given response, and the list of these requests. */
  function answering(answer: (request: Request) => Response | Promise<Response>) {
    const requests: Request[] = []
    const purser = new Purser({
      apiKey: KEY,
      baseUrl: 'https://a.example/base//',
      retries: 1,
      fetch: async (request) => {
        requests.push(request)
        return answer(request)
      },
    })
    return { purser, requests }
  }

  test('the headers Accept and Content-Type of a request name the media types of its response and its body', async () => {
    const { purser, requests } = answering(() => Response.json({}))
    await purser.whoami()
    await purser.messages.send(MAIL)
    await purser.messages.raw('<a@b>')
    const shown = requests.map(({ method, headers }) => [
      method,
      headers.get('authorization'),
      headers.get('accept'),
      headers.get('content-type'),
    ])
    const bearer = `Bearer ${KEY}`
    expect(shown).toEqual([
      ['GET', bearer, 'application/json', null],
      ['POST', bearer, 'application/json', 'application/json'],
      ['GET', bearer, '*/*', null],
    ])
    expect(await requests[1]!.json()).toEqual(MAIL)
  })

  test('the URL of a request contains the path and only those query parameters that the caller has set', async () => {
    const { purser, requests } = answering(() => Response.json({}))
    await purser.messages.get('<a/b?c@d>')
    await purser.messages.list()
    await purser.messages.list({ limit: 5, pageToken: undefined })
    expect(requests.map(({ url }) => url)).toEqual([
      'https://a.example/base/v0/messages/%3Ca%2Fb%3Fc%40d%3E',
      'https://a.example/base/v0/messages',
      'https://a.example/base/v0/messages?limit=5',
    ])
    for (const id of [undefined, '', '.', '..'] as string[]) {
      expect([id, await rejection(purser.messages.get(id))]).toEqual([id, expect.any(TypeError)])
    }
    expect(requests).toHaveLength(3)
  })

  test('the client reads a response as JSON or as bytes, and returns undefined if the response has no body', async () => {
    const { purser } = answering(({ method }) =>
      method === 'DELETE' ? new Response(null, { status: 204 }) : new Response('[1]'),
    )
    expect(await purser.whoami()).toEqual([1] as never)
    expect(Buffer.from(await purser.messages.raw('<a@b>')).toString()).toBe('[1]')
    expect(await purser.sellers.delete('se_1')).toBeUndefined()
  })

  test('the client reads an error response as JSON, even if a success response would be bytes', async () => {
    const { purser } = answering(() =>
      Response.json({ error: 'not_found', message: 'No such message' }, { status: 404 }),
    )
    const error = await rejection(purser.messages.raw('<a@b>'))
    expect([error instanceof NotFoundError, error.message]).toEqual([true, 'No such message'])
  })

  test('if an error response has no text, the client’s error names the HTTP status', async () => {
    for (const [response, message] of [
      [new Response('', { status: 418 }), 'HTTP 418'],
      [Response.json({ error: '', message: 7 }, { status: 418 }), 'HTTP 418'],
      [Response.error(), 'HTTP redirect'],
    ] as const) {
      const error = await rejection(answering(() => response).purser.whoami())
      expect([error.code, error.message]).toEqual(['unexpected_answer', message])
    }
  })

  test('the client library returns an event stream as it arrives, and throws an error if the request fails or the response has no stream', async () => {
    const read = (response: Response) => answering(() => response).purser.payments.export()
    expect(await new Response(await read(new Response('a,b'))).text()).toBe('a,b')
    const refused = await rejection(read(Response.json({ error: 'x' }, { status: 404 })))
    expect([refused instanceof NotFoundError, refused.code]).toEqual([true, 'x'])
    const empty = await rejection(read(new Response(null, { status: 204 })))
    expect(empty).toBeInstanceOf(ApiError)
  })

  test('a call with the highest allowed time limit still waits for its response', async () => {
    const { purser } = answering(
      () => new Promise((done) => setTimeout(() => done(Response.json({ ok: true })), 20)),
    )
    expect(await purser.whoami({ timeoutMs: Number.MAX_SAFE_INTEGER })).toEqual({
      ok: true,
    } as never)
  })

  test('if the caller aborts a call, the call fails with the caller’s reason and sends no more requests', async () => {
    const stop = new AbortController()
    const { purser, requests } = answering(() => {
      stop.abort('enough')
      return new Response('', { status: 503 })
    })
    expect(await rejection(purser.whoami({ signal: stop.signal }))).toBe('enough')
    expect(requests).toHaveLength(1)
    const broken = answering(() => Promise.reject(new Error('away')))
    expect(await rejection(broken.purser.messages.send(MAIL, { signal: stop.signal }))).toBe(
      'enough',
    )
  })

  test('the client marks an error as temporary if the connection broke, or if the status is 429, 502, 503 or 504', () => {
    const http = new Http({ apiKey: KEY }, 'loid-')
    const of = (status: number) =>
      errorOf({ status, code: '', message: '', requestId: null, body: {}, retryAfterS: null })
    for (const [error, passes] of [
      [new ConnectionError('x'), true],
      [of(429), true],
      [of(502), true],
      [of(503), true],
      [of(504), true],
      [of(500), false],
      [of(404), false],
      [{ status: 503 }, false],
      [new TimeoutError('x'), false],
    ] as const) {
      expect([error, http.isTransient(error)]).toEqual([error, passes])
    }
  })
})
