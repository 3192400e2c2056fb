import type { AggregateReport, ReportKind } from '../../../shared/mail/reports/aggregateReport.ts'
import { type Pool, type Queryable, transaction } from '../../db.ts'

/** Sets the number of days for which the service keeps aggregate reports (DMARC and TLS). */
const KEPT_DAYS = 400
/**
 * Sets the maximum number of aggregate reports that the service stores in a day. The number is limited, because anybody
 * can send any number of reports. A proven sender may have at most as many reports as the day has room for further ones.
 * Otherwise one sender could keep the reports of all others away.
 */
const DAY_MAX = 2_000
/**
 * Sets the maximum number of stored aggregate reports whose sender is not proven, because anybody can write such a
 * report.
 */
const UNPROVEN_DAY_MAX = 500
const DELETED_AT_ONCE = 1_000

/**
 * Describes the result of storing an aggregate report. The result `stored` means that the report is new. The result
 * `known` means that the reporter had already sent it. The result `foreign` means that its domain does not belong to
 * the service. The result `full` means that too many reports came in one day.
 */
export type ReportOutcome = 'stored' | 'known' | 'foreign' | 'full'

/**
 * Stores an aggregate report, and deletes old reports. A report with a proven sender replaces a report with the same id
 * from an unproven sender, who may have forged the name of the reporter.
 */
export async function storeReport(
  pool: Pool,
  report: AggregateReport & { reporter: string; isProven: boolean; mailDomain: string },
): Promise<ReportOutcome> {
  const { kind, domain, reporter, reportId, beginsAt, endsAt, rows, isProven, mailDomain } = report
  return await transaction(pool, async (db) => {
    await db.query(
      `delete from aggregate_reports where id in (
         select id from aggregate_reports where received_at < now() - make_interval(days => $1)
         order by received_at limit $2)`,
      [KEPT_DAYS, DELETED_AT_ONCE],
    )
    const { rows: judged } = await db.query<Today & { ours: boolean }>(
      `select $1 = $2 or exists (select from mail_domains where domain = $1 and status = 'verified') as ours,
         count(*)::int as "all", (count(*) filter (where not is_proven))::int as unproven,
         (count(*) filter (where is_proven and reporter = $3))::int as own
       from aggregate_reports where received_at > now() - interval '1 day'`,
      [domain, mailDomain, reporter],
    )
    const { ours, ...today } = judged[0]!
    if (!ours) return 'foreign'
    if (isFull(today, isProven)) return 'full'
    if (isProven) {
      await db.query(
        `delete from aggregate_reports
         where kind = $1 and domain = $2 and reporter = $3 and report_id = $4 and not is_proven`,
        [kind, domain, reporter, reportId],
      )
    }
    const { rows: stored } = await db.query<{ id: string }>(
      `insert into aggregate_reports (kind, domain, reporter, report_id, begins_at, ends_at, is_proven)
       values ($1, $2, $3, $4, $5, $6, $7) on conflict do nothing returning id`,
      [kind, domain, reporter, reportId, beginsAt, endsAt, isProven],
    )
    if (stored[0] === undefined) return 'known'
    await db.query(
      `insert into aggregate_report_rows (report_id, place, source, count, is_passed, result)
       select $1, r.place, r.source, r.count, r.is_passed, r.result
       from unnest($2::text[], $3::int[], $4::boolean[], $5::text[]) with ordinality
         r (source, count, is_passed, result, place)`,
      [
        stored[0].id,
        rows.map(({ source }) => source),
        rows.map(({ count }) => count),
        rows.map(({ isPassed }) => isPassed),
        rows.map(({ result }) => result),
      ],
    )
    return 'stored'
  })
}

/**
 * Counts the stored aggregate reports of the last day: all, those of unproven senders, and those of one proven sender.
 */
type Today = { all: number; unproven: number; own: number }

const isFull = ({ all, unproven, own }: Today, isProven: boolean): boolean =>
  all >= DAY_MAX || (isProven ? own >= DAY_MAX - all : unproven >= UNPROVEN_DAY_MAX)

/** Counts the mails or the TLS sessions of one day (UTC) in aggregate reports. */
export type ReportedDay = { date: string; kind: ReportKind; passed: number; failed: number }

/**
 * Describes a source of mails or of TLS sessions with one result. The field `count` is the sum over all reported days.
 */
export type ReportedSource = {
  kind: ReportKind
  domain: string
  source: string | null
  result: string
  isPassed: boolean
  count: number
  /** Lists the reporters that name the source in their aggregate reports. */
  reporters: string[]
}

const SOURCES_MAX = 100
const REPORTERS_MAX = 5

/**
 * Sums up the aggregate reports with a proven sender from the last `days` days.
 * @returns the sums of the reports with a proven sender. The field `unproven` counts the other reports, which no other
 * sum includes.
 */
export async function sumReports(
  db: Queryable,
  days: number,
): Promise<{ days: ReportedDay[]; sources: ReportedSource[]; unproven: number }> {
  const since = `ends_at > now() - make_interval(days => $1)`
  const { rows: byDay } = await db.query<ReportedDay>(
    `select to_char(p.ends_at at time zone 'UTC', 'YYYY-MM-DD') as date, p.kind,
       coalesce(sum(r.count) filter (where r.is_passed), 0)::float8 as passed,
       coalesce(sum(r.count) filter (where not r.is_passed), 0)::float8 as failed
     from aggregate_reports p join aggregate_report_rows r on r.report_id = p.id
     where p.is_proven and p.${since} group by 1, 2 order by 1, 2`,
    [days],
  )
  const { rows: sources } = await db.query<ReportedSource>(
    `select p.kind, p.domain, r.source, r.result, r.is_passed as "isPassed", sum(r.count)::float8 as count,
       (array_agg(distinct p.reporter order by p.reporter))[1:${REPORTERS_MAX}] as reporters
     from aggregate_reports p join aggregate_report_rows r on r.report_id = p.id
     where p.is_proven and p.${since} group by p.kind, p.domain, r.source, r.result, r.is_passed
     order by count desc, p.domain, r.source limit ${SOURCES_MAX}`,
    [days],
  )
  const { rows: unproven } = await db.query<{ count: number }>(
    `select count(*)::int as count from aggregate_reports where not is_proven and ${since}`,
    [days],
  )
  return { days: byDay, sources, unproven: unproven[0]!.count }
}
