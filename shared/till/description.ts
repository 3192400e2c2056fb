/**
 * Sets the maximum length of the description of an endpoint in UTF-16 units. Each x402 challenge holds the description
 * of its endpoint, and headers must be short.
 */
export const DESCRIPTION_MAX_LENGTH = 500

/** Cuts the description of an endpoint to its maximum length, and never inside a surrogate pair. */
export function cutDescription(text: string): string {
  return text.slice(0, DESCRIPTION_MAX_LENGTH).replace(/[\ud800-\udbff]$/, '')
}
