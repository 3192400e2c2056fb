import type { Finding } from '../../shared/doctor/finding.ts'
import {
  REPORT_LIMIT_MS,
  SECTION_RUNNER,
  SECTIONS,
  type Section,
  type SectionFindings,
} from '../../shared/doctor/report.ts'
import { newHealthReportId } from '../../shared/ids.ts'
import { CHANGES_CHANNEL } from '../changes.ts'
import { type Client, type Pool, type Queryable, transaction } from '../db.ts'
import { addJob } from '../queue/jobs.ts'
import { listLivingPools } from '../queue/workerPools.ts'

/** Describes a report of the doctor (the service's self-check). */
export type HealthReport = {
  id: string
  requestedAt: Date
  /** Holds the number of milliseconds since somebody requested the doctor's report, by the clock of the database. */
  ageMs: number
  sections: SectionFindings
}

const REPORTS_KEPT = 10

/** Maps each section of a doctor's report (the result of the self-check) to the task that checks the section. */
const TASK = {
  service: 'examine_service',
  mail: 'examine_mail',
  chain: 'examine_chain',
} as const satisfies Record<Section, string>

/**
 * Asks the worker processes for a report of the doctor (the service's self-check). Concurrent callers share one report
 * in progress.
 * @param sections lists the report sections that worker processes check.
 * @param given holds the findings of the report sections that this process has already checked.
 * @returns the id of the report of the doctor (the self-check).
 */
export async function requestReport(
  pool: Pool,
  { sections, given = {} }: { sections: readonly Section[]; given?: SectionFindings },
): Promise<string> {
  const id = newHealthReportId()
  return await transaction(pool, async (db) => {
    await db.query(`select pg_advisory_xact_lock(hashtextextended('health_reports', 0))`)
    const underWay = await findUnderWay(db)
    if (underWay !== null) return underWay
    // Each report of the doctor (the self-check) gets a later millisecond than the reports before it, so that the
    // reports have an order. Otherwise the service could take the newest report for the oldest one and delete it.
    await db.query(
      `insert into health_reports (id, sections, requested_at)
       select $1, $2, greatest(clock_timestamp(), max(requested_at) + interval '1 ms') from health_reports`,
      [id, JSON.stringify(given)],
    )
    await deleteOldReports(db)
    for (const section of sections) {
      const task = TASK[section]
      await addJob(db, { task, payload: { reportId: id }, key: `${task}:${id}` })
    }
    return id
  })
}

/**
 * Finds a doctor's report (the result of the self-check) in progress. A report in progress still lacks the findings of
 * a section.
 * @returns null if no report of the doctor (the self-check) is in progress.
 */
async function findUnderWay(db: Queryable): Promise<string | null> {
  const { rows } = await db.query<{ id: string }>(
    `select id from health_reports
     where requested_at > clock_timestamp() - make_interval(secs => $1) and not sections ?& $2
     order by requested_at desc limit 1`,
    [REPORT_LIMIT_MS / 1000, SECTIONS],
  )
  return rows[0]?.id ?? null
}

/**
 * Returns those sections of the doctor's report (the result of the self-check) that a running worker process can check.
 */
export async function livingSections(db: Queryable): Promise<Section[]> {
  const pools = await listLivingPools(db)
  return SECTIONS.filter((section) => pools.includes(SECTION_RUNNER[section]))
}

async function deleteOldReports(db: Client): Promise<void> {
  await db.query(
    `delete from health_reports where id in (
       select id from health_reports order by requested_at desc, id offset $1)`,
    [REPORTS_KEPT],
  )
}

/**
 * Records the findings of one section of a doctor's report (the result of the self-check). A second result for the same
 * section changes nothing.
 */
export async function recordSection(
  db: Queryable,
  { reportId, section, findings }: { reportId: string; section: Section; findings: Finding[] },
): Promise<void> {
  await db.query(
    `with recorded as (
       update health_reports set sections = sections || jsonb_build_object($2::text, $3::jsonb)
       where id = $1 and not sections ? $2 returning id)
     select pg_notify('${CHANGES_CHANNEL}', id) from recorded`,
    [reportId, section, JSON.stringify(findings)],
  )
}

type ReportRow = { id: string; requested_at: Date; age_ms: string; sections: SectionFindings }

const SELECT_REPORT = `
  select id, requested_at, floor(extract(epoch from clock_timestamp() - requested_at) * 1000) as age_ms, sections
  from health_reports`

const toReport = (row: ReportRow | undefined): HealthReport | null =>
  row === undefined
    ? null
    : {
        id: row.id,
        requestedAt: row.requested_at,
        ageMs: Number(row.age_ms),
        sections: row.sections,
      }

/**
 * Finds a report of the doctor (the service's self-check) by its id.
 * @returns null if the report does not exist.
 */
export async function findReport(db: Queryable, id: string): Promise<HealthReport | null> {
  const { rows } = await db.query<ReportRow>({
    name: 'find-health-report',
    text: `${SELECT_REPORT} where id = $1`,
    values: [id],
  })
  return toReport(rows[0])
}

/**
 * Finds the newest report of the doctor (the service's self-check).
 * @returns null if no report exists.
 */
export async function findLastReport(db: Queryable): Promise<HealthReport | null> {
  const { rows } = await db.query<ReportRow>({
    name: 'find-last-health-report',
    text: `${SELECT_REPORT} order by requested_at desc, id limit 1`,
  })
  return toReport(rows[0])
}
