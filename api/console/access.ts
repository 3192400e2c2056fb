/**
 * Controls access to the console. A console request needs a session cookie, and must come from the console's own page.
 */

import { networkSubject } from '../../shared/http/networkSubject.ts'
import { type Actor, ORGANIZATION } from '../../sql/account/audit.ts'
import {
  type ConsoleSession,
  findSession,
  IDLE_HOURS,
  SECRET_FORM,
} from '../../sql/account/people/consoleSessions.ts'
import { ApiError } from '../http/errors.ts'
import { countFailedSignIn } from '../http/gate.ts'
import { stateOf } from '../http/requestState.ts'
import type { Services } from '../http/services.ts'

/**
 * Names a header that the console page sends with every request, and that a form or an image on another site cannot
 * send.
 */
const HEADER = 'x-purser-console'

/** Returns the session of an admitted console request. */
export function sessionOf(request: Request): ConsoleSession {
  const { session } = stateOf(request)
  if (session === null) throw new Error('this route needs access: console')
  return session
}

/**
 * Returns the name of the acting person for the audit log, which is the person's mail address. The first operator has
 * only an id until the operator sets a mail address.
 */
export const actorOf = ({ person }: ConsoleSession): string =>
  `console:${person.email ?? person.id}`

/**
 * Returns the actor for audit log entries that belong to no project.
 * @param session is the console session of the person. By default, the actor is the person of the session with which
 * the admitted request was made.
 */
export const organizationActor = (
  request: Request,
  session: ConsoleSession = sessionOf(request),
): Actor => ({
  projectId: ORGANIZATION,
  keyPrefix: actorOf(session),
  requestId: stateOf(request).requestId,
})

/**
 * Refuses cross-site requests (CSRF). SameSite=Strict removes the session cookie from cross-site requests, but a
 * sibling subdomain counts as the same site. Therefore this check is needed in addition.
 * @param framed tells whether the browser loads the HTML body of a mail into a frame. The request for the frame lacks
 * the console's request header.
 * @throws {ApiError} 403 for a cross-site request.
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

/**
 * Returns the name of the session cookie. The name has the prefix `__Host-`, so that no sibling host can set the cookie
 * of another session. Browsers accept this prefix only over TLS, and only with the path `/`.
 */
const cookieName = (baseUrl: string): string =>
  isSecure(baseUrl) ? '__Host-purser_session' : 'purser_session'

const isSecure = (baseUrl: string): boolean => baseUrl.startsWith('https:')

/** Returns the Set-Cookie header of a console session. If `secret` is `null`, the header deletes the session cookie. */
export function sessionCookie(baseUrl: string, secret: string | null, expiresAt?: Date): string {
  const [path, secure] = isSecure(baseUrl) ? ['/', '; Secure'] : ['/console', '']
  const attributes = `Path=${path}; HttpOnly; SameSite=Strict${secure}`
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
 * Admits a request of the console that has a live session.
 * @throws {ApiError} 401 without a live session, 403 for a cross-site request, 429 after many wrong session secrets.
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
  const session = secret === null ? null : await findSession(services.gatePool, secret, active)
  if (session !== null) {
    stateOf(request).session = session
    return session
  }
  if (secret !== null) await countFailedSignIn(services, networkSubject(address))
  throw new ApiError(
    401,
    'unauthorized',
    `Sign in to the console: a session ends after ${IDLE_HOURS} hours without use`,
  )
}
