/**
 * `npm test`: starts one embedded PostgreSQL with a migrated template database, runs `bun test` with the arguments given,
 * and closes with a line `N passed, N failed, N skipped`.
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { startEmbeddedPostgres } from '../sql/embedded/embeddedPostgres.ts'
import { migrate } from '../sql/migrate.ts'
import { TEMPLATE_DATABASE } from './support/database.ts'

/** A test that hangs ends after this time, milliseconds. It is generous: a busy machine must not fail a test. */
const TEST_LIMIT_MS = 180_000

/** Test files at the same time. Many wait for a process or a delay, so that a third one finds room on two cores. */
const LANES = 3

const dataDir = mkdtempSync(join(tmpdir(), 'purser-test-'))
const database = await startEmbeddedPostgres({ dataDir, durable: false, onLog: () => {} })
let code = 1
try {
  await makeTemplate(database.url)
  code = await runTests({ ...process.env, PURSER_TEST_DATABASE: database.url })
} finally {
  await database.stop()
  rmSync(dataDir, { recursive: true, force: true })
}
process.exitCode = code

async function makeTemplate(url: string): Promise<void> {
  const admin = new pg.Client({ connectionString: url })
  await admin.connect()
  await admin.query(`create database ${TEMPLATE_DATABASE}`)
  await admin.end()
  await migrate(url.replace(/\/[^/]*$/, `/${TEMPLATE_DATABASE}`))
}

function runTests(env: Record<string, string | undefined>): Promise<number> {
  const args = [
    'test',
    `--parallel=${LANES}`,
    `--timeout=${TEST_LIMIT_MS}`,
    ...process.argv.slice(2),
  ]
  const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'pipe'] })
  let tail = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      process.stdout.write(chunk)
      tail = (tail + chunk.toString()).slice(-4_000)
    })
  }
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => child.kill(signal))
  return new Promise((resolve) => {
    child.on('close', (exit) => {
      const count = (word: string) =>
        Number(new RegExp(`^\\s*(\\d+) ${word}$`, 'm').exec(tail)?.[1] ?? 0)
      process.stdout.write(
        `\n${count('pass')} passed, ${count('fail')} failed, ${count('skip')} skipped\n`,
      )
      resolve(exit ?? 1)
    })
  })
}
