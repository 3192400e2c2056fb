/**
 * Tells whether a TXT record begins with `v=VERSION`. The version may be in upper or lower case only in SPF, and blanks
 * may surround the equals sign only in DMARC (RFC 7208 §4.5, RFC 9989 §4.8, RFC 8461 §3.1, RFC 8460 §3).
 */
export function isVersioned(text: string, version: string): boolean {
  const equals = version === 'DMARC1' ? '[ \\t]*=[ \\t]*' : '='
  const flags = version === 'spf1' ? 'i' : ''
  return new RegExp(`^v${equals}${version}(?:[\\s;]|$)`, flags).test(text)
}
