/** Sets the cookie that ties an OAuth consent request, or a sign-in, to the browser that began it. */
import { randomBytes } from 'node:crypto'

/**
 * Returns the name of the browser's cookie. The name has the prefix `__Host-`, so that no sibling host can set the
 * browser's cookie.
 */
const cookieName = (baseUrl: string): string =>
  baseUrl.startsWith('https:') ? '__Host-purser_browser' : 'purser_browser'

const BROWSER = /^[A-Za-z0-9_-]{43}$/

/**
 * Returns the secret in the browser's cookie. If the browser has no cookie, returns a new secret of 256 random bits.
 */
export const browserOf = (request: Request, baseUrl: string): string =>
  readBrowser(request, baseUrl) ?? randomBytes(32).toString('base64url')

/**
 * Returns the headers of a response that sets the browser's cookie. The headers forbid caches to store the response
 * with the browser's cookie.
 */
export const browserHeaders = (baseUrl: string, secret: string): Record<string, string> => ({
  'set-cookie': `${cookieName(baseUrl)}=${secret}; Max-Age=3600; Path=/; HttpOnly; SameSite=Lax${baseUrl.startsWith('https:') ? '; Secure' : ''}`,
  'cache-control': 'no-store',
})

/** Returns the secret in the browser's cookie. Returns `null` if the browser sent no cookie of this name. */
export function readBrowser(request: Request, baseUrl: string): string | null {
  for (const pair of request.headers.get('cookie')?.split(';') ?? []) {
    const [name = '', value = ''] = pair.trim().split('=')
    if (name === cookieName(baseUrl) && BROWSER.test(value)) return value
  }
  return null
}
