import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { consoleClient, signIn } from '../../support/console/consoleSession.ts'
import {
  allow,
  answered,
  authorizationOf,
  authorize,
  backTo,
  codeFor,
  connect,
  REDIRECT,
  register,
  requestConsent,
  startOAuthService,
  token,
} from '../../support/oauth.ts'
import { withinOneMinute } from '../../support/rateWindow.ts'
import type { Agent, TestService } from '../../support/service.ts'
import '../../support/long.ts'

let service: TestService
let agent: Agent
let clientId: string
beforeAll(async () => {
  service = await startOAuthService()
  agent = await service.newAgent()
  clientId = (
    await register(service.url, { redirect_uris: [REDIRECT, 'http://127.0.0.1:3334/callback'] })
  ).body.client_id
})
afterAll(() => service[Symbol.asyncDispose]())

const ask = (changes: Record<string, string | null>) =>
  authorize(service.url, authorizationOf(service.url, clientId, changes))

describe('the redirect URI of an authorization request must match a registered URI', () => {
  test.each([
    'https://app.example/callback/',
    'https://app.example/callback?x=1',
    'https://app.example/Callback',
    'https://app.example.evil.example/callback',
    'https://evil@app.example/callback',
    'https://app.example:8443/callback',
    'http://app.example/callback',
    'https://app.example/callback#x',
    'https://app.example\\@evil.example/callback',
    'http://localhost:3334/callback',
    'http://127.0.0.1:3334/other',
    'http://127.0.0.1:3334@evil.example/callback',
    'javascript:alert(1)',
  ])(
    'an authorization request with the redirect URI %s gets an error page, and no redirect',
    async (redirect_uri) => {
      const { status, headers, body } = await ask({ redirect_uri })
      expect([status, headers.get('location')]).toEqual([400, null])
      expect(body).toContain('This app cannot be connected')
      expect(headers.get('content-security-policy')).toContain("frame-ancestors 'none'")
    },
  )

  test('a redirect URI of a loopback host may have any port', async () => {
    expect((await ask({ redirect_uri: 'http://127.0.0.1:50123/callback' })).status).toBe(303)
  })

  test.each([
    [[]],
    ['https://app.example/'],
    [['ftp://app.example/']],
    [['http://app.example/']],
    [['javascript:alert(1)']],
    [['https://*.example/']],
    [['https://app.example/#x']],
    [['https://me:secret@app.example/']],
    [['https://me@app.example/']],
    [['https://:secret@app.example/']],
    [['myapp://callback']],
    [Array.from({ length: 11 }, (_, n) => `https://app.example/${n}`)],
    [[`https://app.example/${'x'.repeat(500)}`]],
  ])('an app cannot register with the redirect URIs %j', async (redirect_uris) => {
    const { status, body } = await register(service.url, { redirect_uris })
    expect([status, body.error]).toEqual([400, 'invalid_redirect_uri'])
  })
})

test('every authorization error except a wrong redirect URI goes to the app with the parameter iss, so that no app confuses two servers', async () => {
  const faults: [changes: Record<string, string | null>, error: string][] = [
    [{ response_type: 'token' }, 'unsupported_response_type'],
    [{ code_challenge: null }, 'invalid_request'],
    [{ code_challenge_method: 'plain' }, 'invalid_request'],
    [{ code_challenge_method: null }, 'invalid_request'],
    [{ resource: 'https://other.example/mcp' }, 'invalid_target'],
    [{ resource: `${service.url}/v0` }, 'invalid_target'],
    [{ scope: 'admin root' }, 'invalid_scope'],
    [{ scope: 'platform:manage' }, 'invalid_scope'],
  ]
  for (const [changes, error] of faults) {
    const refused = await ask(changes)
    expect([changes, refused.status]).toEqual([changes, 400])
    const link = backTo(refused)
    expect(link).toStartWith(`${REDIRECT}?`)
    expect(answered(link)).toMatchObject({ error, state: 'a state', iss: service.url })
  }
})

test('an authorization request with a repeated parameter is refused', async () => {
  const asked = authorizationOf(service.url, clientId)
  asked.query.append('resource', 'https://other.example/mcp')
  expect(answered(backTo(await authorize(service.url, asked))).error).toBe('invalid_target')
  const twice = authorizationOf(service.url, clientId)
  twice.query.append('redirect_uri', 'https://evil.example/')
  expect((await authorize(service.url, twice)).status).toBe(400)
})

test('an authorization code is valid only with its own app, its own redirect URI and its own PKCE code verifier', async () => {
  const other = (await register(service.url)).body.client_id
  const { exchange } = await codeFor(service, agent)
  const wrong: [change: Record<string, string>, error: string][] = [
    [{ client_id: other }, 'invalid_grant'],
    [{ redirect_uri: `${REDIRECT}2` }, 'invalid_grant'],
    [{ code_verifier: 'x'.repeat(43) }, 'invalid_grant'],
    [{ code_verifier: '' }, 'invalid_request'],
    [{ code: `${exchange.code}0` }, 'invalid_grant'],
    [{ resource: 'https://other.example/mcp' }, 'invalid_target'],
    [{ grant_type: 'password' }, 'unsupported_grant_type'],
  ]
  for (const [change, error] of wrong) {
    const { status, body } = await token(service.url, { ...exchange, ...change })
    expect([change, status, body.error]).toEqual([change, 400, error])
  }
  expect((await token(service.url, exchange)).status).toBe(200)
})

test('a client of OAuth 2.1 gets tokens even if its token request does not repeat the redirect URI', async () => {
  for (const absent of [undefined, '']) {
    const { exchange } = await codeFor(service, agent)
    const { redirect_uri: _, ...form } = exchange
    const repeated = absent === undefined ? form : { ...form, redirect_uri: absent }
    const forged = await token(service.url, { ...repeated, code_verifier: 'x'.repeat(43) })
    expect([forged.status, forged.body.error]).toEqual([400, 'invalid_grant'])
    expect((await token(service.url, repeated)).status).toBe(200)
  }
})

test('an app that exchanges an authorization code after a minute gets no tokens', async () => {
  const { exchange } = await codeFor(service, agent)
  await service.database.pool.query(
    `update oauth_codes set expires_at = expires_at - interval '61 seconds' where client_id = $1`,
    [exchange.client_id],
  )
  expect((await token(service.url, exchange)).body.error).toBe('invalid_grant')
})

test('a refresh token is valid only for the app that received it', async () => {
  const { refresh } = await connect(service, agent)
  const { body } = await token(service.url, {
    grant_type: 'refresh_token',
    refresh_token: refresh,
    client_id: clientId,
  })
  expect(body.error).toBe('invalid_grant')
})

describe('only the person in whose browser the consent page was opened can give consent to an app', () => {
  const open = () => requestConsent(service, authorizationOf(service.url, clientId))

  test('only the consent page of the console can give consent', async () => {
    const { id, owner } = await open()
    const body = {
      decision: 'allow',
      projectId: agent.project.id,
      scopes: ['mail:read'],
      days: 1,
      holdsMail: true,
    }
    const path = `/oauth/requests/${id}`
    for (const headers of [
      { 'x-purser-console': null },
      { origin: 'https://evil.example' },
      { 'sec-fetch-site': 'same-site' },
      { 'sec-fetch-site': 'cross-site' },
    ]) {
      expect((await owner.post(path, body, headers)).status).toBe(403)
    }
    expect((await owner.post(path, body)).status).toBe(200)
  })

  test('only the browser that made the authorization request can give consent, so a forwarded link has no effect', async () => {
    const { id } = await open()
    const { browserCookie } = await open()
    const { cookie } = await signIn(service)
    for (const other of [cookie, `${cookie}; ${browserCookie}`]) {
      const victim = consoleClient(service.url, other)
      expect((await victim.get(`/oauth/requests/${id}`)).status).toBe(404)
      expect((await allow(victim, id, agent)).status).toBe(409)
    }
  })

  test('only a person with a console session can give consent', async () => {
    const { id, browserCookie } = await open()
    const stranger = consoleClient(service.url, browserCookie)
    expect((await stranger.get(`/oauth/requests/${id}`)).status).toBe(401)
    expect((await allow(stranger, id, agent)).status).toBe(401)
  })

  test('a person can give consent to a request only once, and only within ten minutes', async () => {
    const { id, owner } = await open()
    const answers = await Promise.all([1, 2, 3].map(() => allow(owner, id, agent)))
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 409, 409])
    const late = await open()
    await service.database.pool.query(
      `update oauth_requests set expires_at = clock_timestamp() - interval '1 second' where id = $1`,
      [late.id],
    )
    expect((await allow(late.owner, late.id, agent)).status).toBe(409)
  })

  test('consent grants no scope that the app did not request, and grants mail:codes only together with mail:read', async () => {
    const { id, owner } = await open()
    for (const scopes of [['vault:use'], ['mail:read', 'vault:read'], []]) {
      expect((await allow(owner, id, agent, { scopes })).status).toBe(400)
    }
    const codes = await requestConsent(
      service,
      authorizationOf(service.url, clientId, { scope: 'mail:read mail:codes' }),
    )
    expect((await allow(codes.owner, codes.id, agent, { scopes: ['mail:codes'] })).status).toBe(400)
    expect((await allow(owner, id, agent, { days: 91 })).status).toBe(400)
    const other = await allow(owner, id, agent, { projectId: 'prj_none' })
    expect(other.status).toBe(409)
  })

  test('the consent page shows the app name as one short line, without characters that change the text direction', async () => {
    const { body } = await register(service.url, {
      redirect_uris: [REDIRECT],
      client_name: `\u202eClaude\n<b>${'x'.repeat(10_00)}`,
    })
    const { id, owner } = await requestConsent(
      service,
      authorizationOf(service.url, body.client_id),
    )
    const { body: shown } = await owner.get(`/oauth/requests/${id}`)
    expect(shown.clientName).toMatch(/^Claude <b>x{50}$/)
    expect(shown).toMatchObject({ clientHost: null, redirectHost: 'app.example' })
  })

  test('no other page can embed the consent page in a frame', async () => {
    const page = await fetch(`${service.url}/console/connect`)
    expect(page.headers.get('content-security-policy')).toContain("frame-ancestors 'none'")
  })
})

test('a flood of app registrations is refused, and an unused app is deleted after a day', async () => {
  await using own = await startOAuthService()
  const { pool } = own.database
  await pool.query(
    `insert into oauth_clients (id, name, redirect_uris, network)
     select 'flood' || n, 'Flood', '{https://flood.example/cb}', 'net' || n from generate_series(1, 10000) n`,
  )
  const full = await register(own.url)
  expect([full.status, full.body]).toEqual([
    429,
    {
      error: 'temporarily_unavailable',
      error_description: 'too many apps wait for their first use',
    },
  ])
  await pool.query('delete from oauth_clients')
  let refused = 0
  await withinOneMinute()
  for (let n = 0; n < 65; n++) {
    const { status } = await register(own.url)
    if (status === 429) refused++
  }
  expect(refused).toBeGreaterThan(0)
  const { status, body } = await register(own.url, {
    redirect_uris: [REDIRECT],
    x: 'x'.repeat(9_000),
  })
  expect([status, body.error]).toEqual([413, 'payload_too_large'])
})

test('a flood of requests for consent is refused, and the app gets an error that asks it to try again later', async () => {
  await using own = await startOAuthService()
  const { body } = await register(own.url)
  await own.database.pool.query(
    `insert into oauth_requests (id, browser_hash, client_id, client_name, redirect_uri, challenge, scopes, resource,
       expires_at, network)
     select 'flood' || n, '', 'flood', 'Flood', 'https://flood.example/cb', 'c', '{mail:read}', 'r',
       clock_timestamp() + interval '9 minutes', 'net' || n from generate_series(1, 10000) n`,
  )
  const asked = authorizationOf(own.url, body.client_id)
  const full = await authorize(own.url, asked)
  expect(full.status).toBe(429)
  expect(answered(backTo(full))).toMatchObject({
    error: 'temporarily_unavailable',
    error_description: 'too many apps wait for consent: try again in a few minutes',
    state: 'a state',
  })
  await own.database.pool.query(`update oauth_requests set network = 'net1' where id <= 'flood2'`)
  const { headers } = await authorize(own.url, asked)
  expect(headers.get('location')).toStartWith('/console/connect#')
})

test('a stranger with many /64 networks can make 240 consent requests a minute, and another /48 network has its own limit', async () => {
  await using own = await startOAuthService({ env: { TRUSTED_PROXIES: '127.0.0.0/8' } })
  const { body } = await register(own.url)
  const { query } = authorizationOf(own.url, body.client_id)
  const askFrom = async (address: string) =>
    (
      await fetch(`${own.url}/oauth/authorize?${query}`, {
        redirect: 'manual',
        headers: { 'x-forwarded-for': address },
      })
    ).status
  await withinOneMinute()
  const statuses: number[] = []
  for (let n = 0; n < 250; n++) statuses.push(await askFrom(`2001:db8:1:${n.toString(16)}::1`))
  expect(statuses.slice(0, 240)).toEqual(Array(240).fill(303))
  expect(statuses.slice(240)).toEqual(Array(10).fill(429))
  expect(await askFrom('2001:db8:2::1')).toBe(303)
})

test('the database stores authorization codes and OAuth tokens only as hashes', async () => {
  const { exchange, access, refresh } = await connect(service, agent)
  const { rows } = await service.database.pool.query(
    `select query_to_xml('select * from ' || quote_ident(table_name), false, false, '')::text as text
     from information_schema.tables where table_schema = 'public' and table_name like 'oauth%'
       or table_name in ('audit_log', 'events', 'console_sessions')`,
  )
  const text = rows.map((row: { text: string }) => row.text).join('\n')
  expect(text).toContain(exchange.client_id)
  for (const secret of [exchange.code, exchange.code_verifier, access, refresh]) {
    expect(text).not.toContain(secret)
  }
})
