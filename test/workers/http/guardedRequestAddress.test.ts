import { afterAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import type { Resolve } from '../../../workers/http/guardedRequest.ts'
import { answering, closeServers, get, serve, serveRaw } from '../../support/process/localServer.ts'

afterAll(closeServers)

describe('guardedRequest never connects to a private address, whatever the DNS answers', () => {
  let connections = 0
  const local = serveRaw((socket) => {
    connections += 1
    socket.end('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
  })
  const blocked = { ok: false, kind: 'blocked', ms: expect.any(Number) } as const

  test.each([
    '127.0.0.1',
    '127.1',
    '0x7f.1',
    '0x7f000001',
    '2130706433',
    '017700000001',
    '0177.0.0.1',
    '127.0.0.1.',
    '１２７.０.０.１',
    '0',
    '0.0.0.0',
    '10.0.0.1',
    '100.64.0.1',
    '169.254.169.254',
    '172.16.0.1',
    '192.168.0.1',
    '255.255.255.255',
    '[::]',
    '[::1]',
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
    '[::127.0.0.1]',
    '[64:ff9b::127.0.0.1]',
    '[2002:7f00:1::]',
    '[fe80::1]',
    '[fd00:ec2::254]',
    'localhost',
    'LOCALHOST.',
    'a.localhost',
    'metadata.google.internal',
    'metadata',
  ])(
    'guardedRequest refuses the literal address %s before a connection is opened',
    async (host) => {
      const before = connections
      // The resolver would return a public address, so only the check of the IP address in the URL can refuse the
      // request.
      const answer = await get(`http://${host}:${await local}/`, { resolve: answering('8.8.8.8') })
      expect(answer).toEqual({ ...blocked, detail: 'address is not public' })
      expect(connections).toBe(before)
    },
  )

  test.each([
    [['127.0.0.1']],
    [['10.1.2.3']],
    [['169.254.169.254']],
    [['0.0.0.0']],
    [['::1']],
    [['::ffff:127.0.0.1']],
    [['fe80::1%lo']],
    [['fd00::1']],
    [['64:ff9b::7f00:1']],
    [['8.8.8.8', '127.0.0.1']],
    [['127.0.0.1', '8.8.8.8']],
    [['2606:4700:4700::1111', '::1']],
    [['not an address']],
  ])('guardedRequest refuses a host name that resolves to the address %p', async (addresses) => {
    const before = connections
    const url = `http://innocent.example:${await local}/`
    const answer = await get(url, { resolve: answering(...addresses) })
    expect(answer).toEqual({ ...blocked, detail: 'address is not public' })
    expect(connections).toBe(before)
  })

  test('DNS rebinding fails, because guardedRequest looks up the host name once and checks the address of this lookup', async () => {
    const before = connections
    const port = await local
    let asked = 0
    // The first DNS answer for the name is a private address. If the HTTP client looked up the name again after the
    // check, it would get a public address.
    const resolve: Resolve = (_hostname, answer) => {
      asked += 1
      answer(null, [{ address: asked === 1 ? '127.0.0.1' : '8.8.8.8', family: 4 }])
    }
    const answer = await get(`http://rebind.example:${port}/`, { resolve })
    expect(answer).toMatchObject({ kind: 'blocked' })
    expect([asked, connections]).toEqual([1, before])
  })

  test('two guardedRequest calls to the same host name use separate connections and separate DNS lookups', async () => {
    const port = await local
    let asked = 0
    const resolve: Resolve = (_hostname, answer) => {
      asked += 1
      answer(null, [{ address: '127.0.0.1', family: 4 }])
    }
    const url = `http://twice.example:${port}/`
    const before = connections
    for (let round = 0; round < 2; round++) {
      expect(await get(url, { resolve, allowPrivate: true })).toMatchObject({ status: 200 })
    }
    expect([asked, connections - before]).toEqual([2, 2])
    expect(await get(url, { resolve })).toMatchObject({ kind: 'blocked' })
  })

  test.each([
    ['', 'not a valid URL'],
    ['/relative', 'not a valid URL'],
    ['http://', 'not a valid URL'],
    ['file:///etc/passwd', 'not an http or https URL'],
    ['ftp://example.com/', 'not an http or https URL'],
    ['gopher://127.0.0.1:6379/_INFO', 'not an http or https URL'],
    ['http://user@example.com/', 'URL holds a user name or password'],
    ['http://8.8.8.8@127.0.0.1/', 'URL holds a user name or password'],
    ['http://example.com:25/', 'port is not allowed'],
    ['https://example.com:22/', 'port is not allowed'],
    ['http://example.com:0/', 'port is not allowed'],
  ])('guardedRequest refuses the URL %p with the reason: %s', async (url, detail) => {
    expect(await get(url, { resolve: answering('8.8.8.8') })).toEqual({ ...blocked, detail })
  })

  test('guardedRequest ignores the variable HTTP_PROXY for host names and for IP addresses', async () => {
    let proxied = 0
    const proxy = await serve((_request, response) => {
      proxied += 1
      response.end('proxy')
    })
    const target = await serve((_request, response) => response.end('target'))
    const module = join(import.meta.dir, '../../../workers/http/guardedRequest.ts')
    const script = `
      const { guardedRequest } = await import(${JSON.stringify(module)})
      const resolve = (_hostname, answer) => answer(null, [{ address: '127.0.0.1', family: 4 }])
      const ask = (host) => guardedRequest({ url: 'http://' + host + ':${target}/', method: 'GET',
        timeoutMs: 60_000, allowPrivate: true, resolve })
      const answers = [await ask('name.example'), await ask('127.0.0.1')]
      process.stdout.write(answers.map((answer) => answer.bodyPrefix).join())
    `
    const url = `http://127.0.0.1:${proxy}`
    const child = Bun.spawn([process.execPath, '-e', script], {
      env: { HTTP_PROXY: url, http_proxy: url, HTTPS_PROXY: url, ALL_PROXY: url },
      stdout: 'pipe',
    })
    expect(await new Response(child.stdout).text()).toBe('target,target')
    expect(proxied).toBe(0)
  })
})
