import type { Cursor } from '../shared/cursor.ts'

/** Where a page of a list that runs back in time begins, as the values that `(created_at, row) <` compares with. */
export const pageStart = (cursor: Cursor | null): [at: Date | string, row: bigint] =>
  cursor === null ? ['infinity', 0n] : [new Date(cursor.atMs), cursor.row]
