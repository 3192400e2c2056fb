/**
 * Checks the short texts in an endpoint's metadata. The limits are so narrow that every program that reads the
 * extension `bazaar` accepts the texts.
 */

const CHARS_MAX = 32
export const TAGS_MAX = 5
export const ICON_URL_MAX_LENGTH = 2_048

/**
 * Matches a short text of printable ASCII. Programming languages count the length of non-ASCII texts differently, so
 * only ASCII is allowed.
 */
export const WORD_PATTERN = `^[\\x20-\\x7e]{1,${CHARS_MAX}}$`

const WORD = new RegExp(WORD_PATTERN)
const LOOPBACK = /^(?:localhost|localhost\.localdomain|ip6-localhost|ip6-loopback)\.?$/

export const isWord = (value: unknown): value is string =>
  typeof value === 'string' && value.length <= CHARS_MAX && WORD.test(value)

/**
 * Returns at most {@link TAGS_MAX} tags. If several tags differ only in upper and lower case, the function keeps the
 * first of them.
 */
export function distinctTags(tags: readonly string[]): string[] {
  const byLower = Map.groupBy(tags, (tag) => tag.toLowerCase())
  return [...byLower.values()].map(([first]) => first!).slice(0, TAGS_MAX)
}

/**
 * Returns the fault of a seller's icon URL. Null means that the URL has no fault. The URL must not have an IP address,
 * which could lead into the network of the program that shows the icon.
 */
export function iconUrlFault(text: string): string | null {
  if (text.length > ICON_URL_MAX_LENGTH) return `be at most ${ICON_URL_MAX_LENGTH} characters`
  if (!/^https?:\/\/[\x21-\x7e]+$/i.test(text) || !URL.canParse(text)) {
    return 'be an http or https URL of ASCII characters'
  }
  const { hostname, username, password } = new URL(text)
  if (username !== '' || password !== '') return 'hold no user name or password'
  // Digits and dots are enough to recognise an IPv4 address, because the URL parser has turned every spelling of such
  // an address into four numbers.
  const isAddress = hostname.startsWith('[') || /^[\d.]+$/.test(hostname)
  if (isAddress || LOOPBACK.test(hostname)) return 'name a host, and no IP address'
  return null
}

const TEMPLATE = /^\/[a-zA-Z0-9_/:.\-~%]+$/
const TEMPLATE_CHARS_MAX = 512
const DECODINGS_MAX = 5

/** Tells whether a text is a path with named parts, such as `/weather/:city`. */
export function isRouteTemplate(text: string): boolean {
  if (text.length > TEMPLATE_CHARS_MAX || !TEMPLATE.test(text)) return false
  let decoded = text
  // The loop decodes the path repeatedly, because the path must contain no `..` and no `://` even after several
  // decodings.
  for (let n = 0; n < DECODINGS_MAX; n++) {
    let next: string
    try {
      next = decodeURIComponent(decoded)
    } catch {
      return false
    }
    if (next === decoded) return !decoded.includes('..') && !decoded.includes('://')
    decoded = next
  }
  return false
}
