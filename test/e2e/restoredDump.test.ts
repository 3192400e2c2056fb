/** Runs the documented commands that back up and restore a database with `pg_dump`. */
import { expect, test } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Spool } from '../../api/smtp/spool/spool.ts'
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

test.skipIf(!hasPrograms())(
  'the backup of docs/growing.md before an upgrade contains the spool and the database',
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'purser-upgrade-'))
    const database = await dumped()
    try {
      await migrate(database.settings.DATABASE_URL!)
      await new Spool(folder).close()
      const page = readFileSync(join(import.meta.dir, '../../docs/growing.md'), 'utf8')
      const [step] = /^2\. Run `npm run backup.*?(?=^3\.)/ms.exec(page)!
      const commands = [...step.matchAll(/`((?:npm run|pg_dump) [^`]*)`/g)].map(([, one]) =>
        one!.replaceAll('/var/backups', folder).replace('npm run', `${process.execPath} run`),
      )
      const { PATH = '' } = process.env
      const { status, stderr } = spawnSync('bash', ['-ec', commands.join('\n')], {
        cwd: join(import.meta.dir, '../..'),
        env: {
          ...database.settings,
          DATA_DIR: folder,
          MAIL_DOMAIN: 'mail.test',
          PATH: `${database.bin}:${PATH}`,
        },
        encoding: 'utf8',
      })
      expect(status, stderr).toBe(0)
      const listed = spawnSync('bash', ['-c', `pg_restore --list ${folder}/purser-*.dump`], {
        encoding: 'utf8',
      })
      expect(listed.stdout).toContain('TABLE DATA public projects')
      const spools = spawnSync('bash', ['-c', `ls ${folder}/purser-*/spool.sqlite`])
      expect(spools.status).toBe(0)
    } finally {
      database.stop()
      removeDatabases()
      rmSync(folder, { recursive: true, force: true })
    }
  },
)
