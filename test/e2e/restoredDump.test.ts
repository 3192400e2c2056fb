/** Runs the commands of docs/operating.md that restore a file of `pg_dump` on another server. */
import { expect, test } from 'bun:test'
import { createPool } from '../../sql/db.ts'
import { migrate, pendingMigrations } from '../../sql/migrate.ts'
import { dumped, hasPrograms, removeDatabases } from './restore/databases.ts'
import '../support/long.ts'

if (!hasPrograms()) {
  process.stderr.write('SKIPPED: the restore of a dump, because there is no PostgreSQL of Debian\n')
}

test.skipIf(!hasPrograms())(
  'the documented commands restore a dump as the role of DATABASE_URL, which is no superuser',
  async () => {
    const database = await dumped()
    try {
      await migrate(database.settings.DATABASE_URL!)
      database.backUp()
      const other = await database.restore()
      try {
        const url = other.settings.DATABASE_URL!
        const pool = createPool({ url, size: 1, name: 'test' })
        expect(await pendingMigrations(pool)).toEqual([])
        await pool.end()
        expect(await migrate(url)).toEqual([])
      } finally {
        other.stop()
      }
    } finally {
      database.stop()
      removeDatabases()
    }
  },
)
