import type { Queryable } from './db.ts'

/** Limits how many rows one statement deletes, so that no backlog reaches the statement timeout of the database. */
const BATCH = 2_000

/**
 * Names the tables from which the housekeeping job deletes old rows. In each table, an index covers the SQL condition
 * of the table.
 */
type AgedTable =
  | 'calendar_events'
  | 'deleted_messages'
  | 'events'
  | 'oauth_client_documents'
  | 'oauth_clients'
  | 'oauth_codes'
  | 'oauth_grants'
  | 'oauth_requests'
  | 'oauth_tokens'
  | 'payment_checks'
  | 'project_webhooks'
  | 'vault_uses'

/**
 * Deletes the rows of a table that fulfil an SQL condition, one batch after another. The function skips rows that
 * another transaction has locked. The next call of the function deletes the skipped rows.
 * @param condition takes the time from `statement_timestamp()`. The result of `clock_timestamp()` changes during a
 * statement, so that PostgreSQL would use no index.
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
