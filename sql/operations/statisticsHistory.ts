/**
 * Counts the work of the service in each minute. The service counts a minute once, after its end, and stores the
 * counts.
 */
import { type PoolName, TASK_POOL, type TaskName } from '../../shared/tasks.ts'
import type { Queryable } from '../db.ts'
import { countJobs, type JobCount } from './statistics.ts'

export type Counts = {
  mailIn: number
  mailOut: number
  payments: number
  paidAtomic: bigint
  webhooksOk: number
  webhooksFailed: number
}

/** Holds the statistics of one ended minute, or of the current minute so far. */
export type Minute = Counts & {
  minute: Date
  /**
   * Counts the jobs of each worker pool at the end of the minute. Null means that no process counted the jobs at the
   * end of the minute.
   */
  jobs: Record<PoolName, number> | null
}

const HISTORY_MINUTES = 60
/**
 * Sets how many seconds after the end of a minute the service counts it, because late transactions of the minute commit
 * in this time.
 */
const SETTLING_S = 5
const RETENTION = '2 days'

const NO_JOBS: Readonly<Record<PoolName, number>> = {
  mail: 0,
  webhooks: 0,
  vault: 0,
  purse: 0,
  payments: 0,
}

/** Counts the waiting and running jobs of each worker pool, without failed jobs. */
export function jobsByPool(counts: readonly JobCount[]): Record<PoolName, number> {
  const jobs: Record<PoolName, number> = { ...NO_JOBS }
  for (const { task, state, count } of counts) {
    const pool = TASK_POOL[task as TaskName]
    if (pool !== undefined && state !== 'failed') jobs[pool] += count
  }
  return jobs
}

/**
 * Writes SQL that counts the work of each minute in the query `wanted`, which has a column `minute`. Each CTE of the
 * SQL reads one range of one index.
 */
const counted = (wanted: string) => `
  with wanted as materialized (${wanted}),
  span as (select min(minute) as start, max(minute) + interval '1 minute' as stop from wanted),
  mail as (
    select date_trunc('minute', added_at) as minute, count(*) filter (where direction = 'received') as mail_in,
           count(*) filter (where direction = 'sent') as mail_out
    from messages, span where added_at >= span.start and added_at < span.stop group by 1
  ), paid as (
    select date_trunc('minute', settled_at) as minute, count(*) as payments, sum(amount_atomic) as paid_atomic
    from payments, span where settled_at >= span.start and settled_at < span.stop and state = 'settled' group by 1
  ), hooks as (
    select date_trunc('minute', ended_at) as minute,
           count(*) filter (where status_code between 200 and 299) as ok, count(*) as attempts
    from webhook_attempts, span where ended_at >= span.start and ended_at < span.stop group by 1
  )
  select w.minute, coalesce(mail_in, 0)::int as mail_in, coalesce(mail_out, 0)::int as mail_out,
         coalesce(payments, 0)::int as payments, coalesce(paid_atomic, 0) as paid_atomic,
         coalesce(ok, 0)::int as webhooks_ok, coalesce(attempts - ok, 0)::int as webhooks_failed
  from wanted w left join mail using (minute) left join paid using (minute) left join hooks using (minute)`

const recent = (from: string, to: string) =>
  `select generate_series(date_trunc('minute', ${from}), ${to}, interval '1 minute') as minute`

/** Selects the ended minutes of the last hour that the service has not counted yet. */
const UNCOUNTED = `
  ${recent(`clock_timestamp() - interval '${HISTORY_MINUTES} minutes'`, `clock_timestamp() - interval '1 minute ${SETTLING_S} seconds'`)}
  except select minute from statistics_minutes`

/**
 * Counts and stores the statistics of the minutes that have ended. Several processes may call `recordMinutes` at once,
 * because the database stores each minute only once.
 */
export async function recordMinutes(db: Queryable): Promise<void> {
  const missing = await db.query(`${UNCOUNTED} limit 1`)
  if (missing.rowCount === 0) return
  await db.query(
    `insert into statistics_minutes
       (minute, mail_in, mail_out, payments, paid_atomic, webhooks_ok, webhooks_failed, jobs)
     select c.*, $1::jsonb from (${counted(UNCOUNTED)}) c
     on conflict (minute) do nothing`,
    [JSON.stringify(jobsByPool(await countJobs(db)))],
  )
}

type MinuteRow = {
  minute: Date
  mail_in: number
  mail_out: number
  payments: number
  paid_atomic: string
  webhooks_ok: number
  webhooks_failed: number
  jobs: Record<PoolName, number> | null
}

/**
 * Returns the statistics of the last hour, oldest minute first. The function reads the stored counts of ended minutes.
 * It counts the minutes that are not stored yet, up to the current one, at the time of the call.
 */
export async function readHistory(db: Queryable): Promise<Minute[]> {
  const stored = await db.query<MinuteRow>({
    name: 'stored-minutes',
    text: `select * from statistics_minutes
           where minute > clock_timestamp() - interval '${HISTORY_MINUTES} minutes' order by minute`,
  })
  const since = stored.rows.at(-1)?.minute ?? null
  const fresh = await db.query<MinuteRow>({
    name: 'fresh-minutes',
    text: counted(`
      ${recent(
        `greatest($1::timestamptz + interval '1 minute', clock_timestamp() - interval '${HISTORY_MINUTES - 1} minutes')`,
        'clock_timestamp()',
      )}`),
    values: [since],
  })
  const newest = fresh.rows.toSorted((a, b) => a.minute.getTime() - b.minute.getTime())
  return [...stored.rows, ...newest].map((row) => ({
    minute: row.minute,
    mailIn: row.mail_in,
    mailOut: row.mail_out,
    payments: row.payments,
    paidAtomic: BigInt(row.paid_atomic),
    webhooksOk: row.webhooks_ok,
    webhooksFailed: row.webhooks_failed,
    // Statistics of an earlier release may lack some worker pools, so the zeros of `NO_JOBS` stand for these pools.
    jobs: row.jobs === null ? null : { ...NO_JOBS, ...row.jobs },
  }))
}

/** Deletes the statistics of old minutes. */
export async function deleteStaleMinutes(db: Queryable): Promise<void> {
  await db.query(
    `delete from statistics_minutes where minute < clock_timestamp() - interval '${RETENTION}'`,
  )
}
