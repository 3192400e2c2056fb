import type { Cursor } from '../shared/cursor.ts'

/** The start of a page of a newest-first list: the values to compare with `(created_at, row) <`. */
export const pageStart = (cursor: Cursor | null): [at: Date | string, row: bigint] =>
  cursor === null ? ['infinity', 0n] : [new Date(cursor.atMs), cursor.row]
