/** The cookie that ties a request for consent, or a sign-in, to the browser that began it. */
import { randomBytes } from 'node:crypto'

/** `__Host-`: no sibling host can set it. */
const cookieName = (baseUrl: string): string =>
  baseUrl.startsWith('https:') ? '__Host-purser_browser' : 'purser_browser'

const BROWSER = /^[A-Za-z0-9_-]{43}$/

/** The secret of the browser that asks: that of its cookie, or a new one of 256 random bits. */
export const browserOf = (request: Request, baseUrl: string): string =>
  readBrowser(request, baseUrl) ?? randomBytes(32).toString('base64url')

/** The headers of an answer that gives the browser its cookie. No cache keeps it. */
export const browserHeaders = (baseUrl: string, secret: string): Record<string, string> => ({
  'set-cookie': `${cookieName(baseUrl)}=${secret}; Max-Age=3600; Path=/; HttpOnly; SameSite=Lax${baseUrl.startsWith('https:') ? '; Secure' : ''}`,
  'cache-control': 'no-store',
})

/** The secret of the browser's cookie; null: it has none. */
export function readBrowser(request: Request, baseUrl: string): string | null {
  for (const pair of request.headers.get('cookie')?.split(';') ?? []) {
    const [name = '', value = ''] = pair.trim().split('=')
    if (name === cookieName(baseUrl) && BROWSER.test(value)) return value
  }
  return null
}
