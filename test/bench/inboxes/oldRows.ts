import { listAudit, writeAudit } from '../../../sql/account/audit.ts'
import { removeExpired } from '../../../sql/operations/retention.ts'
import { byTurns, perSecond, type Row, rowOf } from '../measure.ts'
import type { Setting } from '../setting.ts'

const ROWS = 1_000_000
const DUE = 200_000
const LANES = 16
const DURATION_MS = 3_000
const DAY_MS = 86_400_000

/**
 * Measures the work that monthly partitions would save: the removal of old rows of the audit log, the VACUUM
 * afterwards, and the delay for a concurrent reader. The table has a million rows of one project, of which a fifth are
 * old.
 */
export async function* oldRowRows(setting: Setting): AsyncGenerator<Row> {
  const { pool, project } = setting
  const before = new Date(Date.now() - 90 * DAY_MS)
  await fill(setting, ROWS - DUE, new Date())
  const actor = { projectId: project.id, keyPrefix: 'loid-bench', requestId: 'bench' }
  const write = () => writeAudit(pool, actor, { action: 'vault.get', subject: 'a', outcome: 'ok' })
  const page = () => listAudit(pool, { projectId: project.id, cursor: null, limit: 50 })
  const round = async () => {
    await fill(setting, DUE, before)
    const written = await perSecond({ lanes: LANES, durationMs: DURATION_MS, work: write })
    const quietMs = await p99While(Bun.sleep(DURATION_MS), page)
    const startMs = performance.now()
    const removal = removeAll(setting, before)
    const removingMs = await p99While(removal, page)
    const removed = ((await removal) * 1000) / (performance.now() - startMs)
    const vacuumStartMs = performance.now()
    const vacuumingMs = await p99While(pool.query('vacuum audit_log'), page)
    const vacuumS = (performance.now() - vacuumStartMs) / 1000
    return { written, removed, quietMs, removingMs, vacuumingMs, vacuumS }
  }
  const [measured] = await byTurns([round])
  const figures = (name: keyof Awaited<ReturnType<typeof round>>) =>
    measured!.map((one) => one[name])
  const seconds = figures('vacuumS').map((s) => s.toFixed(1))
  yield rowOf(
    {
      name: 'old rows removed, one process',
      unit: 'rows/s',
      detail: `entries written by ${LANES} connections; a VACUUM after ${DUE} of ${ROWS}: ${seconds.join(', ')} s`,
    },
    figures('removed'),
    figures('written'),
  )
  const shown = { unit: 'ms', detail: 'the same page, quiet' }
  yield rowOf(
    { ...shown, name: 'p99 of a page while old rows are removed' },
    figures('removingMs'),
    figures('quietMs'),
  )
  yield rowOf(
    { ...shown, name: 'p99 of a page during the VACUUM' },
    figures('vacuumingMs'),
    figures('quietMs'),
  )
}

/**
 * Stores audit log entries of the benchmark's project. There is one second between two entries, and all entries are
 * older than `before`.
 */
async function fill({ pool, project }: Setting, count: number, before: Date): Promise<void> {
  await pool.query(
    `insert into audit_log (project_id, at, action, subject, actor, request_id, outcome)
     select $1, $3::timestamptz - n * interval '1 second', 'vault.get', 'name-' || n, 'loid-bench', 'req_' || n, 'ok'
     from generate_series(1, $2::int) n`,
    [project.id, count, before],
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

/**
 * Repeats a database read while `work` runs. @returns the 99th percentile of the durations of the read, in milliseconds
 */
async function p99While(work: Promise<unknown>, read: () => Promise<unknown>): Promise<number> {
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
