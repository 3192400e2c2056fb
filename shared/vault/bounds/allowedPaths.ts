/**
 * Checks the URL path of a request with a secret. The allowed paths of a credential are prefixes, which the check
 * compares segment by segment.
 */
import { isClearPath } from '../../http/clearPath.ts'
import type { Meet } from './narrowing.ts'

/** Sets the maximum number of allowed paths of one credential. */
export const ALLOWED_PATHS_MAX = 20
const ENTRY_MAX_LENGTH = 1_024

/** Holds the allowed path `/`, which allows every path. */
export const ANY_PATH = '/'

/** Describes in words the format of an allowed path, for error messages. */
export const ALLOWED_PATH_RULE =
  'be a path such as /v1/charges, without query, dot segments, empty segments and encoded slashes'

/**
 * Returns the canonical form of an allowed path of a credential. @returns null if the text is malformed.
 *
 * @example parseAllowedPath('/bücher/') // '/b%C3%BCcher'
 */
export function parseAllowedPath(text: string): string | null {
  if (text.length > ENTRY_MAX_LENGTH || !/^\/[^?#{}\\\s]*$/.test(text)) return null
  if (/%(?:2f|5c|25)/i.test(text) || !isClearPath(text)) return null
  const { pathname } = new URL(text, 'https://any.example')
  return pathname === ANY_PATH ? ANY_PATH : pathname.replace(/\/$/, '')
}

const isPrefix = (prefix: string, path: string): boolean => {
  const [short, long] = [upperEscapes(prefix), upperEscapes(path)]
  return short === ANY_PATH || long === short || long.startsWith(`${short}/`)
}

/**
 * Writes the hexadecimal digits of each percent-encoding in upper case, because the percent-encodings `%c3` and `%C3`
 * are equivalent (RFC 3986 §6.2.2.1).
 */
const upperEscapes = (path: string): string =>
  path.replace(/%[\da-f]{2}/gi, (encoded) => encoded.toUpperCase())

/**
 * Returns the narrower of two allowed paths. Two allowed paths have no path in common, unless one allowed path includes
 * the other.
 */
export const meetPaths: Meet = (one, other) =>
  isPrefix(other, one) ? one : isPrefix(one, other) ? other : null

/**
 * Tells whether one of the allowed paths is a prefix of a URL's path, as `URL.pathname` writes the path. Some servers
 * and proxies decode a path more than once, join double slashes, read `\` as `/`, and drop `;parameters`. The function
 * refuses a path that such a server could read as a path outside the allowed prefix.
 */
export const isAllowedPath = (entries: readonly string[], pathname: string): boolean =>
  entries.includes(ANY_PATH) ||
  (entries.some((entry) => isPrefix(entry, pathname)) && isClearPath(pathname))
