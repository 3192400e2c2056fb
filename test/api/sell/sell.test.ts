/** Tests the command `bun run sell` in front of a test server, with payments on the development chain. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { serve } from 'bun'
import {
  freePort,
  printed,
  type ServiceProcess,
  startProcess,
} from '../../support/process/process.ts'
import type { Agent } from '../../support/service.ts'
import { pay, startTestTill, type TestTill } from '../../support/till/till.ts'
import { waitFor } from '../../support/waitFor.ts'
import '../../support/long.ts'

type Seen = { path: string; method: string; headers: Headers; body: string }

let till: TestTill
let seller: Agent
let origin: ReturnType<typeof startOrigin>
let command: ServiceProcess
let url: string
let folder: string

/**
 * Starts a test server that plays the origin server behind the paywall. A test replaces `answer` to change the response
 * of this server.
 */
function startOrigin() {
  const seen: Seen[] = []
  const state = {
    seen,
    answer: (_request: Request): Response | Promise<Response> => new Response('fine weather'),
  }
  const server = serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const { pathname, search } = new URL(request.url)
      const body = request.method === 'POST' ? await request.text() : ''
      seen.push({ path: pathname + search, method: request.method, headers: request.headers, body })
      return await state.answer(request)
    },
  })
  return Object.assign(state, { server, url: `http://127.0.0.1:${server.port}` })
}

async function sell(
  args: string[],
): Promise<{ process: ServiceProcess; url: string; port: string }> {
  const started = startProcess(
    'api/sell/main.ts',
    { PURSER_URL: till.service.url, PURSER_API_KEY: seller.key },
    [...args, '--port', '0'],
  )
  const [, port = '', address = ''] = await printed(
    started,
    /listening on port (\d+), selling \S+ at (\S+)/,
  )
  return { process: started, url: address, port }
}

beforeAll(async () => {
  till = await startTestTill({ env: { ALLOW_PRIVATE_NETWORKS: 'true' } })
  seller = await till.newSeller()
  origin = startOrigin()
  folder = mkdtempSync(join(tmpdir(), 'purser-sell-'))
  const file = join(folder, 'prices.json')
  writeFileSync(
    file,
    JSON.stringify({
      '/weather': '0.01',
      '/reports/**': { amount: '0.01', description: 'A report' },
    }),
  )
  writeFileSync(join(folder, 'globs.json'), JSON.stringify({ '/files/*.pdf': '0.01' }))
  ;({ process: command, url } = await sell([origin.url, '--prices', file]))
})
beforeEach(() => {
  origin.seen.length = 0
  origin.answer = () => new Response('fine weather')
})
afterAll(async () => {
  await command[Symbol.asyncDispose]()
  origin.server.stop(true)
  await till[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true, force: true })
})

const buy = async (path: string, init: RequestInit = {}) => {
  const { header } = await pay()
  const headers = { ...(init.headers as Record<string, string>), 'x-payment': header }
  return { header, response: await fetch(`${url}${path}`, { ...init, headers }) }
}
const payments = async () => (await seller.get('/v0/payments')).body.count as number

test('the paywall charges the price of a path, and only paid requests reach the origin server', async () => {
  const offer = await fetch(`${url}/weather?city=Berlin`)
  expect(offer.status).toBe(402)
  expect(((await offer.json()) as any).accepts[0].maxAmountRequired).toBe('10000')
  expect(origin.seen).toEqual([])
  const { response, header } = await buy('/weather?city=Berlin')
  expect([response.status, await response.text()]).toEqual([200, 'fine weather'])
  expect(response.headers.get('x-payment-response')).not.toBeNull()
  expect(origin.seen.map(({ path }) => path)).toEqual(['/weather?city=Berlin'])
  const again = await fetch(`${url}/weather?city=Berlin`, { headers: { 'x-payment': header } })
  expect([again.status, await again.text()]).toEqual([200, 'fine weather'])
})

test('the origin server gets neither the payment header nor a hop-by-hop header', async () => {
  origin.answer = () =>
    new Response('ok', { headers: { connection: 'x-inner', 'x-inner': '1', 'x-shown': '1' } })
  const { response } = await buy('/weather', {
    headers: {
      'payment-authorization': 'p',
      'sign-in-with-x': 's',
      'x-forwarded-for': '6.6.6.6',
      te: 'trailers',
      'x-kept': 'k',
    },
  })
  expect([response.headers.get('x-inner'), response.headers.get('x-shown')]).toEqual([null, '1'])
  const [{ headers }] = origin.seen as [Seen]
  for (const name of [
    'x-payment',
    'payment-signature',
    'payment-authorization',
    'sign-in-with-x',
    'te',
  ]) {
    expect([name, headers.get(name)]).toEqual([name, null])
  }
  expect(headers.get('x-forwarded-for')).toBe('127.0.0.1')
  expect(headers.get('x-forwarded-host')).toBe(new URL(url).host)
  expect([headers.get('x-kept'), headers.get('host')]).toEqual(['k', new URL(origin.url).host])
})

test('the origin server gets the public host and scheme, and not the host that a buyer names', async () => {
  const shop = 'https://shop.example'
  const { process, port } = await sell([`${origin.url}/weather`, '0.01', '--public', shop])
  await using _other = process
  const { header } = await pay()
  const paid = await fetch(`http://127.0.0.1:${port}/weather`, {
    headers: { 'x-payment': header, host: 'evil.example' },
  })
  expect(paid.status).toBe(200)
  const [{ headers }] = origin.seen as [Seen]
  expect([headers.get('x-forwarded-proto'), headers.get('x-forwarded-host')]).toEqual([
    'https',
    'shop.example',
  ])
})

test('the paywall removes request headers in which a buyer could name another path or client address', async () => {
  // Some frameworks serve the path in X-Original-URL or X-Rewrite-URL instead of the path for which the buyer paid, so
  // the paywall must remove these headers.
  const forged = {
    'x-original-url': '/reports/2026',
    'x-rewrite-url': '/reports/2026',
    'x-forwarded-prefix': '/reports',
    'x-forwarded-port': '1',
    'x-real-ip': '6.6.6.6',
    'x-forwarded-path': '/reports/2026',
    'x-original-uri': '/reports/2026',
    'x-original-host': 'evil.example',
    // A server with CGI variables reads `_` as `-`, and PHP reads `.` in the same way. Therefore the paywall must also
    // remove headers in these spellings.
    x_original_url: '/reports/2026',
    x_forwarded_for: '6.6.6.6',
    'x.rewrite.url': '/reports/2026',
    payment_signature: 'p',
  }
  const { response } = await buy('/weather', { headers: forged })
  expect(response.status).toBe(200)
  const [{ headers }] = origin.seen as [Seen]
  expect(Object.keys(forged).filter((name) => headers.has(name))).toEqual([])
})

test('the paywall refuses a path that is for sale if some servers read this path as another one that is not for sale', async () => {
  const before = await payments()
  for (const dots of ['%EF%BC%8E%EF%BC%8E', '%E2%80%A5', '%c0%ae%c0%ae', '..%20']) {
    const { response } = await buy(`/reports/${dots}/weather`)
    expect([dots, response.status, origin.seen]).toEqual([dots, 400, []])
  }
  expect(await payments()).toBe(before)
})

test('the paywall streams response bodies, and can sell a byte range', async () => {
  const gate = Promise.withResolvers<void>()
  origin.answer = () =>
    new Response(
      new ReadableStream({
        async start(controller) {
          controller.enqueue(Buffer.from('first'))
          await gate.promise
          controller.enqueue(Buffer.from(' last'))
          controller.close()
        },
      }),
    )
  const { response } = await buy('/weather')
  const reader = response.body!.getReader()
  expect(Buffer.from((await reader.read()).value!).toString()).toBe('first')
  gate.resolve()
  let rest = ''
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    rest += Buffer.from(part.value).toString()
  }
  expect(rest).toBe(' last')
  origin.answer = (request) =>
    request.headers.get('range') === 'bytes=1-2'
      ? new Response('in', { status: 206, headers: { 'content-range': 'bytes 1-2/4' } })
      : new Response('no range', { status: 500 })
  const part = await buy('/weather', { headers: { range: 'bytes=1-2' } })
  expect([part.response.status, part.response.headers.get('content-range')]).toEqual([
    206,
    'bytes 1-2/4',
  ])
})

test('a request body reaches the origin server unchanged', async () => {
  const { response } = await buy('/reports/2026/q1', { method: 'POST', body: 'a question' })
  expect(response.status).toBe(200)
  expect(origin.seen[0]).toMatchObject({
    method: 'POST',
    path: '/reports/2026/q1',
    body: 'a question',
  })
})

test('if the origin server fails after the payment, the buyer can get the content later for the same payment header', async () => {
  const before = await payments()
  origin.answer = () => new Response('broken', { status: 500 })
  const { response, header } = await buy('/weather')
  const body = (await response.json()) as any
  expect([response.status, body.error]).toEqual([502, 'origin_failed'])
  expect(body.message).toContain('Send the same request with the same payment header')
  expect(response.headers.get('x-payment-response')).not.toBeNull()
  origin.answer = () => new Response('fine again')
  const again = await fetch(`${url}/weather`, { headers: { 'x-payment': header } })
  expect([again.status, await again.text()]).toEqual([200, 'fine again'])
  expect(await payments()).toBe(before + 1)
})

test('if the origin server does not respond, the buyer gets status 504, and can get the content later for the same payment header', async () => {
  await using slow = (await sell([`${origin.url}/weather`, '0.01', '--timeout', '1'])).process
  const [, at = ''] = await printed(slow, /at (http:\S+)/)
  const before = await payments()
  const asked = Promise.withResolvers<Response>()
  origin.answer = () => asked.promise
  const { header } = await pay()
  const get = () => fetch(`${at}/weather`, { headers: { 'x-payment': header } })
  const late = await get()
  const body = (await late.json()) as any
  expect([late.status, body.error]).toEqual([504, 'origin_timeout'])
  expect(body.message).toContain('Send the same request with the same payment header')
  expect(late.headers.get('x-payment-response')).not.toBeNull()
  asked.resolve(new Response('too late'))
  origin.answer = () => new Response('in time')
  const again = await get()
  expect([again.status, await again.text()]).toEqual([200, 'in time'])
  expect(await payments()).toBe(before + 1)
})

/** Sends a request line unchanged over a socket, because HTTP clients resolve dots in paths. */
const raw = (target: string, headers = ''): Promise<number> =>
  new Promise((resolve, reject) => {
    const { port } = new URL(url)
    const socket = connect(Number(port), '127.0.0.1', () => {
      socket.write(
        `GET ${target} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nConnection: close\r\n${headers}\r\n`,
      )
    })
    let text = ''
    socket.on('data', (data) => {
      text += data.toString()
      const status = /^HTTP\/1\.1 (\d{3})/.exec(text)?.[1]
      if (status === undefined) return
      socket.destroy()
      resolve(Number(status))
    })
    socket.on('error', reject)
  })

test('if two servers could read the path of a request in different ways, the request gets status 400', async () => {
  const targets: [string, number][] = [
    ['/weather', 402],
    ['/%77eather', 402],
    ['/nothing', 404],
    ['/', 404],
    ['/reports', 404],
    // The service requests the path /reports/ when it checks the endpoint, so this path must get a 402 response with an
    // offer, although no content is for sale there.
    ['/reports/', 402],
    ['/reports/a', 402],
    ['/reports/a/b', 402],
    ['/reports%2fa', 400],
    ['/reports%5ca', 400],
    ['/%252e%252e/weather', 400],
    // The HTTP parser resolves dot segments of a path before the paywall and the origin server see the path, so both
    // see the same path.
    ['/reports/%2e%2e/nothing', 404],
    ['/reports/%2e%2e/weather', 402],
    ['/reports//a', 400],
    // The health check of the paywall in compose.yaml requests the path /%2f, so this path must get a response.
    ['/%2f', 400],
    ['/weather%00', 400],
    ['/weather%zz', 400],
  ]
  for (const [target, status] of targets) {
    expect([target, await raw(target)]).toEqual([target, status])
  }
  // A path with dot segments must never reach content without a price.
  expect([400, 404]).toContain(await raw('/reports/../nothing'))
  expect(origin.seen).toEqual([])
})

test('if a path pattern (glob) is for sale, a payment for the fixed part of the pattern alone is refused', async () => {
  await using other = (await sell([origin.url, '--prices', join(folder, 'globs.json')])).process
  const [, at = ''] = await printed(other, /at (http:\S+)/)
  expect((await fetch(`${at}/files/`)).status).toBe(402)
  const before = await payments()
  const { header } = await pay()
  const paid = await fetch(`${at}/files/`, { headers: { 'x-payment': header } })
  expect([paid.status, await payments(), origin.seen]).toEqual([404, before, []])
})

test('the paywall can listen on an IPv6 address, and then shows its URL with brackets', async () => {
  await using other = (await sell([`${origin.url}/weather`, '0.01', '--host', '::1'])).process
  const [, at = ''] = await printed(other, /at (http:\S+)/)
  expect(at).toStartWith('http://[::1]:')
  expect((await fetch(`${at}/weather`)).status).toBe(402)
})

test('the proxy accepts the longest payment header together with cookies, and refuses headers that a server would refuse after the payment', async () => {
  const payment = `X-PAYMENT: ${'A'.repeat(16_384)}\r\n`
  const cookies = (chars: number) => `Cookie: a=${'b'.repeat(chars)}\r\n`
  expect(await raw('/weather', payment + cookies(8_000))).toBe(402)
  expect(await raw('/weather', payment + cookies(16_000))).toBe(431)
  expect(await raw('/weather', cookies(16_000))).toBe(431)
  expect(await raw(`/weather?${'q'.repeat(16_000)}`)).toBe(431)
})

test('the paywall refuses a WebSocket request and states the reason', async () => {
  expect(await raw('/weather', 'Upgrade: websocket\r\n')).toBe(501)
})

test('the paywall ignores a request to upgrade to HTTP/2 and answers over HTTP/1.1, but refuses an upgrade to WebSocket', async () => {
  // The HTTP clients of Java and curl request an upgrade to HTTP/2, which a server may ignore (RFC 9110 §7.8).
  const headers =
    'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n'
  expect(await raw('/weather', headers)).toBe(402)
  expect(await raw('/weather', 'Upgrade: h2c, WebSocket\r\n')).toBe(501)
})

test('the command bun run sell needs only one URL and one price, and an error names each missing or wrong argument', async () => {
  await using one = (await sell([`${origin.url}/weather`, '0.01'])).process
  const [, at = ''] = await printed(one, /at (http:\S+)/)
  expect([(await fetch(`${at}/weather`)).status, (await fetch(`${at}/other`)).status]).toEqual([
    402, 404,
  ])
  const wrong = join(folder, 'wrong.json')
  writeFileSync(wrong, JSON.stringify({ '/weather': 'free' }))
  const cases: [string[], RegExp][] = [
    [[], /the first argument must be/],
    [[origin.url], /name a price or --prices FILE/],
    [[origin.url, '0'], /the price must be decimal USDC/],
    [[`${origin.url}/a`, '--prices', wrong], /must have no path/],
    [[origin.url, '--prices', wrong], /"\/weather": must be decimal USDC/],
    [[origin.url, '1', '--public', 'example.com'], /--public must be an origin/],
    [[origin.url, '0.01', '--public', 'http://'], /--public must be an origin/],
    [[origin.url, '0.01', '--port', 'https'], /--port must be a number/],
    [[origin.url, '0.01', '--timeout', '0'], /--timeout must be a whole number/],
    // A settlement of a minute and a time-out of 191 seconds would together exceed the longest silence that Bun allows
    // on a connection.
    [
      [origin.url, '0.01', '--timeout', '191'],
      /--timeout must be a whole number of seconds from 1 to 190/,
    ],
  ]
  for (const [args, message] of cases) {
    await using failed = startProcess(
      'api/sell/main.ts',
      { PURSER_URL: till.service.url, PURSER_API_KEY: seller.key },
      args,
    )
    expect([args, await failed.exited]).toEqual([args, 78])
    expect(failed.stderr()).toMatch(message)
  }
})

test('after SIGTERM, a buyer who has paid still gets the content, and the command then ends with exit code 0', async () => {
  const { process, url: shop } = await sell([`${origin.url}/weather`, '0.01'])
  const gate = Promise.withResolvers<void>()
  const asked = Promise.withResolvers<void>()
  origin.answer = async () => {
    asked.resolve()
    await gate.promise
    return new Response('late weather')
  }
  const { header } = await pay()
  const paid = fetch(`${shop}/weather`, { headers: { 'x-payment': header } })
  await asked.promise
  process.child.kill('SIGTERM')
  await waitFor('the command to accept no new connection', () =>
    fetch(`${shop}/weather`, { headers: { connection: 'close' } }).then(
      () => false,
      () => true,
    ),
  )
  gate.resolve()
  const response = await paid
  expect([response.status, await response.text()]).toEqual([200, 'late weather'])
  expect(await process.exited).toBe(0)
})

test('a second start of bun run sell with the same prices registers again only the first path, and paths whose price or network has changed', async () => {
  const port = String(await freePort())
  const shop = `http://127.0.0.1:${port}`
  const file = join(folder, 'two.json')
  writeFileSync(file, JSON.stringify({ '/one': '0.01', '/two': '0.01' }))
  const start = async () => {
    const started = startProcess(
      'api/sell/main.ts',
      { PURSER_URL: till.service.url, PURSER_API_KEY: seller.key },
      [origin.url, '--prices', file, '--port', port],
    )
    await printed(started, /listening on port/)
    return started
  }
  const find = async () => {
    const { body } = await seller.get('/v0/sellers/endpoints')
    return body.endpoints.find(({ urlPattern }: any) => urlPattern === `${shop}/two`)
  }
  const set = (columns: string) =>
    till.service.database.pool.query(
      `update seller_endpoints set verification_status = 'verified', check_queued_at = null, ${columns}`,
    )
  const first = await start()
  const { network } = await find()
  await set('verification_detail = null')
  const verified = await find()
  expect(verified.verification.status).toBe('verified')
  await first[Symbol.asyncDispose]()
  const second = await start()
  expect(await find()).toEqual(verified)
  await second[Symbol.asyncDispose]()
  await set('price_atomic = 20000')
  const third = await start()
  expect((await find()).priceUsdc).toBe('0.01')
  await third[Symbol.asyncDispose]()
  await set(`network = 'base'`)
  await using _fourth = await start()
  expect((await find()).network).toBe(network)
})
