/**
 * Tells whether PostgreSQL can store a text, or a JSON value as jsonb. PostgreSQL stores neither null characters nor
 * lone surrogates. A job that tried to store them in a text from an unauthenticated sender would fail at every retry.
 */
export function isStorable(value: unknown): boolean {
  if (typeof value === 'string') return !value.includes('\0') && value.isWellFormed()
  if (typeof value !== 'object' || value === null) return true
  return Object.entries(value).every(([key, inner]) => isStorable(key) && isStorable(inner))
}
