/**
 * Makes the normal form of URLs, so that two spellings of one URL are equal texts. An owner's limits on URLs apply to
 * the normal form, because a server reads both spellings as the same path.
 */

/** Matches one unreserved character of a URL (RFC 3986 §2.3). */
const UNRESERVED = /^[A-Za-z0-9._~-]$/
/** Matches one character that a path segment may hold without percent-encoding (RFC 3986 §3.3). */
const OF_SEGMENT = /^[A-Za-z0-9._~!$&'()*+,;=:@-]$/
/** Matches the characters that a path needs to percent-encode, and each `%` that begins no percent-encoding. */
const UNENCODED = /%(?![0-9a-f]{2})|[^A-Za-z0-9._~!$&'()*+,;=:@/%-]/gi

const decodeWhere = (text: string, isPlain: RegExp): string =>
  text.replace(/%[0-9a-f]{2}/gi, (code) => {
    const char = String.fromCharCode(Number.parseInt(code.slice(1), 16))
    return isPlain.test(char) ? char : code.toUpperCase()
  })

/** Decodes the characters that need no percent-encoding, and writes the other codes in upper case (RFC 3986 §6.2.2). */
export const normalEncoding = (text: string): string => decodeWhere(text, UNRESERVED)

/** Holds the normal form of a URL without query and fragment. */
export type NormalUrl = { url: string; origin: string; host: string; path: string }

/**
 * Returns the normal form of an absolute URL without query and fragment. Dot segments are resolved. A character that a
 * path segment may hold stands there without percent-encoding, and every other character with it. Letter case, empty
 * segments and a slash at the end stay, because many servers tell these apart.
 *
 * @example normalUrl('https://API.example/a/../%77eather?x').url // 'https://api.example/weather'
 */
export function normalUrl(text: string): NormalUrl {
  const { origin, host, pathname } = new URL(text)
  const encoded = pathname.replace(UNENCODED, (char) => encodeURIComponent(char))
  const path = decodeWhere(encoded, OF_SEGMENT)
  return { url: `${origin}${path}`, origin, host, path }
}
