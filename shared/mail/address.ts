import { domainToASCII } from 'node:url'

/** RFC 5321 §4.5.3.1.3: a path is at most 256 octets with its angle brackets. */
const ADDRESS_MAX_LENGTH = 254
const LOCAL_PART_MAX_LENGTH = 64

/** RFC 5322 atext; a dot-atom only: quoted local parts are legal, unused in practice, and a way past mail parsers. */
const LOCAL_PART = /^[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*$/
const DOMAIN =
  /^(?=.{1,253}$)[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$/

/**
 * Reads exactly one bare address (`local@domain`) and returns it with the domain in lower-case ASCII; null when it is
 * anything else. Lists, display names, comments, groups and line breaks are refused here, before a mail library reads
 * the string: given `"b@y, c@z"` or `"x\r\nBcc: v@z"` such a library would send to more people than were named.
 */
export function parseAddress(text: string): string | null {
  if (text.length > ADDRESS_MAX_LENGTH) return null
  const at = text.lastIndexOf('@')
  if (at < 1 || at > LOCAL_PART_MAX_LENGTH) return null
  const local = text.slice(0, at)
  const rawDomain = text.slice(at + 1)
  if (!LOCAL_PART.test(local) || /[^\p{L}\p{M}\p{N}.-]/u.test(rawDomain)) return null
  const domain = domainToASCII(rawDomain)
  if (!DOMAIN.test(domain)) return null
  const address = `${local}@${domain}`
  return address.length > ADDRESS_MAX_LENGTH ? null : address
}

/** Whether a text is a domain as addresses have it after their @: ASCII, lower case, with no dot at its end. */
export const isDomain = (text: string): boolean => DOMAIN.test(text)

/**
 * A domain as it is stored and compared: in lower-case ASCII (RFC 5890 A-labels). SMTP libraries and mail parsers hand
 * over either form. What is no domain is left as it is.
 */
export function asciiDomain(domain: string): string {
  const lower = domain.toLowerCase()
  return /[^ -~]/.test(lower) ? domainToASCII(lower) || lower : lower
}

/** The domain of an address, in lower-case ASCII. */
export const domainOf = (address: string): string =>
  asciiDomain(address.slice(address.lastIndexOf('@') + 1))

/** The key under which an inbox address is stored and found: all in lower case, the domain in ASCII. */
export const addressKey = (address: string): string =>
  address.slice(0, address.lastIndexOf('@') + 1).toLowerCase() + domainOf(address)

/** The addresses to try for a recipient, in order: itself, then without its `+tag` (subaddressing, RFC 5233). */
export function recipientKeys(address: string): string[] {
  const key = addressKey(address)
  const at = key.lastIndexOf('@')
  const plus = key.indexOf('+')
  return plus > 0 && plus < at ? [key, key.slice(0, plus) + key.slice(at)] : [key]
}
