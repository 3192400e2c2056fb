import { parseAuthorization } from '../../shared/apiKey.ts'
import type { Config } from '../../shared/config/config.ts'
import { networkSubject } from '../../shared/http/networkSubject.ts'
import { offeredScopes } from '../../shared/oauth/oauthScopes.ts'
import { isToken } from '../../shared/oauth/oauthTokens.ts'
import { isOAuthOn, resourceMetadataUrl } from '../../shared/oauth/resource.ts'
import type { Scope } from '../../shared/scopes.ts'
import { type FoundKey, findKeyScopes, type Identity } from '../../sql/account/keys/keys.ts'
import {
  countAuthFailure,
  countRequests,
  type RateWindow,
  type Usage,
} from '../../sql/account/keys/rateWindows.ts'
import { authenticateToken, findTokenScopes } from '../../sql/account/oauth/oauthTokens.ts'
import type { Access } from '../docs/routeTable.ts'
import { ApiError } from './errors.ts'
import type { Services } from './services.ts'

/** Holds the values of the X-RateLimit headers. */
export type Budget = { limit: number; remaining: number; resetsAt: Date }

/** Holds the path of the MCP endpoint, the only path that accepts OAuth tokens. */
export const MCP_PATH = '/mcp'

/**
 * Holds the first part of the paths of the x402 facilitator routes, which have a separate request limit. Therefore a
 * seller's sales and the other calls of the project cannot use up each other's limit.
 */
const FACILITATOR = '/v0/x402/'
/**
 * Holds the path of redeem calls. The gate (the checks before every handler) counts the calls, and the handler counts
 * the payments. The gate cannot count payments, because it has not checked the payment header, and anybody can make a
 * paywall forward any header.
 */
export const REDEEM_PATH = '/v0/payments/redeem'

/**
 * Maps some paths to a separate window of the rate limit. A paywall calls these paths for each request of a buyer, and
 * anybody can send such requests. With a shared window, they would use up the calls that the seller needs to redeem
 * payments and to read mail.
 */
const PAYWALL_WINDOWS: Partial<Record<string, RateWindow>> = {
  '/v0/payments/challenge': ':challenge',
  [REDEEM_PATH]: ':redeem',
}

/** Holds the messages for the ways in which an API key can be wrong (docs/contract.md §2). */
const UNAUTHORIZED = {
  header: 'Missing or invalid Authorization header',
  format: 'Invalid API key format',
  key: 'Invalid API key',
  token: 'The access token is unknown, revoked or over',
} as const

/**
 * Reports that the gate (the checks before every handler) refuses a request. The error holds the values of the
 * X-RateLimit headers.
 */
export class GateRefusal extends Error {
  readonly error: ApiError
  readonly budget: Budget | null
  constructor(error: ApiError, budget: Budget | null) {
    super(error.message)
    this.error = error
    this.budget = budget
  }
}

/**
 * Checks first the API key of a request, then the rate limit of the key, and then its scope.
 * @returns the identity of the API key, and the number of requests that its rate limit still allows. Null in place of
 * this number means that the rate limit is off.
 * @throws {GateRefusal} 401 for a wrong API key, 403 for a missing scope, 429 if the caller exceeds the rate limit.
 */
export async function admit(
  services: Services,
  { access, path }: { access: Exclude<Access, 'public' | 'console'>; path: string },
  authorization: string | null,
  clientAddress: string,
): Promise<{
  identity: Identity
  budget: Budget | null
  usage: Usage | null
  writtenTo: FoundKey['writtenTo']
}> {
  const accessToken = path === MCP_PATH ? bearerToken(authorization) : null
  if (accessToken !== null) return await admitToken(services, accessToken)
  const { keys, gatePool, config } = services
  const parsed = parseAuthorization(authorization)
  const ofFacilitator = path.startsWith(FACILITATOR)
  const found = parsed.ok
    ? await keys.submit({
        key: parsed.key,
        budget: ofFacilitator ? ':x402' : (PAYWALL_WINDOWS[path] ?? ''),
      })
    : null
  if (found === null) {
    const reason = parsed.ok ? 'key' : parsed.reason
    // A request to the MCP endpoint without an API key does not count as a request with a wrong key. A chat host sends
    // such a request to learn how to sign in, and all users of the host share its IP addresses.
    if (path === MCP_PATH && reason === 'header' && isOAuthOn(config.http.baseUrl)) {
      throw new GateRefusal(unauthorized(reason, mcpChallenge(config)), null)
    }
    throw await refuseUnauthorized(
      gatePool,
      { reason, challenge: path === MCP_PATH ? mcpChallenge(config) : '' },
      config.limits.authFailuresPerMinute,
      clientAddress,
    )
  }
  const { usage } = found
  const limit = limitOf(path, usage, config.limits)
  const refusal = refusalOver(usage, limit)
  if (refusal !== null) throw refusal
  const budget = toBudget(usage, limit)
  if (!allows(found.identity, access)) {
    throw new GateRefusal(missingScope(access), budget)
  }
  const { identity, writtenTo } = found
  return { identity, budget, usage: budget === null ? null : usage, writtenTo }
}

/**
 * Returns the rate limit that counts a request. The first redeem calls of a minute count as new payments. All further
 * redeem calls of this minute count only towards the higher limit of all redeem calls.
 */
function limitOf(path: string, { used }: Usage, limits: Config['limits']): number {
  if (path.startsWith(FACILITATOR)) return limits.facilitatorRequestsPerMinute
  const isLate = path === REDEEM_PATH && used > limits.requestsPerMinute
  return isLate ? limits.redeemCallsPerMinute : limits.requestsPerMinute
}

/**
 * Checks an admitted API key or OAuth token again, without counting the request again.
 * @param authorization is the Authorization header of the request.
 * @returns the identity with the scopes that the caller still has.
 * @throws {ApiError} 401 if the key or the token is revoked, or if the token has expired, 403 if the caller has lost
 * the scope.
 */
export async function admitAgain(
  { gatePool, config }: Services,
  access: 'key' | Scope,
  identity: Identity,
  authorization: string | null,
): Promise<Identity> {
  const token = identity.kind === 'oauth' ? bearerToken(authorization) : null
  const held = await (token === null
    ? findKeyScopes(gatePool, identity.keyId)
    : findTokenScopes(gatePool, token))
  if (held === null) {
    throw token === null ? unauthorized('key', '') : unauthorized('token', mcpChallenge(config))
  }
  const scopes = token === null ? held : identity.scopes.filter((scope) => held.includes(scope))
  const now = { ...identity, scopes }
  if (!allows(now, access)) throw missingScope(access)
  return now
}

/**
 * Counts each call after the first in an HTTP request with several calls (an MCP batch) as a separate request.
 * @returns what the rate limit allows after these calls. Null means that the function counted nothing.
 * @throws {GateRefusal} 429 if the calls exceed the rate limit. The service then executes none of the calls.
 */
export async function countFurther(
  { gatePool, config }: Services,
  projectId: string,
  calls: number,
): Promise<Budget | null> {
  const limit = config.limits.requestsPerMinute
  if (limit === 0 || calls < 1) return null
  const usage = await countRequests(gatePool, projectId, calls)
  const budget = toBudget(usage, limit)!
  if (usage.used > limit) throw new GateRefusal(tooManyRequests(budget), budget)
  return budget
}

/**
 * Makes an error response with status 401. If the request had no API key, the response holds no error code (RFC 6750
 * §3.1).
 */
function unauthorized(reason: keyof typeof UNAUTHORIZED, challenge: string): ApiError {
  const fault =
    reason === 'header'
      ? ''
      : `, error="invalid_token", error_description="${UNAUTHORIZED[reason]}"`
  return new ApiError(401, 'unauthorized', UNAUTHORIZED[reason], {
    'www-authenticate': `Bearer realm="purser"${fault}${challenge}`,
  })
}

/**
 * Tells an MCP host where the authorization server is, and which scopes the owner's consent can give (RFC 9728 §5.1).
 */
const mcpChallenge = ({ http: { baseUrl }, oauthPurseScopes }: Config): string =>
  isOAuthOn(baseUrl)
    ? `, resource_metadata="${resourceMetadataUrl(baseUrl)}", scope="${offeredScopes(oauthPurseScopes).join(' ')}"`
    : ''

/**
 * Returns the OAuth access token of an Authorization header. Returns `null` if the header holds none, for example
 * because it holds an API key.
 */
function bearerToken(authorization: string | null): string | null {
  const token = authorization === null ? undefined : /^Bearer +(\S+) *$/i.exec(authorization)?.[1]
  return token !== undefined && isToken(token, 'access') ? token : null
}

/**
 * Admits an OAuth client to the MCP endpoint. The gate (the checks before every handler) does not count requests with
 * invalid OAuth tokens. Such a count is not needed, because nobody can guess the 256 bits of a token. It would also
 * harm valid clients, because each of them sends an expired token at some time.
 */
async function admitToken({ gatePool, reads, config }: Services, token: string) {
  const found = await authenticateToken(gatePool, token, reads)
  if (found === null) throw new GateRefusal(unauthorized('token', mcpChallenge(config)), null)
  const budget = toBudget(found.usage, config.limits.requestsPerMinute)
  if (budget !== null && found.usage.used > budget.limit) {
    throw new GateRefusal(tooManyRequests(budget), budget)
  }
  // If the operator stops offering a scope, valid OAuth tokens also lose this scope.
  const offered: readonly string[] = offeredScopes(config.oauthPurseScopes)
  const scopes = found.identity.scopes.filter((scope) => offered.includes(scope))
  return {
    identity: { ...found.identity, scopes },
    budget,
    usage: null,
    writtenTo: found.writtenTo,
  }
}

/**
 * Counts a wrong API key against the IP address of its sender. After too many wrong API keys, the IP address gets a 429
 * for every further wrong key.
 */
async function refuseUnauthorized(
  pool: Services['pool'],
  { reason, challenge }: { reason: keyof typeof UNAUTHORIZED; challenge: string },
  limit: number,
  clientAddress: string,
): Promise<GateRefusal> {
  const error = unauthorized(reason, challenge)
  if (limit === 0) return new GateRefusal(error, null)
  const usage = await countAuthFailure(pool, networkSubject(clientAddress))
  const budget = toBudget(usage, limit)!
  return new GateRefusal(usage.used > limit ? tooManyRequests(budget) : error, budget)
}

/**
 * Counts a failed sign-in to the console. Failed sign-ins and wrong API keys of the same IP address share one count.
 * @param subject is the name under which the service counts failed sign-ins of the caller's network, as
 * `networkSubject` returns it.
 * @throws {ApiError} 429 if the address exceeds the limit of failed sign-ins.
 */
export async function countFailedSignIn(
  { gatePool, config }: Services,
  subject: string,
): Promise<void> {
  const limit = config.limits.authFailuresPerMinute
  if (limit === 0) return
  const usage = await countAuthFailure(gatePool, subject)
  if (usage.used > limit) throw tooManyRequests(toBudget(usage, limit)!)
}

/**
 * Counts a request that a person sends to the console. All sessions of the person share the count.
 * @throws {ApiError} 429 if the person exceeds this rate limit.
 */
export async function countConsoleRequest(
  { gatePool, config }: Services,
  personId: string,
): Promise<void> {
  const limit = config.limits.consoleRequestsPerMinute
  if (limit === 0) return
  const usage = await countRequests(gatePool, `console:${personId}`, 1)
  if (usage.used > limit) throw tooManyRequests(toBudget(usage, limit)!)
}

/** Returns the refusal of a request that exceeds its rate limit. Returns `null` for a request within the limit. */
export function refusalOver(usage: Usage, limit: number): GateRefusal | null {
  const budget = toBudget(usage, limit)
  if (budget === null || usage.used <= limit) return null
  return new GateRefusal(tooManyRequests(budget), budget)
}

/** Makes the 429 error of an exceeded rate limit. */
export function tooManyRequests(budget: Budget): ApiError {
  const waitS = Math.max(1, Math.ceil((budget.resetsAt.getTime() - Date.now()) / 1000))
  return new ApiError(429, 'rate_limited', 'Too many requests', { 'retry-after': String(waitS) })
}

const missingScope = (access: string): ApiError =>
  new ApiError(403, 'forbidden', `Missing required scope: ${access}`)

const toBudget = ({ used, resetsAt }: Usage, limit: number): Budget | null =>
  limit === 0 ? null : { limit, remaining: Math.max(0, limit - used), resetsAt }

/**
 * Tells whether the identity of an API key may use a route. A caller with a platform key may only manage projects. A
 * caller with a project key may use only the routes that the key's scopes cover.
 */
function allows(identity: Identity, access: 'key' | Scope): boolean {
  if (access === 'key') return true
  if (identity.kind === 'platform') return access === 'platform:manage'
  return identity.scopes.includes(access)
}
