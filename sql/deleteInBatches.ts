import type { Queryable } from './db.ts'

/**
 * Limits how many rows one statement deletes. With any number of old rows, the statement then stays below the
 * database's statement timeout.
 */
const BATCH = 2_000

/**
 * Names the tables from which the housekeeping job deletes old rows. Each of them has an index for its SQL condition.
 */
type AgedTable =
  | 'calendar_events'
  | 'company_sign_ins'
  | 'deleted_messages'
  | 'events'
  | 'oauth_client_documents'
  | 'oauth_clients'
  | 'oauth_codes'
  | 'oauth_grants'
  | 'oauth_requests'
  | 'oauth_tokens'
  | 'passkey_challenges'
  | 'payment_checks'
  | 'project_webhooks'
  | 'purchases'
  | 'sign_in_mails'
  | 'vault_uses'

/**
 * Deletes the rows of a table that fulfil an SQL condition, one batch after another. The function skips rows that
 * another transaction has locked. The next call deletes them.
 * @param condition takes the time from `statement_timestamp()`. With `clock_timestamp()`, whose result changes during a
 * statement, PostgreSQL would use no index.
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

/**
 * Limits how many pages of a table one statement reads, so that a statement stays short. For example, 100 pages hold
 * about 10,000 rate windows, and one statement deletes them in about 20 ms.
 */
const BATCH_PAGES = 100

/**
 * Deletes the rows of a table that fulfil an SQL condition, some pages of the table after another. The function suits a
 * table without an index for the condition, because it reads the whole table only once. In such a table, each batch of
 * {@link deleteInBatches} would read again the rows that earlier batches have read. The function skips rows that
 * another transaction has locked. The next call deletes them.
 * @param values holds the parameters of the condition, from $3 on.
 */
export async function deleteByPages(
  db: Queryable,
  table: 'console_links' | 'console_sessions' | 'rate_windows',
  condition: string,
  values: readonly unknown[] = [],
): Promise<void> {
  const { rows } = await db.query<{ pages: number }>(
    `select (pg_relation_size('${table}') / current_setting('block_size')::int)::int as pages`,
  )
  const text = `
    delete from ${table} where ctid = any (array(
      select ctid from ${table} where ctid >= $1::tid and ctid < $2::tid and (${condition})
      for update skip locked))`
  for (let page = 0; page < rows[0]!.pages; page += BATCH_PAGES) {
    await db.query(text, [`(${page},0)`, `(${page + BATCH_PAGES},0)`, ...values])
  }
}
