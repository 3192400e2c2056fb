/** Tests that the housekeeping finds old rows by an index, because reading all rows of a large table takes too long. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { STALE_OAUTH } from '../../../sql/account/oauth/staleOAuth.ts'
import { type Queryable, transaction } from '../../../sql/db.ts'
import { deleteStaleEvents } from '../../../sql/events/events.ts'
import { forgetDeletedMessages } from '../../../sql/mail/messages/deleteMail.ts'
import { deleteStaleChecks } from '../../../sql/till/payments/paymentChecks.ts'
import { deleteExpiredUses } from '../../../sql/vault/uses.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database/database.ts'
import { newGrant } from '../../support/oauth/grantRows.ts'

let database: TestDatabase
let pool: TestDatabase['pool']
const ROWS = 10_000

const deleteStaleOAuth = async (db: Queryable) => {
  for (const step of STALE_OAUTH) await step(db)
}

beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
  const { projectId, personId } = await newGrant(pool)
  // The first ten rows of each table are old.
  const time = `clock_timestamp() + case when n <= 10 then interval '-60 days' else interval '1 day' end`
  for (const insert of [
    `events (project_id, seq, type, data, created_at)
     select '${projectId}', -n, 'message.received', '{}', ${time}`,
    `deleted_messages (project_id, content_hash, deleted_at)
     select '${projectId}', decode(md5(n::text), 'hex'), ${time}`,
    `payment_checks (id, project_id, claim, claims, created_at)
     select 'check' || n, '${projectId}', '{}', false, ${time}`,
    `vault_uses (id, project_id, credential_name, method, host, path, audit_row, expires_at)
     select 'use' || n, '${projectId}', 'key', 'GET', 'a.example', '/', 1, ${time}`,
    `oauth_requests (id, browser_hash, client_id, client_name, redirect_uri, challenge, scopes, resource, expires_at)
     select 'request' || n, '', 'c', 'App', 'https://a.example/', 'c', '{mail:read}', 'r', ${time}`,
    `oauth_client_documents (id, url, state, wanted_at)
     select 'document' || n, 'https://a.example/', 'failed', ${time}`,
    `oauth_clients (id, name, redirect_uris, created_at) select 'app' || n, 'App', '{}', ${time}`,
    `oauth_grants (id, project_id, client_id, client_name, redirect_host, scopes, resource, actor, expires_at, person_id)
     select 'grant' || n, '${projectId}', 'c', 'App', 'a.example', '{mail:read}', 'r', 'test', ${time}, '${personId}'`,
    `oauth_codes (code_hash, grant_id, client_id, redirect_uri, challenge, expires_at)
     select n::text::bytea, 'grant' || n, 'c', 'https://a.example/', 'c', ${time}`,
    // The tokens of the old grants (OAuth consents) are not old themselves, so they can be found only by their grants.
    `oauth_tokens (token_hash, kind, grant_id, scopes, expires_at)
     select n::text::bytea, 'access', 'grant' || n, '{mail:read}', clock_timestamp() + interval '1 day'`,
  ]) {
    await pool.query(`insert into ${insert} from generate_series(1, ${ROWS}) n`)
  }
  await pool.query('analyze')
})
afterAll(() => database[Symbol.asyncDispose]())

test.each([
  ['events', deleteStaleEvents],
  ['deleted_messages', forgetDeletedMessages],
  ['payment_checks', deleteStaleChecks],
  ['vault_uses', deleteExpiredUses],
  [
    'oauth_client_documents, oauth_clients, oauth_codes, oauth_grants, oauth_requests, oauth_tokens',
    deleteStaleOAuth,
  ],
])(
  'the housekeeping deletes the old rows of %s, and never reads the whole table',
  async (names, clean) => {
    const tables = names.split(', ')
    const deleted = await transaction(pool, async (db) => {
      await clean(db)
      // `seq_scan` counts how often PostgreSQL read the whole table, so the count must be zero.
      const { rows } = await db.query<{ table: string; deleted: number; scans: number }>(
        `select relname as table, n_tup_del::int as deleted, seq_scan::int as scans from pg_stat_xact_user_tables
       where relname = any ($1) order by relname`,
        [tables],
      )
      return rows
    })
    expect(deleted).toEqual(tables.map((table) => ({ table, deleted: 10, scans: 0 })))
  },
)
