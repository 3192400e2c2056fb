/** Checks redirect URIs of OAuth clients (OAuth 2.1 §2.3, RFC 8252 §7). */

const URI_MAX_CHARS = 500
/**
 * Lists redirect URIs with a private scheme that well-known programs use. The service accepts no other URIs of this
 * kind, because any program can claim a private scheme.
 */
const PRIVATE_URIS: readonly string[] = ['cursor://anysphere.cursor-mcp/oauth/callback']
const LOOPBACK = ['127.0.0.1', '[::1]', 'localhost']

const isLoopback = (url: URL): boolean =>
  url.protocol === 'http:' && LOOPBACK.includes(url.hostname)

/** Returns the rule that a redirect URI breaks, as a text. @returns null if a client may register the redirect URI. */
export function redirectFault(uri: unknown): string | null {
  if (typeof uri !== 'string' || uri.length > URI_MAX_CHARS) {
    return `must be a text of at most ${URI_MAX_CHARS} characters`
  }
  if (PRIVATE_URIS.includes(uri)) return null
  const url = URL.canParse(uri) ? new URL(uri) : null
  if (url === null || !/^[\x21-\x7e]+$/.test(uri)) return 'must be a URL in ASCII'
  if (url.protocol !== 'https:' && !isLoopback(url))
    return 'must be https, or http to a loopback host'
  // The URI must have `//`, because in a Location header, a browser would resolve a URL such as `https:app.example/cb`
  // as a path of this service, and not as another host.
  if (!/^[a-z]+:\/\/[^/]/i.test(uri)) return 'must have // and a host after its scheme'
  if (uri.includes('#') || uri.includes('*') || uri.includes('\\')) {
    return 'must have no fragment, wildcard or backslash'
  }
  if (url.username !== '' || url.password !== '') return 'must have no user name'
  return null
}

/**
 * Tells whether the redirect URI of an OAuth request is registered. The URI of the request must equal a registered URI,
 * but the port of a loopback host may differ.
 */
export function isRegistered(uri: string, registered: readonly string[]): boolean {
  if (redirectFault(uri) !== null) return false
  if (registered.includes(uri)) return true
  const withoutPort = portless(uri)
  return withoutPort !== null && registered.some((one) => portless(one) === withoutPort)
}

function portless(uri: string): string | null {
  const url = URL.canParse(uri) ? new URL(uri) : null
  if (url === null || !isLoopback(url)) return null
  return uri.replace(/^(http:\/\/(?:\[::1\]|[^/:?]+)):\d{1,5}(?=[/?]|$)/, '$1')
}

/** Returns the host that receives the authorization code, in a form for people. */
export const redirectHost = (uri: string): string => {
  const url = new URL(uri)
  return url.protocol === 'https:'
    ? url.host
    : isLoopback(url)
      ? 'this computer'
      : `${url.protocol}//`
}
