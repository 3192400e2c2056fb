/**
 * Sets two cookies. One ties an OAuth consent request, or a sign-in, to the browser that began it. The other proves in
 * which browser a person has signed in before.
 */
import { randomBytes } from 'node:crypto'

/**
 * Returns the name of the cookie that ties a request to the browser. The name has the prefix `__Host-`, so that no
 * sibling host can set the browser's cookie.
 */
const cookieName = (baseUrl: string): string =>
  baseUrl.startsWith('https:') ? '__Host-purser_browser' : 'purser_browser'

const SECRET = /^[A-Za-z0-9_-]{43}$/

/**
 * Returns the secret in the cookie that ties a request to the browser. If the browser has no cookie, returns a new
 * secret of 256 random bits.
 */
export const browserOf = (request: Request, baseUrl: string): string =>
  readBrowser(request, baseUrl) ?? randomBytes(32).toString('base64url')

/**
 * Returns the headers of a response that ties a request to the browser by a cookie. The headers forbid caches to store
 * this response.
 */
export const browserHeaders = (baseUrl: string, secret: string): Record<string, string> => ({
  'set-cookie': `${cookieName(baseUrl)}=${secret}; Max-Age=3600; Path=/; HttpOnly; SameSite=Lax${secure(baseUrl)}`,
  'cache-control': 'no-store',
})

/** Returns the secret in the browser's cookie. Returns `null` if the browser sent no cookie of this name. */
export const readBrowser = (request: Request, baseUrl: string): string | null =>
  readCookie(request, cookieName(baseUrl))

const PROOF_DAYS = 180

const proofName = (baseUrl: string): string =>
  baseUrl.startsWith('https:') ? '__Host-purser_known' : 'purser_known'

/** Returns the Set-Cookie header that stores the proof of a sign-in in the browser. */
export const proofCookie = (baseUrl: string, proof: string): string =>
  `${proofName(baseUrl)}=${proof}; Max-Age=${PROOF_DAYS * 86_400}; Path=/; HttpOnly; SameSite=Strict${secure(baseUrl)}`

/** Returns the proof of an earlier sign-in that the browser sent. Returns `null` if the browser sent no proof. */
export const readProof = (request: Request, baseUrl: string): string | null =>
  readCookie(request, proofName(baseUrl))

const secure = (baseUrl: string): string => (baseUrl.startsWith('https:') ? '; Secure' : '')

function readCookie(request: Request, wanted: string): string | null {
  for (const pair of request.headers.get('cookie')?.split(';') ?? []) {
    const [name = '', value = ''] = pair.trim().split('=')
    if (name === wanted && SECRET.test(value)) return value
  }
  return null
}
