/** Tests when OAuth authorization codes and tokens are valid. Each test makes its own OAuth grant (consent). */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { newToken } from '../../../../shared/oauth/oauthTokens.ts'
import { hashSecret } from '../../../../shared/secretHash.ts'
import {
  authenticateToken,
  endGrant,
  findTokenScopes,
  revokeToken,
} from '../../../../sql/account/oauth/oauthTokens.ts'
import { deleteProject } from '../../../../sql/account/projects/deleteProject.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import * as grantRows from '../../../support/oauth/grantRows.ts'
import { type Grant, REDIRECT, SCOPES } from '../../../support/oauth/grantRows.ts'

let database: TestDatabase
let pool: TestDatabase['pool']
beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
})
afterAll(() => database[Symbol.asyncDispose]())

const newGrant = (options?: Parameters<typeof grantRows.newGrant>[1]) =>
  grantRows.newGrant(pool, options)
const newCode = (grantId: string, clientId: string) => grantRows.newCode(pool, grantId, clientId)
const exchange = (grant: Grant, changes?: { [key: string]: unknown }) =>
  grantRows.exchange(pool, grant, changes)
const tokensOf = (grant: Grant) => grantRows.given(exchange(grant))
const refresh = (grant: Grant, token: string, scopes: string[] | null = null) =>
  grantRows.refresh(pool, grant, token, scopes)
const isValid = async (token: string) => (await authenticateToken(pool, token)) !== null
const change = (table: string, set: string, where: string, value: unknown) =>
  pool.query(`update ${table} set ${set} where ${where} = $1`, [value])

/** Lists the database changes that end an OAuth grant (consent). */
const ENDINGS: [string, (grant: Grant) => Promise<unknown>][] = [
  ['its grant is revoked', ({ id }) => change('oauth_grants', 'revoked_at = now()', 'id', id)],
  [
    'its grant expires',
    ({ id }) =>
      change('oauth_grants', `expires_at = clock_timestamp() - interval '1 second'`, 'id', id),
  ],
  [
    'its client is deleted',
    ({ clientId }) => pool.query('delete from oauth_clients where id = $1', [clientId]),
  ],
  ['its project is deleted', ({ projectId }) => deleteProject(pool, projectId, null)],
  [
    'its person loses the right',
    ({ personId }) => change('people', `role = 'owner'`, 'id', personId),
  ],
]

describe('the service exchanges an authorization code for tokens only once, and not after its expiry', () => {
  test('an authorization code can be exchanged for tokens with the scopes and the resource of its OAuth grant (the owner’s consent)', async () => {
    const grant = await newGrant()
    const { access, refresh: second, ...rest } = await tokensOf(grant)
    expect(rest).toEqual({
      accessSeconds: 3600,
      scopes: SCOPES,
      resource: 'https://purser.example/mcp',
    })
    expect(await authenticateToken(pool, access)).toMatchObject({
      identity: {
        ...{ kind: 'oauth', keyId: grant.id, keyPrefix: `oauth:${grant.id}`, holdsMail: false },
        ...{ projectId: grant.projectId, scopes: expect.arrayContaining(SCOPES) },
      },
      usage: { used: 1 },
      writtenTo: null,
    })
    expect(await isValid(second)).toBe(false)
  })

  test('an authorization code is refused a second time, and this second use invalidates the tokens from the first use', async () => {
    const grant = await newGrant()
    const { access, refresh: token } = await tokensOf(grant)
    expect(await exchange(grant)).toBe('invalid_grant')
    expect(await isValid(access)).toBe(false)
    expect(await refresh(grant, token)).toBe('invalid_grant')
    expect(await exchange({ ...grant, code: await newCode(grant.id, grant.clientId) })).toBe(
      'invalid_grant',
    )
  })

  test('if an authorization code is used ten times at once, only one use gives tokens', async () => {
    const grant = await newGrant()
    const results = await Promise.all(Array.from({ length: 10 }, () => exchange(grant)))
    expect(results.filter((result) => result !== 'invalid_grant')).toHaveLength(1)
  })

  test.each([
    ['another client', { clientId: 'other' }],
    ['another redirect URI', { redirectUri: `${REDIRECT}/x` }],
    ['a wrong code verifier', { isProven: () => false }],
    ['an unknown code', { code: newToken('code') }],
    ['a token in place of the code', { code: newToken('refresh') }],
  ])(
    'an authorization code is refused with %s, and stays valid for its client',
    async (_, changes) => {
      const grant = await newGrant()
      expect(await exchange(grant, changes)).toBe('invalid_grant')
      await tokensOf(grant)
    },
  )

  test('an authorization code is refused after its expiry', async () => {
    const grant = await newGrant()
    await change(
      'oauth_codes',
      `expires_at = clock_timestamp() - interval '1 second'`,
      'grant_id',
      grant.id,
    )
    expect(await exchange(grant)).toBe('invalid_grant')
  })

  test.each(ENDINGS)('an authorization code is refused after %s', async (_, end) => {
    const grant = await newGrant()
    await end(grant)
    expect(await exchange(grant)).toBe('invalid_grant')
  })
})

describe('the service accepts an OAuth access token only while the token and its grant are valid', () => {
  test('an access token is valid for an hour, but not longer than its OAuth grant (consent)', async () => {
    const left = async (id: string) =>
      (
        await pool.query(
          `select kind, round(extract(epoch from expires_at - clock_timestamp()) / 60)::int as minutes
           from oauth_tokens where grant_id = $1 order by kind`,
          [id],
        )
      ).rows.map(({ kind, minutes }) => [kind, minutes])
    const grant = await newGrant()
    await tokensOf(grant)
    expect(await left(grant.id)).toEqual([
      ['access', 60],
      ['refresh', 30 * 24 * 60],
    ])
    const short = await newGrant()
    await change(
      'oauth_grants',
      `expires_at = clock_timestamp() + interval '5 minutes'`,
      'id',
      short.id,
    )
    await tokensOf(short)
    expect(await left(short.id)).toEqual([
      ['access', 5],
      ['refresh', 5],
    ])
  })

  test('an access token is refused after its expiry', async () => {
    const { access } = await tokensOf(await newGrant())
    await change(
      'oauth_tokens',
      `expires_at = clock_timestamp() - interval '1 second'`,
      'token_hash',
      hashSecret(access),
    )
    expect(await isValid(access)).toBe(false)
  })

  test.each(ENDINGS)('an access token is refused after %s', async (_, end) => {
    const grant = await newGrant()
    const { access, refresh: token } = await tokensOf(grant)
    await end(grant)
    expect(await isValid(access)).toBe(false)
    expect(await refresh(grant, token)).toBe('invalid_grant')
  })

  test('an access token needs no registered client if the client id is a URL', async () => {
    const grant = await newGrant({ clientId: 'https://host.example/client.json' })
    expect(await isValid((await tokensOf(grant)).access)).toBe(true)
  })

  test('an owner gets a valid access token only while the project is in the owner’s list of projects', async () => {
    const grant = await newGrant({ role: 'owner' })
    expect(await exchange(grant)).toBe('invalid_grant')
    await pool.query('insert into person_projects (person_id, project_id) values ($1, $2)', [
      ...[grant.personId, grant.projectId],
    ])
    expect(await isValid((await tokensOf(grant)).access)).toBe(true)
  })

  test('an access token loses a scope when its OAuth grant (the owner’s consent) loses the scope', async () => {
    const grant = await newGrant()
    const { access } = await tokensOf(grant)
    await change('oauth_grants', `scopes = '{mail:send,vault:use}'`, 'id', grant.id)
    expect((await authenticateToken(pool, access))?.identity.scopes).toEqual(['mail:send'])
  })

  test('the number of requests counts each use of an access token, but the last use of its OAuth grant (consent) is stored at most once a minute', async () => {
    const grant = await newGrant()
    const { access } = await tokensOf(grant)
    const usedAt = async () =>
      (await pool.query('select used_at from oauth_grants where id = $1', [grant.id])).rows[0]
        .used_at
    await authenticateToken(pool, access)
    const first = await usedAt()
    expect((await authenticateToken(pool, access))?.usage.used).toBe(2)
    expect(await usedAt()).toEqual(first)
    await change(
      'oauth_grants',
      `used_at = clock_timestamp() - interval '61 seconds'`,
      'id',
      grant.id,
    )
    await authenticateToken(pool, access)
    expect((await usedAt()).getTime()).toBeGreaterThanOrEqual(first.getTime())
  })

  test('the check of an access token returns the position of the project’s latest write in the write-ahead log only if the caller requests this position', async () => {
    const grant = await newGrant()
    const { access } = await tokensOf(grant)
    await pool.query(`insert into project_writes (project_id, lsn) values ($1, '0/10')`, [
      grant.projectId,
    ])
    expect((await authenticateToken(pool, access))?.writtenTo).toBeNull()
    expect((await authenticateToken(pool, access, { needsWritten: true }))?.writtenTo).toBe(16n)
  })
})

describe('the service exchanges a refresh token for new tokens, and ends the OAuth grant (consent) if a thief uses the old one', () => {
  test('a refresh token that is used again within a minute gives new tokens again, because the first response may have been lost', async () => {
    const grant = await newGrant()
    const { refresh: token } = await tokensOf(grant)
    for (let n = 0; n < 2; n++) {
      const pair = await refresh(grant, token)
      if (typeof pair === 'string') throw new Error(pair)
      expect(pair.scopes).toEqual(SCOPES)
      expect(await isValid(pair.access)).toBe(true)
    }
  })

  test('if a refresh token is used again after a minute, its OAuth grant (consent) ends', async () => {
    const grant = await newGrant()
    const { access, refresh: token } = await tokensOf(grant)
    await refresh(grant, token)
    const rotated = (seconds: number) =>
      change(
        'oauth_tokens',
        `rotated_at = clock_timestamp() - interval '${seconds} seconds'`,
        'token_hash',
        hashSecret(token),
      )
    await rotated(55)
    expect(await refresh(grant, token)).toMatchObject({ scopes: SCOPES })
    // A second use of a refresh token keeps the stored time of the first use. The test moves this time back, so that
    // the next use comes after the allowed minute.
    await rotated(61)
    expect(await refresh(grant, token)).toBe('invalid_grant')
    expect(await isValid(access)).toBe(false)
  })

  test('a refresh token gives fewer scopes if the client asks for fewer, but never more than its own scopes', async () => {
    const grant = await newGrant()
    const { refresh: token } = await tokensOf(grant)
    const narrow = await refresh(grant, token, ['mail:read'])
    if (typeof narrow === 'string') throw new Error(narrow)
    expect(narrow.scopes).toEqual(['mail:read'])
    expect((await authenticateToken(pool, narrow.access))?.identity.scopes).toEqual(['mail:read'])
    // A new refresh token has the scopes of the old refresh token (RFC 6749 §6).
    const whole = await refresh(grant, narrow.refresh)
    expect(whole).toMatchObject({ scopes: SCOPES })
    expect(await refresh(grant, token, ['vault:use'])).toBe('invalid_scope')
    await change('oauth_grants', `scopes = '{mail:send}'`, 'id', grant.id)
    expect(await refresh(grant, token)).toMatchObject({ scopes: ['mail:send'] })
    expect(await refresh(grant, token, ['mail:read'])).toBe('invalid_scope')
  })

  test('a refresh token is refused for another client and after its expiry, and an access token is refused in its place', async () => {
    const grant = await newGrant()
    const { access, refresh: token } = await tokensOf(grant)
    expect(await refresh({ ...grant, clientId: 'other' }, token)).toBe('invalid_grant')
    expect(await refresh(grant, access)).toBe('invalid_grant')
    expect(await refresh(grant, newToken('refresh'))).toBe('invalid_grant')
    await change(
      'oauth_tokens',
      `expires_at = clock_timestamp() - interval '1 second'`,
      'token_hash',
      hashSecret(token),
    )
    expect(await refresh(grant, token)).toBe('invalid_grant')
  })
})

describe('a revoked OAuth token, or a token of an ended OAuth grant (consent), is refused', () => {
  test('the revocation of an access token invalidates only this token', async () => {
    const grant = await newGrant()
    const { access, refresh: token } = await tokensOf(grant)
    await revokeToken(pool, { token: access, clientId: 'other' }, 'req_1')
    expect(await isValid(access)).toBe(true)
    await revokeToken(pool, { token: access, clientId: grant.clientId }, 'req_1')
    expect(await isValid(access)).toBe(false)
    expect(await refresh(grant, token)).toMatchObject({ scopes: SCOPES })
  })

  test('the revocation of a refresh token ends its OAuth grant (consent), and only the client that owns the token can revoke it', async () => {
    const grant = await newGrant()
    const { access, refresh: token } = await tokensOf(grant)
    await revokeToken(pool, { token, clientId: 'other' }, 'req_1')
    await revokeToken(pool, { token: newToken('access'), clientId: grant.clientId }, 'req_1')
    await revokeToken(pool, { token: 'no token', clientId: grant.clientId }, 'req_1')
    expect(await isValid(access)).toBe(true)
    await revokeToken(pool, { token, clientId: grant.clientId }, 'req_1')
    expect(await isValid(access)).toBe(false)
    expect(await refresh(grant, token)).toBe('invalid_grant')
  })

  test('the function that ends an OAuth grant (consent) returns whether the grant was still valid', async () => {
    const { id } = await newGrant()
    expect([
      await endGrant(pool, id, { requestId: 'req_1' }),
      await endGrant(pool, id, { requestId: 'req_1' }),
      await endGrant(pool, 'none', { requestId: 'req_1' }),
    ]).toEqual([...[true, false, false]])
  })
})

test.each<(typeof ENDINGS)[number]>([
  ...ENDINGS,
  [
    'it expires',
    ({ id }) =>
      change('oauth_tokens', `expires_at = clock_timestamp() - interval '1 s'`, 'grant_id', id),
  ],
  ['it is deleted', ({ id }) => pool.query('delete from oauth_tokens where grant_id = $1', [id])],
])('an access token has no scopes when %s', async (_name, end) => {
  const grant = await newGrant()
  const { access, refresh: token } = await tokensOf(grant)
  expect((await findTokenScopes(pool, access))?.toSorted()).toEqual(SCOPES)
  expect(await findTokenScopes(pool, token)).toBeNull()
  await end(grant)
  expect(await findTokenScopes(pool, access)).toBeNull()
})

test('old OAuth rows are deleted after their retention periods, and younger rows are kept', async () => {
  const [old, young] = [await newGrant(), await newGrant()]
  await Promise.all([tokensOf(old), tokensOf(young)])
  const ago = (period: string) => `clock_timestamp() - interval '${period}'`
  const shift = async (grant: Grant, slack: string) => {
    await change('oauth_codes', `expires_at = ${ago(`1 day ${slack}`)}`, 'grant_id', grant.id)
    await change('oauth_tokens', `expires_at = ${ago(`1 day ${slack}`)}`, 'grant_id', grant.id)
    await change('oauth_clients', `created_at = ${ago(`1 day ${slack}`)}`, 'id', grant.clientId)
  }
  await shift(old, '1 minute')
  await shift(young, '-1 minute')
  const rows = async ({ id, clientId }: Grant) =>
    (
      await pool.query(
        `select (select count(*)::int from oauth_codes where grant_id = $1) as codes,
           (select count(*)::int from oauth_tokens where grant_id = $1) as tokens,
           (select count(*)::int from oauth_grants where id = $1) as grants,
           (select count(*)::int from oauth_clients where id = $2) as clients`,
        [id, clientId],
      )
    ).rows[0]
  await grantRows.cleanUp(pool)
  expect(await rows(old)).toEqual({ codes: 0, tokens: 0, grants: 1, clients: 0 })
  expect(await rows(young)).toEqual({ codes: 1, tokens: 2, grants: 1, clients: 1 })

  await change(
    'oauth_clients',
    `used_at = now(), created_at = ${ago('2 days')}`,
    'id',
    young.clientId,
  )
  await change('oauth_grants', `revoked_at = ${ago('30 days 1 minute')}`, 'id', old.id)
  await change('oauth_grants', `expires_at = ${ago('30 days -1 minute')}`, 'id', young.id)
  await grantRows.cleanUp(pool)
  expect(await rows(old)).toMatchObject({ grants: 0 })
  expect(await rows(young)).toMatchObject({ grants: 1, clients: 1 })
  await change('oauth_grants', `expires_at = ${ago('30 days 1 minute')}`, 'id', young.id)
  await grantRows.cleanUp(pool)
  expect(await rows(young)).toMatchObject({ grants: 0 })
})
