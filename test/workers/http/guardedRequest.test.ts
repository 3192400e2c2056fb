import { afterAll, describe, expect, test } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import type { Server } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import type { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import {
  type GuardedRequestParameters,
  guardedRequest,
  RESPONSE_BYTES_MAX,
  type Resolve,
} from '../../../workers/http/guardedRequest.ts'
import {
  answering,
  closeServers,
  get,
  getLocal,
  listen,
  serve,
  serveRaw,
} from '../../support/process/localServer.ts'
import { shortestMs } from '../../support/process/shortestMs.ts'
import '../../support/process/alone.ts'

afterAll(closeServers)

describe('guardedRequest returns the response of a public host within limits of time and size', () => {
  test('guardedRequest (HTTP client for public hosts) sends method, headers and body, and returns the status and the body', async () => {
    const seen: unknown[] = []
    const port = await serve((request, response) => {
      let body = ''
      request.on('data', (chunk) => {
        body += chunk
      })
      request.on('end', () => {
        seen.push([request.method, request.url, body, request.headers])
        response.writeHead(201, { 'content-type': 'text/plain' }).end('grüezi')
      })
    })
    const answer = await guardedRequest({
      url: `http://hooks.example:${port}/a%2Fb?x=1#part`,
      method: 'POST',
      headers: { 'content-type': 'application/json', 'X-Service-Event': 'payment.received' },
      body: '{"ü":1}',
      timeoutMs: 60_000,
      allowPrivate: true,
      resolve: answering('127.0.0.1'),
    })
    expect(answer).toEqual({
      ok: true,
      status: 201,
      bodyPrefix: 'grüezi',
      truncated: false,
      ms: expect.any(Number),
    })
    expect(seen).toEqual([
      [
        'POST',
        '/a%2Fb?x=1',
        '{"ü":1}',
        expect.objectContaining({
          host: `hooks.example:${port}`,
          'content-type': 'application/json',
          'content-length': '8',
          'x-service-event': 'payment.received',
          'accept-encoding': 'identity',
          connection: 'close',
        }),
      ],
    ])
  })

  test.each([204, 301, 302, 303, 307, 308, 404, 429, 500, 503])(
    'guardedRequest returns a response with the status %p, and does not follow its Location header',
    async (status) => {
      let elsewhere = 0
      const other = await serve((_request, response) => {
        elsewhere += 1
        response.end()
      })
      const port = await serve((_request, response) => {
        response.writeHead(status, { location: `http://127.0.0.1:${other}/` }).end()
      })
      expect(await getLocal(port)).toMatchObject({ ok: true, status })
      expect(elsewhere).toBe(0)
    },
  )

  test('guardedRequest skips an interim response with the status 100', async () => {
    const port = await serveRaw((socket) => {
      socket.once('data', () => {
        socket.end('HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
      })
    })
    expect(await getLocal(port)).toMatchObject({ ok: true, status: 200, bodyPrefix: 'ok' })
  })

  test.each([
    ['a body after a 204 header', 'HTTP/1.1 204 No Content', '', ''],
    ['a body after an HTTP/1.0 header of 204', 'HTTP/1.0 204 No Content', '', ''],
    ['bytes after a body', 'HTTP/1.1 200 OK', 'content-length: 2\r\n', 'ok'],
  ])(
    'guardedRequest returns a whole response although the server sends %s',
    async (_, line, length, body) => {
      for (const extra of ['more', '\r\nmore\r\n', 'HTTP/1.1 500 Other\r\n\r\n']) {
        const port = await serveRaw((socket) =>
          socket.end(`${line}\r\n${length}connection: close\r\n\r\n${body}${extra}`),
        )
        expect(await getLocal(port)).toMatchObject({
          ok: true,
          status: line.includes('204') ? 204 : 200,
          bodyPrefix: body,
        })
      }
    },
  )

  test('guardedRequest reads response headers of 60 KB, because the challenge of a seller may have 32 KB, and refuses headers above 64 KB', async () => {
    const get = async (chars: number) => {
      const port = await serveRaw((socket) =>
        socket.end(
          `HTTP/1.1 402 Pay\r\npayment-required: ${'a'.repeat(chars)}\r\ncontent-length: 2\r\n\r\nok`,
        ),
      )
      const answer = await getLocal(port)
      return answer.ok ? answer.paymentRequired?.length : answer.detail
    }
    expect([await get(32 * 1024), await get(60 * 1024), await get(70 * 1024)]).toEqual([
      32 * 1024,
      60 * 1024,
      'HPE_HEADER_OVERFLOW',
    ])
  })

  test('guardedRequest reads 64 KB of an endless response and closes the connection', async () => {
    let hungUp = false
    const chunk = Buffer.alloc(16 * 1024, 'a')
    const port = await serveRaw((socket) => {
      socket.once('data', () => {
        socket.write('HTTP/1.1 200 OK\r\n\r\n')
        const timer = setInterval(() => socket.write(chunk), 1)
        socket.on('close', () => {
          hungUp = true
          clearInterval(timer)
        })
      })
    })
    const answer = await getLocal(port)
    expect(answer).toMatchObject({ ok: true, status: 200, truncated: true })
    expect(answer.ok && answer.bodyPrefix.length).toBe(RESPONSE_BYTES_MAX)
    while (!hungUp) await new Promise((done) => setTimeout(done, 5))
  })

  test('guardedRequest marks a response as truncated only if it is larger than the size limit', async () => {
    const port = await serve((_request, response) => response.end('x'.repeat(100)))
    expect(await getLocal(port, { responseBytesMax: 100 })).toMatchObject({ truncated: false })
    expect(await getLocal(port, { responseBytesMax: 99 })).toMatchObject({
      truncated: true,
      bodyPrefix: 'x'.repeat(99),
    })
  })

  test('guardedRequest does not decompress a gzip bomb', async () => {
    const bomb = gzipSync(Buffer.alloc(50_000_000, 'a'))
    const port = await serve((_request, response) => {
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(bomb)
    })
    const answer = await getLocal(port)
    expect(answer).toMatchObject({ ok: true, status: 200, truncated: false })
    expect(answer.ok && answer.bodyPrefix.includes('aaaa')).toBe(false)
    expect(answer.ok && answer.bodyPrefix.startsWith('\u001f')).toBe(true)
  })

  test.each<[string, (socket: Socket) => void]>([
    ['accepts and says nothing', () => {}],
    ['never ends its headers', (socket) => socket.write('HTTP/1.1 200 OK\r\nX-A: ')],
    [
      'sends no body after its headers',
      (socket) => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n'),
    ],
  ])('guardedRequest ends at its timeout if a server %s', async (_name, onData) => {
    const port = await serveRaw((socket) => socket.once('data', () => onData(socket)))
    const tookMs = await shortestMs(1_000, async () => {
      const answer = await getLocal(port, { timeoutMs: 100 })
      expect(answer).toMatchObject({ ok: false, kind: 'timeout' })
      expect(answer.ms).toBeGreaterThanOrEqual(99)
      return answer.ms
    })
    expect(tookMs).toBeLessThan(1_000)
  })

  test('if a response body arrives very slowly, guardedRequest ends at the time limit', async () => {
    const port = await serve((_request, response) => {
      const timer = setInterval(() => response.write('.'), 10)
      response.on('close', () => clearInterval(timer))
    })
    expect(await getLocal(port, { timeoutMs: 150 })).toMatchObject({ ok: false, kind: 'timeout' })
  })

  test('if the DNS resolver does not answer, guardedRequest ends at the time limit', async () => {
    expect(await get('http://slow.example/', { timeoutMs: 50, resolve: () => {} })).toMatchObject({
      ok: false,
      kind: 'timeout',
    })
  })

  test('guardedRequest returns a network error if a connection is refused or reset, or if the response is not HTTP', async () => {
    // No process listens on port 1 of this machine, so a connection to this port is refused.
    const closed = 1
    const reset = await serveRaw((socket) => socket.once('data', () => socket.resetAndDestroy()))
    const cut = await serveRaw((socket) =>
      socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc')),
    )
    const noise = await serveRaw((socket) => socket.once('data', () => socket.end('220 smtp\r\n')))
    for (const port of [closed, reset, cut, noise]) {
      expect(await getLocal(port)).toMatchObject({ ok: false, kind: 'network' })
    }
  })

  test('guardedRequest returns a network error without an IP address for an unknown host name', async () => {
    const resolve: Resolve = (_hostname, answer) =>
      answer(Object.assign(new Error('getaddrinfo ENOTFOUND 10.0.0.2'), { code: 'ENOTFOUND' }), [])
    expect(await get('http://nowhere.example/', { resolve })).toMatchObject({
      ok: false,
      kind: 'network',
      detail: 'ENOTFOUND',
    })
    expect(await get('http://empty.example/', { resolve: answering() })).toMatchObject({
      ok: false,
      kind: 'network',
    })
  })

  test('guardedRequest throws an error if a header contains line breaks, which would split the request', async () => {
    const headers = { 'x-a': 'b\r\nx-c: d' }
    await expect(getLocal(1, { headers })).rejects.toThrow()
  })
})

describe('guardedRequest connects with https only if the certificate is valid', () => {
  const directory = mkdtempSync(join(tmpdir(), 'guarded-'))
  afterAll(() => rmSync(directory, { recursive: true }))
  const [key, cert] = [join(directory, 'key.pem'), join(directory, 'cert.pem')]
  const made = spawnSync('openssl', [
    ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'],
    ...['-keyout', key, '-out', cert, '-days', '2', '-subj', '/CN=hooks.example'],
    ...['-addext', 'subjectAltName=DNS:hooks.example'],
  ])

  test.skipIf(made.status !== 0)(
    'guardedRequest accepts an https connection only if a trusted authority issued the certificate for the host name',
    async () => {
      const ca = readFileSync(cert, 'utf8')
      const server = createHttpsServer(
        { key: readFileSync(key), cert: ca },
        (_request, response) => {
          response.end('safe')
        },
      )
      const port = await listen(server as unknown as Server)
      const ask = (host: string, more: Partial<GuardedRequestParameters> = {}) =>
        get(`https://${host}:${port}/`, {
          allowPrivate: true,
          resolve: answering('127.0.0.1'),
          ...more,
        })
      expect(await ask('hooks.example', { ca })).toMatchObject({ ok: true, bodyPrefix: 'safe' })
      expect(await ask('other.example', { ca })).toMatchObject({ ok: false, kind: 'network' })
      expect(await ask('hooks.example')).toMatchObject({ ok: false, kind: 'network' })
      expect(await ask('hooks.example', { ca, allowPrivate: false })).toMatchObject({
        kind: 'blocked',
      })
    },
  )
})

test('if a host has no address, the error code of guardedRequest says that no request was sent', async () => {
  const answer = await guardedRequest({
    ...{ url: 'https://no-such-host.invalid/', method: 'GET', timeoutMs: 20_000 },
    allowPrivate: false,
  })
  expect(answer.ok ? answer.status : answer.detail).toMatch(/^(ENOTFOUND|EAI_AGAIN)$/)
})
