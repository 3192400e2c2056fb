/** Makes OAuth grants (consents of owners) in a test database, each with its own client, project and person. */
import { newToken } from '../../../shared/oauth/oauthTokens.ts'
import { hashSecret } from '../../../shared/secretHash.ts'
import {
  exchangeCode,
  refreshTokens,
  type TokenFault,
  type TokenPair,
} from '../../../sql/account/oauth/oauthTokens.ts'
import { STALE_OAUTH } from '../../../sql/account/oauth/staleOAuth.ts'
import type { Pool } from '../../../sql/db.ts'
import { newProject } from '../till/tillRows.ts'

export const REDIRECT = 'https://host.example/cb'
export const SCOPES = ['mail:read', 'mail:send']
let made = 0

/** Makes a registered OAuth client, a project and a grant (an owner's consent) with an unused authorization code. */
export async function newGrant(
  pool: Pool,
  { clientId = `client-${++made}`, role = 'operator' } = {},
) {
  const projectId = await newProject(pool)
  const id = `grant-${++made}`
  const personId = `person-${made}`
  await pool.query(
    `insert into oauth_clients (id, name, redirect_uris) select $1::text, 'Host', array[$2::text]
     where $1 not like 'https://%'`,
    [clientId, REDIRECT],
  )
  await pool.query(`insert into people (id, name, email, role) values ($1, 'Ada', $2, $3)`, [
    ...[personId, `${personId}@example.com`, role],
  ])
  await pool.query(
    `insert into oauth_grants (id, project_id, client_id, client_name, redirect_host, scopes, resource, actor, expires_at,
       person_id)
     values ($1, $2, $3, 'Host', 'host.example', $4, 'https://purser.example/mcp', 'test',
       clock_timestamp() + interval '90 days', $5)`,
    [id, projectId, clientId, SCOPES, personId],
  )
  return { id, projectId, clientId, personId, code: await newCode(pool, id, clientId) }
}
export type Grant = Awaited<ReturnType<typeof newGrant>>

export async function newCode(pool: Pool, grantId: string, clientId: string): Promise<string> {
  const code = newToken('code')
  await pool.query(
    `insert into oauth_codes (code_hash, grant_id, client_id, redirect_uri, challenge, expires_at)
     values ($1, $2, $3, $4, 'challenge', clock_timestamp() + interval '1 minute')`,
    [hashSecret(code), grantId, clientId, REDIRECT],
  )
  return code
}

/**
 * Exchanges the authorization code of an OAuth grant (an owner's consent). `changes` replaces parameters of the
 * exchange.
 */
export const exchange = (
  pool: Pool,
  { code, clientId }: Grant,
  changes: { [key: string]: unknown } = {},
) =>
  exchangeCode(
    pool,
    {
      ...{ code, clientId, redirectUri: REDIRECT },
      isProven: (challenge) => challenge === 'challenge',
      ...changes,
    },
    'req_1',
  )

/** Returns the tokens of a successful exchange of an authorization code. */
export async function given(result: Promise<TokenPair | TokenFault>): Promise<TokenPair> {
  const pair = await result
  if (typeof pair === 'string') throw new Error(pair)
  return pair
}

export const refresh = (
  pool: Pool,
  grant: Grant,
  token: string,
  scopes: string[] | null = null,
): Promise<TokenPair | TokenFault> =>
  refreshTokens(pool, { token, clientId: grant.clientId, scopes }, 'req_1')

/** Makes the first exchange of a refresh token look older, so that another exchange counts as reuse. */
export const ageExchange = (pool: Pool, token: string) =>
  pool.query(
    `update oauth_tokens set rotated_at = rotated_at - interval '61 seconds' where token_hash = $1`,
    [hashSecret(token)],
  )

/** Deletes old rows of the OAuth tables, as the housekeeping does. */
export async function cleanUp(pool: Pool): Promise<void> {
  for (const step of STALE_OAUTH) await step(pool)
}
