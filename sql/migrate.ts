import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { runMigrations } from 'graphile-worker'
import pg from 'pg'
import type { Queryable } from './db.ts'

const FOLDER = join(import.meta.dir, 'migrations')
/** An arbitrary advisory lock key: processes that start together migrate one after the other. */
const MIGRATION_LOCK = 7_305_146

async function migrationNames(): Promise<string[]> {
  const files = await readdir(FOLDER)
  return files.filter((file) => /^\d{6}_[a-z0-9_]+\.sql$/.test(file)).sort()
}

/**
 * Migrates the database: Graphile Worker's migrations, then ours in the order of their names, each in one transaction.
 * Safe to run at any time and from several processes at once.
 * @returns the names of the applied migrations.
 */
export async function migrate(databaseUrl: string): Promise<string[]> {
  const client = new pg.Client({
    connectionString: databaseUrl,
    application_name: 'purser migrate',
  })
  await client.connect()
  try {
    await client.query('select pg_advisory_lock($1)', [MIGRATION_LOCK])
    await runMigrations({ connectionString: databaseUrl })
    await client.query(
      `create table if not exists migrations (
         name text primary key, applied_at timestamptz not null default clock_timestamp())`,
    )
    const applied: string[] = []
    const done = await appliedMigrations(client)
    for (const name of await migrationNames()) {
      if (done.has(name)) continue
      await apply(client, name)
      applied.push(name)
    }
    return applied
  } finally {
    await client.end()
  }
}

async function apply(client: pg.Client, name: string): Promise<void> {
  const text = await Bun.file(join(FOLDER, name)).text()
  await client.query('begin')
  try {
    await client.query(text)
    await client.query('insert into migrations (name) values ($1)', [name])
    await client.query('commit')
  } catch (cause) {
    await client.query('rollback')
    throw new Error(`migration ${name} failed`, { cause })
  }
}

async function appliedMigrations(db: Queryable | pg.Client): Promise<Set<string>> {
  const { rows } = await db.query<{ name: string }>('select name from migrations')
  return new Set(rows.map((row) => row.name))
}

/** The migrations that the database lacks; empty: it is ready for this version. */
export async function pendingMigrations(db: Queryable): Promise<string[]> {
  const { rows } = await db.query<{ present: boolean }>(
    `select to_regclass('migrations') is not null as present`,
  )
  const done = rows[0]?.present ? await appliedMigrations(db) : new Set<string>()
  return (await migrationNames()).filter((name) => !done.has(name))
}
