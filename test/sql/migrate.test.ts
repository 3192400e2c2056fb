import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { migrate } from '../../sql/migrate.ts'
import { createTestDatabase, type TestDatabase } from '../support/database/database.ts'
import { waitFor } from '../support/waitFor.ts'

let database: TestDatabase
let folder: string
beforeEach(async () => {
  database = await createTestDatabase()
  folder = mkdtempSync(join(tmpdir(), 'purser-migrations-'))
})
afterEach(async () => {
  await database[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true, force: true })
})

const write = (name: string, text: string) => writeFileSync(join(folder, name), text)
const columnExists = async () => {
  const { rows } = await database.pool.query(
    `select from information_schema.columns where table_name = 'messages' and column_name = 'extra'`,
  )
  return rows.length === 1
}

test('a migration that waits for a busy table does not delay other statements', async () => {
  write('900001_extra.sql', 'alter table messages add column extra text;')
  const { pool } = database
  const reader = await pool.connect()
  await reader.query('begin')
  await reader.query('select from messages limit 1')
  const migrating = migrate(database.url, folder)
  await waitFor('the migration to wait for its lock', async () => {
    const { rows } = await pool.query(
      `select from pg_locks where relation = 'messages'::regclass and not granted`,
    )
    return rows.length > 0
  })
  // While the migration waits, it leaves the lock queue for a moment. Therefore another statement can finish, although
  // the reader still holds its lock.
  await pool.query('select from messages limit 1')
  expect(await columnExists()).toBe(false)
  await reader.query('commit')
  reader.release()
  expect(await migrating).toEqual(['900001_extra.sql'])
  expect([await columnExists(), await migrate(database.url, folder)]).toEqual([true, []])
})

test('a migration counts as failed if its connection breaks between two statements', async () => {
  write('900001_extra.sql', 'alter table messages add column extra text;')
  const { pool } = database
  const reader = await pool.connect()
  await reader.query('begin')
  await reader.query('select from messages limit 1')
  const migrating = migrate(database.url, folder).then(
    () => 'migrated',
    (error: Error) => error.message,
  )
  // Between two attempts to lock the table, the connection of the migration runs no statement. The test cuts the
  // connection at this moment.
  await waitFor('the migration to pause', async () => {
    const { rowCount } = await pool.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
       where application_name = 'purser migrate' and datname = current_database()
         and state = 'idle' and query = 'rollback'`,
    )
    return rowCount === 1
  })
  expect(await migrating).toContain('900001_extra.sql failed')
  await reader.query('commit')
  reader.release()
  expect(await migrate(database.url, folder)).toEqual(['900001_extra.sql'])
})

test('an index is built while other statements write to the table', async () => {
  write(
    '900001_online.sql',
    `-- online: a test
     drop index concurrently if exists projects_purpose;
     create index concurrently projects_purpose on projects (purpose);`,
  )
  const { pool } = database
  const writer = await pool.connect()
  await writer.query('begin')
  await writer.query(`update projects set purpose = purpose`)
  const migrating = migrate(database.url, folder)
  await waitFor('the build to wait for the writer', async () => {
    const { rows } = await pool.query(
      `select from pg_stat_activity where query like 'create index concurrently%' and wait_event_type = 'Lock'
         or query like '%create index concurrently%' and wait_event = 'virtualxid'`,
    )
    return rows.length > 0
  })
  await pool.query(`update projects set purpose = purpose where id = 'none'`)
  await writer.query('commit')
  writer.release()
  expect(await migrating).toEqual(['900001_online.sql'])
  const { rows } = await pool.query(
    `select indisvalid from pg_index where indexrelid = 'projects_purpose'::regclass`,
  )
  expect(rows).toEqual([{ indisvalid: true }])
})

test('if a migration is killed while it builds an index, the next migration builds the index again', async () => {
  const text = 'create index concurrently if not exists projects_purpose on projects (purpose);'
  write('900001_online.sql', `-- online: a test\n${text}`)
  const { pool } = database
  const writer = await pool.connect()
  await writer.query('begin')
  await writer.query('update projects set purpose = purpose')
  const killed = migrate(database.url, folder).catch(() => 'killed')
  await waitFor('the build to wait for the writer', async () => {
    const { rowCount } = await pool.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
       where application_name = 'purser migrate' and datname = current_database()
         and query like '%concurrently%' and wait_event_type = 'Lock'`,
    )
    return rowCount === 1
  })
  expect(await killed).toBe('killed')
  await writer.query('commit')
  writer.release()
  expect(await migrate(database.url, folder)).toEqual(['900001_online.sql'])
  const { rows } = await pool.query(
    `select indisvalid from pg_index where indexrelid = 'projects_purpose'::regclass`,
  )
  expect(rows).toEqual([{ indisvalid: true }])
})

test('if two migrations build an index online at once, they build it one after the other', async () => {
  write(
    '900001_online.sql',
    `-- online: a test
     create index concurrently if not exists projects_purpose on projects (purpose);`,
  )
  const { pool } = database
  const writer = await pool.connect()
  await writer.query('begin')
  await writer.query('update projects set purpose = purpose')
  const waitsFor = async (what: string, condition: string) =>
    waitFor(what, async () => {
      const { rowCount } = await pool.query(
        `select from pg_stat_activity where application_name = 'purser migrate'
           and datname = current_database() and ${condition}`,
      )
      return rowCount === 1
    })
  const first = migrate(database.url, folder)
  await waitsFor(
    'the build to wait for the writer',
    `query like '%concurrently%' and wait_event_type = 'Lock'`,
  )
  const second = migrate(database.url, folder)
  await waitsFor('the second migration', `query like '%advisory_lock%'`)
  await writer.query('commit')
  writer.release()
  expect(await Promise.all([first, second])).toEqual([['900001_online.sql'], []])
})

test('a database’s time limit on statements does not end a long migration', async () => {
  const { pool, url } = database
  const name = new URL(url).pathname.slice(1)
  await pool.query(`alter database ${name} set statement_timeout = '100ms'`)
  write('900001_slow.sql', 'alter table messages add column extra text; select pg_sleep(0.3);')
  expect(await migrate(url, folder)).toEqual(['900001_slow.sql'])
  expect(await columnExists()).toBe(true)
})

test('a database’s time limit on locks does not end the build of an index that waits for a transaction', async () => {
  const { pool, url } = database
  const name = new URL(url).pathname.slice(1)
  await pool.query(`alter database ${name} set lock_timeout = '100ms'`)
  write(
    '900001_online.sql',
    '-- online:\ncreate index concurrently if not exists messages_extra on messages (subject);\n',
  )
  const writer = await pool.connect()
  await writer.query('begin')
  await writer.query('delete from messages')
  const migrating = migrate(url, folder).catch((error: Error) => error.message)
  await Bun.sleep(500)
  await writer.query('commit')
  writer.release()
  expect(await migrating).toEqual(['900001_online.sql'])
})

test('a migration that fails changes nothing, and the error names the migration', async () => {
  write('900001_extra.sql', 'alter table messages add column extra text; select 1 / 0;')
  await expect(migrate(database.url, folder)).rejects.toThrow(
    'migration 900001_extra.sql failed: division by zero',
  )
  expect(await columnExists()).toBe(false)
})

test('the migration for the scope mail:codes adds the scope once to each active API key that may read mail', async () => {
  const { pool } = database
  const update = (
    await Bun.file(join(import.meta.dir, '../../sql/migrations/000110_message_codes.sql')).text()
  )
    .split(';')
    .find((statement) => statement.includes('update api_keys'))!
  const add = (scopes: string[], revoked: boolean) =>
    pool.query(
      `insert into api_keys (kind, lookup_prefix, key_hash, scopes, revoked_at)
       values ('platform', 'x', sha256(gen_random_uuid()::text::bytea), $1, $2)`,
      [scopes, revoked ? new Date() : null],
    )
  await add(['mail:read', 'vault:read'], false)
  await add(['vault:read'], false)
  await add(['mail:read'], true)
  await pool.query(update)
  await pool.query(update)
  const { rows } = await pool.query(
    `select scopes from api_keys where lookup_prefix = 'x' order by id`,
  )
  expect(rows.map(({ scopes }) => scopes)).toEqual([
    ['mail:read', 'vault:read', 'mail:codes'],
    ['vault:read'],
    ['mail:read'],
  ])
})

test.each(['SQL_ASCII', 'LATIN1'])(
  'the first migration refuses a database with the encoding %s, because it cannot store every mail',
  async (encoding) => {
    const name = `encoded_${encoding.toLowerCase()}_${process.pid}`
    const { pool } = database
    await pool.query(
      `create database ${name} template template0 encoding '${encoding}' locale_provider libc locale 'C'`,
    )
    const url = database.url.replace(/[^/]*$/, name)
    try {
      await expect(migrate(url)).rejects.toThrow(
        `DATABASE_URL: the database "${name}" has the encoding ${encoding}`,
      )
    } finally {
      await pool.query(`drop database ${name} with (force)`)
    }
  },
)
