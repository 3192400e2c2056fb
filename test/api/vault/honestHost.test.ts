/**
 * Tests that a hijacked agent cannot get a vault secret through an honest host that stores notes and echoes requests.
 */
import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { answering, closeServers } from '../../support/process/localServer.ts'
import { newCertificate, serveTls } from '../../support/process/tlsServer.ts'
import { type Agent, startTestService, type TestService } from '../../support/service.ts'
import { vaultPath as path } from '../../support/vault/vault.ts'
import '../../support/long.ts'

const SECRET = 'sk_live_4eC39HqLyjWDarjtT1zdp7dc'
const HOST = 'notes.example'

let service: TestService
let agent: Agent
let port: number
/** Holds the texts that the test host has made public. */
let published: string[] = []
let received: { url: string; headers: Record<string, unknown>; body: string }[] = []

beforeAll(async () => {
  const certificate = newCertificate(HOST)
  port = await serveTls(certificate, (request, response) => {
    let body = ''
    request.on('data', (chunk) => {
      body += chunk
    })
    request.on('end', () => answer(request, response, body))
  })
  service = await startTestService({
    ...{ smtp: false, pools: ['vault'], env: { ALLOW_PRIVATE_NETWORKS: 'true' } },
    ...{ ca: certificate.ca, resolve: answering('127.0.0.1') },
  })
  agent = await service.newAgent()
  for (const [name, more] of [
    ['api', { type: 'API_KEY', data: { key: SECRET } }],
    ['custom', { type: 'CUSTOM', data: { value: SECRET } }],
    ['oauth', { type: 'OAUTH', data: { accessToken: SECRET } }],
    ['login', { type: 'LOGIN', data: { password: SECRET }, metadata: { username: 'ada@x.test' } }],
    ['totp', { type: 'TOTP', data: { secret: 'JBSWY3DPEHPK3PXP' } }],
  ] as const) {
    const given = { ...more, allowedHosts: [`${HOST}:${port}`], reveal: 'owner' }
    expect((await agent.put(path(name), given)).status).toBe(200)
  }
})
beforeEach(() => {
  published = []
  received = []
})
afterAll(async () => {
  await service[Symbol.asyncDispose]()
  closeServers()
})

/**
 * Publishes the bodies and queries of requests to the path /notes. For any other path, the host returns the request
 * itself, or the part that a Range header or an offset selects.
 */
function answer(request: IncomingMessage, response: ServerResponse, body: string): void {
  const { method, url = '', headers } = request
  const at = new URL(url, 'https://x')
  received.push({ url, headers, body })
  if (at.pathname.startsWith('/notes')) published.push(body, url, String(headers['x-title'] ?? ''))
  const echo = JSON.stringify({ method, url, headers, body })
  const start = at.searchParams.get('offset') ?? /bytes=(\d+)-/.exec(String(headers.range))?.[1]
  const part = start === undefined ? echo : echo.slice(Number(start), Number(start) + 12)
  const status = start === undefined || at.searchParams.has('offset') ? 200 : 206
  if (at.pathname === '/always-206') response.writeHead(206).end(echo.slice(0, 12))
  else if (at.pathname === '/content-range') {
    response.writeHead(200, { 'content-range': 'bytes 0-11/9999' }).end(echo.slice(0, 12))
  } else response.writeHead(status).end(part)
}

const url = (rest: string) => `https://${HOST}:${port}${rest}`
const use = (name: string, request: object) => agent.post(path(name, '/use'), { request })

const SECRET_OF: Record<string, string> = {
  ...{ api: '{{apiKey}}', custom: '{{value}}', oauth: '{{accessToken}}' },
  ...{ login: '{{password}}', totp: '{{totp}}' },
}
const json = { 'content-type': 'application/json' }
const form = { 'content-type': 'application/x-www-form-urlencoded' }

/** Lists the ways in which an agent could write a placeholder for a secret into a text that other people can read. */
const notes = (secret: string): Record<string, object> => ({
  'a note in JSON': { url: url('/notes'), body: { title: 'hello', text: secret } },
  'a text around it': { url: url('/notes'), body: { text: `my key is ${secret}!` } },
  'deep in JSON': { url: url('/notes'), body: { a: [{ b: { c: secret } }] } },
  'a JSON body that is one string': {
    ...{ url: url('/notes'), headers: json },
    body: JSON.stringify(secret),
  },
  'below the allowed member': { url: url('/notes'), body: { password: { text: secret } } },
  'in a list of the allowed member': { url: url('/notes'), body: { password: [secret] } },
  'beside the allowed member': { url: url('/notes'), body: { user: { password: secret } } },
  'a JSON key': { url: url('/notes'), body: { [secret]: 1 } },
  'a JSON key with escapes': {
    ...{ url: url('/notes'), headers: json },
    body: `{"\\u007b\\u007b${secret.slice(2)}":1}`,
  },
  'escaped braces in JSON': {
    ...{ url: url('/notes'), headers: json },
    body: `{"text":"\\u007b\\u007b${secret.slice(2)}"}`,
  },
  'a duplicate key': {
    ...{ url: url('/notes'), headers: json },
    body: `{"password":"${secret}","password":"x"}`,
  },
  'a duplicate key with escapes': {
    ...{ url: url('/notes'), headers: json },
    body: `{"password":"${secret}","\\u0070assword":"x"}`,
  },
  'JSON that ends early': {
    ...{ url: url('/notes'), headers: json },
    body: `{"password":"${secret}"} {"text":1}`,
  },
  'JSON in UTF-16': {
    ...{ url: url('/notes'), headers: { 'content-type': 'application/json; charset=utf-16' } },
    body: `{"password":"${secret}"}`,
  },
  'JSON that is compressed, it says': {
    ...{ url: url('/notes'), headers: { ...json, 'content-encoding': 'deflate' } },
    body: `{"password":"${secret}"}`,
  },
  'JSON as plain text': {
    ...{ url: url('/notes'), headers: { 'content-type': 'text/plain' } },
    body: `{"password":"${secret}"}`,
  },
  'a body without a type': { url: url('/notes'), body: `password=${secret}` },
  'two types': {
    ...{ url: url('/notes'), headers: { 'content-type': 'application/json, text/plain' } },
    body: `{"password":"${secret}"}`,
  },
  'a multipart body': {
    url: url('/notes'),
    headers: { 'content-type': 'multipart/form-data; boundary=b' },
    body: `--b\r\nContent-Disposition: form-data; name="password"\r\n\r\n${secret}\r\n--b--`,
  },
  XML: { url: url('/notes'), headers: { 'content-type': 'text/xml' }, body: `<a>${secret}</a>` },
  'a form field': { url: url('/notes'), headers: form, body: `text=${secret}` },
  'a form field in odd case': {
    ...{
      url: url('/notes'),
      headers: { 'Content-TYPE': 'Application/X-WWW-Form-URLencoded; Charset=UTF-8' },
    },
    body: `text=${secret}`,
  },
  'the name of a form field': { url: url('/notes'), headers: form, body: `${secret}=1` },
  'a second field after a semicolon': {
    ...{ url: url('/notes'), headers: form },
    body: `password=x;text=${secret}`,
  },
  'a form field with a plus in its name': {
    ...{ url: url('/notes'), headers: form },
    body: `pass+word=${secret}`,
  },
  'a query parameter': { url: url(`/notes?text=${secret}`) },
  'the query without a name': { url: url(`/notes?${secret}`) },
  'the path': { url: url(`/notes/${secret}`) },
  'another header': { url: url('/notes'), headers: { 'X-Title': secret } },
  'a cookie': { url: url('/notes'), headers: { cookie: `title=${secret}` } },
})

for (const [name, secret] of Object.entries(SECRET_OF)) {
  test(`a placeholder for the secret of ${name} in a publicly readable text is not filled in, and the error names the request parts that may hold the secret`, async () => {
    for (const [how, request] of Object.entries(notes(secret))) {
      const { status, body } = await use(name, request)
      expect([how, received, published.join().includes(SECRET)]).toEqual([how, [], false])
      expect([how, [400, 403].includes(status)]).toEqual([how, true])
      if (status === 403) expect(body.message).toContain('placement')
    }
  })
}

test('if a request contains encoded braces, the service sends them unchanged, because they are no placeholder', async () => {
  const brace = '%7B%7BapiKey%7D%7D'
  expect((await use('api', { url: url(`/notes/${brace}?a=${brace}`) })).status).toBe(200)
  const body = { url: url('/notes'), headers: form, body: `password=${brace}` }
  expect((await use('api', body)).status).toBe(200)
  expect(published.join()).toContain(brace)
  expect(JSON.stringify(received)).not.toContain(SECRET)
})

test('a placeholder for a secret is filled in only in the allowed request parts, but a placeholder for metadata is filled in anywhere', async () => {
  const auth = { Authorization: 'Bearer {{ apiKey }}' }
  expect((await use('api', { url: url('/'), headers: auth })).body.state).toBe('answered')
  expect(received[0]!.headers.authorization).toBe(`Bearer ${SECRET}`)
  const basic = { authorization: 'Basic {{basicAuth}}' }
  await use('login', { url: url('/users/{{username}}'), headers: basic })
  const login = { login: '{{username}}', password: '{{password}}', big: 1 }
  await use('login', { url: url('/'), body: login })
  await use('login', {
    ...{ url: url('/'), headers: { 'content-type': 'application/JSON; charset=UTF-8' } },
    body: '{"big":12345678901234567890, "\\u0070assword" : "\\u007b{password}}" }',
  })
  await use('login', { url: url('/'), headers: form, body: 'u={{username}}&password={{password}}' })
  const bodies = received.map(({ body }) => body)
  expect(received[1]!.url).toBe('/users/ada%40x.test')
  expect(received[1]!.headers.authorization).toBe(
    `Basic ${Buffer.from(`ada@x.test:${SECRET}`).toString('base64')}`,
  )
  expect(bodies.slice(2)).toEqual([
    JSON.stringify({ login: 'ada@x.test', password: SECRET, big: 1 }),
    `{"big":12345678901234567890, "\\u0070assword" : "${SECRET}" }`,
    `u=ada%40x.test&password=${SECRET}`,
  ])
  // The service must not fill the password into the field of the user name, because the host shows this field.
  const shown = await use('login', { url: url('/notes'), body: { username: '{{password}}' } })
  expect([shown.status, published]).toEqual([403, []])
})

/** Returns the text that the agent gets back after a request with a secret. */
const read = async (name: string, request: object) => {
  const { body } = await use(name, request)
  return body.response?.body ?? ''
}
const auth = { authorization: 'Bearer {{apiKey}}' }

test('a request with a secret is refused if it has a Range header, and gets no body if the server sends a partial response', async () => {
  let learned = ''
  for (let at = 0; at < 400; at += 100) {
    const headers = { ...auth, Range: `bytes=${at}-${at + 11}` }
    learned += await read('api', { url: url('/echo'), headers })
  }
  expect([learned, received]).toEqual(['', []])
  for (const header of [
    ...['Range', 'If-Range', 'If-Match', 'If-None-Match', 'If-Modified-Since'],
    ...['If-Unmodified-Since', 'Request-Range', 'A-IM', 'Want-Digest', 'Want-Repr-Digest'],
    ...['Want-Content-Digest', 'Accept-Charset', 'X-HTTP-Method-Override', 'X-Original-URL'],
  ]) {
    const { status, body } = await use('api', {
      url: url('/'),
      headers: { ...auth, [header]: 'x' },
    })
    const message = `request.headers must not hold ${header.toLowerCase()}`
    expect([status, body.message]).toEqual([400, message])
  }
  for (const rest of ['/always-206', '/content-range']) {
    const { body } = await use('api', { url: url(rest), headers: auth })
    expect(body.response).toMatchObject({ body: null, bodyOmitted: 'partial' })
  }
})

test('if a request with a secret has a header by which some servers replace the host or the path, it is refused', async () => {
  for (const header of [
    ...['Forwarded', 'X-Forwarded-Host', 'X-Forwarded-Server', 'X-Host', 'X-HTTP-Host-Override'],
    ...['X-Original-Host', 'X-Forwarded-Prefix', 'X-Forwarded-Path', 'X-Forwarded-URI'],
    ...['X-Original-URI', 'X_Forwarded_Host'],
  ]) {
    const headers = { ...auth, [header]: 'other.example' }
    const { status, body } = await use('api', { url: url('/'), headers })
    const message = `request.headers must not hold ${header.toLowerCase()}`
    expect([header, status, body.message, received]).toEqual([header, 400, message, []])
  }
})

test('if a credential has allowedPaths and allowedMethods, an agent cannot read its secret piece by piece from a server’s echo', async () => {
  // SECURITY.md describes what an agent can still learn if a credential has no allowedPaths and allowedMethods.
  expect(await read('api', { url: url('/echo?offset=0'), headers: auth })).toHaveLength(12)
  const bounds = { allowedPaths: ['/v1/charges'], allowedMethods: ['POST'] }
  expect((await agent.patch(path('api'), bounds)).status).toBe(200)
  received = []
  const outside = [
    ...['/echo?offset=0', '/', '/v1', '/v1/chargesx', '/v1/charges/../../echo', '/V1/charges'],
    ...['/v1/charges/%2e%2e/%2e%2e/echo', '/v1/charges/.%2E/x', '/v1/charges%2f..%2f..%2fecho'],
    ...['/v1/charges/..%2f..%2fecho', '/v1/charges/..%5c..%5cecho', '/v1/charges/%252e%252e/echo'],
    ...['/v1/charges/\\..\\..\\echo', '//v1/charges', '/v1//charges', '/v1/charges//x', '/./echo'],
    ...['/v1/charges/..;/..;/echo', '/v1/charges/..;a=1/echo', '/v1/charges/%c0%ae%c0%ae/echo'],
    ...['/v1/charges/%EF%BC%8E%EF%BC%8E/echo', '/v1/charges/..%00/echo', '/v1/charges/%zz'],
    ...['/v1/charges/.%09./echo', '/%76%31/charges', '/x/v1/charges', '/v1/charges;x/../../echo'],
  ]
  for (const rest of outside) {
    const { status, body } = await use('api', { url: url(rest), method: 'POST', headers: auth })
    expect([rest, status, received]).toEqual([rest, 403, []])
    expect(body.message).toContain('allowedPaths')
  }
  const wrong = await use('api', { url: url('/v1/charges'), headers: auth })
  expect([wrong.status, wrong.body.message]).toEqual([
    403,
    'Credential "api" must not be used with GET: see its allowedMethods',
  ])
  for (const rest of ['/v1/charges', '/v1/charges/', '/v1/charges/a%2Fb?x=../y']) {
    const { status } = await use('api', { url: url(rest), method: 'POST', headers: auth })
    expect([rest, status]).toEqual([rest, 200])
  }
})

test('an owner may allow a secret in a query parameter, in the path, in a nested JSON field or anywhere in the body', async () => {
  const put = (placement: string[]) =>
    agent.put(path('own'), {
      ...{ type: 'API_KEY', data: { key: SECRET, secret: 'another secret' }, placement },
      allowedHosts: [`${HOST}:${port}`],
    })
  const cases: [string, object, object[]][] = [
    [
      'query:api key',
      { url: url('/?api+key={{key}}&x=1') },
      [{ url: url('/?x={{key}}') }, { url: url('/?api+key=a;x={{key}}') }],
    ],
    [
      'path:/bot',
      { url: url('/bot{{key}}/send') },
      [{ url: url('/notes/{{key}}') }, { url: url('/x/../bot{{key}}') }],
    ],
    [
      'json:/auth/keys/0',
      { url: url('/'), body: { auth: { keys: ['{{key}}', 'x'] } } },
      [
        { url: url('/'), body: { auth: { keys: ['x', '{{key}}'] } } },
        { url: url('/'), body: { 'auth/keys': ['{{key}}'] } },
      ],
    ],
    [
      'key@body',
      { url: url('/'), headers: { 'content-type': 'text/xml' }, body: '<k>{{key}}</k>' },
      [{ url: url('/'), body: '{{secret}}' }, { url: url('/?k={{key}}') }],
    ],
    [
      'header:x-api-key',
      { url: url('/'), headers: { 'X-API-Key': '{{apiKey}}' } },
      [{ url: url('/'), headers: { authorization: 'Bearer {{apiKey}}' } }],
    ],
  ]
  for (const [placement, right, wrong] of cases) {
    const stored = await put([placement.replace(' ', '%20')])
    expect([placement, stored.status]).toEqual([placement, 200])
    received = []
    const used = await use('own', right)
    expect([placement, used.status, JSON.stringify(received).includes(SECRET)]).toEqual([
      ...[placement, 200],
      true,
    ])
    for (const request of wrong) {
      const refused = await use('own', request)
      expect([placement, refused.status, refused.body.message]).toEqual([
        ...[placement, 403],
        expect.stringContaining('see its placement'),
      ])
    }
  }
})
