import { type Cursor, decodeCursor } from '../shared/cursor.ts'
import { badRequest } from './errors.ts'

const LIMIT_DEFAULT = 50
const LIMIT_MAX = 100

/** The page a client asks for. The schema has checked that `limit` is a whole number of at least 1. */
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
