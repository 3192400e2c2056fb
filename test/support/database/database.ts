import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { createPool, type Pool } from '../../../sql/db.ts'

/** Names the migrated database that every test file clones. */
export const TEMPLATE_DATABASE = 'purser_template'

export type TestDatabase = AsyncDisposable & { url: string; pool: Pool }

/**
 * Creates a separate database for one test file, as a clone of the migrated template. The disposal of this object drops
 * the database.
 * @param template names the database to clone. With `template0`, the new database has no schema.
 */
export async function createTestDatabase(
  template: typeof TEMPLATE_DATABASE | 'template0' = TEMPLATE_DATABASE,
): Promise<TestDatabase> {
  const adminUrl = process.env.PURSER_TEST_DATABASE
  if (adminUrl === undefined) throw new Error('run tests with: npm test -- FILE')
  const name = `test_${randomBytes(8).toString('hex')}`
  await asAdmin(adminUrl, `create database ${name} template ${template} strategy file_copy`)
  const url = adminUrl.replace(/\/[^/]*$/, `/${name}`)
  const pool = createPool({ url, size: 8, name: 'test' })
  return {
    url,
    pool,
    async [Symbol.asyncDispose]() {
      await pool.end()
      await asAdmin(adminUrl, `drop database ${name} with (force)`)
    },
  }
}

let admin: pg.Pool | null = null

/**
 * Runs a statement on the one admin connection of this process. On a virtual machine, PostgreSQL needs 40 ms of
 * processor time for a new connection, and 80 ms for a new database.
 */
async function asAdmin(url: string, statement: string): Promise<void> {
  admin ??= new pg.Pool({
    connectionString: url,
    max: 1,
    idleTimeoutMillis: 0,
    allowExitOnIdle: true,
  }).on('error', () => {})
  await admin.query(statement)
}
