import type { Queryable } from './db.ts'

/** Limits how many rows one statement deletes, so that no backlog reaches the statement timeout of the database. */
const BATCH = 2_000

/** Names the tables whose old rows the housekeeping deletes. Each table has an index on the time in its condition. */
type AgedTable = 'deleted_messages' | 'events' | 'oauth_tokens' | 'payment_checks' | 'vault_uses'

/**
 * Deletes the rows of a table that fulfil an SQL condition, one batch after another. The function leaves rows that
 * another transaction has locked. The next call deletes these rows.
 */
export async function deleteInBatches(
  db: Queryable,
  table: AgedTable,
  condition: string,
): Promise<void> {
  const text = `
    delete from ${table} where ctid = any (array(
      select ctid from ${table} where ${condition} limit ${BATCH} for update skip locked))`
  while ((await db.query(text)).rowCount === BATCH);
}
