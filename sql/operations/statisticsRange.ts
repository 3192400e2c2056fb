/** Counts the work of the service over hours, days and weeks. */
import type { Queryable } from '../db.ts'
import { type Counts, type Minute, readHistory } from './statisticsHistory.ts'

const RETENTION = '62 days'
/**
 * Sets how long after the start of an hour the service sums its statistics. Before this time, some minutes of the hour
 * may be missing, because the service may count a minute up to an hour after the end of the minute
 * (statisticsHistory.ts).
 */
const LATE = '2 hours'
/**
 * Holds the time from which the queries read statistics of minutes. For earlier times, they read the hourly sums. The
 * service keeps the rows of minutes longer than SPLIT. The SQL must not use `clock_timestamp()`, because a new hour
 * could begin during the statement. The statement would then count a part of an hour twice or not at all.
 */
const SPLIT = "date_trunc('hour', statement_timestamp() - interval '24 hours', 'UTC')"

const SUMS = `sum(mail_in)::int as mail_in, sum(mail_out)::int as mail_out, sum(payments)::int as payments,
  sum(paid_atomic) as paid_atomic, sum(webhooks_ok)::int as webhooks_ok, sum(webhooks_failed)::int as webhooks_failed`

/**
 * Sums the statistics of the hours that have ended. Several processes may call `recordHours` at once, because the
 * database stores each hour only once.
 */
export async function recordHours(db: Queryable): Promise<void> {
  await db.query(
    `insert into statistics_hours
       (hour, mail_in, mail_out, payments, paid_atomic, webhooks_ok, webhooks_failed)
     select date_trunc('hour', minute, 'UTC') as hour, ${SUMS} from statistics_minutes
     where minute < date_trunc('hour', statement_timestamp() - interval '${LATE}', 'UTC')
       and minute >= coalesce((select max(hour) + interval '1 hour' from statistics_hours), '-infinity')
     group by 1 on conflict (hour) do nothing`,
  )
}

/** Deletes the statistics of old hours. */
export async function deleteStaleHours(db: Queryable): Promise<void> {
  await db.query(
    `delete from statistics_hours where hour < clock_timestamp() - interval '${RETENTION}'`,
  )
}

/**
 * Describes a time range in parts of equal width. Each part of the time range begins at a multiple of the width in UTC,
 * plus `offsetMs`.
 */
export type Range = { widthMs: number; parts: number; offsetMs: number }

export type Part = Counts & { at: Date }

type PartRow = {
  at: Date
  mail_in: number
  mail_out: number
  payments: number
  paid_atomic: string
  webhooks_ok: number
  webhooks_failed: number
}

/**
 * Returns the statistics of the parts of a time range up to now, the oldest first. The result leaves out parts without
 * counts. The last part is still running, so its statistics are not complete.
 */
export async function readRange(
  db: Queryable,
  { widthMs, parts, offsetMs }: Range,
): Promise<{ parts: Part[]; minutes: Minute[] }> {
  const startOf = (timeMs: number) => Math.floor((timeMs - offsetMs) / widthMs) * widthMs + offsetMs
  const fromMs = startOf(Date.now()) - (parts - 1) * widthMs
  const minutes = await readHistory(db)
  // This query of the statistics reads only the minutes before `since`, because `readHistory` returns the later
  // minutes, including minutes that are not stored yet.
  const since = minutes[0]?.minute ?? new Date()
  const { rows } = await db.query<PartRow>({
    name: 'read-range',
    text: `
      with counted as (
        select hour as at, mail_in, mail_out, payments, paid_atomic, webhooks_ok, webhooks_failed
        from statistics_hours where hour >= $1::timestamptz and hour < ${SPLIT}
        union all
        select minute, mail_in, mail_out, payments, paid_atomic, webhooks_ok, webhooks_failed
        from statistics_minutes where minute >= greatest($1::timestamptz, ${SPLIT}) and minute < $4::timestamptz
      )
      select date_bin($2::float8 * interval '1 millisecond', at, $3::timestamptz) as at, ${SUMS}
      from counted group by 1 order by 1`,
    values: [new Date(fromMs), widthMs, new Date(fromMs), since],
  })
  const found = new Map<number, Part>()
  for (const { at, ...row } of rows) {
    found.set(at.getTime(), {
      at,
      mailIn: row.mail_in,
      mailOut: row.mail_out,
      payments: row.payments,
      paidAtomic: BigInt(row.paid_atomic),
      webhooksOk: row.webhooks_ok,
      webhooksFailed: row.webhooks_failed,
    })
  }
  for (const { minute, ...counts } of minutes) {
    const atMs = startOf(minute.getTime())
    if (atMs < fromMs) continue
    const before = found.get(atMs)
    found.set(atMs, before === undefined ? { at: new Date(atMs), ...counts } : add(before, counts))
  }
  return { parts: [...found.values()].toSorted((a, b) => a.at.getTime() - b.at.getTime()), minutes }
}

const add = (one: Part, other: Counts): Part => ({
  at: one.at,
  mailIn: one.mailIn + other.mailIn,
  mailOut: one.mailOut + other.mailOut,
  payments: one.payments + other.payments,
  paidAtomic: one.paidAtomic + other.paidAtomic,
  webhooksOk: one.webhooksOk + other.webhooksOk,
  webhooksFailed: one.webhooksFailed + other.webhooksFailed,
})
