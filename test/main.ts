/**
 * `npm test`: starts one embedded PostgreSQL with a migrated template database, runs the test files by `bun test`, and closes with
 * a line `N passed, N failed, N skipped`. Words choose the files whose path contains one of them; options go to `bun test`.
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
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

/** Files that import test/support/alone.ts hold the service to a time. They run last, one after the other. */
const RUNS_ALONE = /from '[./]*support\/alone\.ts'|import '[./]*support\/alone\.ts'/

type Env = Record<string, string | undefined>

const dataDir = mkdtempSync(join(tmpdir(), 'purser-test-'))
const database = await startEmbeddedPostgres({ dataDir, durable: false, onLog: () => {} })
let code = 1
try {
  await makeTemplate(database.url)
  code = await runSuite({ ...process.env, PURSER_TEST_DATABASE: database.url })
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

type Outcome = { exit: number; passed: number; failed: number; skipped: number }

async function runSuite(env: Env): Promise<number> {
  const wanted = process.argv.slice(2)
  const options = wanted.filter((word) => word.startsWith('-'))
  const words = wanted.filter((word) => !word.startsWith('-'))
  const files = [
    ...new Bun.Glob('test/**/*.test.ts').scanSync({ cwd: join(import.meta.dir, '..') }),
  ]
    .filter((file) => !file.includes('node_modules'))
    .filter((file) => words.length === 0 || words.some((word) => file.includes(word)))
    .toSorted()
  if (files.length === 0) {
    process.stderr.write(`no test file has a path with: ${words.join(', ')}\n`)
    return 1
  }
  const alone = files.filter((file) => RUNS_ALONE.test(readFileSync(file, 'utf8')))
  const others = files.filter((file) => !alone.includes(file))
  const total: Outcome = { exit: 0, passed: 0, failed: 0, skipped: 0 }
  for (const [lanes, group] of [
    [LANES, others],
    [1, alone],
  ] as const) {
    if (group.length === 0) continue
    const outcome = await runTests(env, [`--parallel=${lanes}`, ...options, ...group])
    total.exit ||= outcome.exit
    for (const kind of ['passed', 'failed', 'skipped'] as const) total[kind] += outcome[kind]
  }
  const { exit, passed, failed, skipped } = total
  process.stdout.write(`\n${passed} passed, ${failed} failed, ${skipped} skipped\n`)
  return exit
}

function runTests(env: Env, wanted: string[]): Promise<Outcome> {
  const args = ['test', `--timeout=${TEST_LIMIT_MS}`, ...wanted]
  const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      process.stdout.write(chunk)
      output += chunk.toString()
    })
  }
  const stop = (signal: NodeJS.Signals) => child.kill(signal)
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, stop)
  return new Promise((resolve) => {
    child.on('close', (exit) => {
      for (const signal of ['SIGINT', 'SIGTERM'] as const) process.off(signal, stop)
      const count = (word: string) =>
        Number(new RegExp(`^\\s*(\\d+) ${word}$`, 'm').exec(output.slice(-4_000))?.[1] ?? 0)
      resolve({
        exit: exit ?? 1,
        passed: count('pass'),
        failed: count('fail'),
        skipped: count('skip'),
      })
    })
  })
}
