/** The one form of a path, in which it is both matched with the prices and forwarded. */

/** A path that two servers can read in two ways. The message says what it must not hold. */
export class PathError extends Error {}

/** RFC 3986 §2.3. */
const UNRESERVED = /^[A-Za-z0-9._~-]$/
/** An encoded slash, backslash, percent sign or control character: the next server may decode it again. */
const TWICE = /%(?:2f|5c|25|[01][0-9a-f]|7f)/i

/**
 * Normalises the path of a URL (RFC 3986 §6.2.2): dot segments are gone, letters that need no encoding have none.
 * @throws {PathError}
 */
export function normalPath(pathname: string): string {
  if (pathname.includes('\\')) throw new PathError('the path must not hold a backslash')
  if (TWICE.test(pathname)) {
    throw new PathError(
      'the path must not hold an encoded slash, backslash, % or control character',
    )
  }
  if (/%(?![0-9a-f]{2})/i.test(pathname)) {
    throw new PathError('the path must not hold a % without two digits')
  }
  const decoded = pathname.replace(/%[0-9a-f]{2}/gi, (code) => {
    const char = String.fromCharCode(Number.parseInt(code.slice(1), 16))
    return UNRESERVED.test(char) ? char : code.toUpperCase()
  })
  // A decoded %2e makes a new dot segment.
  if (/\/\.{1,2}(?:\/|$)/.test(decoded)) throw new PathError('the path must not hold dot segments')
  if (decoded.includes('//')) throw new PathError('the path must not hold an empty segment')
  return decoded
}
