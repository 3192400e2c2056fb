import { mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Row } from './measure.ts'
import { pageRows } from './pages.ts'
import { drain, type Work, workRows } from './scale.ts'
import { createSetting, type Setting } from './setting.ts'

const ROOT = join(import.meta.dir, '../..')
/** Names the folder for the CPU profiles. The developer tools of Chromium show such a profile as a flame graph. */
const FOLDER = join(ROOT, 'test/artefacts/profile')
/**
 * Sets the smallest fraction of the measured time that a function or an SQL statement must take to get a row in the
 * table that the benchmark prints.
 */
const SHARE_MIN = 0.02
const STATEMENT_CHARS = 90

/**
 * Shows where the time of a job and of a list page goes. The rows of the database show the time of each SQL statement,
 * with its planning (pg_stat_statements). The rows of the process show the CPU time of each folder, package and native
 * function (Bun's sampling profiler).
 */
export async function* profileRows(): AsyncGenerator<Row> {
  await using setting = await createSetting({ libraries: 'pg_stat_statements' })
  const { pool } = setting
  await pool.query('create extension pg_stat_statements')
  await pool.query('alter system set pg_stat_statements.track_planning = on')
  await pool.query('select pg_reload_conf()')
  yield* workRows(setting, async function* (measured, work) {
    yield* rowsOf(measured, work.name, (env) => drainOnce(measured, work, env))
  })
  yield* rowsOf(setting, 'pages', async (env) => {
    await pool.query('select pg_stat_statements_reset()')
    await Array.fromAsync(pageRows({ ...setting, env: { ...setting.env, ...env } }))
  })
}

async function drainOnce(setting: Setting, work: Work, env: Record<string, string>): Promise<void> {
  const fill = async () => {
    await work.fill()
    await setting.pool.query('select pg_stat_statements_reset()')
  }
  await drain(setting, { ...work, fill, env: { ...work.env, ...env } }, 1)
}

async function* rowsOf(
  { pool }: Setting,
  name: string,
  run: (env: Record<string, string>) => Promise<void>,
): AsyncGenerator<Row> {
  const folder = join(FOLDER, name.replace(/\W+/g, '-'))
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  await run({ BUN_OPTIONS: `--cpu-prof --cpu-prof-dir=${folder}` })
  const { rows } = await pool.query<{ what: string; ms: number }>(
    `select left(regexp_replace(query, '\\s+', ' ', 'g'), ${STATEMENT_CHARS}) as what,
       sum(total_exec_time + total_plan_time)::float8 as ms
     from pg_stat_statements group by 1 order by 2 desc`,
  )
  yield* shares(`${name}, database`, rows, 'all SQL statements')
  yield* shares(`${name}, process`, profiled(folder), 'all samples of the process')
}

function* shares(
  name: string,
  parts: readonly { what: string; ms: number }[],
  detail: string,
): Generator<Row> {
  const all = parts.reduce((sum, { ms }) => sum + ms, 0)
  for (const { what, ms } of parts) {
    if (ms / all < SHARE_MIN) continue
    yield {
      name: `${name}: ${what.replaceAll('|', '\\|')}`,
      unit: 'ms',
      ours: ms,
      baseline: all,
      ratio: ms / all,
      detail,
    }
  }
}

/** Describes a CPU profile in the format of the Chrome DevTools Protocol. */
type CpuProfile = {
  nodes: { id: number; callFrame: { functionName: string; url: string } }[]
  samples: number[]
  /** Holds the time from one CPU sample to the next, in microseconds. */
  timeDeltas: number[]
}

/** Sums the time of all samples in a folder's CPU profiles, for each package, folder or native function that ran. */
function profiled(folder: string): { what: string; ms: number }[] {
  const sums = new Map<string, number>()
  for (const file of readdirSync(folder)) {
    const profile = JSON.parse(readFileSync(join(folder, file), 'utf8')) as CpuProfile
    const places = new Map(profile.nodes.map(({ id, callFrame }) => [id, placeOf(callFrame)]))
    for (const [n, node] of profile.samples.entries()) {
      const place = places.get(node) ?? 'unknown'
      sums.set(place, (sums.get(place) ?? 0) + (profile.timeDeltas[n] ?? 0) / 1000)
    }
  }
  return [...sums].map(([what, ms]) => ({ what, ms })).toSorted((one, other) => other.ms - one.ms)
}

/** Returns the package or folder of a function, or the name of a native function. */
function placeOf({ functionName, url }: { functionName: string; url: string }): string {
  const [, module] = /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url) ?? []
  if (module !== undefined) return module
  const [, folder] = /\/((?:api|workers|shared|sql)\/.*)\/[^/]+$/.exec(url) ?? []
  return folder ?? `native ${functionName === '' ? 'code' : functionName}`
}
