import { type Cursor, decodeCursor, encodeCursor } from '../../shared/cursor.ts'
import { badRequest } from './errors.ts'

const LIMIT_DEFAULT = 50
const LIMIT_MAX = 100

/**
 * Reads which page of a list the caller requests. The schema has already checked that `limit` is a whole number of at
 * least 1.
 */
export function readPage(query: { limit?: string; pageToken?: string }): {
  limit: number
  cursor: Cursor | null
} {
  const limit = query.limit === undefined ? LIMIT_DEFAULT : Math.min(Number(query.limit), LIMIT_MAX)
  if (query.pageToken === undefined) return { limit, cursor: null }
  const cursor = decodeCursor(query.pageToken)
  if (cursor === null) {
    throw badRequest('pageToken must be the nextPageToken of a previous response, unchanged')
  }
  return { limit, cursor }
}

/**
 * Returns the `nextPageToken` of a list's response. Returns an empty object if the page is the last page of the list.
 */
export function nextPage<Row extends { row: bigint }>(
  page: readonly Row[],
  more: boolean,
  at: (row: Row) => Date,
): { nextPageToken?: string } {
  const last = page.at(-1)
  if (!more || last === undefined) return {}
  return { nextPageToken: encodeCursor({ atMs: at(last).getTime(), row: last.row }) }
}

/**
 * Cuts the rows from a database query to the size of a page. The query reads one row more than `limit`. If this row
 * exists, the list has a next page.
 */
export function cutPage<Row extends { row: bigint }>(
  found: readonly Row[],
  limit: number,
  at: (row: Row) => Date,
): { page: Row[]; next: { nextPageToken?: string } } {
  const page = found.slice(0, limit)
  return { page, next: nextPage(page, found.length > limit, at) }
}
