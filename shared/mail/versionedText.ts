/**
 * Tells whether a TXT record begins with `v=VERSION`. Only SPF allows other upper and lower case in the version, and
 * only DMARC allows blanks around the equals sign (RFC 7208 §4.5, RFC 9989 §4.8, RFC 8461 §3.1, RFC 8460 §3).
 */
export function isVersioned(text: string, version: string): boolean {
  const equals = version === 'DMARC1' ? '[ \\t]*=[ \\t]*' : '='
  const flags = version === 'spf1' ? 'i' : ''
  return new RegExp(`^v${equals}${version}(?:[\\s;]|$)`, flags).test(text)
}
