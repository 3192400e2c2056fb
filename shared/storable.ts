/**
 * Tells whether PostgreSQL can store a text, or a JSON value as jsonb. PostgreSQL stores neither null characters nor
 * lone surrogates. Without this check, a job that stores a text of an unauthenticated sender would fail at each retry.
 */
export function isStorable(value: unknown): boolean {
  if (typeof value === 'string') return !value.includes('\0') && value.isWellFormed()
  if (typeof value !== 'object' || value === null) return true
  return Object.entries(value).every(([key, inner]) => isStorable(key) && isStorable(inner))
}
