/**
 * Describes the position of the last row on a page of a list. A page token writes this position as one ISO 8601 time.
 * The fraction of the time holds the milliseconds of createdAt (or updatedAt) in 3 digits and the row number in 19
 * digits. The row number distinguishes two rows of the same millisecond. If the order of a list may change between two
 * pages, the page token also holds the time of the first page in 13 digits. Clients can parse the page token as a time,
 * because ISO 8601 §5.3.1.4 allows any number of fraction digits.
 */
export type Cursor = {
  /** Holds the time of the last row on the page of a list, in milliseconds since the epoch. */
  atMs: number
  /** Holds the row number of the last row on the page of a list. The row number orders rows of the same millisecond. */
  row: bigint
  /**
   * Holds the time at which the client read the first page of the list, in milliseconds since the epoch. Only lists
   * whose order may change between two pages use `asOfMs`.
   */
  asOfMs?: number
}

const TOKEN_FORM = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3})(\d{19})(\d{13})?Z$/
const ROW_MAX = 2n ** 63n - 1n

/** Writes a cursor as a page token. */
export function encodeCursor({ atMs, row, asOfMs }: Cursor): string {
  const asOf = asOfMs === undefined ? '' : String(asOfMs).padStart(13, '0')
  return `${new Date(atMs).toISOString().slice(0, -1)}${String(row).padStart(19, '0')}${asOf}Z`
}

/** Reads a page token. @returns null if the text is no page token that `encodeCursor` can write. */
export function decodeCursor(token: string): Cursor | null {
  const match = TOKEN_FORM.exec(token)
  if (match === null) return null
  const atMs = Date.parse(`${match[1]}Z`)
  const row = BigInt(match[2]!)
  if (Number.isNaN(atMs) || row > ROW_MAX) return null
  return match[3] === undefined ? { atMs, row } : { atMs, row, asOfMs: Number(match[3]) }
}
