import type { MetricObjectWithValues, MetricValue, Registry } from 'prom-client'
import { repeat } from '../../shared/process/pause.ts'
import type { Running } from '../../shared/process/service.ts'
import type { Pool, Queryable } from '../db.ts'

const REPORT_MS = 5_000
/** Sets the time after which a process without a report of its metrics counts as ended. */
const REPORT_MAX_AGE = '20 seconds'

type ReportedMetric = MetricObjectWithValues<MetricValue<string>>
/** Holds the reported metrics of one process. */
export type ProcessReport = { id: string; part: string; metrics: ReportedMetric[] }

/**
 * Reports the metrics of this process every five seconds, so that `/metrics` of any API process shows these metrics.
 */
export function reportMetrics(
  pool: Pool,
  { part, registry, beforeReport }: { part: string; registry: Registry; beforeReport?: () => void },
): Running {
  const id = crypto.randomUUID()
  const report = async () => {
    beforeReport?.()
    const metrics = await registry.getMetricsAsJSON()
    await pool.query({
      name: 'report-metrics',
      text: `insert into process_reports (id, part, metrics) values ($1, $2, $3)
             on conflict (id) do update set metrics = excluded.metrics, reported_at = clock_timestamp()`,
      values: [id, part, JSON.stringify(metrics)],
    })
  }
  // If the process cannot store a report of its metrics, the database is unreachable, so the process drops the report.
  const { stop } = repeat(() => report().catch(() => {}), REPORT_MS)
  return {
    async stop() {
      await stop()
      await pool.query('delete from process_reports where id = $1', [id]).catch(() => {})
    },
  }
}

/** Returns the reported metrics of running processes. */
export async function readReports(db: Queryable): Promise<ProcessReport[]> {
  const { rows } = await db.query<ProcessReport>({
    name: 'read-reports',
    text: `select id, part, metrics from process_reports
           where reported_at > clock_timestamp() - interval '${REPORT_MAX_AGE}' order by part, id`,
  })
  return rows
}

/** Deletes the reported metrics of processes that have reported nothing for an hour. */
export async function forgetStaleReports(db: Queryable): Promise<void> {
  await db.query(
    `delete from process_reports where reported_at < clock_timestamp() - interval '1 hour'`,
  )
}
