import { expect, test } from 'bun:test'
import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { singleConnection } from '../../../sql/connectionTo.ts'
import { startEmbeddedPostgres } from '../../../sql/embedded/embeddedPostgres.ts'

test('the start of the service waits until PostgreSQL accepts writes after a recovery from an archive', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'purser-archive-'))
  const options = { dataDir, durable: false, onLog: () => {} }
  try {
    await (await startEmbeddedPostgres(options)).stop()
    const cluster = join(dataDir, 'postgres')
    writeFileSync(join(cluster, 'recovery.signal'), '')
    // PostgreSQL asks the archive once more after its data is consistent. A slow archive makes this time long.
    appendFileSync(join(cluster, 'postgresql.auto.conf'), `restore_command = 'sleep 0.4; false'\n`)
    const postgres = await startEmbeddedPostgres(options)
    const client = singleConnection({ connectionString: postgres.url })
    try {
      await client.connect()
      await client.query('create table written (n int)')
      expect((await client.query('select pg_is_in_recovery() as waits')).rows).toEqual([
        { waits: false },
      ])
    } finally {
      await client.end()
      await postgres.stop()
    }
  } finally {
    rmSync(dataDir, { recursive: true, force: true })
  }
})
