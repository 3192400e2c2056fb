/**
 * Tells whether PostgreSQL can store a text, or a JSON value as jsonb. PostgreSQL stores neither null characters nor
 * lone surrogates. A job that tried to store them in a text from an unauthenticated sender would fail at every retry.
 */
export function isStorable(value: unknown): boolean {
  if (typeof value === 'string') return !value.includes('\0') && value.isWellFormed()
  if (typeof value !== 'object' || value === null) return true
  return Object.entries(value).every(([key, inner]) => isStorable(key) && isStorable(inner))
}

/**
 * Writes a text from outside in one line that PostgreSQL can store. Callers store such a text together with an outcome.
 * If PostgreSQL refused the text, the outcome would not be recorded, and its work would be done again.
 * @param charsMax limits the characters of the line. The function reads at most four times as many characters.
 */
export const storableLine = (text: string, charsMax: number): string =>
  text
    .slice(0, 4 * charsMax)
    .replace(/[\p{Cc}\s]+/gu, ' ')
    .trim()
    .slice(0, charsMax)
    .toWellFormed()
