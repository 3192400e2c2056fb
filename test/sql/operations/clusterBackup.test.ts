import { expect, test } from 'bun:test'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createPool } from '../../../sql/db.ts'
import { startEmbeddedPostgres } from '../../../sql/embedded/embeddedPostgres.ts'
import { backUpCluster } from '../../../sql/operations/clusterBackup.ts'
import { waitFor } from '../../support/waitFor.ts'

const WRITERS = 4

test('a backup copy of a PostgreSQL cluster that was made during writes can be opened, and has every row from before the copy', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'purser-cluster-'))
  const [here, there] = [join(folder, 'here'), join(folder, 'there')]
  try {
    const server = await startEmbeddedPostgres({ dataDir: here, onLog: () => {} })
    const pool = createPool({ url: server.url, size: WRITERS + 1, name: 'test' })
    await pool.query('create table rows (n bigint generated always as identity, filling text)')
    let written = 0
    let stop = false
    const writers = Array.from({ length: WRITERS }, async () => {
      while (!stop) {
        await pool.query(`insert into rows (filling) values (repeat('x', 5000))`)
        written++
        // A checkpoint lets PostgreSQL remove WAL files during the copy, which makes the copy more difficult.
        if (written % 200 === 0) await pool.query('checkpoint')
      }
    })
    await waitFor('some rows', () => written > 500)
    const before = written
    mkdirSync(there)
    await backUpCluster({
      url: server.url,
      cluster: join(here, 'postgres'),
      target: join(there, 'postgres'),
    })
    const after = written
    stop = true
    await Promise.all(writers)
    const { rows: slots } = await pool.query('select from pg_replication_slots')
    expect(slots).toEqual([])
    await pool.end()
    await server.stop()
    expect(readdirSync(join(there, 'postgres'))).not.toContain('postmaster.pid')

    // The password file is outside of the folder of the PostgreSQL cluster, so the backup copy of the folder does not
    // contain it.
    await Bun.write(join(there, 'postgres-password'), Bun.file(join(here, 'postgres-password')))
    const restored = await startEmbeddedPostgres({ dataDir: there, onLog: () => {} })
    const copy = createPool({ url: restored.url, size: 1, name: 'test' })
    const { rows } = await copy.query('select count(*)::int as count from rows')
    expect(rows[0].count).toBeGreaterThanOrEqual(before)
    expect(rows[0].count).toBeLessThanOrEqual(after + WRITERS)
    await copy.query('create index on rows (n)')
    await copy.end()
    await restored.stop()
    expect(existsSync(join(there, 'postgres', 'backup_label'))).toBe(false)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})
