import { Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { AREAS, type Finding } from '../../shared/doctor/finding.ts'
import {
  REPORT_LIMIT_MS,
  SECTIONS,
  type SectionFindings,
  unanswered,
  withoutRunner,
} from '../../shared/doctor/report.ts'
import { inOrder } from '../../shared/doctor/table.ts'
import type { Pool } from '../../sql/db.ts'
import {
  findLastReport,
  findReport,
  type HealthReport,
  livingSections,
  requestReport,
} from '../../sql/operations/healthReports.ts'
import { notFound } from '../http/errors.ts'
import { operation, Time } from '../http/operation.ts'
import type { Services } from '../http/services.ts'

const Verdict = t.Union([t.Literal('ok'), t.Literal('warning'), t.Literal('broken')])

const Report = t.Object({
  reportId: t.String(),
  requestedAt: Time,
  ageSeconds: t.Integer(),
  complete: t.Boolean({ description: 'True means that the check covered every part.' }),
  verdict: Verdict,
  findings: t.Array(
    t.Object({
      area: t.Union(AREAS.map((area) => t.Literal(area))),
      check: t.String(),
      found: t.String(),
      verdict: Verdict,
      fix: t.Union([t.String(), t.Null()], { description: 'Change this line.' }),
    }),
  ),
})

const EXAMPLE = {
  reportId: 'hlr_0a1b2c3d4e5f60718293a4b5',
  requestedAt: '2026-01-05T09:30:00.000Z',
  ageSeconds: 4,
  complete: true,
  verdict: 'broken',
  findings: [
    {
      area: 'mail in',
      check: 'MX of mail.example.com',
      found: 'no such record',
      verdict: 'broken',
      fix: 'mail.example.com. IN MX 10 mail.example.com.',
    },
  ],
}

const described = { tag: 'Platform', access: 'platform:manage' } as const
const whole = { description: 'The report.', schema: Report, example: EXAMPLE }

/**
 * Limits how many milliseconds the service waits for a health report. A worker finishes every examination within this
 * time, unless the worker itself ends.
 */
const WAIT_MS = 20_000

/**
 * Serves the reports of the doctor (the health check of the service). A report tells whether the service can receive
 * mail and payments from outside, and send replies.
 */
export function healthReportRoutes(services: Services) {
  const { pool } = services
  return new Elysia({ prefix: '/v0/platform/health' })
    .get(
      '',
      async () => {
        const last = await findLastReport(pool)
        if (last === null) throw notFound('No report yet: POST /v0/platform/health makes one')
        return toView(last)
      },
      {
        detail: operation({
          ...described,
          summary: 'Get the last report on the health of the service',
          description: '`bun run doctor` prints the same report.',
          success: { status: 200, ...whole },
          errors: { 404: 'No report yet' },
        }),
      },
    )
    .post('', () => lookAgain(services), {
      detail: operation({
        ...described,
        summary: 'Look at the health of the service again',
        description:
          'Workers look at settings, database, mail, chain and webhooks. The answer comes when all have looked, ' +
          `within ${WAIT_MS / 1000} seconds. Callers at the same time share one report.`,
        success: { status: 200, ...whole },
        errors: { 404: 'The report was replaced by newer ones' },
      }),
    })
}

async function lookAgain({ pool, waiters }: Services) {
  const id = await newReport(pool)
  const watch = waiters.watch(id)
  const deadlineMs = performance.now() + WAIT_MS
  try {
    let report = await findReport(pool, id)
    while (report !== null && !isComplete(report) && (await watch.changed(deadlineMs))) {
      report = await findReport(pool, id)
    }
    if (report === null) throw notFound('The report was replaced by newer ones')
    return toView(report)
  } finally {
    watch.close()
  }
}

/**
 * Creates a report of the doctor (the health check of the service). If no worker for a section runs, the finding of
 * this section says so.
 */
async function newReport(pool: Pool): Promise<string> {
  const sections = await livingSections(pool)
  const absent = SECTIONS.filter((section) => !sections.includes(section))
  const given = Object.fromEntries(absent.map((section) => [section, [withoutRunner(section)]]))
  return await requestReport(pool, { sections, given })
}

const isComplete = ({ sections, ageMs }: HealthReport): boolean =>
  ageMs > REPORT_LIMIT_MS || SECTIONS.every((section) => sections[section] !== undefined)

function toView(report: HealthReport) {
  const complete = isComplete(report)
  const findings = inOrder(findingsOf(report.sections, complete))
  return {
    reportId: report.id,
    requestedAt: report.requestedAt.toISOString(),
    ageSeconds: Math.floor(report.ageMs / 1000),
    complete,
    verdict: worst(findings),
    findings: findings.map(({ area, check, found, verdict, fix = null }) => ({
      area,
      check,
      found,
      verdict,
      fix,
    })),
  }
}

const findingsOf = (sections: SectionFindings, complete: boolean): Finding[] =>
  SECTIONS.flatMap((section) => sections[section] ?? (complete ? [unanswered(section)] : []))

function worst(findings: readonly Finding[]): Finding['verdict'] {
  const verdicts = findings.map(({ verdict }) => verdict)
  if (verdicts.includes('broken')) return 'broken'
  return verdicts.includes('warning') ? 'warning' : 'ok'
}
