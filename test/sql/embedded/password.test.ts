import { expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startEmbeddedPostgres } from '../../../sql/embedded/embeddedPostgres.ts'

test('PostgreSQL starts even if a power failure has emptied its new password file', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'purser-password-'))
  try {
    writeFileSync(join(dataDir, 'postgres-password'), '')
    const postgres = await startEmbeddedPostgres({ dataDir, durable: false, onLog() {} })
    await postgres.stop()
    expect(readFileSync(join(dataDir, 'postgres-password'), 'utf8')).toMatch(/^[0-9a-f]{48}$/)
  } finally {
    rmSync(dataDir, { recursive: true, force: true })
  }
})
