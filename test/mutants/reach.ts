/**
 * Finds for each candidate (a place where a fault can be planted) the test files that could notice a fault at this
 * place. The test suite runs once, with marks in the code at each of these places.
 */
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Candidate } from './candidates.ts'
import { markOf, markSource } from './marks.ts'

/**
 * Holds the running time of a test file, and the marks (inserted recording code) that it reached, as `markOf` names
 * them.
 */
export type Reach = { ms: number; places: string[] }

/**
 * Limits the running time of a test file. A test file that takes longer is not used to find faults.
 */
const FILE_MAX_MS = 180_000

/**
 * Runs each test file alone on marked code, so that each mark records which test has reached it. @param copy is the
 * folder of a checkout of the repository, whose files are changed and later restored.
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
    writeFileSync(join(copy, file), markSource(source, own))
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

/** Finds the tests that could notice a planted fault, as `markOf` describes. */
export function testsThatReach(candidate: Candidate, reach: Record<string, Reach>): string[] {
  const mark = markOf(candidate)
  return Object.entries(reach)
    .filter(([, { places }]) => places.includes(mark))
    .map(([test]) => test)
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
