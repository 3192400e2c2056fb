/** Tests how an authorization request of an app is read, stored, or refused, and where its answer goes. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { attachState, newRequestState } from '../../../api/http/requestState.ts'
import { authorize, redirectTo } from '../../../api/oauth/authorize.ts'
import { registerClient } from '../../../sql/account/oauth/oauthClients.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database/database.ts'
import { withinOneMinute } from '../../support/rateWindow.ts'

const BASE_URL = 'https://purser.example'
const REDIRECT = 'https://app.example/cb'
const CHALLENGE = 'c'.repeat(43)
const LONG_STATE = 's'.repeat(2_000)

type Changes = Record<string, string | string[] | null>

let database: TestDatabase
let clientId: string
beforeAll(async () => {
  database = await createTestDatabase()
})
beforeEach(async () => {
  clientId = await newClient(REDIRECT)
})
afterAll(() => database[Symbol.asyncDispose]())

const newClient = async (...redirectUris: string[]) =>
  (await registerClient(database.pool, { name: 'Notes', redirectUris }))!.id

/** Sends an authorization request. `changes` replace parameters, null omits one, and a list repeats one. */
async function ask(changes: Changes = {}, cookie = '') {
  const query = new URLSearchParams()
  const parameters: Changes = {
    ...{ response_type: 'code', client_id: clientId, redirect_uri: REDIRECT },
    ...{ code_challenge: CHALLENGE, code_challenge_method: 'S256', resource: `${BASE_URL}/mcp` },
    ...{ scope: 'mail:read', state: 'a state', ...changes },
  }
  for (const [name, value] of Object.entries(parameters)) {
    for (const one of [value ?? []].flat()) query.append(name, one)
  }
  const request = new Request(`${BASE_URL}/oauth/authorize?${query}`, { headers: { cookie } })
  attachState(request, { ...newRequestState('req_1'), clientAddress: '203.0.113.7' })
  const { pool } = database
  const config = { http: { baseUrl: BASE_URL }, oauthPurseScopes: [] }
  const answer = await authorize({ pool, gatePool: pool, config } as never, request)
  return { status: answer.status, headers: answer.headers, text: await answer.text() }
}

/** Returns the stored request to which an answer leads. */
async function stored(changes: Changes = {}) {
  const { status, headers } = await ask(changes)
  const [, id] = /^\/console\/connect#(.+)$/.exec(headers.get('location') ?? '') ?? []
  expect(status).toBe(303)
  const { rows } = await database.pool.query('select * from oauth_requests where id = $1', [id])
  return rows[0]
}

/** Returns error, text and state that the app gets. */
async function toldToApp(changes: Changes) {
  const { status, headers } = await ask(changes)
  const location = new URL(headers.get('location') ?? 'about:blank')
  expect([status, `${location.origin}${location.pathname}`]).toEqual([303, REDIRECT])
  expect(headers.get('cache-control')).toBe('no-store')
  const { error, error_description: text, iss, state } = Object.fromEntries(location.searchParams)
  expect(iss).toBe(BASE_URL)
  return { error, text, state }
}

/** Returns the words of the page that tells a person that the app cannot be connected. */
async function shown(changes: Changes): Promise<string> {
  const { status, headers, text } = await ask(changes)
  expect([status, headers.get('location')]).toEqual([400, null])
  expect(headers.get('content-security-policy')).toContain("frame-ancestors 'none'")
  expect(text).toContain('This app cannot be connected')
  return text
}

describe('an authorization request', () => {
  test('is stored with its terms, and leads to the consent page', async () => {
    expect(await stored()).toMatchObject({
      ...{ client_id: clientId, client_name: 'Notes', client_host: null, redirect_uri: REDIRECT },
      ...{ state: 'a state', challenge: CHALLENGE, scopes: ['mail:read'] },
      resource: `${BASE_URL}/mcp`,
    })
    const { headers } = await ask()
    expect(headers.get('referrer-policy')).toBe('no-referrer')
    expect(headers.get('set-cookie')).toStartWith('__Host-purser_browser=')
  })

  test('keeps the secret of the browser that has one', async () => {
    const cookie = `__Host-purser_browser=${'b'.repeat(43)}`
    expect((await ask({}, cookie)).headers.get('set-cookie')).toStartWith(`${cookie};`)
  })

  test('may lack state, scope and resource', async () => {
    expect(await stored({ state: null, scope: null, resource: null })).toMatchObject({
      ...{ state: null, scopes: ['mail:read', 'mail:send'], resource: `${BASE_URL}/mcp` },
    })
    const same = `${BASE_URL}/mcp`
    expect((await stored({ resource: [same, same] })).resource).toBe(same)
    expect((await stored({ state: LONG_STATE })).state).toBe(LONG_STATE)
  })

  test('may lack the redirect URI if the app has registered one', async () => {
    expect((await stored({ redirect_uri: null })).redirect_uri).toBe(REDIRECT)
    clientId = await newClient(REDIRECT, 'https://app.example/other')
    expect(await shown({ redirect_uri: null })).toContain('redirect_uri must be set')
    expect((await stored()).redirect_uri).toBe(REDIRECT)
  })
})

describe('a request whose app is not certain', () => {
  test('shows a page, and sends nothing to any address', async () => {
    for (const [changes, words] of [
      [{ client_id: null }, 'client_id must be set'],
      [{ client_id: 'oac_unknown' }, 'client_id is unknown'],
      [{ client_id: [clientId, clientId] }, 'client_id must be set once'],
      [{ client_id: 'x'.repeat(501) }, 'client_id must have at most 500 characters'],
      [{ redirect_uri: [REDIRECT, REDIRECT] }, 'redirect_uri must be set once'],
      [{ redirect_uri: 'https://evil.example/' }, 'redirect_uri must be one that the app has'],
      [{ redirect_uri: `${REDIRECT}/${'x'.repeat(500)}` }, 'redirect_uri must have at most 500'],
    ] as [Changes, string][]) {
      expect(await shown(changes)).toContain(words)
    }
  })

  test('shows a page with the status 429 after 120 requests of a network in a minute', async () => {
    await withinOneMinute()
    const { pool } = database
    await ask()
    await pool.query(`update rate_windows set used = 120 where subject like 'oauth:authorize:%'`)
    const { status, text } = await ask()
    expect([status, text.includes('too many requests')]).toEqual([429, true])
    await pool.query('delete from rate_windows')
  })
})

describe('a fault of a request', () => {
  test('is told to the app with its name, and with the state', async () => {
    for (const [changes, error, text] of [
      [{ response_type: 'token' }, 'unsupported_response_type', 'response_type must be code'],
      [{ response_type: null }, 'invalid_request', 'response_type must be set'],
      [{ response_type: ['code', 'code'] }, 'invalid_request', 'response_type must be set once'],
      [{ code_challenge: null }, 'invalid_request', 'code_challenge must be set'],
      [
        { code_challenge: 'c'.repeat(42) },
        'invalid_request',
        'code_challenge must be one of the method S256',
      ],
      [
        { code_challenge: 'c'.repeat(201) },
        'invalid_request',
        'code_challenge must have at most 200 characters',
      ],
      [
        { code_challenge_method: 'plain' },
        'invalid_request',
        'code_challenge must be one of the method S256',
      ],
      [{ code_challenge_method: null }, 'invalid_request', 'code_challenge_method must be set'],
      [
        { resource: 'https://other.example/mcp' },
        'invalid_target',
        `resource must be ${BASE_URL}/mcp`,
      ],
      [
        { resource: [`${BASE_URL}/mcp`, `${BASE_URL}/mcp/`] },
        'invalid_target',
        `resource must be ${BASE_URL}/mcp`,
      ],
      [{ scope: 'admin' }, 'invalid_scope', 'scope names none that an owner can give'],
      [{ scope: 'vault:read' }, 'invalid_scope', 'scope names none that an owner can give'],
      [{ scope: 'x'.repeat(1_001) }, 'invalid_request', 'scope must have at most 1000 characters'],
    ] as [Changes, string, string][]) {
      expect([changes, await toldToApp(changes)]).toEqual([
        changes,
        { error, text, state: 'a state' },
      ])
    }
  })

  test('of the state is told too', async () => {
    for (const state of ['ä', 'a\tb', 'a\nb']) {
      expect((await toldToApp({ state })).text).toBe('state must be visible ASCII')
    }
    expect((await toldToApp({ state: `${LONG_STATE}s` })).text).toBe(
      'state must have at most 2000 characters',
    )
    expect((await toldToApp({ state: ['a', 'b'] })).text).toBe('state must be set once')
    expect((await toldToApp({ state: null, scope: 'admin' })).state).toBeUndefined()
  })
})

test('an answer is added to the query of the redirect URI, with the issuer and without absent members', () => {
  const answer = { code: 'a b', state: null }
  const iss = 'iss=https%3A%2F%2Fpurser.example'
  expect(redirectTo(REDIRECT, answer, BASE_URL)).toBe(`${REDIRECT}?code=a+b&${iss}`)
  expect(redirectTo(`${REDIRECT}?x=1`, answer, BASE_URL)).toBe(`${REDIRECT}?x=1&code=a+b&${iss}`)
})
