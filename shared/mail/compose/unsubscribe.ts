import { parseAddress } from '../address.ts'

/** The ways to unsubscribe; at least one is set. */
export type Unsubscribe = {
  /** Takes a one-click POST (RFC 8058). */
  url: string | null
  mailto: string | null
}

/** Fits on a header line of 998 characters (RFC 5322 §2.1.1). */
const URL_MAX_LENGTH = 900

/** Reads a one-click URL: HTTPS only (RFC 8058 §3.1), in the form a header can hold; null: refused. */
export function parseUnsubscribeUrl(text: string): string | null {
  if (!URL.canParse(text)) return null
  const { protocol, href, username, password } = new URL(text)
  if (protocol !== 'https:' || username !== '' || password !== '') return null
  // RFC 2369 §2: a URL must not hold the delimiters of the list. The URL parser has encoded the rest.
  const plain = href.replaceAll(',', '%2C').replaceAll('<', '%3C').replaceAll('>', '%3E')
  return plain.length <= URL_MAX_LENGTH && /^[\x21-\x7e]+$/.test(plain) ? plain : null
}

/** Reads the mailto address; null: malformed. */
export const parseUnsubscribeMailto = (text: string): string | null => parseAddress(text)

/** The header fields with their line ends: List-Unsubscribe (RFC 2369); for a URL List-Unsubscribe-Post (RFC 8058). */
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
