import { EVENT_TYPES } from '../../../shared/events/events.ts'
import { newEndpointId } from '../../../shared/ids.ts'
import { listAudit, writeAudit } from '../../../sql/account/audit.ts'
import { createDelivery } from '../../../sql/events/deliveries.ts'
import { listDeliveries } from '../../../sql/events/deliveryLog.ts'
import { deleteStaleEvents, listEvents, recordEvents } from '../../../sql/events/events.ts'
import { removeExpired } from '../../../sql/operations/retention.ts'
import { byTurns, perSecond, type Row, rowOf } from '../measure.ts'
import type { Setting } from '../setting.ts'

const ROWS = 1_000_000
const DUE = 200_000
const LANES = 16
const DURATION_MS = 3_000
const DAY_MS = 86_400_000
const OLD_DAYS = 90
const PAGE = 50
const CHARS = 1_000_000
const ENDPOINT = newEndpointId()
const WEBHOOK_URL = 'https://seller.example/hook'

const EVENT = {
  messageId: 'm',
  threadId: 't',
  inboxId: 'i',
  from: ['a@x.test'],
  to: ['b@x.test'],
  subject: 'x'.repeat(200),
  labels: ['received'],
}

/** Describes a table whose old rows the service removes. */
type AgingTable = {
  name: string
  table: 'audit_log' | 'webhook_deliveries' | 'events'
  /** Names the column with the time of a row. */
  age: 'at' | 'created_at'
  /**
   * Holds the SQL that stores $2 rows of the project $1. There is half a second between two rows, so that the new rows
   * cover less than seven days. All rows are older than $3.
   */
  fill: string
  /** Writes one row of the table as the service does. */
  write(): Promise<unknown>
  /** Reads one page of the table's rows as the API does. */
  page(): Promise<unknown>
  /** Removes the rows that are older than the retention of the table: 90 days, or 7 days for events. */
  removeOld(): Promise<unknown>
}

/**
 * Measures the work that monthly partitions would save: the removal of old rows of a table, the VACUUM afterwards, and
 * the delay for a concurrent reader. Each table has a million rows of one project, of which a fifth are old.
 */
export async function* oldRowRows(setting: Setting): AsyncGenerator<Row> {
  await setting.pool.query(
    `insert into seller_endpoints (id, project_id, url_pattern, match_key, price_atomic, network, webhook_url,
       webhook_secret)
     values ($1, $2, 'old.example', 'old.example', 1, 'base-sepolia', $3, 'whsec_scale_scale_scale')`,
    [ENDPOINT, setting.project.id, WEBHOOK_URL],
  )
  await setting.pool.query(
    'insert into project_retention (project_id, logs_days, deliveries_days) values ($1, $2, $2)',
    [setting.project.id, OLD_DAYS],
  )
  for (const aging of tablesOf(setting)) yield* rowsOf(setting, aging)
}

function tablesOf({ pool, project }: Setting): AgingTable[] {
  const before = new Date(Date.now() - OLD_DAYS * DAY_MS)
  const removeAll = async (name: 'logs' | 'deliveries') => {
    while ((await removeExpired(pool, { projectId: project.id, name, before })) > 0);
  }
  const actor = { projectId: project.id, keyPrefix: 'loid-bench', requestId: 'bench' }
  const all = { cursor: null, limit: PAGE }
  return [
    {
      name: 'audit log',
      table: 'audit_log',
      age: 'at',
      fill: `insert into audit_log (project_id, at, action, subject, actor, request_id, outcome)
             select $1, $3::timestamptz - n * interval '0.5 seconds', 'vault.get', 'name-' || n, 'loid-bench', 'req_' || n,
               'ok'
             from generate_series(1, $2::int) n`,
      write: () => writeAudit(pool, actor, { action: 'vault.get', subject: 'a', outcome: 'ok' }),
      page: () => listAudit(pool, { projectId: project.id, ...all }),
      removeOld: () => removeAll('logs'),
    },
    {
      name: 'deliveries',
      table: 'webhook_deliveries',
      age: 'created_at',
      fill: `insert into webhook_deliveries (id, project_id, endpoint_id, subject_id, event, idempotency_key, url, body,
               status, attempt, created_at)
             select k, $1, '${ENDPOINT}', 'msg_' || n, 'message.received', k, '${WEBHOOK_URL}',
               convert_to(repeat('x', 300), 'utf8'), 'delivered', 1, $3::timestamptz - n * interval '0.5 seconds'
             from generate_series(1, $2::int) n cross join lateral (select 'dlv_' || md5(n || ' ' || $3::timestamptz) as k) ids`,
      write: () =>
        createDelivery(pool, {
          projectId: project.id,
          to: { endpointId: ENDPOINT },
          subjectId: null,
          event: 'message.received',
          url: WEBHOOK_URL,
          body: Buffer.alloc(300, 'x'),
        }),
      page: () =>
        listDeliveries(pool, {
          projectId: project.id,
          events: EVENT_TYPES,
          urlsFor: 'all',
          ...all,
        }),
      removeOld: () => removeAll('deliveries'),
    },
    {
      name: 'events',
      table: 'events',
      age: 'created_at',
      fill: `insert into events (project_id, seq, type, data, created_at)
             select $1, (select coalesce(min(seq), 0) from events) - n, 'message.received',
               jsonb_build_object('messageId', 'msg_' || n, 'subject', repeat('x', 200)),
               $3::timestamptz - n * interval '0.5 seconds'
             from generate_series(1, $2::int) n`,
      write: () =>
        recordEvents(pool, [{ projectId: project.id, type: 'message.received', data: EVENT }]),
      page: () => listEvents(pool, project.id, { after: -1_000n, limit: PAGE, chars: CHARS }),
      removeOld: () => deleteStaleEvents(pool),
    },
  ]
}

async function* rowsOf({ pool, project }: Setting, aging: AgingTable): AsyncGenerator<Row> {
  const fill = (count: number, before: number) =>
    pool.query(aging.fill, [project.id, count, new Date(before)])
  await fill(ROWS - DUE, Date.now())
  const expectRemoved = async () => {
    const { rows } = await pool.query(
      `select count(*)::int as n from ${aging.table} where ${aging.age} < now() - interval '${OLD_DAYS} days'`,
    )
    if (rows[0].n > 0) throw new Error(`${aging.table} still has ${rows[0].n} old rows`)
  }
  const round = async () => {
    await fill(DUE, Date.now() - (OLD_DAYS + 1) * DAY_MS)
    const written = await perSecond({ lanes: LANES, durationMs: DURATION_MS, work: aging.write })
    const quietMs = await p99While(Bun.sleep(DURATION_MS), aging.page)
    const startMs = performance.now()
    const removal = aging.removeOld()
    const removingMs = await p99While(removal, aging.page)
    const removed = (DUE * 1000) / (performance.now() - startMs)
    await expectRemoved()
    const vacuumStartMs = performance.now()
    const vacuumingMs = await p99While(pool.query(`vacuum ${aging.table}`), aging.page)
    const vacuumS = (performance.now() - vacuumStartMs) / 1000
    return { written, removed, quietMs, removingMs, vacuumingMs, vacuumS }
  }
  const [measured] = await byTurns([round])
  const figures = (name: keyof Awaited<ReturnType<typeof round>>) =>
    measured!.map((one) => one[name])
  const seconds = figures('vacuumS').map((s) => s.toFixed(1))
  yield rowOf(
    {
      name: `${aging.name}: old rows removed, one process`,
      unit: 'rows/s',
      detail: `rows written by ${LANES} connections; a VACUUM after ${DUE} of ${ROWS}: ${seconds.join(', ')} s`,
    },
    figures('removed'),
    figures('written'),
  )
  const shown = { unit: 'ms', detail: 'the same page, quiet' }
  yield rowOf(
    { ...shown, name: `${aging.name}: p99 of a page while old rows are removed` },
    figures('removingMs'),
    figures('quietMs'),
  )
  yield rowOf(
    { ...shown, name: `${aging.name}: p99 of a page during the VACUUM` },
    figures('vacuumingMs'),
    figures('quietMs'),
  )
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
