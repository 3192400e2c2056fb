/**
 * Returns the code of an error, such as `ECONNREFUSED` of the operating system or an SQLSTATE of PostgreSQL. Returns an
 * empty text if the error has no code.
 */
export function errorCode(error: unknown): string {
  const isCoded = error instanceof Error && 'code' in error && typeof error.code === 'string'
  return isCoded ? (error.code as string) : ''
}
