import { badRequest } from '../errors.ts'

/** Matches a host and a port (RFC 9110 §7.2). */
const HOST = /^(?:\[[\da-f:.]{2,45}\]|[\w.~%-]{1,253})(?::\d{0,5})?$/i

/**
 * Reads the URL of an HTTP request. The Host header is a part of the URL, so a wrong Host header is an error of the
 * client. The function refuses a `#`, because a request target has no fragment (RFC 9112 §3.2). Otherwise the router
 * would take the `#` as a part of the path, and would run another route than the checked one.
 */
export function readUrl(request: Pick<Request, 'url' | 'headers'>): URL {
  const host = request.headers.get('host')
  const url = URL.parse(request.url)
  if (url === null || (host !== null && host !== '' && !HOST.test(host))) {
    throw badRequest('Host must be a host name or an IP address, with an optional port')
  }
  if (request.url.includes('#')) throw badRequest('The request target must not contain #')
  return url
}

/** Refuses a URL whose path or query cannot be decoded, or holds U+0000, because libraries disagree about such URLs. */
export function checkEncoding(url: URL): void {
  for (const [name, text] of [
    ['path', url.pathname],
    ['query', url.search],
  ] as const) {
    let decoded: string
    try {
      decoded = decodeURIComponent(text)
    } catch {
      throw badRequest(`The ${name} must be valid percent-encoded UTF-8`)
    }
    if (decoded.includes('\0')) throw badRequest(`The ${name} must not contain a null character`)
  }
}
