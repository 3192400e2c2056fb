import { parseAddress } from './address.ts'

/** How recipients unsubscribe: at least one of the two. */
export type Unsubscribe = {
  /** Answers a POST, without asking anything (RFC 8058). */
  url: string | null
  mailto: string | null
}

/** Two of them fit into a header line of 998 characters (RFC 5322 §2.1.1), each on a line of its own. */
const URL_MAX_LENGTH = 900

/** Reads a URL for one-click unsubscribing: HTTPS alone (RFC 8058 §3.1), written as a header can hold it; else null. */
export function parseUnsubscribeUrl(text: string): string | null {
  if (!URL.canParse(text)) return null
  const { protocol, href, username, password } = new URL(text)
  if (protocol !== 'https:' || username !== '' || password !== '') return null
  // RFC 2369 §2: what delimits the list of URLs must not stand in one. The rest the URL parser has encoded.
  const plain = href.replaceAll(',', '%2C').replaceAll('<', '%3C').replaceAll('>', '%3E')
  return plain.length <= URL_MAX_LENGTH && /^[\x21-\x7e]+$/.test(plain) ? plain : null
}

/** Reads an address to write to; null when it is none. */
export const parseUnsubscribeMailto = (text: string): string | null => parseAddress(text)

/** The header fields, each with its line end: List-Unsubscribe (RFC 2369), and the promise of RFC 8058 for a URL. */
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
