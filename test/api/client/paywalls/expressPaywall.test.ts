import { afterAll, expect, spyOn, test } from 'bun:test'
import type { Server } from 'node:http'
import http2 from 'node:http2'
import { type AddressInfo, connect } from 'node:net'
import { gzipSync } from 'node:zlib'
import express from 'express'
import { requirePayment } from '../../../../api/client/paywalls/expressPaywall.ts'
import type { HttpPaywallOptions } from '../../../../api/client/paywalls/httpPaywall.ts'
import { ANSWER_MAX_BYTES } from '../../../../api/client/paywalls/paidAnswers.ts'
import {
  CACHED,
  grant,
  newPaymentHeader,
  shopService,
} from '../../../support/till/headers/shopService.ts'
import { waitFor } from '../../../support/waitFor.ts'

const KEY = /^[0-9a-f]{64}$/
const DUPLICATE = 'duplicate_settlement'

const servers: Server[] = []
afterAll(() => {
  for (const server of servers) server.close()
})

type Options = Partial<HttpPaywallOptions> & { parser?: express.RequestHandler }

/** Starts an Express server that sells the response of a handler. */
async function open(handler: express.RequestHandler, { parser, ...options }: Options = {}) {
  const service = shopService()
  const app = express()
  if (parser !== undefined) app.use(parser)
  app.use('/joke', requirePayment({ purser: service.purser, amount: '0.01', ...options }), handler)
  app.use(((error, _request, response, _next) => {
    response.status(500).send(error.message)
  }) satisfies express.ErrorRequestHandler)
  const server = await new Promise<Server>((done) => {
    const started = app.listen(0, '127.0.0.1', () => done(started))
  })
  servers.push(server)
  const { port } = server.address() as AddressInfo
  const url = `http://127.0.0.1:${port}/joke`
  const ask = async (headers: Record<string, string> = {}, sent: RequestInit = {}) => {
    const response = await fetch(url, { headers, ...sent })
    return { response, seen: [response.status, await response.text()] }
  }
  return { service, ask, port }
}
const reasonIn = (seen: (number | string)[]) => JSON.parse(seen[1] as string).error

test('an unpaid request gets the payment offer as JSON, or as a page for a browser', async () => {
  const { ask } = await open((_request, response) => void response.send('ha'))
  const { response, seen } = await ask()
  expect([seen[0], reasonIn(seen)]).toEqual([402, 'X-PAYMENT header is required'])
  expect(response.headers.get('payment-required')).toBeString()
  const page = await ask({ accept: 'text/html' })
  expect(page.seen).toEqual([402, expect.stringContaining('0.01 USDC')])
  expect(page.response.headers.get('content-type')).toBe('text/html; charset=utf-8')
})

test('a preflight request gets status 204 and no body', async () => {
  const { ask } = await open((_request, response) => void response.send('ha'), { cors: '*' })
  const headers = { 'access-control-request-method': 'GET' }
  const { response, seen } = await ask(headers, { method: 'OPTIONS' })
  expect(seen).toEqual([204, ''])
  expect(response.headers.get('access-control-allow-origin')).toBe('*')
})

test('the paid resource is the same whether the request line contains the whole URL or only its path', async () => {
  const { service, port } = await open((_request, response) => void response.send('ha'))
  const heads = ['http://shop.example/joke?a=1', '/joke?a=1'].map(async (target) => {
    const head = Promise.withResolvers<string>()
    const socket = connect(port, '127.0.0.1', () =>
      socket.write(`GET ${target} HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n\r\n`),
    )
    socket.once('data', (bytes) => head.resolve(bytes.toString().split('\r\n')[0]!))
    socket.once('error', head.reject)
    return head.promise
  })
  for (const head of heads) expect(await head).toStartWith('HTTP/1.1 402')
  expect(service.calls.map(({ body }) => body.resource)).toEqual([
    'http://shop.example/joke',
    'http://shop.example/joke',
  ])
})

test('if the seller has configured the paywall wrongly, the error handler of Express gets the error', async () => {
  const { service, ask } = await open((_request, response) => void response.send('ha'))
  service.answer = () => Response.json({ error: 'forbidden', message: 'No scope' }, { status: 403 })
  expect((await ask()).seen).toEqual([500, 'The paywall is misconfigured: No scope'])
})

const WAYS: Record<string, [express.RequestHandler, body: string]> = {
  send: [(_request, response) => void response.send('hä'), 'hä'],
  'end without body': [(_request, response) => void response.end(), ''],
  'end with null': [(_request, response) => void response.end(null), ''],
  'end with a callback': [(_request, response) => void response.end(() => {}), ''],
  'write of text and bytes': [
    (_request, response) => {
      response.write('h', 'utf8')
      const bytes = Buffer.from('ä')
      response.write(bytes)
      response.end('!', 'UTF-8' as BufferEncoding)
    },
    'hä!',
  ],
  'write of a buffer that changes later': [
    (_request, response) => {
      const bytes = Buffer.from('ha')
      response.write(bytes, () => {
        bytes.fill('x')
        response.end()
      })
    },
    'ha',
  ],
}
for (const [name, [handler, body]] of Object.entries(WAYS)) {
  test(`a repeated paid request gets the first response again if the handler wrote that response by ${name}`, async () => {
    let served = 0
    const { service, ask } = await open((request, response, next) => {
      served++
      response.status(201).set({ 'cache-control': 'public', 'x-own': 'own' })
      response.append('set-cookie', ['a=1', 'b=2'])
      return handler(request, response, next)
    })
    const paid = { 'x-payment': newPaymentHeader() }
    for (let n = 0; n < 2; n++) {
      const { response, seen } = await ask(paid)
      expect(seen).toEqual([201, body])
      expect(response.headers.get('x-own')).toBe('own')
      expect(response.headers.getSetCookie()).toEqual(['a=1', 'b=2'])
      expect(response.headers.get('cache-control')).toBe('no-store')
      expect(response.headers.get('payment-response')).toBeString()
    }
    expect([served, service.calls.length]).toEqual([1, 1])
  })
}

test('the paywall’s headers for a paid response override headers of the same name that the handler passes to writeHead', async () => {
  const own = { 'Cache-Control': 'public, max-age=60', 'payment-response': 'own', 'x-own': 'own' }
  const ways: ((response: express.Response) => void)[] = [
    (response) => response.writeHead(201, own),
    (response) => response.writeHead(201, 'Made', own),
    (response) => response.writeHead(201, Object.entries(own).flat()),
  ]
  for (const [n, writeHead] of ways.entries()) {
    const { ask } = await open((_request, response) => {
      writeHead(response)
      response.end('ha')
    })
    const paid = { 'x-payment': newPaymentHeader() }
    for (let turn = 0; turn < 2; turn++) {
      const { response, seen } = await ask(paid)
      expect([n, turn, ...seen, response.headers.get('cache-control')]).toEqual([
        ...[n, turn, 201, 'ha', 'no-store'],
      ])
      expect(response.headers.get('payment-response')).not.toContain('own')
      expect(response.headers.get('x-own')).toBe('own')
    }
  }
})

test('a paid response has no header by which a cache overrides Cache-Control', async () => {
  for (const isLate of [false, true]) {
    const { ask } = await open((_request, response) => {
      if (isLate) response.writeHead(200, CACHED).end('ha')
      else response.set(CACHED).send('ha')
    })
    const paid = { 'x-payment': newPaymentHeader() }
    for (let n = 0; n < 2; n++) {
      const { response, seen } = await ask(paid)
      expect(seen).toEqual([200, 'ha'])
      expect(Object.keys(CACHED).filter((name) => response.headers.has(name))).toEqual([])
      expect(response.headers.get('cache-control')).toBe('no-store')
    }
  }
})

test('if the handler passes writeHead a list with several values for one header, the payer gets all values', async () => {
  const cookies = ['Set-Cookie', ['a=1', 'b=2']] as const
  for (const list of [
    [...cookies, 'x-own', 'own'],
    [cookies, ['x-own', 'own']],
  ]) {
    const { ask } = await open((_request, response) => {
      response.writeHead(200, list as string[])
      response.end('ha')
    })
    const { response, seen } = await ask({ 'x-payment': newPaymentHeader() })
    expect(seen).toEqual([200, 'ha'])
    expect(response.headers.getSetCookie()).toEqual(['a=1', 'b=2'])
    expect(response.headers.get('x-own')).toBe('own')
  }
})

test('a repeated paid request is refused if the first response was too long, or if the paywall could not record its bytes', async () => {
  const long = 'a'.repeat(ANSWER_MAX_BYTES)
  for (const [handler, isStored] of [
    [(_request, response) => void response.end(long), true],
    [(_request, response) => void response.end(`${long}a`), false],
    [
      (_request, response) => {
        response.write(long)
        response.end('a')
      },
      false,
    ],
    [(_request, response) => void response.end('6861', 'hex'), false],
  ] as [express.RequestHandler, boolean][]) {
    const { ask } = await open(handler)
    const paid = { 'x-payment': newPaymentHeader() }
    const { seen } = await ask(paid)
    const again = await ask(paid)
    expect(seen[0]).toBe(200)
    if (isStored) expect(again.seen).toEqual(seen)
    else expect([again.seen[0], reasonIn(again.seen)]).toEqual([402, DUPLICATE])
  }
})

/**
 * Compresses each response as the package `compression` does: it overrides the functions that write the head and end
 * the response.
 */
const compress: express.RequestHandler = (_request, response, next) => {
  const { end, writeHead } = response
  let isCompressed = false
  response.writeHead = ((...args: [number]) => {
    isCompressed = response.getHeader('content-encoding') === undefined
    if (isCompressed) {
      response.setHeader('content-encoding', 'gzip')
      response.removeHeader('content-length')
    }
    return writeHead.apply(response, args)
  }) as typeof writeHead
  response.end = ((chunk: string | Uint8Array) => {
    if (!response.headersSent) response.writeHead(response.statusCode)
    return end.call(response, (isCompressed ? gzipSync(chunk) : chunk) as never, 'utf8')
  }) as typeof end
  next()
}

test('a repeated paid request gets the first response again, even if a middleware compresses responses', async () => {
  const { ask } = await open((_request, response) => void response.send('ha'), { parser: compress })
  const paid = { 'x-payment': newPaymentHeader() }
  for (let n = 0; n < 2; n++) {
    const { response, seen } = await ask(paid)
    expect([response.headers.get('content-encoding'), ...seen]).toEqual(['gzip', 200, 'ha'])
  }
})

test('after the handler fails, the payer may repeat the request with the same payment', async () => {
  for (const status of [503, 429]) {
    let served = 0
    const { ask } = await open((_request, response) => {
      served++
      response.status(served === 1 ? status : 200).send(`ha ${served}`)
    })
    const paid = { 'x-payment': newPaymentHeader() }
    expect((await ask(paid)).seen).toEqual([status, 'ha 1'])
    for (let n = 0; n < 2; n++) expect((await ask(paid)).seen).toEqual([200, 'ha 2'])
  }
})

/** Runs `work` while the paywall waits only 20 ms for the response to an earlier equal request. */
async function withShortWait(work: () => Promise<void>): Promise<void> {
  const { setTimeout: wait } = globalThis
  const timer = spyOn(globalThis, 'setTimeout')
  timer.mockImplementation(((run: () => void, ms: number) =>
    wait(run, ms === 30_000 ? 20 : ms)) as never)
  try {
    await work()
  } finally {
    timer.mockRestore()
  }
}

test('a payer who disconnected may repeat a paid request if the handler never ends the first response', async () => {
  let served = 0
  const left = Promise.withResolvers<void>()
  const { ask } = await open((_request, response) => {
    if (++served > 1) return void response.send('ha')
    response.on('close', () => left.resolve())
    response.write('h')
  })
  const paid = { 'x-payment': newPaymentHeader() }
  const abort = new AbortController()
  const first = ask(paid, { signal: abort.signal }).catch(() => null)
  await waitFor('the handler', () => served === 1)
  abort.abort()
  await Promise.all([first, left.promise])
  await withShortWait(async () => {
    expect((await ask(paid)).seen[0]).toBe(503)
    expect((await ask(paid)).seen).toEqual([200, 'ha'])
  })
})

test('a payer who disconnected during the settlement may repeat the request if the handler never ends the first response', async () => {
  let served = 0
  const left = Promise.withResolvers<void>()
  const settled = Promise.withResolvers<void>()
  const { service, ask } = await open(
    (_request, response) => {
      if (++served > 1) response.send('ha')
    },
    {
      parser: (_request, response, next) => {
        response.on('close', () => left.resolve())
        next()
      },
    },
  )
  service.answer = async () => {
    await settled.promise
    return grant()
  }
  const paid = { 'x-payment': newPaymentHeader() }
  const abort = new AbortController()
  const first = ask(paid, { signal: abort.signal }).catch(() => null)
  await waitFor('the redeem call', () => service.calls.length === 1)
  abort.abort()
  await Promise.all([first, left.promise])
  settled.resolve()
  await waitFor('the handler', () => served === 1)
  await withShortWait(async () => {
    expect((await ask(paid)).seen[0]).toBe(503)
    expect((await ask(paid)).seen).toEqual([200, 'ha'])
  })
})

test('the paywall recognises a repeated paid request only if it knows the whole request body', async () => {
  const post = (body: string | ReadableStream<Uint8Array>, type: string): RequestInit => ({
    method: 'POST',
    body,
    headers: { 'content-type': type },
  })
  const chunks = () =>
    new ReadableStream<Uint8Array>({
      start(controller) {
        controller.enqueue(Buffer.from('{"a":1}'))
        controller.close()
      },
    })
  const json = 'application/json'
  const form = 'multipart/form-data; boundary=x'
  /** Reads the fields of a form but not its files, as parsers of multipart forms do. */
  const fields: express.RequestHandler = (request, _response, next) => {
    request.on('end', () => {
      request.body = {}
      next()
    })
    request.resume()
  }
  /** Reads the body of the request to its end, and discards it. */
  const drain: express.RequestHandler = (request, _response, next) => {
    request.on('end', () => next())
    request.resume()
  }
  /** Sets the parsed body of a request without reading the request. */
  const invent: express.RequestHandler = (request, _response, next) => {
    request.body = {}
    next()
  }
  for (const [name, sent, parser, isCompared] of [
    ['no body', {}, undefined, true],
    ['an empty POST', { method: 'POST' }, undefined, true],
    ['a parsed body', post('{"a":1}', json), express.json(), true],
    ['raw bytes', post('{"a":1}', json), express.raw({ type: json }), true],
    ['a parsed body in chunks', post(chunks(), json), express.json(), true],
    ['a body without parser', post('{"a":1}', json), undefined, false],
    ['a body in chunks without parser', post(chunks(), json), undefined, false],
    ['a body that is not kept', post('{"a":1}', json), drain, false],
    ['a body that was not read', post('{"a":1}', json), invent, false],
    ['a form with files', post('--x--', form), fields, false],
    ['a form in upper case', post('--x--', 'Multipart/Form-Data; boundary=x'), fields, false],
  ] as const) {
    const { service, ask } = await open(
      (_request, response) => void response.send('ha'),
      parser === undefined ? {} : { parser },
    )
    const headers = { ...(sent as RequestInit).headers, 'x-payment': newPaymentHeader() }
    expect([name, ...(await ask({}, { ...sent, headers })).seen]).toEqual([name, 200, 'ha'])
    expect([name, KEY.test(service.keys()[0]!)]).toEqual([name, isCompared])
  }
})

test('two requests with the same payment but different raw bodies count as different requests, so only the first is served', async () => {
  const { ask } = await open((_request, response) => void response.send('ha'), {
    parser: express.raw({ type: 'text/plain' }),
  })
  const headers = { 'x-payment': newPaymentHeader(), 'content-type': 'text/plain' }
  expect((await ask(headers, { method: 'POST', body: 'a' })).seen).toEqual([200, 'ha'])
  expect((await ask(headers, { method: 'POST', body: 'a' })).seen).toEqual([200, 'ha'])
  expect(reasonIn((await ask(headers, { method: 'POST', body: 'b' })).seen)).toBe(DUPLICATE)
})

test('over HTTP/2, a payment for a request with one body buys no content for another body, even if no header states the body’s length', async () => {
  const service = shopService()
  const serve = requirePayment({
    purser: service.purser,
    amount: '0.01',
    resource: 'https://shop.example/joke',
  })
  let visits = 0
  const server = http2.createServer(async (message, response) => {
    const text = await new Response(message as never).text()
    const body = text === '' ? undefined : JSON.parse(text)
    const { method, headers, httpVersionMajor } = message
    const request = { method, headers, httpVersionMajor, protocol: 'https', originalUrl: '/joke' }
    const answer = Object.assign(response, {
      status: (code: number) => Object.assign(response, { statusCode: code }),
      set: (fields: Record<string, string>) => {
        for (const [name, value] of Object.entries(fields)) response.setHeader(name, value)
      },
      json: (value: unknown) => response.end(JSON.stringify(value)),
    })
    const readableEnded = body !== undefined
    await serve({ ...request, readableEnded, body }, answer as never, () =>
      response.end(`content for ${body?.topic ?? `visit ${++visits}`}`),
    )
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const client = http2.connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  const ask = async (
    payment: string,
    topic: string | null,
    method = topic === null ? 'GET' : 'POST',
  ) => {
    const headers = { ':method': method, ':path': '/joke', 'x-payment': payment }
    const stream = client.request(headers, { endStream: topic === null })
    stream.end(topic === null ? undefined : JSON.stringify({ topic }))
    return await new Response(stream as never).text()
  }
  try {
    const payment = newPaymentHeader()
    expect(await ask(payment, 'cats')).toBe('content for cats')
    expect(JSON.parse(await ask(payment, 'dogs')).error).toBe('duplicate_settlement')
    expect(await ask(payment, 'cats')).toBe('content for cats')
    const other = newPaymentHeader()
    for (let n = 0; n < 2; n++) expect(await ask(other, null)).toBe('content for visit 1')
    const third = newPaymentHeader()
    expect(await ask(third, 'cats', 'GET')).toBe('content for cats')
    expect(JSON.parse(await ask(third, 'dogs', 'GET')).error).toBe('duplicate_settlement')
  } finally {
    client.close()
    server.close()
  }
})
