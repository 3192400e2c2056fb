import { expect, test } from 'bun:test'
import { createPool } from '../../sql/db.ts'
import { registerPool } from '../../sql/queue/workerPools.ts'
import { createTestDatabase } from '../support/database/database.ts'

/** Returns the URL of a test database with parameters, as operators and managed databases set them. */
function withParameters(text: string): string {
  const url = new URL(text)
  url.searchParams.set('application_name', 'purser-production')
  url.searchParams.set('options', '-c search_path=public -c statement_timeout=0')
  return url.href
}

test('a database pool keeps its name and its time limit even if the database URL has options', async () => {
  await using database = await createTestDatabase()
  const pool = createPool({
    url: withParameters(database.url),
    size: 1,
    name: 'purser test',
    statementTimeoutMs: 7_000,
  })
  try {
    const { rows } = await pool.query(
      `select current_setting('application_name') as name, current_setting('statement_timeout') as timeout,
              current_setting('plan_cache_mode') as plan, current_setting('search_path') as path`,
    )
    expect(rows).toEqual([
      { name: 'purser test', timeout: '7s', plan: 'force_generic_plan', path: 'public' },
    ])
  } finally {
    await pool.end()
  }
})

test('the database shows the name of a running worker pool, even if the database URL names another application', async () => {
  await using database = await createTestDatabase()
  const registration = await registerPool({
    databaseUrl: withParameters(database.url),
    graphilePoolId: 'worker-test',
    poolName: 'inbound',
    onLost: () => {},
  })
  try {
    const { rows } = await database.pool.query(
      `select application_name from pg_stat_activity
       where datname = current_database() and query like 'delete from worker_pools%' and pid <> pg_backend_pid()`,
    )
    expect(rows).toEqual([{ application_name: 'purser worker inbound (alive)' }])
  } finally {
    await registration.release()
  }
})
