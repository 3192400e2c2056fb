import type { Cursor } from '../shared/cursor.ts'

/**
 * Returns the position at which a page of a newest-first list starts. Its values follow the SQL condition `(created_at,
 * row) <`.
 */
export const pageStart = (cursor: Cursor | null): [at: Date | string, row: bigint] =>
  cursor === null ? ['infinity', 0n] : [new Date(cursor.atMs), cursor.row]

export type Order = 'newest' | 'oldest'

/**
 * Returns the SQL keywords that sort a list in the given order. For `oldest`, PostgreSQL reads the index of the
 * newest-first list backwards.
 */
export const pageOrder = (
  order: Order,
  cursor: Cursor | null,
): { before: '<' | '>'; direction: 'asc' | 'desc'; start: [at: Date | string, row: bigint] } =>
  order === 'newest'
    ? { before: '<', direction: 'desc', start: pageStart(cursor) }
    : {
        before: '>',
        direction: 'asc',
        start: cursor === null ? ['-infinity', 0n] : pageStart(cursor),
      }
