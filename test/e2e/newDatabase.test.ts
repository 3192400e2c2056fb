/** Runs `database.sql` of `bun run secrets:new --units`, which creates the database of a new installation. */
import { expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { migrate } from '../../sql/migrate.ts'
import { startProcess } from '../support/process/process.ts'
import { hasPrograms, newCluster, removeDatabases } from './restore/databases.ts'
import '../support/long.ts'

if (!hasPrograms()) {
  process.stderr.write('SKIPPED: a new database, because there is no PostgreSQL of Debian\n')
}

test.skipIf(!hasPrograms())(
  'the database of a new installation has the encoding UTF8, also if the server was made without a locale',
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'purser-units-'))
    await using made = startProcess('api/operations/secretsMain.ts', {}, ['--units', folder])
    expect(await made.exited).toBe(0)
    const statements = readFileSync(join(folder, 'database.sql'), 'utf8').split('\n')
    rmSync(folder, { recursive: true, force: true })
    const cluster = await newCluster(() => [], ['--no-locale', '--encoding=SQL_ASCII'])
    try {
      const admin = new pg.Client(cluster.adminUrl)
      await admin.connect()
      for (const statement of statements) if (statement !== '') await admin.query(statement)
      const { rows } = await admin.query(
        `select pg_encoding_to_char(encoding) as encoding from pg_database where datname = 'purser'`,
      )
      await admin.end()
      expect(rows).toEqual([{ encoding: 'UTF8' }])
      expect((await migrate(cluster.url)).length).toBeGreaterThan(100)
    } finally {
      cluster.stop()
      removeDatabases()
    }
  },
)
