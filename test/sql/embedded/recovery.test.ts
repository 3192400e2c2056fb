import { expect, test } from 'bun:test'
import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startEmbeddedPostgres } from '../../../sql/embedded/embeddedPostgres.ts'
import { waitFor } from '../../support/waitFor.ts'
import '../../support/whole.ts'

test('the start of the service waits even if PostgreSQL needs more than half a minute to recover', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'purser-recovery-'))
  const lines: string[] = []
  const options = { dataDir, durable: false, onLog: (line: string) => void lines.push(line) }
  try {
    await (await startEmbeddedPostgres(options)).stop()
    const cluster = join(dataDir, 'postgres')
    // The test makes the first search of PostgreSQL for archived WAL take 33 seconds, so that the recovery needs more
    // than half a minute.
    const once = 'test -e recovery.slow && rm recovery.slow && sleep 33; false'
    writeFileSync(join(cluster, 'recovery.slow'), '', { mode: 0o666 })
    writeFileSync(join(cluster, 'recovery.signal'), '')
    appendFileSync(join(cluster, 'postgresql.auto.conf'), `restore_command = '${once}'\n`)
    const startedMs = performance.now()
    const postgres = await startEmbeddedPostgres(options)
    expect(performance.now() - startedMs).toBeGreaterThan(33_000)
    // The test waits for the log line, because this process can read the line after the first connection to PostgreSQL
    // succeeded.
    await waitFor('the log line of the recovery', () =>
      lines.some((line) => line.includes('archive recovery complete')),
    )
    await postgres.stop()
  } finally {
    rmSync(dataDir, { recursive: true, force: true })
  }
})
