/**
 * Runs `npm test`, `npm run test:long`, `npm run test:rest` and `npm run test:all`. `npm test` starts one embedded PostgreSQL with a
 * migrated template database, runs the test files by `bun test`, and ends with a line `N passed, N failed, N skipped`.
 * An argument without a leading dash selects the test files whose path contains it. Options are passed on to `bun
 * test`.
 */
import { spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { startSuite } from './support/suite.ts'

const isWhole = process.env.TEST_WHOLE === '1'
const isLong = process.env.TEST_LONG === '1'
const isRest = process.env.TEST_REST === '1'

/**
 * Limits the milliseconds of one test, so that a hanging test ends. The limit is high, because a test must not fail
 * only because the machine is busy, and some cases of the whole suite need minutes.
 */
const TEST_LIMIT_MS = isWhole ? 600_000 : 180_000

/**
 * Sets the number of test files that run at the same time. Many test files wait for a process or a delay, so a machine
 * with two cores can run more than two. With six, a slow machine had 15 runnable processes for its two cores, and waits
 * of a minute timed out.
 */
const LANES = 4

/**
 * Matches the test folders with the slowest test files. These begin first, so that no slow test file runs alone at the
 * end.
 */
const LONG = /^test\/(?:e2e|chaos|steps|clients|api\/console)\//

/**
 * Matches test files that measure time or memory of the service. These run last, one after another.
 */
const RUNS_ALONE = importOf('support/process/alone.ts')

/**
 * Matches test files that run only in `npm run test:long` and in the whole suite, unless an argument names the file.
 */
const RUNS_LONG = importOf('support/long.ts')

/**
 * Matches test files that run only in `npm run test:rest` and in the whole suite, unless an argument names the file.
 */
const RUNS_IN_WHOLE = importOf('support/whole.ts')

const rank = (file: string) => (LONG.test(file) ? 0 : 1)

/**
 * Returns a pattern that matches the import of a given file of this folder. Throws if the file was moved, because the
 * pattern would then silently match nothing.
 */
function importOf(file: string): RegExp {
  if (!existsSync(join(import.meta.dir, file))) throw new Error(`test/${file} does not exist`)
  return new RegExp(`(?:from|import) '[./]*${RegExp.escape(file)}'`)
}

/** Tells whether the present command runs a test file with the given content. */
function isWanted(content: string): boolean {
  const isOfWhole = RUNS_IN_WHOLE.test(content)
  return isRest ? isOfWhole : !isOfWhole && RUNS_LONG.test(content) === isLong
}

type Env = Record<string, string | undefined>

/**
 * Saves a fifth of the processor time, because with these settings the runtime neither optimises code for long runs nor
 * gives memory back at once. The whole suite runs without the settings, as the service does.
 */
const QUICK: Env = isWhole ? {} : { BUN_JSC_useFTLJIT: '0', MIMALLOC_PURGE_DELAY: '5000' }

const suite = await startSuite()
try {
  process.exitCode = await runSuite({ ...process.env, ...suite.env })
} finally {
  await suite.stop()
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
    .filter((file) =>
      words.length === 0
        ? isWhole || isWanted(readFileSync(file, 'utf8'))
        : words.some((word) => file.includes(word)),
    )
    .toSorted((one, other) => rank(one) - rank(other) || (one < other ? -1 : 1))
  if (files.length === 0) {
    process.stderr.write(`no test file has a path with: ${words.join(', ')}\n`)
    return 1
  }
  const alone = files.filter((file) => RUNS_ALONE.test(readFileSync(file, 'utf8')))
  const others = files.filter((file) => !alone.includes(file))
  const total: Outcome = { exit: 0, passed: 0, failed: 0, skipped: 0 }
  for (const [lanes, group] of [
    // Without `--no-isolate`, each test file would load the service again, which would take a quarter of the processor
    // time.
    [[`--parallel=${LANES}`, '--no-isolate'], others],
    [['--parallel=1'], alone],
  ] as const) {
    if (group.length === 0) continue
    const outcome = await runTests(env, [...lanes, ...options, ...group])
    total.exit ||= outcome.exit
    for (const kind of ['passed', 'failed', 'skipped'] as const) total[kind] += outcome[kind]
  }
  const { exit, passed, failed, skipped } = total
  process.stdout.write(`\n${passed} passed, ${failed} failed, ${skipped} skipped\n`)
  return exit
}

function runTests(env: Env, wanted: string[]): Promise<Outcome> {
  const args = ['test', `--timeout=${TEST_LIMIT_MS}`, ...wanted]
  const child = spawn(process.execPath, args, {
    env: { ...QUICK, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
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
