import { parseAddress } from '../address.ts'
import { mailtoOf } from '../calendar/mailto.ts'

/** Holds the ways to unsubscribe from a mailing list: a URL, a mail address, or both. */
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
 * Reads a one-click unsubscribe URL. The URL must be an HTTPS URL (RFC 8058 §3.1) that fits into a header field.
 * @returns null if the URL is not allowed.
 */
export function parseUnsubscribeUrl(text: string): string | null {
  if (!URL.canParse(text)) return null
  const { protocol, href, username, password } = new URL(text)
  if (protocol !== 'https:' || username !== '' || password !== '') return null
  // The URL must not contain commas or angle brackets, because they delimit the URLs in the header field (RFC 2369 §2).
  // The URL parser has already encoded all other delimiters.
  const plain = href.replaceAll(',', '%2C').replaceAll('<', '%3C').replaceAll('>', '%3E')
  return plain.length <= UNSUBSCRIBE_URL_MAX_LENGTH && /^[\x21-\x7e]+$/.test(plain) ? plain : null
}

/** Reads the mail address for unsubscribing. @returns null if the address is malformed. */
export const parseUnsubscribeMailto = (text: string): string | null => parseAddress(text)

/**
 * Writes the header field List-Unsubscribe (RFC 2369) with its line end. For an unsubscribe URL, the function also
 * writes List-Unsubscribe-Post (RFC 8058).
 */
export function unsubscribeFields({ url, mailto }: Unsubscribe): string {
  const places = [
    ...(url === null ? [] : [`<${url}>`]),
    ...(mailto === null ? [] : [`<${mailtoOf(mailto)}>`]),
  ]
  if (places.length === 0) return ''
  const oneClick = url === null ? '' : 'List-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n'
  return `List-Unsubscribe: ${places.join(',\r\n ')}\r\n${oneClick}`
}
