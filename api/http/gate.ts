import { parseAuthorization } from '../../shared/apiKey.ts'
import { networkSubject } from '../../shared/http/networkSubject.ts'
import type { Scope } from '../../shared/scopes.ts'
import type { FoundKey, Identity } from '../../sql/account/keys/keys.ts'
import { countAuthFailure, countRequests, type Usage } from '../../sql/account/keys/rateWindows.ts'
import type { Access } from '../docs/routeTable.ts'
import { ApiError } from './errors.ts'
import type { Services } from './services.ts'

/** The values of the X-RateLimit headers. */
export type Budget = { limit: number; remaining: number; resetsAt: Date }

/** Its routes have a budget of their own: sales do not use up that of the project, nor the other way round. */
const FACILITATOR = '/v0/x402/'

/** Messages for the three ways a key can be wrong (docs/contract.md §2). */
const UNAUTHORIZED = {
  header: 'Missing or invalid Authorization header',
  format: 'Invalid API key format',
  key: 'Invalid API key',
} as const

/** A refusal, with the budget for the X-RateLimit headers. */
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
 * Checks key, then limit, then scope.
 * @returns the identity and its budget (null while the limit is off).
 * @throws {GateRefusal} 401, 403 or 429.
 */
export async function admit(
  { keys, gatePool, config }: Services,
  { access, path }: { access: Exclude<Access, 'public' | 'console'>; path: string },
  authorization: string | null,
  clientAddress: string,
): Promise<{ identity: Identity; budget: Budget | null; writtenTo: FoundKey['writtenTo'] }> {
  const parsed = parseAuthorization(authorization)
  const ofFacilitator = path.startsWith(FACILITATOR)
  const found = parsed.ok
    ? await keys.submit({ key: parsed.key, budget: ofFacilitator ? ':x402' : '' })
    : null
  if (found === null) {
    const reason = parsed.ok ? 'key' : parsed.reason
    throw await refuseUnauthorized(
      gatePool,
      reason,
      config.limits.authFailuresPerMinute,
      clientAddress,
    )
  }
  const { requestsPerMinute, facilitatorRequestsPerMinute } = config.limits
  const limit = ofFacilitator ? facilitatorRequestsPerMinute : requestsPerMinute
  const budget = toBudget(found.usage, limit)
  if (budget !== null && found.usage.used > budget.limit) {
    throw new GateRefusal(tooManyRequests(budget), budget)
  }
  if (!allows(found.identity, access)) {
    throw new GateRefusal(
      new ApiError(403, 'forbidden', `Missing required scope: ${access}`),
      budget,
    )
  }
  return { identity: found.identity, budget, writtenTo: found.writtenTo }
}

/**
 * Counts the further calls of one HTTP request (MCP batches), each as a request of its own.
 * @throws {GateRefusal} 429; then no call may be answered.
 */
export async function countFurther(
  { gatePool, config }: Services,
  projectId: string,
  calls: number,
): Promise<void> {
  const limit = config.limits.requestsPerMinute
  if (limit === 0 || calls < 1) return
  const usage = await countRequests(gatePool, projectId, calls)
  const budget = toBudget(usage, limit)!
  if (usage.used > limit) throw new GateRefusal(tooManyRequests(budget), budget)
}

/** A wrong key counts against its IP address. Past the limit the address gets 429 for every wrong key. */
async function refuseUnauthorized(
  pool: Services['pool'],
  reason: keyof typeof UNAUTHORIZED,
  limit: number,
  clientAddress: string,
): Promise<GateRefusal> {
  // RFC 6750 §3.1: no error code for a request without a key.
  const challenge =
    reason === 'header'
      ? ''
      : `, error="invalid_token", error_description="${UNAUTHORIZED[reason]}"`
  const error = new ApiError(401, 'unauthorized', UNAUTHORIZED[reason], {
    'www-authenticate': `Bearer realm="purser"${challenge}`,
  })
  if (limit === 0) return new GateRefusal(error, null)
  const usage = await countAuthFailure(pool, networkSubject(clientAddress))
  const budget = toBudget(usage, limit)!
  return new GateRefusal(usage.used > limit ? tooManyRequests(budget) : error, budget)
}

/**
 * Counts a failed sign-in to the console, together with the wrong keys of that address.
 * @param subject as networkSubject makes it.
 * @throws {ApiError} 429 past the limit.
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

function tooManyRequests(budget: Budget): ApiError {
  const waitS = Math.max(1, Math.ceil((budget.resetsAt.getTime() - Date.now()) / 1000))
  return new ApiError(429, 'rate_limited', 'Too many requests', { 'retry-after': String(waitS) })
}

const toBudget = ({ used, resetsAt }: Usage, limit: number): Budget | null =>
  limit === 0 ? null : { limit, remaining: Math.max(0, limit - used), resetsAt }

/** A platform key only manages projects. A project key is limited to its scopes. */
function allows(identity: Identity, access: 'key' | Scope): boolean {
  if (access === 'key') return true
  if (identity.kind === 'platform') return access === 'platform:manage'
  return identity.scopes.includes(access)
}
