/** Who may use the console: whoever holds a session's cookie and asks from the console's own page. */
import {
  type ConsoleSession,
  findSession,
  IDLE_HOURS,
  SECRET_FORM,
} from '../../sql/account/consoleSessions.ts'
import { rateLimitSubject } from '../http/clientAddress.ts'
import { ApiError } from '../http/errors.ts'
import { countFailedSignIn } from '../http/gate.ts'
import { stateOf } from '../http/requestState.ts'
import type { Services } from '../http/services.ts'

/** A page of the console sends this with every request; a form or an image of another site cannot. */
const HEADER = 'x-purser-console'

/** The session of a request that the gate has let in. */
export function sessionOf(request: Request): ConsoleSession {
  const { session } = stateOf(request)
  if (session === null) throw new Error('this route asks for no session, yet for its holder')
  return session
}

/** What the audit log calls whoever is signed in. */
export const actorOf = (session: ConsoleSession): string => `console:${session.id}`

/**
 * Refuses what another site's page made the browser send. SameSite=Strict keeps the cookie from such requests; this
 * stands beside it, for browsers and days on which it does not hold (a sibling subdomain is the same site).
 * @param framed an HTML body in its frame, which the browser asks for without our header.
 * @throws {ApiError} 403
 */
export function refuseOtherSites(request: Request, baseUrl: string, framed: boolean): void {
  const { headers, method } = request
  const site = headers.get('sec-fetch-site')
  const origin = headers.get('origin')
  const foreign =
    (site !== null && site !== 'same-origin') ||
    (origin !== null && !isOwnOrigin(origin, headers.get('host'), baseUrl)) ||
    (framed ? method !== 'GET' && method !== 'HEAD' : headers.get(HEADER) === null)
  if (foreign) {
    throw new ApiError(403, 'forbidden', 'Only the page of the console may ask for this')
  }
}

function isOwnOrigin(origin: string, host: string | null, baseUrl: string): boolean {
  if (!URL.canParse(origin)) return false
  return origin === new URL(baseUrl).origin || new URL(origin).host === host
}

/** The cookie's name: browsers take one with this prefix over TLS only, and from nobody else. */
const cookieName = (baseUrl: string): string =>
  isSecure(baseUrl) ? '__Secure-purser_session' : 'purser_session'

const isSecure = (baseUrl: string): boolean => baseUrl.startsWith('https:')

/** The Set-Cookie that hands a session's secret to the browser, or with `null` takes it back. */
export function sessionCookie(baseUrl: string, secret: string | null, expiresAt?: Date): string {
  const attributes = `Path=/console; HttpOnly; SameSite=Strict${isSecure(baseUrl) ? '; Secure' : ''}`
  const lifetime = secret === null ? 'Max-Age=0' : `Expires=${expiresAt?.toUTCString()}`
  return `${cookieName(baseUrl)}=${secret ?? ''}; ${lifetime}; ${attributes}`
}

function readCookie(header: string | null, name: string): string | null {
  for (const pair of header?.split(';') ?? []) {
    const [key = '', value = ''] = pair.trim().split('=')
    if (key === name && SECRET_FORM.test(value)) return value
  }
  return null
}

/**
 * Lets a request of the console in.
 * @throws {ApiError} 401 without a live session, 403 for a request of another site, 429 after many wrong ones.
 */
export async function admitSession(
  services: Services,
  request: Request,
  { address, framed }: { address: string; framed: boolean },
): Promise<ConsoleSession> {
  const { baseUrl } = services.config.http
  refuseOtherSites(request, baseUrl, framed)
  const secret = readCookie(request.headers.get('cookie'), cookieName(baseUrl))
  const active = request.headers.get(HEADER) !== 'watching'
  const session = secret === null ? null : await findSession(services.pool, secret, active)
  if (session !== null) {
    stateOf(request).session = session
    return session
  }
  if (secret !== null) await countFailedSignIn(services, rateLimitSubject(address))
  throw new ApiError(
    401,
    'unauthorized',
    `Sign in to the console: a session ends after ${IDLE_HOURS} hours without use`,
  )
}
