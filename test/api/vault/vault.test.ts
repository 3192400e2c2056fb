import { afterAll, beforeAll, expect, test } from 'bun:test'
import { type Agent, startTestService, type TestService } from '../../support/service.ts'
import { vaultPath } from '../../support/vault/vault.ts'

let service: TestService
let agent: Agent
beforeAll(async () => {
  service = await startTestService({ smtp: false, workers: false })
  agent = await service.newAgent()
})
afterAll(() => service[Symbol.asyncDispose]())

const path = vaultPath
const SECONDS = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/
const MILLISECONDS = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

test('a credential can be stored, read, listed, overwritten and deleted', async () => {
  const owner = await service.newAgent()
  const body = {
    type: 'API_KEY',
    data: { key: 'sk_1', extra: { nested: [1, null, 'ü'] } },
    metadata: { service: 'stripe', prefix: 'sk_', port: 1.5 },
    expiresAt: '2099-01-02T03:04:05+01:00',
  }
  const put = await owner.put(path('stripe'), body)
  expect(put.status).toBe(200)
  expect(put.body).toEqual({
    credentialId: expect.stringMatching(/^cred_[0-9a-f]{24}$/),
    type: 'API_KEY',
    name: 'stripe',
    version: 1,
    metadata: body.metadata,
    expiresAt: '2099-01-02T02:04:05.000Z',
    allowedHosts: [],
    allowedMethods: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'],
    allowedPaths: ['/'],
    placement: ['header:authorization'],
    reveal: 'agent',
    createdAt: expect.stringMatching(SECONDS),
  })
  const listed = { ...put.body, lastUsedAt: null, lastRotatedAt: null }
  expect((await owner.get('/v0/vault')).body).toEqual({ credentials: [listed], count: 1 })

  const got = await owner.get(path('stripe'))
  expect(got.status).toBe(200)
  expect(got.body).toEqual({
    ...listed,
    data: body.data,
    hasTOTP: false,
    lastUsedAt: expect.stringMatching(MILLISECONDS),
  })
  const used = (await owner.get('/v0/vault')).body.credentials[0].lastUsedAt
  expect(Math.abs(Date.parse(used) - Date.parse(got.body.lastUsedAt))).toBeLessThan(1_000)

  const same = await owner.put(path('stripe'), { type: 'API_KEY', data: body.data })
  expect(same.body).toMatchObject({
    credentialId: put.body.credentialId,
    createdAt: put.body.createdAt,
    version: 2,
    metadata: {},
    expiresAt: null,
  })
  expect((await owner.get(path('stripe'))).body.lastRotatedAt).toBeNull()
  await owner.put(path('stripe'), { type: 'API_KEY', data: { key: 'sk_2' } })
  expect((await owner.get(path('stripe'))).body).toMatchObject({
    lastRotatedAt: expect.stringMatching(MILLISECONDS),
    data: { key: 'sk_2' },
  })

  const gone = await owner.delete(path('stripe'))
  expect([gone.status, gone.body]).toEqual([204, null])
  for (const call of [owner.get(path('stripe')), owner.delete(path('stripe'))]) {
    const { status, body } = await call
    expect([status, body]).toEqual([
      404,
      { error: 'not_found', message: 'Credential not found', status: 404 },
    ])
  }
  expect((await owner.get('/v0/vault')).body).toEqual({ credentials: [], count: 0 })
})

test('a credential does not count as rotated if only the order of its data fields changes', async () => {
  await agent.put(path('order'), { type: 'CUSTOM', data: { a: 1, b: 2 } })
  await agent.put(path('order'), { type: 'CUSTOM', data: { b: 2, a: 1 } })
  expect((await agent.get(path('order'))).body.lastRotatedAt).toBeNull()
})

test('every credential type stores its own fields and any other fields', async () => {
  const data = { secret: 'GEZDGNBVGY3TQOJQ', anything: { deep: true } }
  for (const type of [
    'LOGIN',
    'API_KEY',
    'OAUTH',
    'TOTP',
    'SSH_KEY',
    'DATABASE',
    'SMTP',
    'AWS',
    'CERTIFICATE',
    'CUSTOM',
    'CARD',
    'SHIPPING_ADDRESS',
  ]) {
    const { status, body } = await agent.put(path(`type ${type}`), { type, data })
    expect([type, status, body.type]).toEqual([type, 200, type])
  }
  // The test compares raw JSON text, because JSON.parse would hide some differences.
  const odd =
    '{"type":"CUSTOM","data":{"__proto__":{"a":1},"constructor":"c","":"empty","2":1,"1":2}}'
  expect((await agent.put(path('odd'), odd as never)).status).toBe(200)
  const answer = await fetch(service.url + path('odd'), {
    headers: { authorization: `Bearer ${agent.key}` },
  })
  expect(await answer.text()).toContain('"__proto__":{"a":1}')
})

test('a PUT of an invalid credential gets status 400 and a message that names the field but quotes no value', async () => {
  const secret = 'hunter0-hunter1'
  const deep = JSON.parse(`${'{"a":'.repeat(40)}1${'}'.repeat(40)}`)
  const cases: [RegExp, unknown][] = [
    [/^type must be one of LOGIN, /, { type: secret, data: { a: 1 } }],
    [/^type must be one of LOGIN, /, { type: 7, data: { a: 1 } }],
    [/^type must be /, { data: { a: 1 } }],
    [/^data must be a JSON object$/, { type: 'CUSTOM' }],
    [/^data must be a JSON object$/, { type: 'CUSTOM', data: secret }],
    [/^data must be a JSON object$/, { type: 'CUSTOM', data: [secret] }],
    [/^data must be a JSON object$/, { type: 'CUSTOM', data: null }],
    [/^data must hold at least one field$/, { type: 'CUSTOM', data: {} }],
    [/^data must be at most 65536 bytes/, { type: 'CUSTOM', data: { a: secret.repeat(5_000) } }],
    [/^data must not nest deeper than 32 levels$/, { type: 'CUSTOM', data: deep }],
    [/^metadata must be a JSON object$/, { type: 'CUSTOM', data: { a: 1 }, metadata: secret }],
    [
      /^metadata must be at most 16384 bytes/,
      { type: 'CUSTOM', data: { a: 1 }, metadata: { a: 'ü'.repeat(8_190) } },
    ],
    [/^metadata must not nest/, { type: 'CUSTOM', data: { a: 1 }, metadata: deep }],
    [/^data.key must be a string$/, { type: 'API_KEY', data: { key: 7 } }],
    [/^data.password must be a string$/, { type: 'LOGIN', data: { password: { secret } } }],
    [/^data.password must be a string$/, { type: 'DATABASE', data: { password: null } }],
    [
      /^metadata.username must be a string$/,
      { type: 'LOGIN', data: { password: secret }, metadata: { username: [secret] } },
    ],
    [
      /^metadata.port must be a number or a string$/,
      { type: 'SMTP', data: { password: secret }, metadata: { port: true } },
    ],
    [
      /^data.backupCodes must be an array of strings$/,
      { type: 'CUSTOM', data: { backupCodes: [1] } },
    ],
    [/^data.totp must be a string$/, { type: 'LOGIN', data: { totp: 1 } }],
    [/^data.totp must be a TOTP secret in Base32/, { type: 'LOGIN', data: { totp: secret } }],
    [/^data.secret must be a TOTP secret/, { type: 'TOTP', data: { secret } }],
    [/^data.secret must hold the TOTP secret$/, { type: 'TOTP', data: { other: secret } }],
    ...['soon', '2026-02-30T00:00:00Z', '2026-01-01T00:00:00', 7, {}, ''].map(
      (expiresAt): [RegExp, unknown] => [
        /^expiresAt must be an ISO 8601 time/,
        { type: 'CUSTOM', data: { a: 1 }, expiresAt },
      ],
    ),
  ]
  for (const [message, body] of cases) {
    const answer = await agent.put(path('wrong'), body)
    expect([answer.status, answer.body.message]).toEqual([400, expect.stringMatching(message)])
    expect(answer.body.message).not.toContain(secret)
  }
  expect((await agent.get(path('wrong'))).status).toBe(404)
})

test('the vault stores the data and metadata of a credential up to their maximum size', async () => {
  const data = { a: 'x'.repeat(64 * 1024 - 8) }
  const metadata = { a: 'x'.repeat(16 * 1024 - 8) }
  expect((await agent.put(path('large'), { type: 'CUSTOM', data, metadata })).status).toBe(200)
  const { body } = await agent.get(path('large'))
  expect(body).toMatchObject({ data, metadata })
})

test('a credential’s name can have letters of any alphabet, slashes, blanks, emoji and up to 128 characters', async () => {
  const names = [
    'a/b/c',
    'x/versions',
    'x/totp',
    'x/totp/backup',
    'versions',
    'totp',
    'with blanks + plus & more?#',
    '100%',
    '%2F',
    'ключ',
    '密码',
    'مفتاح',
    'e\u0301',
    '\u00e9',
    '👩‍👩‍👧‍👦🔑',
    '🔑'.repeat(128),
    'n'.repeat(128),
    '...',
    ' ',
    "';drop table credentials;--",
  ]
  const owner = await service.newAgent()
  for (const name of names) {
    const put = await owner.put(path(name), { type: 'CUSTOM', data: { name } })
    expect([name, put.status, put.body.name]).toEqual([name, 200, name])
  }
  for (const name of names) {
    const got = await owner.get(path(name))
    expect([name, got.status, got.body.data]).toEqual([name, 200, { name }])
    expect((await owner.get(path(name, '/versions'))).body.count).toBe(1)
  }
  expect((await owner.get('/v0/vault')).body.count).toBe(names.length)
  for (const name of names) expect((await owner.delete(path(name))).status).toBe(204)
})

test('every vault operation refuses an invalid credential name', async () => {
  for (const name of [
    'n'.repeat(129),
    '🔑'.repeat(129),
    'a\nb',
    '\u007f',
    '\u0085',
    'x'.repeat(400),
  ]) {
    for (const answer of await Promise.all([
      agent.put(path(name), { type: 'CUSTOM', data: { a: 1 } }),
      agent.get(path(name)),
      agent.delete(path(name)),
      agent.get(path(name, '/totp')),
      agent.post(path(name, '/totp/backup')),
      agent.get(path(name, '/versions')),
      agent.get(path(name, '/versions/1')),
      agent.post(path(name, '/versions/1/restore')),
    ])) {
      expect([answer.status, answer.body.message]).toEqual([
        400,
        'name must be 1 to 128 characters without control characters',
      ])
    }
  }
  const { status, body } = await agent.put('/v0/vault/%ff', { type: 'CUSTOM', data: { a: 1 } })
  expect([status, body.message]).toEqual([400, 'The path must be valid percent-encoded UTF-8'])
  expect((await agent.get('/v0/vault/a%00b')).status).toBe(400)
  // A URL path cannot contain the credential names . and .. , even percent-encoded.
  expect((await agent.get('/v0/vault/%2e%2e')).status).toBe(404)
})

test('the secret of an expired credential cannot be read', async () => {
  const owner = await service.newAgent()
  await owner.put(path('old "one"'), {
    type: 'TOTP',
    data: { secret: 'GEZDGNBVGY3TQOJQ', backupCodes: ['a'] },
    expiresAt: '2020-01-01T00:00:00Z',
  })
  for (const answer of await Promise.all([
    owner.get(path('old "one"')),
    owner.get(path('old "one"', '/totp')),
    owner.post(path('old "one"', '/totp/backup')),
  ])) {
    expect([answer.status, answer.body]).toEqual([
      410,
      {
        error: 'expired',
        message: 'Credential "old "one"" has expired (2020-01-01T00:00:00.000Z)',
        status: 410,
      },
    ])
  }
  const [item] = (await owner.get('/v0/vault')).body.credentials
  expect(item).toMatchObject({ expiresAt: '2020-01-01T00:00:00.000Z', lastUsedAt: null })
  // The owner's PUT sets `expiresAt` to null, so the credential no longer expires.
  await owner.put(path('old "one"'), { type: 'CUSTOM', data: { a: 1 }, expiresAt: null })
  expect((await owner.get(path('old "one"'))).status).toBe(200)
})

test('vault operations require their scopes, and do not find credentials of another project', async () => {
  const reader = await service.newAgent({ scopes: ['vault:read'] })
  const writer = await service.newAgent({ scopes: ['vault:write'] })
  const mailer = await service.newAgent({ scopes: ['mail:read'] })
  const body = { type: 'CUSTOM', data: { a: 1 } }
  const refused = async (answer: Promise<{ status: number; body: any }>) => {
    const { status, body } = await answer
    return status === 403 ? body.message : status
  }
  expect((await writer.put(path('mine'), body)).status).toBe(200)
  for (const other of [writer, mailer]) {
    for (const rest of ['', '/totp', '/versions', '/versions/1']) {
      expect(await refused(other.get(path('mine', rest)))).toBe(
        'Missing required scope: vault:read',
      )
    }
    expect(await refused(other.get('/v0/vault'))).toBe('Missing required scope: vault:read')
  }
  for (const other of [reader, mailer]) {
    for (const call of [
      other.put(path('x'), body),
      other.delete(path('x')),
      other.post(path('x', '/totp/backup')),
      other.post(path('x', '/versions/1/restore')),
    ]) {
      expect(await refused(call)).toBe('Missing required scope: vault:write')
    }
  }
  expect(await refused(service.platform.get('/v0/vault'))).toBe(
    'Missing required scope: vault:read',
  )
  expect((await reader.get(path('mine'))).status).toBe(404)
  expect((await reader.get('/v0/vault')).body.count).toBe(0)
})

test('a vault request without a body may have a JSON Content-Type', async () => {
  await agent.put(path('nobody'), { type: 'CUSTOM', data: { backupCodes: ['a'] } })
  expect((await agent.post(path('nobody', '/totp/backup'))).body).toEqual({
    code: 'a',
    remaining: 0,
  })
  const { status, body } = await agent.put(path('nobody'))
  expect([status, body.message]).toEqual([400, 'The body must be a JSON object'])
})

test('the names . and .. cannot be in the path, so a query parameter names these credentials', async () => {
  const body = (key: string) => ({ type: 'API_KEY', data: { key } })
  for (const name of ['.', '..', '-', '?&=#']) {
    const at = (rest = '') => `/v0/vault/-${rest}?name=${encodeURIComponent(name)}`
    expect((await agent.put(at(), body(name))).body.name).toBe(name)
    expect((await agent.get(at())).body.data).toEqual({ key: name })
    await agent.put(at(), body('new'))
    expect((await agent.get(at('/versions/1'))).body.data).toEqual({ key: name })
    expect((await agent.post(at('/versions/1/restore'))).body.version).toBe(3)
    expect((await agent.get(at('/totp'))).status).toBe(400)
    expect((await agent.delete(at())).status).toBe(204)
    expect((await agent.get(at())).status).toBe(404)
  }
})
