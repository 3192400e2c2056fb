import type { Queryable } from './db.ts'

/**
 * Yields the rows of a query in batches, in the order of the query, over a cursor of the caller's transaction. Callers
 * change many rows in this way, because one statement for all of them would exceed the time that the service lets a
 * statement run.
 */
export async function* inBatches<Row extends object>(
  db: Queryable,
  { text, values, size }: { text: string; values: unknown[]; size: number },
): AsyncGenerator<Row[]> {
  await db.query(`declare batches no scroll cursor for ${text}`, values)
  for (;;) {
    const { rows } = await db.query<Row>(`fetch ${size} from batches`)
    if (rows.length > 0) yield rows
    if (rows.length < size) break
  }
  await db.query('close batches')
}
