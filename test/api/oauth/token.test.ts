/** Tests how the fields of a token request are read, and which tokens or errors an app gets. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { OAuthError } from '../../../api/oauth/oauthError.ts'
import { giveTokens, revoke } from '../../../api/oauth/token.ts'
import { newToken } from '../../../shared/oauth/oauthTokens.ts'
import { hashSecret } from '../../../shared/secretHash.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database/database.ts'
import { newProject } from '../../support/till/tillRows.ts'

const BASE_URL = 'https://purser.example'
const REDIRECT = 'https://app.example/cb'
const VERIFIER = 'v'.repeat(43)
const CHALLENGE = createHash('sha256').update(VERIFIER).digest('base64url')
const UNKNOWN =
  'invalid_grant the code or the refresh token is unknown, used or over: ask the owner again'

type Form = Record<string, string>

let database: TestDatabase
let made = 0
beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database[Symbol.asyncDispose]())

const services = () => ({ pool: database.pool, config: { http: { baseUrl: BASE_URL } } }) as never

/** Makes an app, a grant of an owner, and the form that exchanges its code. */
async function newGrant(clientId = `client-${++made}`): Promise<Form> {
  const { pool } = database
  const grantId = `grant-${++made}`
  const code = newToken('code')
  await pool.query(
    `insert into oauth_clients (id, name, redirect_uris) select $1::text, 'Notes', array[$2::text]
     where $1 not like 'https://%'`,
    [clientId, REDIRECT],
  )
  await pool.query(
    `insert into people (id, name, email, role) values ($1, 'Ada', $2, 'operator')`,
    [...[`person-${grantId}`, `${grantId}@example.com`]],
  )
  await pool.query(
    `insert into oauth_grants (id, project_id, client_id, client_name, redirect_host, scopes, resource, actor, expires_at,
       person_id)
     values ($1, $2, $3, 'Notes', 'app.example', '{mail:read,mail:send}', $4, 'test',
       clock_timestamp() + interval '90 days', $5)`,
    [grantId, await newProject(pool), clientId, `${BASE_URL}/mcp`, `person-${grantId}`],
  )
  await pool.query(
    `insert into oauth_codes (code_hash, grant_id, client_id, redirect_uri, challenge, expires_at)
     values ($1, $2, $3, $4, $5, clock_timestamp() + interval '1 minute')`,
    [hashSecret(code), grantId, clientId, REDIRECT, CHALLENGE],
  )
  return {
    ...{ grant_type: 'authorization_code', client_id: clientId, code, redirect_uri: REDIRECT },
    code_verifier: VERIFIER,
  }
}

/** Makes the form that refreshes the tokens of a new grant. */
async function newRefresh(changes: Form = {}): Promise<Form> {
  const form = await newGrant()
  const { refresh_token } = await giveTokens(services(), form)
  return { grant_type: 'refresh_token', client_id: form.client_id!, refresh_token, ...changes }
}

/** Returns code and text of the error that refuses a form, with its status if it is not 400. */
async function faultOf(form: Form): Promise<string> {
  try {
    await giveTokens(services(), form)
  } catch (error) {
    if (!(error instanceof OAuthError)) throw error
    return `${error.status === 400 ? '' : `${error.status} `}${error.code} ${error.message}`
  }
  return 'given'
}

const without = (form: Form, name: string): Form =>
  Object.fromEntries(Object.entries(form).filter(([field]) => field !== name))

describe('a request for tokens', () => {
  test('exchanges a code for tokens with the scopes that the owner gave', async () => {
    const tokens = await giveTokens(services(), await newGrant())
    expect(tokens).toEqual({
      ...{ access_token: expect.stringMatching(/^loat-/), token_type: 'Bearer' },
      ...{ expires_in: 3_600, refresh_token: expect.stringMatching(/^lort-/) },
      scope: 'mail:read mail:send',
    })
  })

  test('needs each field of its grant type, of at most 1,000 characters', async () => {
    const forms = [await newGrant(), await newRefresh()]
    for (const form of forms) {
      for (const name of Object.keys(form)) {
        const missing = `invalid_request ${name} must be set`
        expect(await faultOf(without(form, name))).toBe(missing)
        expect(await faultOf({ ...form, [name]: '' })).toBe(missing)
        expect(await faultOf({ ...form, [name]: 'x'.repeat(1_001) })).toBe(
          `invalid_request ${name} must have at most 1000 characters`,
        )
      }
    }
    expect(await faultOf({ ...forms[0]!, code: 'x'.repeat(1_000) })).toBe(UNKNOWN)
  })

  test('is refused for an unknown app and for an unknown grant type', async () => {
    const form = await newGrant()
    expect(await faultOf({ ...form, client_id: 'client-unknown' })).toBe(
      '401 invalid_client client_id is unknown: register again',
    )
    expect(await faultOf({ ...form, grant_type: 'password' })).toBe(
      'unsupported_grant_type grant_type must be authorization_code or refresh_token',
    )
    expect(await faultOf({ ...form, grant_type: 'constructor' })).toStartWith(
      'unsupported_grant_type',
    )
  })

  test('knows an app with a metadata document by its grant', async () => {
    const url = 'https://app.example/client.json'
    expect(await faultOf(await newGrant(url))).toBe('given')
    expect(await faultOf({ ...(await newGrant()), client_id: url })).toBe(UNKNOWN)
    const plain = { ...(await newGrant()), client_id: 'http://app.example/client.json' }
    expect(await faultOf(plain)).toStartWith('401 invalid_client')
  })

  test('may name the resource of this service only', async () => {
    for (const resource of [`${BASE_URL}/mcp`, `${BASE_URL}/mcp/`]) {
      expect(await faultOf({ ...(await newGrant()), resource })).toBe('given')
    }
    for (const resource of ['', BASE_URL, 'https://other.example/mcp']) {
      expect(await faultOf({ ...(await newGrant()), resource })).toBe(
        `invalid_target resource must be ${BASE_URL}/mcp`,
      )
    }
  })

  test('is refused for a code of another app, another address or another verifier', async () => {
    const { client_id } = await newGrant()
    for (const change of [
      { client_id: client_id! },
      { redirect_uri: `${REDIRECT}/` },
      { code_verifier: 'w'.repeat(43) },
      { code: newToken('code') },
    ]) {
      expect([change, await faultOf({ ...(await newGrant()), ...change })]).toEqual([
        change,
        UNKNOWN,
      ])
    }
  })
})

describe('a refresh of tokens', () => {
  const scopeOf = async (changes: Form) =>
    (await giveTokens(services(), await newRefresh(changes))).scope

  test('keeps the scopes if it names none', async () => {
    for (const changes of [{}, { scope: '' }, { scope: ' ' }, { scope: 'offline_access' }]) {
      expect([changes, await scopeOf(changes as Form)]).toEqual([changes, 'mail:read mail:send'])
    }
  })

  test('may name fewer scopes, and no others', async () => {
    expect(await scopeOf({ scope: 'mail:read' })).toBe('mail:read')
    expect(await scopeOf({ scope: ' mail:read  offline_access ' })).toBe('mail:read')
    const fault = 'invalid_scope scope must be part of what the owner gave'
    expect(await faultOf(await newRefresh({ scope: 'mail:read vault:use' }))).toBe(fault)
    expect(await faultOf(await newRefresh({ scope: 'x'.repeat(1_000) }))).toBe(fault)
    expect(await faultOf(await newRefresh({ scope: 'x'.repeat(1_001) }))).toBe(
      'invalid_scope scope must have at most 1000 characters',
    )
  })

  test('is refused for the token of another app', async () => {
    const { client_id } = await newGrant()
    expect(await faultOf(await newRefresh({ client_id: client_id! }))).toBe(UNKNOWN)
  })
})

describe('a revocation', () => {
  test('ends the grant of the token', async () => {
    const form = await newRefresh()
    await revoke(services(), { token: form.refresh_token!, client_id: form.client_id! })
    expect(await faultOf(form)).toBe(UNKNOWN)
  })

  test('does nothing for an unknown token or the token of another app, and needs both fields', async () => {
    const form = await newRefresh()
    const { client_id } = await newGrant()
    await revoke(services(), { token: 'unknown', client_id: form.client_id! })
    await revoke(services(), { token: form.refresh_token!, client_id: client_id! })
    expect(await faultOf(form)).toBe('given')
    expect(revoke(services(), { client_id: client_id! })).rejects.toThrow('token must be set')
    expect(revoke(services(), { token: 'x' })).rejects.toThrow('client_id must be set')
  })
})
