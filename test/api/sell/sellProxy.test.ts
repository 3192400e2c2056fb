/** Tests the proxy of `bun run sell` in front of a test server. The fake service accepts each payment once. */
import { afterAll, expect, test } from 'bun:test'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { type Server, serve } from 'bun'
import { readPrices } from '../../../api/sell/prices.ts'
import { createSellProxy } from '../../../api/sell/sellProxy.ts'
import { newPaymentHeader, shopService } from '../../support/till/headers/shopService.ts'
import { waitFor } from '../../support/waitFor.ts'

const servers: Server<undefined>[] = []
afterAll(() => {
  for (const server of servers) server.stop(true)
})

/** Starts a server on a free port, and returns its URL. */
function listen(answer: (request: Request) => Response | Promise<Response>): string {
  const server = serve({ port: 0, hostname: '127.0.0.1', fetch: answer })
  servers.push(server)
  return `http://127.0.0.1:${server.port}`
}

/** Starts a proxy that sells the responses of an origin server. */
function open(
  answer: (request: Request) => Response | Promise<Response>,
  prices: Record<string, string> = { '/weather': '0.01' },
) {
  const service = shopService()
  const lines: string[] = []
  const state = { runs: 0, disconnected: 0, lines, service }
  const origin = listen((request) => {
    state.runs++
    return answer(request)
  })
  const proxy = createSellProxy({
    purser: service.purser,
    origin,
    prices: readPrices(JSON.stringify(prices)),
    publicOrigin: 'https://shop.example',
    timeoutMs: 5_000,
    fetch,
    log: (line) => void lines.push(line),
  })
  const url = listen((request) => {
    request.signal.addEventListener('abort', () => void state.disconnected++)
    return proxy(request, '127.0.0.1')
  })
  return Object.assign(state, { url })
}

test('a buyer who disconnects during the response gets this response later, and the origin server answers only once', async () => {
  const asked: { end: () => void }[] = []
  const shop = open(
    () =>
      new Response(
        new ReadableStream({
          start(stream) {
            stream.enqueue(Buffer.from(`weather ${shop.runs}`))
            asked.push({
              end: () => {
                stream.enqueue(Buffer.from('.'))
                stream.close()
              },
            })
          },
        }),
      ),
  )
  const headers = { 'x-payment': newPaymentHeader() }
  const aborting = new AbortController()
  const first = await fetch(`${shop.url}/weather`, { headers, signal: aborting.signal })
  const { value } = await first.body!.getReader().read()
  expect(Buffer.from(value!).toString()).toBe('weather 1')
  aborting.abort()
  await waitFor('the proxy to see that the buyer left', () => shop.disconnected === 1)
  const again = fetch(`${shop.url}/weather`, { headers })
  asked[0]!.end()
  const response = await again
  expect([response.status, await response.text(), shop.runs]).toEqual([200, 'weather 1.', 1])
})

test('a buyer who disconnects before the response begins gets this response later, and the origin server answers only once', async () => {
  const gate = Promise.withResolvers<void>()
  const shop = open(async () => {
    await gate.promise
    return new Response(`weather ${shop.runs}`)
  })
  const headers = { 'x-payment': newPaymentHeader() }
  const aborting = new AbortController()
  const first = fetch(`${shop.url}/weather`, { headers, signal: aborting.signal })
  await waitFor('the request to reach the origin server', () => shop.runs === 1)
  aborting.abort()
  await first.catch(() => {})
  await waitFor('the proxy to see that the buyer left', () => shop.disconnected === 1)
  const again = fetch(`${shop.url}/weather`, { headers })
  gate.resolve()
  const response = await again
  expect([response.status, await response.text(), shop.runs]).toEqual([200, 'weather 1', 1])
})

for (const status of [408, 425, 429, 503]) {
  test(`if the origin server responds with status ${status}, the payment is not used up, and the buyer is told when to repeat the request`, async () => {
    const shop = open(() =>
      shop.runs === 1
        ? new Response('slow down', { status, headers: { 'retry-after': '7' } })
        : new Response('fine weather'),
    )
    const headers = { 'x-payment': newPaymentHeader() }
    const failed = await fetch(`${shop.url}/weather`, { headers })
    expect([failed.status, failed.headers.get('retry-after')]).toEqual([502, '7'])
    expect(((await failed.json()) as { message: string }).message).toContain(
      'Send the same request',
    )
    expect(shop.lines[0]).toEndWith(`/weather: it answered ${status}`)
    for (let n = 0; n < 2; n++) {
      const again = await fetch(`${shop.url}/weather`, { headers })
      expect([again.status, await again.text(), shop.runs]).toEqual([200, 'fine weather', 2])
    }
  })
}

test('the proxy refuses a GET or HEAD request with a body before the payment, because it cannot forward this body', async () => {
  const shop = open(() => new Response('weather'))
  const { port } = new URL(shop.url)
  const statusOf = async (method: string, body: string) => {
    const socket = connect(Number(port), '127.0.0.1')
    socket.write(
      `${method} /weather HTTP/1.1\r\nHost: x\r\nX-Payment: ${newPaymentHeader()}\r\nConnection: close\r\n${body}`,
    )
    const answer = await text(socket)
    return [Number(answer.split(' ')[1]), answer.includes('body')]
  }
  for (const method of ['GET', 'HEAD']) {
    const counted = await statusOf(method, 'Content-Length: 4\r\n\r\nrain')
    const chunked = await statusOf(
      method,
      'Transfer-Encoding: chunked\r\n\r\n4\r\nrain\r\n0\r\n\r\n',
    )
    const told = method === 'GET'
    expect([method, counted, chunked]).toEqual([method, [400, told], [400, told]])
  }
  expect(shop.runs).toBe(0)
  expect((await statusOf('GET', 'Content-Length: 0\r\n\r\n'))[0]).toBe(200)
})

test('the proxy refuses to sell a redirect that only adds or removes a final slash, unless the new path is for sale', async () => {
  const host = 'shop.example'
  for (const [asked, location, missing] of [
    ['/docs', '/docs/', '/docs/'],
    ['/docs', 'docs/?page=2', '/docs/'],
    ['/docs', `http://${host}/docs/`, '/docs/'],
    ['/books/', `https://${host}/books`, '/books'],
    ['/open/a', '/open/a/', null],
    ['/open/a', '/open/a%2F', null],
    ['/docs', '/other', null],
    ['/docs', 'https://other.example/docs/', null],
    ['/docs', `https://${host}/docs`, null],
  ] as const) {
    const shop = open(
      () =>
        shop.runs === 1
          ? new Response(null, { status: 307, headers: { location } })
          : new Response('the docs'),
      { '/docs': '0.01', '/books/': '0.01', '/open/**': '0.01' },
    )
    const ask = () => fetch(`${shop.url}${asked}`, { headers, redirect: 'manual' })
    const headers = { 'x-payment': newPaymentHeader() }
    const response = await ask()
    expect([asked, location, response.status]).toEqual([asked, location, missing ? 502 : 307])
    if (missing === null) continue
    const { error, message } = (await response.json()) as Record<string, string>
    expect([error, message]).toEqual([
      'origin_redirected',
      expect.stringContaining(`The seller must sell ${missing} instead of ${asked}`),
    ])
    expect(shop.lines[0]).toEndWith(
      `${asked}: it redirected to ${missing}, so sell ${missing} instead`,
    )
    const again = await ask()
    expect([again.status, await again.text()]).toEqual([200, 'the docs'])
  }
})
