/** UTF-16 units of a description. It is a part of each challenge, and headers are short. */
export const DESCRIPTION_MAX_LENGTH = 500

/** A description, cut to its bound between two characters. */
export function cutDescription(text: string): string {
  return text.slice(0, DESCRIPTION_MAX_LENGTH).replace(/[\ud800-\udbff]$/, '')
}
