/**
 * Finds for each candidate (a place in the code where a fault can be planted) the test files that run this place. The
 * test suite runs once with marks in the code at each place where a fault can be planted.
 */
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Candidate } from './candidates.ts'

/**
 * Holds the running time of a test file, and the places in the code that this test file reached. A place has the form
 * `FILE:START`, or `FILE{START` for a function.
 */
export type Reach = { ms: number; places: string[] }

/**
 * Limits the running time of a test file. If a test file takes longer, the tool does not use this test file to find a
 * fault.
 */
const FILE_MAX_MS = 90_000
/**
 * Holds the code that is inserted at the beginning of a marked source file. Each process and global object records a
 * reached place only once. The inserted code is a single line, so that the line numbers of the file stay the same.
 */
const PREFIX = `globalThis.__reach ??= ((seen) => (place) => { if (seen.has(place)) return; seen.add(place); const file = process.env.MUTANTS_REACH; if (file) process.getBuiltinModule('node:fs').appendFileSync(file, place + '\\n') })(new Set());`

/**
 * Runs each test file alone on marked code, so that each place records that the test has reached it. The parameter
 * `copy` is the folder of a checkout of the repository. The files of this checkout are changed and later restored.
 */
export async function findReach(
  copy: string,
  {
    tests,
    candidates,
    env,
  }: { tests: string[]; candidates: Candidate[]; env: Record<string, string> },
  onFile: (done: number) => void,
): Promise<Record<string, Reach>> {
  const sources = new Map<string, string>()
  for (const [file, own] of Map.groupBy(candidates, ({ file }) => file)) {
    const source = readFileSync(join(copy, file), 'utf8')
    sources.set(file, source)
    writeFileSync(join(copy, file), marked(file, source, own))
  }
  const folder = mkdtempSync(join(tmpdir(), 'purser-reach-'))
  const found: Record<string, Reach> = {}
  try {
    const waiting = [...tests]
    const lane = async () => {
      for (let test = waiting.shift(); test !== undefined; test = waiting.shift()) {
        const output = join(folder, test.replaceAll('/', '+'))
        const startedMs = performance.now()
        await runFile(copy, test, { MUTANTS_REACH: output, ...env })
        const ms = Math.round(performance.now() - startedMs)
        const lines = existsSync(output) ? readFileSync(output, 'utf8').split('\n') : []
        found[test] = { ms, places: [...new Set(lines)].filter((place) => place !== '') }
        onFile(Object.keys(found).length)
      }
    }
    await Promise.all(Array.from({ length: availableParallelism() + 1 }, lane))
  } finally {
    for (const [file, source] of sources) writeFileSync(join(copy, file), source)
    rmSync(folder, { recursive: true, force: true })
  }
  return found
}

/**
 * Finds the tests that reach a candidate (a place in the code where a fault can be planted). If a statement is outside
 * of all functions, every test that imports the file counts as a test that reaches the statement.
 */
export function testsThatReach(
  { file, start, isExpression, within }: Candidate,
  reach: Record<string, Reach>,
): string[] {
  const isHit = (place: string) => {
    if (isExpression) return place === `${file}:${start}`
    return within === null ? place.startsWith(file) : place === `${file}{${within}`
  }
  return Object.entries(reach)
    .filter(([, { places }]) => places.some(isHit))
    .map(([test]) => test)
}

function marked(file: string, source: string, candidates: readonly Candidate[]): string {
  const marks: { at: number; order: number; text: string }[] = []
  const call = (place: string) => `globalThis.__reach(${JSON.stringify(place)})`
  const ranges = new Map(
    candidates
      .filter(({ isExpression }) => isExpression)
      .map(({ start, end }) => [`${start}-${end}`, { start, end }]),
  )
  for (const { start, end } of ranges.values()) {
    // If two marked expressions begin at the same position, the longer expression opens first and closes last.
    marks.push({ at: start, order: source.length - end, text: `(${call(`${file}:${start}`)}, ` })
    marks.push({ at: end, order: -start - source.length, text: ')' })
  }
  for (const within of new Set(candidates.map(({ within }) => within))) {
    if (within === null) continue
    marks.push({
      at: within + 1,
      order: -source.length * 3,
      text: ` ${call(`${file}{${within}`)};`,
    })
  }
  marks.sort((one, other) => one.at - other.at || one.order - other.order)
  let text = PREFIX
  let done = 0
  for (const { at, text: mark } of marks) {
    text += source.slice(done, at) + mark
    done = at
  }
  return text + source.slice(done)
}

function runFile(copy: string, test: string, env: Record<string, string>): Promise<void> {
  const child = spawn(process.execPath, ['test', '--timeout=180000', `./${test}`], {
    cwd: copy,
    stdio: 'ignore',
    detached: true,
    env: { ...process.env, ...env },
  })
  const timer = setTimeout(() => process.kill(-child.pid!, 'SIGKILL'), FILE_MAX_MS)
  return new Promise((resolve) =>
    child.on('close', () => {
      clearTimeout(timer)
      resolve()
    }),
  )
}
