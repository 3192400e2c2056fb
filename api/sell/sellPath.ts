/**
 * Makes the normal form of a URL path. The proxy finds the price by the normal form of the path, and forwards the
 * request with the path in this normal form.
 */
import { isClearPath } from '../../shared/http/clearPath.ts'
import { normalEncoding } from '../../shared/http/normalUrl.ts'

/**
 * Reports a path that two servers may interpret differently. The error message names the forbidden part of the path.
 */
export class PathError extends Error {}

/**
 * Matches a percent-encoded slash, backslash, percent sign or control character, because the server behind the proxy
 * might decode it a second time.
 */
const TWICE = /%(?:2f|5c|25|[01][0-9a-f]|7f)/i

/**
 * Normalises the path of a URL (RFC 3986 §6.2.2). The normalisation removes dot segments, and decodes the characters
 * that need no encoding.
 * @throws {PathError} for a path that two servers may interpret differently.
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
  const decoded = normalEncoding(pathname)
  // Servlet containers drop the parameters of a segment. Therefore they read `/..;a/` as a dot segment.
  if (/\/\.{0,2}(?:;|%3B)/.test(decoded)) {
    throw new PathError('the path must not hold parameters of an empty segment or of a dot segment')
  }
  // Decoding %2e can create a new dot segment in the path. Therefore the check for dot segments reads the decoded path.
  if (/\/\.{1,2}(?:\/|$)/.test(decoded)) throw new PathError('the path must not hold dot segments')
  if (decoded.includes('//')) throw new PathError('the path must not hold an empty segment')
  if (!isClearPath(decoded)) {
    throw new PathError(
      'the path must be UTF-8, and must not hold a segment that some servers read as a dot segment',
    )
  }
  return decoded
}
