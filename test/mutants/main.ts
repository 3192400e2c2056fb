/**
 * `bun run mutants -- --sample 50 --seed 7`: draws small faults, runs the near tests on each, and prints those that no test sees.
 * The seed comes from the commit if none is given. A fault that changes no behaviour counts as a survivor. A fault that no test
 * reaches counts too. `--file PATTERN` draws from the files whose path contains PATTERN.
 */
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { createRandom } from '../chaos/random.ts'
import { type Candidate, candidatesIn } from './candidates.ts'
import { nearTests } from './nearTests.ts'

const ROOT = join(import.meta.dir, '../..')
/** Tests of one fault that take longer count as failed: the fault hangs them. */
const TESTS_MAX_MS = 10 * 60_000
/** Code that the tests do not run as it is: pages of the browser, written types, viewers. */
const LEFT_OUT = /^api\/(?:console\/web|docs\/viewer|client\/operations)|\.d\.ts$/

const { values } = parseArgs({
  options: {
    sample: { type: 'string', default: '50' },
    seed: { type: 'string' },
    file: { type: 'string', default: '' },
  },
})
const commit = spawnSync('git', ['rev-parse', 'HEAD'], { cwd: ROOT, encoding: 'utf8' }).stdout
const seed = Number(values.seed ?? Number.parseInt(commit.slice(0, 8), 16))
const { next: random } = createRandom(seed, 'mutants')

const copy = mkdtempSync(join(tmpdir(), 'purser-mutants-'))
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(130))
process.on('exit', () => {
  spawnSync('git', ['worktree', 'remove', '--force', copy], { cwd: ROOT })
  rmSync(copy, { recursive: true, force: true })
})
rmSync(copy, { recursive: true })
spawnSync('git', ['worktree', 'add', '--detach', copy, 'HEAD'], { cwd: ROOT })
for (const folder of ['node_modules', 'test/clients/node_modules']) {
  if (existsSync(join(ROOT, folder))) symlinkSync(join(ROOT, folder), join(copy, folder))
}
const mark = join(copy, 'reached')

const files = [...new Bun.Glob('{api,workers,sql,shared}/**/*.ts').scanSync({ cwd: copy })]
  .filter((file) => !LEFT_OUT.test(file) && file.includes(values.file))
  .toSorted()
const candidates = files.flatMap((file) =>
  candidatesIn(file, readFileSync(join(copy, file), 'utf8')),
)
const sample = Array.from(
  { length: Math.min(Number(values.sample), candidates.length) },
  () => candidates.splice(Math.floor(random() * candidates.length), 1)[0]!,
)
process.stdout.write(`${files.length} files, seed ${seed}, ${sample.length} faults\n`)
const survivors: string[] = []
for (const [n, candidate] of sample.entries()) {
  const verdict = await judge(candidate)
  const line = `${verdict} ${describe(candidate)}`
  if (verdict !== 'seen') survivors.push(line)
  process.stdout.write(`${n + 1}/${sample.length} ${line}\n`)
}
const seen = sample.length - survivors.length
process.stdout.write(`\n${survivors.join('\n')}\n\n`)
process.stdout.write(
  `${seen} of ${sample.length} faults seen (${Math.round((100 * seen) / sample.length)} %), seed ${seed}\n`,
)

function describe({ file, start, end, text, kind }: Candidate): string {
  const source = readFileSync(join(ROOT, file), 'utf8')
  const line = source.slice(0, start).split('\n').length
  const short = (code: string) => code.replace(/\s+/g, ' ').trim().slice(0, 90)
  return `${file}:${line} ${kind}: ${short(source.slice(start, end))} → ${short(text) || 'nothing'}`
}

async function judge(candidate: Candidate): Promise<'seen' | 'SURVIVED' | 'NOT REACHED'> {
  const path = join(copy, candidate.file)
  const source = readFileSync(path, 'utf8')
  const { start, end, text, isExpression } = candidate
  const reached = `process.getBuiltinModule('node:fs').writeFileSync(${JSON.stringify(mark)}, '')`
  const fault = isExpression ? `(${reached}, ${text})` : text
  rmSync(mark, { force: true })
  writeFileSync(path, source.slice(0, start) + fault + source.slice(end))
  try {
    for (const stage of nearTests(copy, candidate.file)) {
      if (!(await passes(stage))) return 'seen'
    }
    return isExpression && !existsSync(mark) ? 'NOT REACHED' : 'SURVIVED'
  } finally {
    writeFileSync(path, source)
  }
}

/** Runs test files, until the first failure. */
function passes(tests: string[]): Promise<boolean> {
  const child = spawn(process.execPath, ['test/main.ts', '--bail', ...tests], {
    cwd: copy,
    stdio: 'ignore',
    detached: true,
  })
  const timer = setTimeout(() => process.kill(-child.pid!, 'SIGKILL'), TESTS_MAX_MS)
  return new Promise((resolve) => {
    child.on('close', (code) => {
      clearTimeout(timer)
      resolve(code === 0)
    })
  })
}
