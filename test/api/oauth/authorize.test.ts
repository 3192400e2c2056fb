import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { redirectTo } from '../../../api/oauth/authorize.ts'
import {
  answered,
  authorizationOf,
  authorize,
  backTo,
  REDIRECT,
  register,
  startOAuthService,
} from '../../support/oauth.ts'
import type { TestService } from '../../support/service.ts'

let service: TestService
let clientId: string
beforeAll(async () => {
  service = await startOAuthService()
  clientId = (await register(service.url)).body.client_id
})
afterAll(() => service[Symbol.asyncDispose]())

type Changes = Record<string, string | null>

const ask = (changes: Changes, id = clientId) =>
  authorize(service.url, authorizationOf(service.url, id, changes))

/** Sends an authorization request in which one parameter has a second value. */
function askTwice(name: string, value: string) {
  const asked = authorizationOf(service.url, clientId)
  asked.query.append(name, value)
  return authorize(service.url, asked)
}

/**
 * Returns the error about an authorization request that the service sends to the app. Returns no error if the request
 * waits for the owner's consent.
 */
const told = (answer: Awaited<ReturnType<typeof ask>>): (string | null | undefined)[] => {
  if (answer.headers.get('location')?.startsWith('/console/connect#')) return [null, null]
  const link = backTo(answer)
  expect(link).toStartWith(`${REDIRECT}?`)
  const { error, error_description } = answered(link)
  return [error, error_description]
}

const WAITS = [null, null]
const fault = (message: string) => ['invalid_request', message]
const CHALLENGE_FAULT = fault('code_challenge must be one of the method S256')
const SCOPE_FAULT = ['invalid_scope', 'scope names none that an owner can give']

describe('the service tells an app what is wrong with its authorization request', () => {
  test('an app gets an error if the parameter state is too long or has other characters than visible ASCII', async () => {
    for (const [state, expected] of [
      ['~'.repeat(2_000), WAITS],
      ['~'.repeat(2_001), fault('state must have at most 2000 characters')],
      [' !~', WAITS],
      ['tab\t', fault('state must be visible ASCII')],
      ['delete\x7f', fault('state must be visible ASCII')],
      ['é', fault('state must be visible ASCII')],
    ] as const) {
      expect([state, told(await ask({ state }))]).toEqual([state, expected])
    }
  })

  test('an app gets an error if response_type, code_challenge or code_challenge_method is absent, too long or not supported', async () => {
    const cases: [changes: Changes, expected: (string | null)[]][] = [
      [{ response_type: null }, fault('response_type must be set')],
      [{ response_type: '' }, fault('response_type must be set')],
      [
        { response_type: 'x'.repeat(100) },
        ['unsupported_response_type', 'response_type must be code'],
      ],
      [{ response_type: 'x'.repeat(101) }, fault('response_type must have at most 100 characters')],
      [{ code_challenge: null }, fault('code_challenge must be set')],
      [{ code_challenge: 'x'.repeat(42) }, CHALLENGE_FAULT],
      [{ code_challenge: 'x'.repeat(43) }, WAITS],
      [{ code_challenge: 'x'.repeat(200) }, CHALLENGE_FAULT],
      [
        { code_challenge: 'x'.repeat(201) },
        fault('code_challenge must have at most 200 characters'),
      ],
      [{ code_challenge_method: null }, fault('code_challenge_method must be set')],
      [{ code_challenge_method: 'plain' }, CHALLENGE_FAULT],
      [{ code_challenge_method: 'x'.repeat(100) }, CHALLENGE_FAULT],
      [
        { code_challenge_method: 'x'.repeat(101) },
        fault('code_challenge_method must have at most 100 characters'),
      ],
    ]
    for (const [changes, expected] of cases) {
      expect({ changes, told: told(await ask(changes)) }).toEqual({ changes, told: expected })
    }
  })

  test('an app gets an error if scope is too long or unknown, or if it names only scopes that no owner can grant', async () => {
    for (const [scope, expected] of [
      [null, WAITS],
      ['', WAITS],
      [`mail:read ${'x'.repeat(990)}`, WAITS],
      [`mail:read ${'x'.repeat(991)}`, fault('scope must have at most 1000 characters')],
      ['admin', SCOPE_FAULT],
      ['vault:read', SCOPE_FAULT],
      ['purse:pay', SCOPE_FAULT],
      ['vault:read mail:read', WAITS],
    ] as const) {
      expect([scope, told(await ask({ scope }))]).toEqual([scope, expected])
    }
  })

  test('an app gets an error if resource is not the MCP endpoint, or if it is given in two spellings', async () => {
    const mcp = `${service.url}/mcp`
    const wrong = ['invalid_target', `resource must be ${mcp}`]
    expect(told(await ask({ resource: null }))).toEqual(WAITS)
    expect(told(await ask({ resource: '' }))).toEqual(WAITS)
    expect(told(await ask({ resource: `${mcp}/` }))).toEqual(WAITS)
    expect(told(await ask({ resource: service.url }))).toEqual(wrong)
    expect(told(await askTwice('resource', mcp))).toEqual(WAITS)
    expect(told(await askTwice('resource', `${mcp}/`))).toEqual(wrong)
  })

  test('an app gets an error when a parameter has two values, even if the values are equal', async () => {
    for (const [name, value] of [
      ['state', 'a state'],
      ['response_type', 'code'],
      ['code_challenge', 'x'.repeat(43)],
      ['code_challenge_method', 'S256'],
      ['scope', 'mail:read'],
    ] as const) {
      const expected = fault(`${name} must be set once`)
      expect([name, told(await askTwice(name, value))]).toEqual([name, expected])
    }
  })

  test('an authorization error returns the app’s state and the issuer, and its response may not be cached', async () => {
    const refused = await ask({ scope: 'admin', state: 'x&y=1 ~' })
    const { status, headers } = refused
    expect([status, headers.get('cache-control')]).toEqual([400, 'no-store'])
    expect(answered(backTo(refused))).toMatchObject({ state: 'x&y=1 ~', iss: service.url })
    const stateless = await ask({ scope: 'admin', state: null })
    expect(Object.keys(answered(backTo(stateless))).toSorted()).toEqual([
      'error',
      'error_description',
      'iss',
    ])
  })
})

test('an invalid authorization request redirects the browser only to this computer or a well-known app, and never at once to an address that a stranger registered', async () => {
  const local = 'http://127.0.0.1:7777/cb'
  const redirect_uris = [REDIRECT, 'HTTPS://phish.example/x', local]
  const { body: app } = await register(service.url, { redirect_uris })
  const claude = 'https://claude.ai/oauth/mcp-oauth-client-metadata'
  for (const [id, redirect_uri, isAtOnce] of [
    [app.client_id, REDIRECT, false],
    [app.client_id, 'HTTPS://phish.example/x', false],
    [app.client_id, local, true],
    [claude, 'https://claude.ai/api/mcp/auth_callback', true],
  ] as const) {
    const answer = await ask({ redirect_uri, response_type: 'token' }, id)
    const location = answer.headers.get('location')
    expect([redirect_uri, answer.status]).toEqual([redirect_uri, isAtOnce ? 303 : 400])
    if (isAtOnce) {
      expect(location).toStartWith(`${redirect_uri}?error=unsupported_response_type`)
    } else {
      expect(location).toBeNull()
      expect(answer.body).toContain('<p>response_type must be code.</p>')
      expect(answer.body).toContain(`Back to ${new URL(redirect_uri).host}`)
    }
  }
})

describe('if an error cannot be sent safely to the app, the person sees an error page instead', () => {
  const UNKNOWN = 'client_id is unknown: let the app register again.'

  /** Expects that the response is an error page with the given text. */
  async function expectPage(answer: Awaited<ReturnType<typeof ask>>, text: string) {
    const { status, headers, body } = answer
    expect([text, status, headers.get('location')]).toEqual([text, 400, null])
    expect(body).toContain(`<p>${text}</p>`)
    return headers
  }

  test('a person sees an error page when client_id is absent, repeated, too long or unknown', async () => {
    await expectPage(await ask({ client_id: null }), 'client_id must be set.')
    await expectPage(await askTwice('client_id', clientId), 'client_id must be set once.')
    await expectPage(await ask({ client_id: 'x'.repeat(500) }), UNKNOWN)
    await expectPage(
      await ask({ client_id: 'x'.repeat(501) }),
      'client_id must have at most 500 characters.',
    )
    for (const client_id of [`oac_${'0'.repeat(24)}`, '__proto__', 'constructor']) {
      await expectPage(await ask({ client_id }), UNKNOWN)
    }
  })

  test('a person sees an error page when redirect_uri is repeated, too long or not registered', async () => {
    const unregistered = 'redirect_uri must be one that the app has registered.'
    await expectPage(await askTwice('redirect_uri', REDIRECT), 'redirect_uri must be set once.')
    await expectPage(await ask({ redirect_uri: `${REDIRECT}/` }), unregistered)
    const long = `${REDIRECT}/${'x'.repeat(499 - REDIRECT.length)}`
    await expectPage(await ask({ redirect_uri: long }), unregistered)
    await expectPage(
      await ask({ redirect_uri: `${long}x` }),
      'redirect_uri must have at most 500 characters.',
    )
  })

  test('a person sees an error page if redirect_uri is absent and the app has registered two redirect URIs', async () => {
    const { body } = await register(service.url, { redirect_uris: [REDIRECT, `${REDIRECT}/2`] })
    const headers = await expectPage(
      await ask({ redirect_uri: null }, body.client_id),
      'redirect_uri must be set.',
    )
    expect(headers.get('cache-control')).toBe('no-store')
    expect(headers.get('content-type')).toContain('text/html')
    expect(headers.get('content-security-policy')).toContain("default-src 'none'")
    expect((await ask({ redirect_uri: `${REDIRECT}/2` }, body.client_id)).status).toBe(303)
  })

  test('a person sees an error page when one network sends too many requests', async () => {
    await using own = await startOAuthService()
    const statuses = new Set<number>()
    for (let n = 0; n < 500 && !statuses.has(429); n++) {
      const { status, body } = await authorize(own.url, authorizationOf(own.url, 'none'))
      statuses.add(status)
      if (status === 429) expect(body).toContain('<p>too many requests: wait a minute.</p>')
    }
    expect([...statuses]).toEqual([400, 429])
  })

  test('a person sees an error page when the database fails, whether or not the service has already found the app', async () => {
    await using own = await startOAuthService()
    const { body } = await register(own.url)
    for (const table of ['oauth_requests', 'oauth_clients']) {
      await own.database.pool.query(`alter table ${table} rename to ${table}_gone`)
      const answer = await authorize(own.url, authorizationOf(own.url, body.client_id))
      expect([table, answer.status, answer.headers.get('location')]).toEqual([table, 500, null])
      expect(answer.body).toMatch(/<p>Something went wrong \(request [\w-]+\)\.<\/p>/)
    }
  })
})

test('a consent request belongs to one browser, and a second request from this browser keeps the browser’s cookie', async () => {
  const first = await ask({})
  expect(first.headers.get('location')).toMatch(/^\/console\/connect#oar_[0-9a-f]{24}$/)
  expect(first.headers.get('referrer-policy')).toBe('no-referrer')
  expect(first.headers.get('cache-control')).toBe('no-store')
  const cookie = first.headers.get('set-cookie')!.split(';')[0]!
  const asked = authorizationOf(service.url, clientId)
  const again = await authorize(service.url, asked, cookie)
  expect(again.headers.get('set-cookie')).toStartWith(`${cookie};`)
  expect(again.headers.get('location')).not.toBe(first.headers.get('location'))
})

test('the redirect to an app adds the response parameters to the query of the redirect URI, and omits parameters without a value', () => {
  const iss = 'https://purser.example'
  const encoded = 'iss=https%3A%2F%2Fpurser.example'
  expect(redirectTo('https://app.example/cb', { code: 'a b', state: null }, iss)).toBe(
    `https://app.example/cb?code=a+b&${encoded}`,
  )
  expect(redirectTo('https://app.example/cb?x=1', { code: 'c', state: '' }, iss)).toBe(
    `https://app.example/cb?x=1&code=c&state=&${encoded}`,
  )
})
