/** The cookie that ties a request for consent, or a sign-in, to the browser that began it. */
import { randomBytes } from 'node:crypto'

/** `__Host-`: no sibling host can set it. */
const cookieName = (baseUrl: string): string =>
  baseUrl.startsWith('https:') ? '__Host-purser_browser' : 'purser_browser'

const BROWSER = /^[A-Za-z0-9_-]{43}$/

/** A new secret for a browser: 256 random bits in base64url. */
export const newBrowser = (): string => randomBytes(32).toString('base64url')

/** The Set-Cookie header. */
export const browserCookie = (baseUrl: string, secret: string): string =>
  `${cookieName(baseUrl)}=${secret}; Max-Age=3600; Path=/; HttpOnly; SameSite=Lax${baseUrl.startsWith('https:') ? '; Secure' : ''}`

/** The secret of the browser's cookie; null: it has none. */
export function readBrowser(request: Request, baseUrl: string): string | null {
  for (const pair of request.headers.get('cookie')?.split(';') ?? []) {
    const [name = '', value = ''] = pair.trim().split('=')
    if (name === cookieName(baseUrl) && BROWSER.test(value)) return value
  }
  return null
}
