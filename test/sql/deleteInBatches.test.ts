/**
 * Tests that the cleanup of tables that strangers fill stays within the statement timeout, however many old rows wait.
 * A trigger records how many rows each statement deletes.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { deleteStaleRateWindows } from '../../sql/account/keys/rateWindows.ts'
import { deleteStaleSessions } from '../../sql/account/people/consoleSessions.ts'
import { createPool, type Pool, type Queryable } from '../../sql/db.ts'
import { createTestDatabase, type TestDatabase } from '../support/database/database.ts'

let database: TestDatabase
/** Holds a pool with a short statement timeout, so that a statement that waits for a lock fails soon. */
let pool: Pool
beforeAll(async () => {
  database = await createTestDatabase()
  pool = createPool({ url: database.url, size: 4, name: 'test', statementTimeoutMs: 5_000 })
  await pool.query(`insert into people (id, name, role) values ('person', 'Ada', 'operator')`)
  await pool.query('create table deletions (of_table text, rows bigint)')
  await pool.query(
    `create function record_deletion() returns trigger language plpgsql as $$
     begin
       insert into deletions select tg_table_name, count(*) from gone;
       return null;
     end $$`,
  )
})
afterAll(async () => {
  await pool.end()
  await database[Symbol.asyncDispose]()
})

type Case = [
  table: string,
  cleanUp: (db: Queryable) => Promise<void>,
  /** Inserts the rows 1 to `$1` with the age `$2` into the table of the test case. */
  insert: string,
]

const CASES: Case[] = [
  [
    'rate_windows',
    deleteStaleRateWindows,
    `insert into rate_windows (subject, window_start, used) select 'stranger ' || n, now() - $2::interval, 1`,
  ],
  [
    'sign_in_mails',
    deleteStaleSessions,
    `insert into sign_in_mails (id, email, browser_hash, created_at, expires_at)
     select 'mail' || n, 'a@example.com', '', now() - $2::interval, now()`,
  ],
  [
    'passkey_challenges',
    deleteStaleSessions,
    `insert into passkey_challenges (challenge_hash, browser_hash, expires_at)
     select sha256(n::text::bytea), '', now() - $2::interval`,
  ],
  [
    'company_sign_ins',
    deleteStaleSessions,
    `insert into company_sign_ins (id, browser_hash, expires_at) select 'csi' || n, '', now() - $2::interval`,
  ],
  [
    'console_sessions',
    deleteStaleSessions,
    `insert into console_sessions (id, secret_hash, person_id, method, expires_at)
     select 'session' || n, sha256(n::text::bytea), 'person', 'link', now() - $2::interval`,
  ],
  [
    'console_links',
    deleteStaleSessions,
    `insert into console_links (token_hash, person_id, expires_at)
     select sha256(n::text::bytea), 'person', now() - $2::interval`,
  ],
]

const insert = (statement: string, count: number) =>
  pool.query(`${statement} from generate_series(1, $1::int) n`, [count, '2 hours'])
const count = async (table: string) => (await pool.query(`select from ${table}`)).rowCount

test.each(CASES)(
  'each statement deletes only a part of 30,000 old rows of %s',
  async (table, cleanUp, rows) => {
    await insert(rows, 30_000)
    await pool.query(
      `create trigger record after delete on ${table} referencing old table as gone
     for each statement execute function record_deletion()`,
    )
    await cleanUp(pool)
    await pool.query(`drop trigger record on ${table}`)
    expect(await count(table)).toBe(0)
    const { rows: deletions } = await pool.query<{ rows: string }>(
      'select rows from deletions where of_table = $1',
      [table],
    )
    const counts = deletions.map((deletion) => Number(deletion.rows))
    expect(counts.reduce((sum, n) => sum + n, 0)).toBe(30_000)
    expect(Math.max(...counts)).toBeLessThanOrEqual(15_000)
  },
)

test.each(CASES)(
  'an old row of %s that somebody has locked does not stop the clean-up',
  async (table, cleanUp, rows) => {
    await insert(rows, 3)
    const client = await database.pool.connect()
    try {
      await client.query('begin')
      await client.query(`select from ${table} limit 1 for update`)
      await cleanUp(pool)
      expect(await count(table)).toBe(1)
    } finally {
      await client.query('rollback')
      client.release()
    }
    await cleanUp(pool)
    expect(await count(table)).toBe(0)
  },
)
