import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { answerOAuth } from '../../../api/oauth/oauthError.ts'
import {
  callMcp,
  codeFor,
  connect,
  register,
  revoke,
  startOAuthService,
  token,
} from '../../support/oauth.ts'
import type { Agent, TestService } from '../../support/service.ts'

let service: TestService
let agent: Agent
let clientId: string
beforeAll(async () => {
  service = await startOAuthService({ env: { RATE_LIMIT_REQUESTS: '200' } })
  agent = await service.newAgent()
  clientId = (await register(service.url)).body.client_id
})
afterAll(() => service[Symbol.asyncDispose]())

type Fields = Record<string, string>

/** Returns the status, code and text of the error with which an OAuth endpoint responds. */
const errorOf = ({ status, body }: { status: number; body: any }) => [
  status,
  body.error,
  body.error_description,
]
const refused = async (fields: Fields) => errorOf(await token(service.url, fields))
const fault = (text: string) => [400, 'invalid_request', text]
const GRANT_FAULT = [
  400,
  'invalid_grant',
  'the code or the refresh token is unknown, used or over: ask the owner again',
]
const SCOPE_FAULT = [400, 'invalid_scope', 'scope must be part of what the owner gave']

const CODE = {
  grant_type: 'authorization_code',
  code: `locd-${'0'.repeat(64)}`,
  redirect_uri: 'https://app.example/callback',
  code_verifier: 'v'.repeat(43),
}
const REFRESH = { grant_type: 'refresh_token', refresh_token: `lort-${'0'.repeat(64)}` }

test('the error of the OAuth token endpoint names each field that is absent or empty', async () => {
  const forms: [whole: Fields, names: string[]][] = [
    [CODE, ['grant_type', 'client_id', 'code_verifier', 'code']],
    [REFRESH, ['grant_type', 'client_id', 'refresh_token']],
  ]
  for (const [whole, names] of forms) {
    for (const name of names) {
      const { [name]: _, ...without }: Fields = { ...whole, client_id: clientId }
      const expected = fault(`${name} must be set`)
      expect([name, await refused(without)]).toEqual([name, expected])
      expect([name, await refused({ ...without, [name]: '' })]).toEqual([name, expected])
    }
  }
})

test('the token endpoint reads fields of at most 1000 characters', async () => {
  const fits = { ...CODE, client_id: clientId, redirect_uri: 'x'.repeat(1_000) }
  expect(await refused(fits)).toEqual(GRANT_FAULT)
  expect(await refused({ ...fits, redirect_uri: 'x'.repeat(1_001) })).toEqual(
    fault('redirect_uri must have at most 1000 characters'),
  )
  const unknown = [401, 'invalid_client', 'client_id is unknown: register again']
  expect(await refused({ ...CODE, client_id: 'x'.repeat(1_000) })).toEqual(unknown)
  expect(await refused({ ...CODE, client_id: 'x'.repeat(1_001) })).toEqual(
    fault('client_id must have at most 1000 characters'),
  )
})

test('requests with OAuth tokens count against the rate limit of their project', async () => {
  const agent = await service.newAgent()
  const { access } = await connect(service, agent)
  // The test fills the counter of the next minute, so that this minute cannot end between two requests.
  await service.database.pool.query(
    `insert into rate_windows (subject, window_start, used)
     values ($1, date_trunc('minute', clock_timestamp()) + interval '1 minute', 199)
     on conflict (subject) do update set window_start = excluded.window_start, used = excluded.used`,
    [agent.project.id],
  )
  expect((await callMcp(service.url, access)).status).toBe(200)
  expect((await callMcp(service.url, access)).status).toBe(429)
})

test('an unexpected error of the token endpoint is not shown as an OAuth error', async () => {
  const broken = answerOAuth(() => Promise.reject(new Error('a fault of the service')))
  expect(await broken.catch(String)).toBe('Error: a fault of the service')
})

test('an app with an unknown client id is told to register again, unless its client id is the URL of a metadata document', async () => {
  const unknown = [401, 'invalid_client', 'client_id is unknown: register again']
  for (const client_id of [
    `oac_${'0'.repeat(24)}`,
    '__proto__',
    'http://app.example/client.json',
    ' https://app.example/client.json',
  ]) {
    expect([client_id, await refused({ ...CODE, client_id })]).toEqual([client_id, unknown])
    expect([client_id, await refused({ ...REFRESH, client_id })]).toEqual([client_id, unknown])
  }
  const document = { client_id: 'https://app.example/client.json' }
  expect(await refused({ ...CODE, ...document })).toEqual(GRANT_FAULT)
  expect(await refused({ ...REFRESH, ...document })).toEqual(GRANT_FAULT)
})

test('a token or revocation request is refused if a parameter other than resource has two values that are not empty', async () => {
  const { exchange } = await codeFor(service, agent)
  const post = async (path: string, pairs: [string, string][]) => {
    const response = await fetch(service.url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams(pairs).toString(),
    })
    return { status: response.status, body: await response.json() }
  }
  const pairs = Object.entries(exchange)
  const expected = fault('each parameter must be set once')
  for (const [name, value] of pairs) {
    if (name === 'resource') continue
    const twice: [string, string][] = [[name, 'first'], ...pairs]
    expect([name, errorOf(await post('/oauth/token', twice))]).toEqual([name, expected])
    const same: [string, string][] = [...pairs, [name, value]]
    expect([name, errorOf(await post('/oauth/token', same))]).toEqual([name, expected])
  }
  const revocation: [string, string][] = [
    ['token', 'first'],
    ['token', 'second'],
    ['client_id', clientId],
  ]
  expect(errorOf(await post('/oauth/revoke', revocation))).toEqual(expected)
  const hidden: [string, string][] = [['client_id', '\0'], ...pairs, ['client_id', '']]
  expect((await post('/oauth/token', hidden)).status).toBe(400)
  const resource = `${service.url}/mcp`
  const whole: [string, string][] = [
    ...pairs.filter(([name]) => name !== 'resource'),
    ...pairs.map(([name]): [string, string] => [name, '']),
    ['resource', resource],
    ['resource', resource],
  ]
  expect((await post('/oauth/token', whole)).status).toBe(200)
})

test('the token endpoint refuses every tested grant type other than authorization_code and refresh_token', async () => {
  for (const grant_type of ['password', 'client_credentials', 'Refresh_Token', 'constructor']) {
    expect([grant_type, await refused({ ...CODE, client_id: clientId, grant_type })]).toEqual([
      grant_type,
      [400, 'unsupported_grant_type', 'grant_type must be authorization_code or refresh_token'],
    ])
  }
})

test('a token request may omit the parameter resource, or set it to the MCP endpoint', async () => {
  const mcp = `${service.url}/mcp`
  const { exchange } = await codeFor(service, agent)
  const wrong = [400, 'invalid_target', `resource must be ${mcp}`]
  for (const resource of [' ', service.url, `${mcp}x`]) {
    expect([resource, await refused({ ...exchange, resource })]).toEqual([resource, wrong])
  }
  const { resource: _, ...without } = exchange
  // A parameter without a value counts as absent (RFC 6749 §3.2).
  const empty = await refused({ ...exchange, resource: '', code_verifier: 'x'.repeat(43) })
  expect(empty[1]).toBe('invalid_grant')
  const { status, body } = await token(service.url, without)
  expect(status).toBe(200)
  const renewal = {
    ...REFRESH,
    client_id: exchange.client_id,
    refresh_token: body.refresh_token,
  }
  expect(await refused({ ...renewal, resource: service.url })).toEqual(wrong)
  expect((await token(service.url, { ...renewal, resource: `${mcp}/` })).status).toBe(200)
})

test('an app gets an access token for one hour, a refresh token, and the scopes that the owner granted', async () => {
  const { body } = await connect(service, agent, { scopes: ['mail:read', 'mail:send'] })
  expect(body).toEqual({
    access_token: expect.stringMatching(/^loat-[0-9a-f]{64}$/),
    token_type: 'Bearer',
    expires_in: 3600,
    refresh_token: expect.stringMatching(/^lort-[0-9a-f]{64}$/),
    scope: 'mail:read mail:send',
  })
})

describe('with its refresh token, an app gets a new access token', () => {
  let renewal: Fields
  beforeAll(async () => {
    const { refresh, clientId: client_id } = await connect(service, agent)
    renewal = { ...REFRESH, client_id, refresh_token: refresh }
  })
  const scopeOf = async (scope: string) =>
    (await token(service.url, { ...renewal, scope })).body.scope

  test('a token refresh that names no scope keeps all scopes', async () => {
    for (const scope of ['', ' ', 'offline_access', ' offline_access ']) {
      expect([scope, await scopeOf(scope)]).toEqual([scope, 'mail:read mail:send'])
    }
  })

  test('a token response states how long the access token lasts, even if the owner’s consent ends in less than the usual hour', async () => {
    const { refresh, clientId: client_id } = await connect(service, agent)
    await service.database.pool.query(
      `update oauth_grants set expires_at = clock_timestamp() + interval '5 minutes' where client_id = $1`,
      [client_id],
    )
    const { body } = await token(service.url, { ...REFRESH, client_id, refresh_token: refresh })
    expect(body.expires_in).toBeWithin(280, 301)
  })

  test('a token refresh keeps only the scopes that the request names, and any number of spaces may separate the scopes', async () => {
    expect(await scopeOf('  mail:send   offline_access ')).toBe('mail:send')
    expect(await scopeOf('mail:read mail:read')).toBe('mail:read')
  })

  test('a token refresh is refused if it names a scope that the owner did not grant, or a scope text of more than 1000 characters', async () => {
    expect(await refused({ ...renewal, scope: 'mail:read mail:manage' })).toEqual(SCOPE_FAULT)
    expect(await scopeOf('mail:read'.padEnd(1_000))).toBe('mail:read')
    expect(await refused({ ...renewal, scope: 'mail:read'.padEnd(1_001) })).toEqual([
      400,
      'invalid_scope',
      'scope must have at most 1000 characters',
    ])
  })

  test('an app that refreshes too often gets 429, and its refresh token stays valid', async () => {
    const { refresh, clientId: client_id } = await connect(service, agent)
    const used = (time: string) =>
      service.database.pool.query(
        `update oauth_grants set refreshed_to = ${time} where client_id = $1`,
        [client_id],
      )
    await used(`clock_timestamp() + interval '30 seconds'`)
    const fields = { ...REFRESH, client_id, refresh_token: refresh }
    expect(await refused(fields)).toEqual([
      429,
      'temporarily_unavailable',
      'the app refreshes its tokens too often: wait a minute',
    ])
    await used('null')
    expect((await token(service.url, fields)).status).toBe(200)
  })

  test('a token refresh is refused if the request contains an authorization code or an access token as the refresh token', async () => {
    const { access, clientId: client_id, exchange } = await connect(service, agent)
    for (const refresh_token of [access, exchange.code]) {
      expect(await refused({ ...REFRESH, client_id, refresh_token })).toEqual(GRANT_FAULT)
    }
  })
})

describe('an app can revoke its tokens, and a revoked token is refused', () => {
  test('a revocation request is refused if it does not name the token and the app', async () => {
    const { access, clientId: client_id } = await connect(service, agent)
    const answers = [
      await revoke(service.url, { client_id }),
      await revoke(service.url, { token: access }),
      await revoke(service.url, { token: 'x'.repeat(1_001), client_id }),
    ]
    expect(answers.map(errorOf)).toEqual([
      fault('token must be set'),
      fault('client_id must be set'),
      fault('token must have at most 1000 characters'),
    ])
    expect((await callMcp(service.url, access)).status).toBe(200)
  })

  test('the revocation of an access token ends only this token', async () => {
    const { access, refresh, clientId: client_id } = await connect(service, agent)
    const { status, body } = await revoke(service.url, { token: access, client_id })
    expect([status, body]).toEqual([200, {}])
    expect((await callMcp(service.url, access)).status).toBe(401)
    const renewed = await token(service.url, { ...REFRESH, client_id, refresh_token: refresh })
    expect(renewed.status).toBe(200)
  })
})
