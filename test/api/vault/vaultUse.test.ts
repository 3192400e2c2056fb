/** Tests requests that use a vault secret and that a worker sends to a real HTTPS server. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { checkUseRequest } from '../../../shared/vault/useRequest.ts'
import { callMcp, toolCall } from '../../support/oauth.ts'
import { answering, closeServers } from '../../support/process/localServer.ts'
import { newCertificate, serveTls } from '../../support/process/tlsServer.ts'
import {
  type Agent,
  type Answer,
  startTestService,
  type TestService,
} from '../../support/service.ts'
import { vaultPath as path } from '../../support/vault/vault.ts'
import { waitFor } from '../../support/waitFor.ts'
import '../../support/long.ts'

const SECRET = 'correct "horse" ü/+'
const DATA = { username: 'ada@x.test', password: SECRET, totp: 'JBSWY3DPEHPK3PXP' }

/** Lists each part of a request (such as a header or the body) in which these tests use the secret. */
const PLACEMENT = [
  ...['body', 'header:x-key', 'header:x-a', 'query:otp', 'query:q'],
  ...['path:/users/', 'path:/a/'],
]

type Got = { method: string; url: string; headers: Record<string, unknown>; body: string }

let service: TestService
let agent: Agent
let port: number
let got: Got[] = []
let answer = (_request: IncomingMessage, response: ServerResponse, _body: string): void => {
  response.end('ok')
}

beforeAll(async () => {
  const certificate = newCertificate('bank.example', 'other.example')
  port = await serveTls(certificate, (request, response) => {
    let body = ''
    request.on('data', (chunk) => {
      body += chunk
    })
    request.on('end', () => {
      const { method = '', url = '', headers } = request
      got.push({ method, url, headers, body })
      answer(request, response, body)
    })
  })
  service = await startTestService({
    ...{ smtp: false, pools: ['vault'], env: { ALLOW_PRIVATE_NETWORKS: 'true' } },
    ...{ ca: certificate.ca, resolve: answering('127.0.0.1') },
  })
  agent = await service.newAgent()
})
afterAll(async () => {
  await service[Symbol.asyncDispose]()
  closeServers()
})

const host = () => `bank.example:${port}`
const url = (rest = '/') => `https://${host()}${rest}`
async function store(name: string, more: object = {}, owner: Agent = agent): Promise<void> {
  const credential = {
    ...{ type: 'LOGIN', data: DATA, metadata: { uri: url('/login') }, placement: PLACEMENT },
    ...more,
  }
  expect((await owner.put(path(name), credential)).status).toBe(200)
}
async function use(name: string, request: object, headers = {}): Promise<Answer> {
  got = []
  return agent.post(path(name, '/use'), { request }, headers)
}
const outcome = ({ status, body }: Answer) => [status, body.message]
const code = async (name: string) => (await agent.get(path(name, '/totp'))).body.code

test('a request fills in secrets at placeholders in path, query, headers and body, and the service masks a secret in the response', async () => {
  await store('bank')
  answer = (request, response, body) => {
    response.writeHead(201, `Hello ${encodeURIComponent(SECRET)}`, {
      'X-Echo': String(request.headers['x-key']),
      'Set-Cookie': ['a=1', `b=${Buffer.from(SECRET).toString('base64')}`],
    })
    response.end(`{"you sent":${body},"url":${JSON.stringify(request.url)}}`)
  }
  const before = await code('bank')
  const { status, body } = await use('bank', {
    method: 'PUT',
    url: url('/users/{{username}}?otp={{totp}}'),
    headers: { 'X-Key': 'Basic {{basicAuth}}' },
    body: { password: '{{password}}', note: 'plain' },
  })
  const [sent] = got
  const codes = [before, await code('bank')]
  expect(status).toBe(200)
  expect(sent).toMatchObject({
    method: 'PUT',
    body: JSON.stringify({ password: SECRET, note: 'plain' }),
  })
  expect(sent!.headers['x-key']).toBe(
    `Basic ${Buffer.from(`ada@x.test:${SECRET}`).toString('base64')}`,
  )
  expect(codes.map((one) => `/users/ada%40x.test?otp=${one}`)).toContain(sent!.url)
  expect(body).toEqual({
    useId: expect.stringMatching(/^use_[0-9a-f]{24}$/),
    name: 'bank',
    state: 'answered',
    response: {
      status: 201,
      statusText: 'Hello [masked]',
      headers: expect.objectContaining({ 'x-echo': 'Basic [masked]' }),
      body: '{"you sent":{"password":"[masked]","note":"plain"},"url":"/users/[masked]?otp=[masked]"}',
      bodyOmitted: null,
    },
    error: null,
    createdAt: expect.any(String),
    expiresAt: expect.any(String),
  })
  expect(body.response.headers['set-cookie']).toMatch(/^a=1\nb=\[masked\]=*$/)
  const kept = Date.parse(body.expiresAt) - Date.parse(body.createdAt)
  expect(kept).toBeGreaterThan(599_000)
  const again = await agent.get(path('bank', `/uses/${body.useId}`))
  expect([again.status, again.body]).toEqual([200, body])
})

test('the use of a credential that does not exist gets status 404, and nothing is sent', async () => {
  const request = { url: 'https://a.example/' }
  const answer = await agent.post(path('unknown', '/use'), { request })
  expect(answer).toMatchObject({ status: 404, body: { error: 'not_found' } })
})

test('each request with a secret adds an event, and an audit log entry with host, method, path and status', async () => {
  const owner = await service.newAgent()
  await store('n', {}, owner)
  answer = (_request, response) => response.writeHead(418).end()
  const { body } = await owner.post(path('n', '/use'), {
    request: { url: url('/a/{{password}}?q={{totp}}&r=own') },
  })
  expect(body.response.status).toBe(418)
  const [entry] = (await owner.get('/v0/logs?action=vault.use')).body.logs
  expect(entry).toMatchObject({
    subject: 'n',
    outcome: 'ok',
    description: `GET ${host()}/a/{{password}} 418`,
  })
  const { rows } = await service.database.pool.query(
    'select type, data from events where project_id = $1',
    [owner.project.id],
  )
  // If the URL of a request has no path, the worker sends the request to the path /.
  await owner.post(path('n', '/use'), { request: { url: `https://${host()}?q={{totp}}` } })
  const [root] = (await owner.get('/v0/logs?action=vault.use&limit=1')).body.logs
  expect(root.description).toBe(`GET ${host()}/ 418`)
  expect(rows).toEqual([
    {
      type: 'vault.used',
      data: {
        ...{ useId: body.useId, name: 'n', state: 'answered', method: 'GET', host: host() },
        ...{ path: '/a/{{password}}', statusCode: 418 },
      },
    },
  ])
})

test('if private networks are allowed, a request with a secret may use plain http only to the same machine', async () => {
  const local = createServer((request, response) => {
    response.end(`${request.url} ${request.headers['x-key']}`)
  }).listen(0, '127.0.0.1')
  await once(local, 'listening')
  const { port: localPort } = local.address() as AddressInfo
  const allowedHosts = [`127.0.0.1:${localPort}`, `localhost:${localPort}`, host(), '10.0.0.1']
  await store('trial', { type: 'API_KEY', data: { key: 'sk_trial_1' }, allowedHosts })
  for (const name of ['127.0.0.1', 'localhost']) {
    const { status, body } = await use('trial', {
      url: `http://${name}:${localPort}/a`,
      headers: { 'X-Key': '{{key}}' },
    })
    expect([status, body.response.body]).toEqual([200, '/a [masked]'])
  }
  for (const wrong of [`http://${host()}/`, 'http://10.0.0.1/', 'http://127.0.0.1.evil.test/']) {
    const refused = await use('trial', { url: wrong })
    expect([refused.status, refused.body.message]).toEqual([
      400,
      expect.stringContaining('must be an https URL'),
    ])
  }
  local.close()
})

test('without ALLOW_PRIVATE_NETWORKS, a request with a secret over plain http is refused even for the same machine', () => {
  const request = { method: 'GET', url: 'http://127.0.0.1/', headers: {}, body: null } as const
  expect(() => checkUseRequest(request, { allowLoopback: false })).toThrow('must be an https URL')
})

test('a withheld credential (hidden from the agent) can be used, but not at another host, with another URL scheme or by an API key without the scope', async () => {
  await store('held', { reveal: 'owner' })
  answer = (_request, response) => response.end(SECRET)
  expect((await use('held', { url: url() })).body.response.body).toBe('[masked]')
  for (const wrong of [
    `https://other.example:${port}/`,
    'https://bank.example/',
    `https://sub.bank.example:${port}/`,
    `https://bank.example.:${port}/`,
  ]) {
    const refused = await use('held', { url: wrong })
    expect([refused.status, refused.body.error]).toEqual([403, 'forbidden'])
    expect(refused.body.message).toContain('must not be used at')
  }
  for (const wrong of [
    `http://${host()}/`,
    `https://{{username}}/`,
    `https://u@${host()}/`,
    `https://${host()}\\@evil.test/`,
    `https://${host()}/#x`,
    `https:${host()}/`,
    `https://${host()}/a b`,
  ]) {
    const refused = await use('held', { url: wrong })
    expect([refused.status, got]).toEqual([400, []])
  }
  const reader = await service.newAgent({ scopes: ['vault:read', 'vault:write'] })
  await store('own', {}, reader)
  for (const call of [
    reader.post(path('own', '/use'), { request: { url: url() } }),
    reader.post(path('own', '/sign'), { algorithm: 'hmac-sha256', text: 'x' }),
    reader.get(path('own', `/uses/use_${'0'.repeat(24)}`)),
  ]) {
    expect(outcome(await call)).toEqual([403, 'Missing required scope: vault:use'])
  }
})

test('a refused request with a secret, and a refused signature, do not change the time lastUsedAt of the credential', async () => {
  await store('unused', { type: 'API_KEY', data: { key: 'k'.repeat(32) } })
  const lastUsedAt = async () =>
    (await agent.get('/v0/vault?q=unused')).body.credentials[0].lastUsedAt
  const sign = (keyEncoding: string) =>
    agent.post(path('unused', '/sign'), { algorithm: 'hmac-sha256', text: 'x', keyEncoding })
  expect((await use('unused', { url: 'https://other.example/' })).status).toBe(403)
  expect((await use('unused', { url: url(), body: '{{nothing}}' })).status).toBe(400)
  expect((await sign('hex')).status).toBe(400)
  expect(await lastUsedAt()).toBeNull()
  expect((await sign('utf8')).status).toBe(200)
  const signedAt = await lastUsedAt()
  expect(Date.parse(signedAt)).toBePositive()
  answer = (_request, response) => response.end('ok')
  await Bun.sleep(5)
  expect((await use('unused', { url: url() })).status).toBe(200)
  expect(Date.parse(await lastUsedAt())).toBeGreaterThan(Date.parse(signedAt))
})

test('if a secret has characters that its part of the request cannot contain, the request is refused and its Idempotency-Key can be used again', async () => {
  await store('lines', {
    type: 'CUSTOM',
    data: { key: 'a\r\nX-Evil: 1', wide: 'ключ-ключ', cvc: '12' },
  })
  const cases: [object, string][] = [
    [
      { headers: { 'x-a': '{{key}}' } },
      '{{key}} does not fit into a header: its value has control or non-ASCII characters',
    ],
    [
      { headers: { 'x-a': '{{wide}}' } },
      '{{wide}} does not fit into a header: its value has control or non-ASCII characters',
    ],
    [{ body: '{{cvc}}' }, '{{cvc}} must stand for 3 to 8192 characters'],
    [{ body: '{{key}}'.repeat(101) }, 'request must hold at most 100 placeholders'],
    [{ body: '{{none}}' }, '{{none}} has no value in this credential'],
    [{ body: '{{toString}}' }, '{{toString}} has no value in this credential'],
    [{ body: '{{totp}}' }, '{{totp}} has no value: the credential has no TOTP secret'],
    [
      { headers: { 'x-{{key}}': 'a' } },
      'request.headers must have names of 1 to 128 letters, digits and hyphens',
    ],
    [{ headers: { Host: 'evil.test' } }, 'request.headers must not hold host'],
    [
      { headers: { 'X-A': 'a\nb' } },
      'request.headers.x-a must be at most 8192 visible ASCII characters and blanks',
    ],
    [{ method: 'GET', body: 'x' }, 'request.body must be absent with GET'],
    ...[2 ** 53, -(2 ** 53), 1e300].map((id): [object, string] => [
      { body: { of: [{ id }] } },
      'request.body must hold numbers beyond 2^53 - 1 as text: JSON numbers lose their digits',
    ]),
    [{ body: 'x'.repeat(262_145) }, 'request.body must be at most 262144 bytes'],
  ]
  for (const [more, message] of cases) {
    const refused = await use('lines', { url: url(), ...more }, { 'idempotency-key': 'one' })
    expect([...outcome(refused), got]).toEqual([400, message, []])
  }
  const { body } = await use('lines', { url: url(), body: '{{key}}' }, { 'idempotency-key': 'one' })
  expect([body.state, got[0]!.body]).toEqual(['answered', 'a\r\nX-Evil: 1'])
  expect(
    (await agent.get('/v0/logs?action=vault.use&outcome=refused&subject=lines')).body.logs,
  ).toHaveLength(7)
})

test('three requests with one secret and one Idempotency-Key reach the server once, and a different request with this key gets status 409', async () => {
  await store('once')
  answer = (_request, response) => response.end('done')
  const request = { url: url('/pay'), body: 'x={{password}}' }
  const key = { 'idempotency-key': 'pay-1' }
  got = []
  const answers = await Promise.all(
    [1, 2, 3].map(() => agent.post(path('once', '/use'), { request }, key)),
  )
  expect(got).toHaveLength(1)
  expect(new Set(answers.map(({ body }) => body.useId)).size).toBe(1)
  expect(answers.map(({ body }) => body.response?.body)).toEqual(['done', 'done', 'done'])
  const other = await use('once', { ...request, body: 'y' }, key)
  expect(outcome(other)).toEqual([409, 'Idempotency-Key was used for another request'])
})

test('a request with a secret to a slow server gets status 202, and its response can be read until it expires', async () => {
  await store('slow')
  const held = Promise.withResolvers<void>()
  answer = (_request, response) => void held.promise.then(() => response.end('late'))
  const first = await agent.post(path('slow', '/use?timeout=0'), { request: { url: url() } })
  expect([first.status, first.body.state, first.body.response]).toEqual([202, 'pending', null])
  const later = agent.get(path('slow', `/uses/${first.body.useId}?timeout=30`))
  held.resolve()
  expect((await later).body).toMatchObject({ state: 'answered', response: { body: 'late' } })
  expect((await agent.get(path('other', `/uses/${first.body.useId}`))).status).toBe(404)
  const stranger = await service.newAgent()
  expect((await stranger.get(path('slow', `/uses/${first.body.useId}`))).status).toBe(404)
  const { pool } = service.database
  await pool.query(
    `update vault_uses set expires_at = clock_timestamp() - interval '1 second' where id = $1`,
    [first.body.useId],
  )
  expect((await agent.get(path('slow', `/uses/${first.body.useId}`))).status).toBe(404)
})

test('a call that waits for the result of a request with a secret gets no response after the key of its project was replaced', async () => {
  const owner = await service.newAgent()
  await store('waiting', {}, owner)
  const held = Promise.withResolvers<void>()
  answer = (_request, response) => void held.promise.then(() => response.end('late'))
  const request = { url: url() }
  const { body } = await owner.post(path('waiting', '/use?timeout=0'), { request })
  const read = owner.get(path('waiting', `/uses/${body.useId}?timeout=30`))
  const args = { name: 'waiting', useId: body.useId }
  const call = callMcp(service.url, owner.key, toolCall('vault.get_use', args))
  await waitFor('both reads to wait', async () => {
    const metrics = await (await fetch(`${service.url}/metrics`)).text()
    return /^purser_result_readers 2$/m.test(metrics)
  })
  // The service checks the API key again only if a response takes over a second, so the test waits longer than that.
  const waitingMs = performance.now()
  await waitFor('a late read', () => performance.now() - waitingMs > 1_500)
  await service.platform.post(`/v0/platform/projects/${owner.project.id}/rotate-key`)
  held.resolve()
  expect(await read).toMatchObject({ status: 401, body: { error: 'unauthorized' } })
  const { result } = (await call).body
  expect(result._meta['purser/error']).toMatchObject({ status: 401 })
  expect(JSON.stringify([(await read).body, result])).not.toContain('late')
})

test('no database row, job or log entry contains the used secret in plain text, and the stored request and response are encrypted', async () => {
  await store('quiet')
  answer = (_request, response) => response.end('a readable answer')
  const own = { url: url('/p'), headers: { 'x-own': 'words of the agent' }, body: '{{password}}' }
  const pending = await agent.post(path('quiet', '/use'), { request: own })
  const { pool } = service.database
  const { rows } = await pool.query('select ciphertext from vault_uses where id = $1', [
    pending.body.useId,
  ])
  const dump: string[] = []
  for (const table of ['vault_uses', 'audit_log', 'events', 'graphile_worker._private_jobs']) {
    const all = await pool.query(`select row_to_json(t)::text as row from ${table} t`)
    dump.push(...all.rows.map(({ row }) => row))
  }
  const text = dump.join('\n') + rows[0].ciphertext.toString('latin1')
  for (const word of [SECRET, JSON.stringify(SECRET).slice(1, -1), 'readable answer', 'words of']) {
    expect(text.includes(word)).toBe(false)
  }
})

test('a request with a secret has the result failed if the connection is refused, and unknown if it breaks; a response body above the limit is omitted', async () => {
  await store('none', { allowedHosts: ['bank.example:1', host()] })
  const refused = await use('none', { url: 'https://bank.example:1/' })
  expect(refused.body).toMatchObject({ state: 'failed', response: null })
  answer = (_request, response) => response.destroy()
  expect((await use('none', { url: url() })).body).toMatchObject({
    state: 'unknown',
    error: expect.stringContaining('the server may have acted'),
  })
  answer = (_request, response) => response.end(`${'x'.repeat(1024 * 1024 - 3)}${SECRET}`)
  expect((await use('none', { url: url() })).body.response).toMatchObject({
    ...{ status: 200, body: null, bodyOmitted: 'too-large' },
  })
  answer = (_request, response) =>
    response
      .writeHead(302, { location: `https://other.example/?p=${encodeURIComponent(SECRET)}` })
      .end()
  const redirect = await use('none', { url: url() })
  expect(got).toHaveLength(1)
  expect(redirect.body.response.headers.location).toBe('https://other.example/?p=[masked]')
})

test('a project has at most sixteen requests with secrets in progress, and another project is not delayed', async () => {
  const [greedy, other] = [await service.newAgent(), await service.newAgent()]
  for (const one of [greedy, other]) await store('n', {}, one)
  const held: ServerResponse[] = []
  answer = (request, response) => {
    if (request.url === '/hang') held.push(response)
    else response.end('ok')
  }
  const hang = () => greedy.post(path('n', '/use?timeout=0'), { request: { url: url('/hang') } })
  for (let n = 0; n < 16; n++) expect((await hang()).status).toBe(202)
  const full = await hang()
  expect([full.status, full.headers.get('retry-after')]).toEqual([429, '5'])
  const { body } = await other.post(path('n', '/use'), { request: { url: url('/') } })
  expect(body.response.body).toBe('ok')
  answer = (_request, response) => response.end('ok')
  await waitFor('a held request', () => held.length > 0)
  for (const response of held) response.end('ok')
  await waitFor('room', async () => (await hang()).status === 202)
})
