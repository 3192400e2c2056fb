import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { runMigrations } from 'graphile-worker'
import type pg from 'pg'
import { ConfigError } from '../shared/config/configError.ts'
import { errorCode } from '../shared/errorCode.ts'
import { connectionTo, singleConnection } from './connectionTo.ts'
import { createPool, type Queryable } from './db.ts'

const FOLDER = join(import.meta.dir, 'migrations')
/**
 * Holds the key of the advisory lock for migrations, which is an arbitrary number. With this lock, processes that start
 * at the same time migrate the database one after the other.
 */
const MIGRATION_LOCK = 7_305_146

/** Names the database connections that run migrations, so that PostgreSQL shows this name. */
const MIGRATOR = 'purser migrate'

async function migrationNames(folder = FOLDER): Promise<string[]> {
  const files = await readdir(folder)
  return files.filter((file) => /^\d{6}_[a-z0-9_]+\.sql$/.test(file)).sort()
}

/**
 * Migrates the database: first by Graphile Worker's migrations, then by the service's migrations in the order of their
 * names. Each migration runs in one transaction, or builds indexes online. The function may run at any time, and
 * several processes may run it at once.
 * @throws {ConfigError} if the database is new and has another encoding than UTF8.
 * @returns the names of the migrations that this call has applied.
 */
export async function migrate(databaseUrl: string, folder = FOLDER): Promise<string[]> {
  const client = singleConnection(connectionTo(databaseUrl, MIGRATOR))
  await client.connect()
  try {
    // The database or its role may limit the time of statements and locks. The migration turns these limits off, because
    // the build of an index can take hours and waits for older transactions.
    await client.query('set statement_timeout = 0; set lock_timeout = 0')
    await takeLock(client)
    await checkEncoding(client)
    await migrateQueue(databaseUrl)
    await client.query(
      `create table if not exists migrations (
         name text primary key, applied_at timestamptz not null default clock_timestamp())`,
    )
    const applied: string[] = []
    const done = await appliedMigrations(client)
    for (const name of await migrationNames(folder)) {
      if (done.has(name)) continue
      await apply(client, folder, name)
      applied.push(name)
    }
    return applied
  } finally {
    await client.end()
  }
}

/**
 * Refuses a new database that cannot store every character, or that counts bytes instead of characters. PostgreSQL makes
 * such a database if its server was made under an old or missing locale. An existing database continues to work.
 */
async function checkEncoding(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ name: string; encoding: string; isNew: boolean }>(
    `select current_database() as name, current_setting('server_encoding') as encoding,
            to_regclass('migrations') is null as "isNew"`,
  )
  const { name, encoding, isNew } = rows[0]!
  if (!isNew || encoding === 'UTF8') return
  throw new ConfigError(
    `DATABASE_URL: the database "${name}" has the encoding ${encoding}; create it with encoding 'UTF8' template template0`,
  )
}

/**
 * Applies Graphile Worker's migrations on a pool of this service, because Graphile Worker would remove the error
 * listeners of its own pool before the connection has closed.
 */
async function migrateQueue(databaseUrl: string): Promise<void> {
  const pool = createPool({ url: databaseUrl, size: 1, name: MIGRATOR, statementTimeoutMs: 0 })
  try {
    await runMigrations({ pgPool: pool })
  } finally {
    await pool.end()
  }
}

/** Holds the pause in milliseconds between two attempts to get the advisory lock for migrations. */
const TURN_PAUSE_MS = 200

/**
 * Waits until no other process migrates the database. A statement that waited for the advisory lock would hold a
 * database snapshot. The other process may be building an index online, and this build waits for the end of all
 * snapshots. Both processes would then wait for ever.
 */
async function takeLock(client: pg.Client): Promise<void> {
  for (;;) {
    const { rows } = await client.query<{ taken: boolean }>(
      'select pg_try_advisory_lock($1) as taken',
      [MIGRATION_LOCK],
    )
    if (rows[0]!.taken) return
    await Bun.sleep(TURN_PAUSE_MS)
  }
}

async function apply(client: pg.Client, folder: string, name: string): Promise<void> {
  const text = await Bun.file(join(folder, name)).text()
  try {
    if (text.startsWith(ONLINE)) await applyOnline(client, text, name)
    else await applyAtOnce(client, text, name)
  } catch (cause) {
    throw new Error(`migration ${name} failed: ${(cause as Error).message}`, { cause })
  }
}

/**
 * Holds the text at the beginning of the first line of an online migration. An online migration builds indexes while
 * other processes write to the table.
 */
const ONLINE = '-- online:'
const RECORD = 'insert into migrations (name) values ($1)'

/** Applies an online migration. The build of an index waits for older transactions, but does not block newer ones. */
async function applyOnline(client: pg.Client, text: string, name: string): Promise<void> {
  await dropHalfBuilt(client, text)
  for (const statement of text.split(/;\s*$/m)) {
    if (statement.trim() !== '') await client.query(statement)
  }
  await client.query(RECORD, [name])
}

/**
 * Drops the indexes of a migration whose earlier build was interrupted, because PostgreSQL keeps such an index as
 * invalid, and `if not exists` would skip its build.
 */
async function dropHalfBuilt(client: pg.Client, text: string): Promise<void> {
  const { rows } = await client.query<{ name: string }>(
    `select indexrelid::regclass::text as name from pg_index join pg_class c on c.oid = indexrelid
     where not indisvalid and c.relnamespace = 'public'::regnamespace
       and $1 ~ ('concurrently if not exists ' || c.relname || '\\M')`,
    [text],
  )
  for (const { name } of rows) await client.query(`drop index concurrently if exists ${name}`)
}

/**
 * Limits the milliseconds that a migration waits for a table lock, because meanwhile, every later SQL statement on the
 * table also waits.
 */
const LOCK_TIMEOUT_MS = 2_000
const LOCK_NOT_AVAILABLE = '55P03'
/**
 * Holds the pause in milliseconds between two attempts to run a migration. During the pause, other SQL statements can
 * run.
 */
const LOCK_PAUSE_MS = 1_000
const LOCK_TRIES_MAX = 100

async function applyAtOnce(client: pg.Client, text: string, name: string): Promise<void> {
  for (let tried = 1; ; tried++) {
    await client.query('begin')
    try {
      await client.query(`set local lock_timeout = ${LOCK_TIMEOUT_MS}`)
      await client.query(text)
      await client.query(RECORD, [name])
      await client.query('commit')
      return
    } catch (error) {
      await client.query('rollback')
      const isLocked = errorCode(error) === LOCK_NOT_AVAILABLE
      if (!isLocked || tried === LOCK_TRIES_MAX) throw error
      await Bun.sleep(LOCK_PAUSE_MS)
    }
  }
}

async function appliedMigrations(db: Queryable | pg.Client): Promise<Set<string>> {
  const { rows } = await db.query<{ name: string }>('select name from migrations')
  return new Set(rows.map((row) => row.name))
}

/**
 * Returns the migrations that the database lacks. An empty result means that the database is ready for this version of
 * the service.
 */
export async function pendingMigrations(db: Queryable): Promise<string[]> {
  const { rows } = await db.query<{ present: boolean }>(
    `select to_regclass('migrations') is not null as present`,
  )
  const done = rows[0]?.present ? await appliedMigrations(db) : new Set<string>()
  return (await migrationNames()).filter((name) => !done.has(name))
}
