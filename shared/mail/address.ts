import { domainToASCII } from 'node:url'

/**
 * Sets the maximum number of characters of an address, because RFC 5321 §4.5.3.1.3 allows 256 octets for a path, which
 * is an address in angle brackets.
 */
export const ADDRESS_MAX_LENGTH = 254
const LOCAL_PART_MAX_LENGTH = 64

/** Matches an RFC 5322 dot-atom. */
const LOCAL_PART = /^[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*$/
/**
 * Matches an RFC 5322 quoted-string of atoms, dots and spaces. The pattern refuses other characters in a quoted local
 * part, because attackers use such characters to confuse mail parsers.
 */
const QUOTED_PART = /^"([A-Za-z0-9!#$%&'*+/=?^_`{|}~. -]+)"$/
const DOMAIN =
  /^(?=.{1,253}$)[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$/
/** Matches a character that no domain may contain, in ASCII or in Unicode. */
const NO_DOMAIN = /[^\p{L}\p{M}\p{N}.-]/u

/** Holds the beginning of an encoded word (RFC 2047 §2). */
export const ENCODED_WORD = '=?'

/**
 * Reads exactly one bare address (`local@domain`) to which the service may send mail. The function returns the address
 * with the domain in lower-case ASCII. It refuses an encoded word, which SMTP takes literally and some programs decode.
 * The owner could then see another recipient than the one that gets the mail.
 * @returns null for any other text.
 */
export const parseAddress = (text: string): string | null =>
  text.includes(ENCODED_WORD) ? null : parseAnyAddress(text)

/**
 * Reads exactly one bare address that may hold an encoded word, such as the sender of a received mail. The function
 * refuses lists, display names, comments, groups and line breaks before a mail library reads the text. For `"b@y, c@z"`
 * or `"x\r\nBcc: v@z"`, a mail library would send the mail to additional recipients.
 * @returns null for any other text.
 */
export function parseAnyAddress(text: string): string | null {
  if (text.length > ADDRESS_MAX_LENGTH) return null
  const at = text.lastIndexOf('@')
  if (at < 1 || at > LOCAL_PART_MAX_LENGTH) return null
  const local = plainLocal(text.slice(0, at))
  const rawDomain = text.slice(at + 1)
  if (local === null || NO_DOMAIN.test(rawDomain)) return null
  const domain = domainToASCII(rawDomain)
  if (!DOMAIN.test(domain)) return null
  const address = `${local}@${domain}`
  return address.length > ADDRESS_MAX_LENGTH ? null : address
}

/**
 * Matches a local part of any length, because forwarders and mailing lists write long local parts into the SMTP
 * envelope.
 */
const ENVELOPE_LOCAL_PART = /^[!-;=?A-~]+$/
/** Matches an IP address in place of a domain (RFC 5321 §4.1.3). */
const ADDRESS_LITERAL = /^\[(?:IPv6:)?[\da-f:.]{2,45}\]$/i

/**
 * Tells whether a text can be an address of an SMTP envelope. Its local part may have more than 64 characters, because
 * a forwarder puts whole addresses into the local part. RFC 5321 §4.5.3.1 asks a receiver to impose no limit.
 */
export function isEnvelopeAddress(text: string): boolean {
  if (parseAnyAddress(text) !== null) return true
  const at = text.lastIndexOf('@')
  const domain = text.slice(at + 1)
  return (
    text.length <= ADDRESS_MAX_LENGTH &&
    ENVELOPE_LOCAL_PART.test(text.slice(0, Math.max(0, at))) &&
    (ADDRESS_LITERAL.test(domain) || (!NO_DOMAIN.test(domain) && isDomain(domainOf(text))))
  )
}

/**
 * Removes the quotes of a quoted local part that needs no quotes (RFC 5321 §4.1.2). @returns null if the local part is
 * malformed.
 */
function plainLocal(text: string): string | null {
  const inner = QUOTED_PART.exec(text)?.[1]
  if (LOCAL_PART.test(inner ?? text)) return inner ?? text
  return inner === undefined ? null : text
}

/**
 * Adds the quotes that a mail parser removed from an address: `john doe@example.com` becomes `"john doe"@example.com`.
 */
export function restoreQuotes(address: string): string {
  const at = address.lastIndexOf('@')
  const local = address.slice(0, at)
  if (at < 1 || local.startsWith('"') || !/[\s"(),:;<>@[\]\\]|^\.|\.\.|\.$/.test(local))
    return address
  return `"${local.replace(/["\\]/g, '\\$&')}"${address.slice(at)}`
}

/**
 * Sets the maximum number of characters of a display name, because RFC 5322 §2.1.1 limits the length of a header line.
 */
const NAME_MAX_LENGTH = 200
/** Matches an RFC 5322 §3.4 name-addr: a quoted string or plain words before the address in angle brackets. */
const NAME_ADDR = /^\s*(?:"((?:[^"\\]|\\.)*)"|([^"<>,;:@()[\]\\]*))\s*<([^<>]*)>\s*$/u

/** Holds an address with its display name. A null `name` means that the address has no display name. */
export type Mailbox = { address: string; name: string | null }

/**
 * Reads one address with an optional display name: `ada@example.com`, `Ada <ada@example.com>` or `"Doe, Jane"
 * <jane@example.net>`. @returns null if the text has another form.
 */
export function parseMailbox(text: string): Mailbox | null {
  if (text.length > NAME_MAX_LENGTH + ADDRESS_MAX_LENGTH + 4) return null
  const [, quoted, plain, inner] = NAME_ADDR.exec(text) ?? []
  const address = parseAddress(inner ?? text)
  if (address === null) return null
  const name = (quoted?.replace(/\\(.)/g, '$1') ?? plain ?? '').trim()
  if (name.length > NAME_MAX_LENGTH || /\p{C}/u.test(name)) return null
  return { address, name: name === '' ? null : name }
}

/** Tells whether a text is a domain in ASCII and in lower case, without a trailing dot. */
export const isDomain = (text: string): boolean => DOMAIN.test(text)

/**
 * Returns the stored form of a domain: lower-case ASCII (RFC 5890 A-labels). SMTP libraries and mail parsers return
 * A-labels or U-labels, so the service converts both to the same form. If the text is not a domain, the function only
 * converts it to lower case.
 */
export function asciiDomain(domain: string): string {
  const lower = domain.toLowerCase()
  return /[^ -~]/.test(lower) ? domainToASCII(lower) || lower : lower
}

/** Returns the domain of an address, in lower-case ASCII. */
export const domainOf = (address: string): string =>
  asciiDomain(address.slice(address.lastIndexOf('@') + 1))

/** Returns the stored form of an inbox address: lower case, with the domain in ASCII. */
export const addressKey = (address: string): string =>
  address.slice(0, address.lastIndexOf('@') + 1).toLowerCase() + domainOf(address)

/**
 * Returns the inbox addresses to which a mail for a recipient's address may go: first the address itself, then the
 * address without `+tag` (RFC 5233).
 */
export function recipientKeys(address: string): string[] {
  const key = addressKey(address)
  const at = key.lastIndexOf('@')
  const plus = key.slice(0, Math.max(0, at)).indexOf('+')
  return plus > 0 ? [key, key.slice(0, plus) + key.slice(at)] : [key]
}
