import { writeAudit } from '../../../sql/account/audit.ts'
import { removeExpired } from '../../../sql/operations/retention.ts'
import { byTurns, perSecond, type Row, rowOf } from '../measure.ts'
import type { Setting } from '../setting.ts'

const ROWS = 1_000_000
const DUE = 200_000
const LANES = 16
const DURATION_MS = 3_000
const DAY_MS = 86_400_000

/**
 * Measures what partitions by month would save: the removal of old rows of the audit log, a VACUUM after it, and what
 * both cost a reader. The table has a million rows of one project, and a fifth of them are old.
 */
export async function* oldRowRows(setting: Setting): AsyncGenerator<Row> {
  const { pool, project } = setting
  const before = new Date(Date.now() - 90 * DAY_MS)
  await fill(setting, ROWS - DUE, before)
  const actor = { projectId: project.id, keyPrefix: 'loid-bench', requestId: 'bench' }
  const write = () => writeAudit(pool, actor, { action: 'vault.get', subject: 'a', outcome: 'ok' })
  const page = () =>
    pool.query(
      'select * from audit_log where project_id = $1 order by at desc, row desc limit 50',
      [project.id],
    )
  const rates: { removed: number[]; written: number[] } = { removed: [], written: [] }
  const pages: { quiet: number[]; removing: number[]; vacuuming: number[] } = {
    quiet: [],
    removing: [],
    vacuuming: [],
  }
  const vacuums: number[] = []
  await byTurns([
    async () => {
      await fill(setting, DUE, before)
      rates.written.push(await perSecond({ lanes: LANES, durationMs: DURATION_MS, work: write }))
      pages.quiet.push(await slowest(page, Bun.sleep(DURATION_MS)))
      const startMs = performance.now()
      const removal = removeAll(setting, before)
      pages.removing.push(await slowest(page, removal))
      rates.removed.push(((await removal) * 1000) / (performance.now() - startMs))
      const vacuumMs = performance.now()
      const vacuum = pool.query('vacuum audit_log')
      pages.vacuuming.push(await slowest(page, vacuum))
      vacuums.push(performance.now() - vacuumMs)
    },
  ])
  const [, ...seconds] = vacuums.map((ms) => ms / 1000)
  const without = (values: number[]) => values.slice(1)
  yield rowOf(
    {
      name: 'old rows removed, one process',
      unit: 'rows/s',
      detail: `entries written by ${LANES} connections; a VACUUM after ${DUE} of ${ROWS}: ${seconds.map((s) => s.toFixed(1)).join(', ')} s`,
    },
    without(rates.removed),
    without(rates.written),
  )
  const detail = 'the same page, quiet'
  yield rowOf(
    { name: 'p99 of a page while old rows are removed', unit: 'ms', detail },
    without(pages.removing),
    without(pages.quiet),
  )
  yield rowOf(
    { name: 'p99 of a page during the VACUUM', unit: 'ms', detail },
    without(pages.vacuuming),
    without(pages.quiet),
  )
}

/** Stores rows of the project, the old ones older than `before`. */
async function fill({ pool, project }: Setting, count: number, before: Date): Promise<void> {
  await pool.query(
    `insert into audit_log (project_id, at, action, subject, actor, request_id, outcome)
     select $1, case when n <= $3 then $4::timestamptz - n * interval '1 second'
                     else clock_timestamp() - n * interval '1 second' end,
       'vault.get', 'name-' || n, 'loid-bench', 'req_' || n, 'ok'
     from generate_series(1, $2::int) n`,
    [project.id, count, count === DUE ? DUE : 0, before],
  )
}

async function removeAll({ pool, project }: Setting, before: Date): Promise<number> {
  let removed = 0
  for (;;) {
    const count = await removeExpired(pool, { projectId: project.id, name: 'logs', before })
    if (count === 0) return removed
    removed += count
  }
}

/** Repeats a read until the work is done. @returns the 99th percentile of its times, in milliseconds. */
async function slowest(read: () => Promise<unknown>, work: Promise<unknown>): Promise<number> {
  let done = false
  void work.then(() => {
    done = true
  })
  const times: number[] = []
  while (!done) {
    const startMs = performance.now()
    await read()
    times.push(performance.now() - startMs)
  }
  return times.toSorted((a, b) => a - b)[Math.floor(times.length * 0.99)] ?? 0
}
