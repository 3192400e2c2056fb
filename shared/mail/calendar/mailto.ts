/** Writes and reads addresses as mailto URIs (RFC 6068). */

/** Writes an address as a mailto URI. */
export const mailtoOf = (address: string): string =>
  `mailto:${encodeURI(address.toWellFormed()).replace(/[?&#]/g, encodeURIComponent)}`

/**
 * Reads the address of a mailto URI, without its header fields. A malformed encoding is kept as it is, because some
 * programs write addresses without encoding.
 * @returns null if the text is no mailto URI.
 */
export function addressOfMailto(uri: string): string | null {
  const [, address] = /^mailto:([^?]+)/i.exec(uri) ?? []
  if (address === undefined) return null
  try {
    return decodeURIComponent(address)
  } catch {
    return address
  }
}
