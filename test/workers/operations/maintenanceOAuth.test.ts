/** Tests that one OAuth table, or one row, cannot prevent the housekeeping from deleting the other old rows. */
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { startMaintenance } from '../../../workers/operations/maintenance.ts'
import { silentLog } from '../../support/logs.ts'
import { exchange, newGrant } from '../../support/oauth/grantRows.ts'
import { startTestService, type TestService } from '../../support/service.ts'
import { waitFor } from '../../support/waitFor.ts'
import '../../support/long.ts'

let service: TestService
beforeEach(async () => {
  service = await startTestService({ smtp: false, workers: false })
})
afterEach(() => service[Symbol.asyncDispose]())

const TABLES = [
  'oauth_requests',
  'oauth_codes',
  'oauth_tokens',
  'oauth_grants',
  'oauth_client_documents',
  'oauth_clients',
] as const

/** Adds rows to all OAuth tables that are old enough to be deleted. */
async function addOldRows(name: string): Promise<void> {
  const { pool } = service.database
  const live = await newGrant(pool, { clientId: `live-${name}` })
  await exchange(pool, live)
  const over = await newGrant(pool, { clientId: `over-${name}` })
  const old = `clock_timestamp() - interval '40 days'`
  for (const change of [
    `update oauth_codes set expires_at = ${old} where client_id = 'live-${name}'`,
    `update oauth_tokens set expires_at = ${old} where grant_id = '${live.id}'`,
    `update oauth_grants set expires_at = ${old} where id = '${over.id}'`,
    // The deletion of an OAuth grant (a consent) also deletes its authorization codes, so the test removes these codes
    // before it counts the rows.
    `delete from oauth_codes where grant_id = '${over.id}'`,
    `update oauth_clients set created_at = ${old} where id = 'over-${name}'`,
    `update oauth_clients set used_at = ${old} where id = 'live-${name}'`,
    `insert into oauth_client_documents (id, url, state, wanted_at)
     values ('${name}', 'https://app.example/', 'failed', ${old})`,
    `insert into oauth_requests
       (id, browser_hash, client_id, client_name, redirect_uri, challenge, scopes, resource, expires_at)
     values ('${name}', '', 'c', 'App', 'https://app.example/cb', 'c', '{mail:read}', 'r', ${old})`,
  ]) {
    await pool.query(change)
  }
}

/** Counts the old rows that are left in the tables. */
async function left(tables: readonly string[] = TABLES): Promise<Record<string, number>> {
  const old = `clock_timestamp() - interval '39 days'`
  const conditions: Record<string, string> = {
    oauth_clients: `created_at < ${old}`,
    oauth_client_documents: `wanted_at < ${old}`,
  }
  const counts: Record<string, number> = {}
  for (const table of tables) {
    const { rows } = await service.database.pool.query<{ n: number }>(
      `select count(*)::int as n from ${table} where ${conditions[table] ?? `expires_at < ${old}`}`,
    )
    if (rows[0]!.n > 0) counts[table] = rows[0]!.n
  }
  return counts
}

const start = () => startMaintenance(service.database.url, service.config.retention, silentLog)

test.each(TABLES)(
  'if the clean-up of the table %s fails, the old rows of the other tables of OAuth are deleted',
  async (broken) => {
    await addOldRows('a')
    const { pool } = service.database
    // Only the deletion fails, so the cleanup of other tables can still read this table.
    await pool.query(
      `create function refuse() returns trigger language plpgsql as $$ begin raise 'broken'; end $$`,
    )
    await pool.query(
      `create trigger broken before delete on ${broken} for each row execute function refuse()`,
    )
    const maintenance = start()
    try {
      await waitFor(
        'the other rows to go',
        async () => Object.keys(await left()).length <= 1,
        10_000,
      )
      expect(Object.keys(await left())).toEqual([broken])
    } finally {
      await maintenance.stop()
    }
  },
)

test('if another transaction has locked an old OAuth row, the other old rows are still deleted', async () => {
  await addOldRows('a')
  const before = await left()
  const client = await service.database.pool.connect()
  try {
    await client.query('begin')
    for (const table of TABLES) await client.query(`select from ${table} for update`)
    await addOldRows('b')
    const maintenance = start()
    try {
      await waitFor(
        'the other rows to go',
        async () => Bun.deepEquals(await left(), before),
        10_000,
      )
    } finally {
      await client.query('rollback')
      await maintenance.stop()
    }
  } finally {
    client.release()
  }
})
