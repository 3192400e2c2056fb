import { OFFLINE_ACCESS, SCOPE_MAX_CHARS } from '../../shared/oauth/oauthScopes.ts'
import { fitsChallenge } from '../../shared/oauth/oauthTokens.ts'
import { isMcpResource, mcpResource } from '../../shared/oauth/resource.ts'
import { findRegisteredClient } from '../../sql/account/oauth/oauthClients.ts'
import {
  exchangeCode,
  refreshTokens,
  revokeToken,
  type TokenFault,
  type TokenPair,
} from '../../sql/account/oauth/oauthTokens.ts'
import type { Services } from '../http/services.ts'
import { OAuthError } from './oauthError.ts'

type Form = Record<string, string>

const FIELD_MAX_CHARS = 1_000

/**
 * Returns the fields of a token request by their names. A parameter without a value counts as absent. No parameter may
 * occur twice (RFC 6749 §3.2), except that `resource` may repeat the same value (RFC 8707 §2). @throws {OAuthError} for
 * a repeated parameter.
 */
export function fieldsOf(pairs: readonly (readonly [name: string, value: string])[]): Form {
  const fields = new Map<string, string>()
  for (const [name, value] of pairs) {
    if (value === '') continue
    const isSame = name === 'resource' && fields.get(name) === value
    if (fields.has(name) && !isSame) {
      throw new OAuthError('invalid_request', 'each parameter must be set once')
    }
    fields.set(name, value)
  }
  return Object.fromEntries(fields)
}

/**
 * Serves the token endpoint `POST /oauth/token` (OAuth 2.1 §3.2). @throws {OAuthError} for an invalid token request.
 */
export async function giveTokens(services: Services, form: Form, requestId: string) {
  const { pool, config } = services
  const grantType = field(form, 'grant_type')
  const clientId = field(form, 'client_id')
  await requireClient(services, clientId)
  // A parameter without a value counts as absent (RFC 6749 §3.2).
  if (form.resource && !isMcpResource(form.resource, config.http.baseUrl)) {
    throw new OAuthError('invalid_target', `resource must be ${mcpResource(config.http.baseUrl)}`)
  }
  if (grantType === 'authorization_code') {
    const verifier = field(form, 'code_verifier')
    return answer(
      await exchangeCode(
        pool,
        {
          code: field(form, 'code'),
          clientId,
          // The parameter redirect_uri is optional, because OAuth 2.1 §10.2 does not define it for the token endpoint.
          // PKCE ties the code to its client instead.
          redirectUri: form.redirect_uri ? field(form, 'redirect_uri') : null,
          isProven: (challenge) => fitsChallenge(verifier, challenge),
        },
        requestId,
      ),
    )
  }
  if (grantType === 'refresh_token') {
    const token = field(form, 'refresh_token')
    const scopes = narrowed(form.scope)
    return answer(await refreshTokens(pool, { token, clientId, scopes }, requestId))
  }
  throw new OAuthError(
    'unsupported_grant_type',
    'grant_type must be authorization_code or refresh_token',
  )
}

/**
 * Returns the scopes that a client requests when it refreshes a token. Returns `null` if the refreshed token keeps the
 * scopes of the old token.
 */
function narrowed(scope: string | undefined): string[] | null {
  if (scope === undefined) return null
  if (scope.length > SCOPE_MAX_CHARS) {
    throw new OAuthError('invalid_scope', `scope must have at most ${SCOPE_MAX_CHARS} characters`)
  }
  const named = scope.split(' ').filter((one) => one !== '' && one !== OFFLINE_ACCESS)
  const scopes = [...new Set(named)]
  return scopes.length === 0 ? null : scopes
}

const FAULTS: Record<TokenFault, [message: string, status: number]> = {
  invalid_grant: [
    'the code or the refresh token is unknown, used or over: ask the owner again',
    400,
  ],
  invalid_scope: ['scope must be part of what the owner gave', 400],
  temporarily_unavailable: ['the app refreshes its tokens too often: wait a minute', 429],
}

function answer(found: TokenPair | TokenFault) {
  if (typeof found === 'string') throw new OAuthError(found, ...FAULTS[found])
  return {
    access_token: found.access,
    token_type: 'Bearer',
    expires_in: found.accessSeconds,
    refresh_token: found.refresh,
    scope: found.scopes.join(' '),
  }
}

/**
 * Serves the revocation endpoint `POST /oauth/revoke` (RFC 7009). The revocation of an unknown token is not an error.
 * @throws {OAuthError} for a missing parameter.
 */
export async function revoke(services: Services, form: Form, requestId: string): Promise<void> {
  const token = field(form, 'token')
  await revokeToken(services.pool, { token, clientId: field(form, 'client_id') }, requestId)
}

/**
 * Refuses an unknown OAuth client with an error that makes a chat host register again. A client with a metadata
 * document needs no registration, because the owner's grant (consent) identifies it.
 */
async function requireClient({ pool }: Services, clientId: string): Promise<void> {
  if (clientId.startsWith('https://')) return
  if ((await findRegisteredClient(pool, clientId)) === null) {
    throw new OAuthError('invalid_client', 'client_id is unknown: register again', 401)
  }
}

function field(form: Form, name: string): string {
  const value = form[name] ?? ''
  if (value === '') throw new OAuthError('invalid_request', `${name} must be set`)
  if (value.length > FIELD_MAX_CHARS) {
    throw new OAuthError(
      'invalid_request',
      `${name} must have at most ${FIELD_MAX_CHARS} characters`,
    )
  }
  return value
}
