/**
 * Sets the maximum length of an endpoint's description in UTF-16 units. The length is limited, because each x402
 * challenge holds the description in a short header.
 */
export const DESCRIPTION_MAX_LENGTH = 500

/** Cuts an endpoint's description to the maximum length, but never inside a surrogate pair. */
export function cutDescription(text: string): string {
  return text.slice(0, DESCRIPTION_MAX_LENGTH).replace(/[\ud800-\udbff]$/, '')
}
