import { parseAddress } from '../address.ts'

/**
 * Holds the ways to unsubscribe from a mailing list. At least one of the two ways to unsubscribe (URL and mail address)
 * is set.
 */
export type Unsubscribe = {
  /** Holds the URL that accepts a one-click POST (RFC 8058). */
  url: string | null
  mailto: string | null
}

/**
 * Sets the maximum number of characters of an unsubscribe URL, so that the URL fits on a header line of 998 characters
 * (RFC 5322 §2.1.1).
 */
export const UNSUBSCRIBE_URL_MAX_LENGTH = 900

/**
 * Reads a one-click unsubscribe URL. Only an HTTPS URL is allowed (RFC 8058 §3.1), in a form that a header field can
 * hold. @returns null if the URL is refused.
 */
export function parseUnsubscribeUrl(text: string): string | null {
  if (!URL.canParse(text)) return null
  const { protocol, href, username, password } = new URL(text)
  if (protocol !== 'https:' || username !== '' || password !== '') return null
  // RFC 2369 §2: the URL must not hold commas or angle brackets, because they delimit the URLs in the header. The URL
  // parser has already encoded all other delimiters in the URL.
  const plain = href.replaceAll(',', '%2C').replaceAll('<', '%3C').replaceAll('>', '%3E')
  return plain.length <= UNSUBSCRIBE_URL_MAX_LENGTH && /^[\x21-\x7e]+$/.test(plain) ? plain : null
}

/** Reads the mail address for unsubscribing. @returns null if the address is malformed. */
export const parseUnsubscribeMailto = (text: string): string | null => parseAddress(text)

/**
 * Writes the header fields for unsubscribing with their line ends: List-Unsubscribe (RFC 2369), and for a URL also
 * List-Unsubscribe-Post (RFC 8058).
 */
export function unsubscribeFields({ url, mailto }: Unsubscribe): string {
  const places = [
    ...(url === null ? [] : [`<${url}>`]),
    ...(mailto === null
      ? []
      : [`<mailto:${encodeURI(mailto).replace(/[?&#]/g, encodeURIComponent)}>`]),
  ]
  if (places.length === 0) return ''
  const oneClick = url === null ? '' : 'List-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n'
  return `List-Unsubscribe: ${places.join(',\r\n ')}\r\n${oneClick}`
}
