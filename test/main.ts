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

interface Outcome {
  exit: number
  passed: number
  failed: number
  skipped: number
  /** The files of tests that failed. */
  failedFiles: string[]
}

/**
 * Runs the suite. With TEST_RERUN=1, as in CI, up to three failed files run again by themselves: a machine with other work must not
 * hide whether the code is right. The output names tests that passed only alone.
 */
async function runSuite(env: Env): Promise<number> {
  const first = await runTests(env, [`--parallel=${LANES}`, ...process.argv.slice(2)])
  const again = first.failedFiles
  if (env.TEST_RERUN !== '1' || again.length === 0 || again.length > 3) return close(first)
  process.stdout.write(`\nrun again alone: ${again.join(' ')}\n\n`)
  const second = await runTests(env, again)
  const unsteady = first.failed - second.failed
  if (unsteady > 0) {
    process.stdout.write(`\nunsteady: ${unsteady} of ${first.failed} failed tests passed alone\n`)
  }
  return close({
    ...second,
    passed: first.passed + unsteady,
    skipped: first.skipped,
  })
}

function close({ exit, passed, failed, skipped }: Outcome): number {
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
        failedFiles: failedFilesOf(output),
      })
    })
  })
}

/** Bun prints a file's name before its tests, and an error outside of a test under a heading of its own. */
function failedFilesOf(output: string): string[] {
  const failed = new Set<string>()
  let file = ''
  for (const line of output.split('\n')) {
    if (/^\d+ tests? failed:$/.test(line)) break
    if (/^test\/\S+\.test\.ts:$/.test(line)) file = line.slice(0, -1)
    else if (/^\(fail\) |^# Unhandled error/.test(line)) failed.add(file)
  }
  return [...failed]
}
