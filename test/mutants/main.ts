/**
 * `bun run mutants -- --sample 50 --seed 7` plants small faults at random, runs for each fault the tests that reach it,
 * and prints the faults that no test detects. Without a seed, the commit decides the seed. Faults that change no
 * behaviour, or no result in any test, count as not detected. If the compiler refuses a fault, the tool plants another
 * random fault instead. `--file PATTERN` plants faults only in files whose path contains PATTERN, and `--kind KIND`
 * only faults of one kind, such as `SQL lock`. `--list` plants no fault, but prints all faults that change no result in
 * any test. `--test PATTERN` plants all faults of the files, and runs only the test files whose path contains PATTERN.
 */
import { spawn, spawnSync } from 'node:child_process'
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { createRandom } from '../chaos/random.ts'
import { startSuite } from '../support/suite.ts'
import { type Candidate, candidatesIn } from './candidates.ts'
import { nearTests } from './nearTests.ts'
import { findReach, type Reach, testsThatReach } from './reach.ts'

const ROOT = join(import.meta.dir, '../..')
/** Sets the multiple of a test's usual time after which the test counts as hanging and therefore as failed. */
const HANG_FACTOR = 1.5
const HANG_MIN_MS = 2 * 60_000
/**
 * Sets how many test files run together in each stage of the search for a fault. The test files that are nearest to the
 * fault run first.
 */
const STAGES = [6, 24, Number.POSITIVE_INFINITY]
/**
 * Matches code of which the tests do not run the source text itself: browser pages, type declarations and document
 * viewers.
 */
const LEFT_OUT = /^api\/(?:web|docs\/viewer|client\/operations)|\.d\.ts$/
/** Matches tests that take minutes, that read the code as text, or that test other programs. */
const FAR = /node_modules|^test\/(?:clients|cluster|mutants|chaos|steps|bench)\/|\/neighbours\//

const TSC = join(ROOT, 'node_modules/.bin/tsc')
const BUILD_INFO = '.tsbuildinfo'

const { values } = parseArgs({
  options: {
    sample: { type: 'string', default: '50' },
    seed: { type: 'string' },
    file: { type: 'string', default: '' },
    kind: { type: 'string', default: '' },
    list: { type: 'boolean', default: false },
    test: { type: 'string' },
  },
})
const git = (...args: string[]) =>
  spawnSync('git', args, { cwd: ROOT, encoding: 'utf8' }).stdout.trim()
const seed = Number(values.seed ?? Number.parseInt(git('rev-parse', 'HEAD').slice(0, 8), 16))
if (!Number.isSafeInteger(seed)) throw new Error('--seed must be a whole number')
const { next: random } = createRandom(seed, 'mutants')
const say = (line: string) => process.stdout.write(`${line}\n`)

const suite = await startSuite()
const copy = mkdtempSync(join(tmpdir(), 'purser-mutants-'))
try {
  rmSync(copy, { recursive: true })
  git('worktree', 'add', '--detach', copy, 'HEAD')
  for (const folder of ['node_modules', 'test/clients/node_modules']) {
    if (existsSync(join(ROOT, folder))) symlinkSync(join(ROOT, folder), join(copy, folder))
  }
  await main()
} finally {
  git('worktree', 'remove', '--force', copy)
  rmSync(copy, { recursive: true, force: true })
  await suite.stop()
}

async function main(): Promise<void> {
  const files = [...new Bun.Glob('{api,workers,sql,shared}/**/*.ts').scanSync({ cwd: copy })]
    .filter((file) => !LEFT_OUT.test(file))
    .toSorted()
  const all = files.flatMap((file) => candidatesIn(file, readFileSync(join(copy, file), 'utf8')))
  const candidates = all.filter(
    ({ file, kind }) => file.includes(values.file) && kind.includes(values.kind),
  )
  if (values.test !== undefined) return await judgeAll(candidates, values.test)
  const reach = await readReach(all)
  if (values.list) {
    const silent = candidates.filter((candidate) => testsThatReach(candidate, reach).length === 0)
    for (const candidate of silent) say(describe(candidate))
    say(`\n${silent.length} of ${candidates.length} faults change no result in any test`)
    return
  }
  const wanted = Math.min(Number(values.sample), candidates.length)
  say(`${files.length} files, ${candidates.length} places, seed ${seed}, ${wanted} faults`)
  await prepareCompiler(files)
  const survivors: string[] = []
  for (let n = 1; n <= wanted && candidates.length > 0; ) {
    const [candidate] = candidates.splice(Math.floor(random() * candidates.length), 1)
    const startedMs = performance.now()
    const verdict = await judge(candidate!, reach)
    if (verdict === null) continue
    const line = `${verdict} ${describe(candidate!)}`
    if (!verdict.startsWith('seen')) survivors.push(line)
    say(`${n++}/${wanted} ${((performance.now() - startedMs) / 1000).toFixed(0)} s ${line}`)
  }
  const seen = wanted - survivors.length
  say(`\n${survivors.join('\n')}\n`)
  say(`${seen} of ${wanted} faults seen (${Math.round((100 * seen) / wanted)} %), seed ${seed}`)
}

/** Plants each possible fault, runs only the given test files, and prints the faults that these files do not detect. */
async function judgeAll(candidates: readonly Candidate[], pattern: string): Promise<void> {
  const tests = testFiles().filter((test) => test.includes(pattern))
  // Without a matching test file, the test runner would run the whole suite for each fault.
  if (tests.length === 0) throw new Error(`no path of a test file contains ${pattern}`)
  if (!(await pass(tests, HANG_MIN_MS))) throw new Error('the tests must pass without a fault')
  let survived = 0
  for (const candidate of candidates) {
    if (!(await withFault(candidate, () => pass(tests, HANG_MIN_MS)))) continue
    survived++
    say(`SURVIVED ${describe(candidate)}`)
  }
  say(`${candidates.length - survived} of ${candidates.length} faults seen by ${tests.join(' ')}`)
}

/** Lists the test files that can detect faults. */
function testFiles(): string[] {
  const tests = [...new Bun.Glob('test/**/*.test.ts').scanSync({ cwd: copy })]
  return tests.filter((test) => !FAR.test(test)).toSorted()
}

/**
 * Finds which tests could notice which faults. The search takes longer than the whole test suite, so the tool stores the
 * result. While nothing but test files changes, only the new and the changed test files run again.
 */
async function readReach(candidates: Candidate[]): Promise<Record<string, Reach>> {
  const folder = join(ROOT, 'node_modules/.cache/mutants')
  const tracked = git('ls-tree', '-r', 'HEAD', 'api', 'workers', 'sql', 'shared', 'test').split(
    '\n',
  )
  const isTest = (line: string) => line.endsWith('.test.ts')
  const isTool = (line: string) => /\ttest\/mutants\/(?!candidates|marks)/.test(line)
  const sources = tracked.filter((line) => !isTest(line) && !isTool(line))
  const versions = new Map(tracked.filter(isTest).map((line) => [line.split('\t')[1]!, line]))
  const kept = join(folder, `${Bun.SHA256.hash(sources.join('\n'), 'hex')}.json`)
  const stored: Record<string, Reach & { version: string }> = existsSync(kept)
    ? JSON.parse(readFileSync(kept, 'utf8'))
    : {}
  const tests = testFiles()
  const isCurrent = (test: string) => stored[test]?.version === versions.get(test)
  const changed = tests.filter((test) => !isCurrent(test))
  const found = await findReach(copy, { tests: changed, candidates, env: suite.env }, (done) => {
    if (done % 50 === 0) say(`${done} of ${changed.length} test files: which code they reach`)
  })
  const reach = Object.fromEntries(
    tests.map((test) => [
      test,
      { version: versions.get(test)!, ...(found[test] ?? stored[test]!) },
    ]),
  )
  mkdirSync(folder, { recursive: true })
  writeFileSync(kept, JSON.stringify(reach))
  return reach
}

function describe({ file, start, end, text, kind }: Candidate): string {
  const source = readFileSync(join(copy, file), 'utf8')
  const line = source.slice(0, start).split('\n').length
  const short = (code: string) => code.replace(/\s+/g, ' ').trim().slice(0, 90)
  return `${file}:${line} ${kind}: ${short(source.slice(start, end))} → ${short(text) || 'nothing'}`
}

/**
 * Applies a fault to the code and runs the tests that reach it. @returns null if the compiler refuses the changed code.
 */
async function judge(candidate: Candidate, reach: Record<string, Reach>): Promise<string | null> {
  return await withFault(candidate, async () => {
    if (!(await compiles())) return null
    const tests = nearestFirst(candidate.file, testsThatReach(candidate, reach), reach)
    if (tests.length === 0) return 'NO DIFFERENCE'
    for (const [n, size] of STAGES.entries()) {
      const stage = tests.splice(0, size)
      const usualMs = stage.reduce((sum, test) => sum + reach[test]!.ms, 0)
      const maxMs = HANG_MIN_MS + HANG_FACTOR * usualMs
      if (stage.length > 0 && !(await pass(stage, maxMs))) return `seen in stage ${n + 1}`
    }
    return 'SURVIVED'
  })
}

/** Runs `work` while the copy of the code contains a planted fault. */
async function withFault<Result>(
  { file, start, end, text }: Candidate,
  work: () => Promise<Result>,
): Promise<Result> {
  const path = join(copy, file)
  const source = readFileSync(path, 'utf8')
  writeFileSync(path, source.slice(0, start) + text + source.slice(end))
  try {
    return await work()
  } finally {
    writeFileSync(path, source)
  }
}

/**
 * Sorts the tests that can find a fault. Tests that name the faulty file come first, and then tests that reach little
 * other code.
 */
function nearestFirst(file: string, tests: string[], reach: Record<string, Reach>): string[] {
  const near = nearTests(copy, file)
  const rank = (test: string) => (near.includes(test) ? near.indexOf(test) - 1e9 : 0)
  const breadth = (test: string) => reach[test]!.places.length * reach[test]!.ms
  return tests.toSorted((one, other) => rank(one) - rank(other) || breadth(one) - breadth(other))
}

/**
 * Prepares the compiler for faults. The compiler stores the exports of a file only when the file changes, so each file
 * of the copy gets an empty line. Without this preparation, the first fault of each file takes 20 s, because the
 * compiler then checks all files that import it. With the preparation, a fault takes less than a second.
 */
async function prepareCompiler(files: readonly string[]): Promise<void> {
  if (!(await compiles())) throw new Error('the code without a fault must compile')
  for (const file of files) appendFileSync(join(copy, file), '\n')
  await compiles()
}

/**
 * Tells whether the compiler accepts the code in the copy of the repository. It checks only the files that have changed
 * since its last run, and the files that import them.
 */
async function compiles(): Promise<boolean> {
  const flags = ['--incremental', '--tsBuildInfoFile', BUILD_INFO]
  return (await run([TSC, '-p', 'test/mutants', ...flags])) === 0
}

async function pass(tests: readonly string[], maxMs: number): Promise<boolean> {
  const flags = ['test', '--bail', '--timeout=180000', '--parallel=3']
  return (await run([process.execPath, ...flags, ...tests.map((test) => `./${test}`)], maxMs)) === 0
}

function run([program, ...args]: string[], maxMs = HANG_MIN_MS): Promise<number | null> {
  const child = spawn(program!, args, {
    cwd: copy,
    stdio: 'ignore',
    detached: true,
    env: { ...process.env, ...suite.env },
  })
  const timer = setTimeout(() => process.kill(-child.pid!, 'SIGKILL'), maxMs)
  return new Promise((resolve) => {
    child.on('close', (code) => {
      clearTimeout(timer)
      killLeftovers()
      resolve(code)
    })
  })
}

/**
 * Kills the processes that a failed test has left behind (Linux). A service with a fault could otherwise keep a
 * processor core busy for the rest of the run.
 */
function killLeftovers(): void {
  if (!existsSync('/proc')) return
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8')
      if (command.includes(copy)) process.kill(Number(pid), 'SIGKILL')
    } catch {
      // The process has ended meanwhile.
    }
  }
}
