import { z } from 'zod'
import {
  type AggregateReport,
  largest,
  NAME_MAX,
  ReportError,
  type ReportRow,
  reportCount,
  reportTime,
} from './aggregateReport.ts'

const POLICIES_MAX = 100
const FAILURES_MAX = 10_000

// The schema refuses control characters in a name, because PostgreSQL refuses U+0000 in texts. The reader of XML
// reports removes them instead, because line breaks may stand around a name in XML.
const text = z
  .string()
  .max(NAME_MAX)
  .regex(/^\P{Cc}*$/u)
/** Describes the fields that the service reads of a TLS report (RFC 8460 §4.4). */
const schema = z.object({
  'report-id': text,
  'date-range': z.object({ 'start-datetime': text, 'end-datetime': text }),
  policies: z
    .array(
      z.object({
        policy: z.object({ 'policy-domain': text }),
        summary: z.object({ 'total-successful-session-count': z.unknown() }),
        'failure-details': z
          .array(
            z.object({
              'result-type': text,
              'sending-mta-ip': text.optional(),
              'failed-session-count': z.unknown(),
            }),
          )
          .max(FAILURES_MAX)
          .optional(),
      }),
    )
    .min(1)
    .max(POLICIES_MAX),
})

/**
 * Reads a TLS report (RFC 8460). Its first policy names the domain that the report is about. The function leaves out
 * the policies of other domains.
 * @throws {ReportError} if the text is no TLS report.
 */
export function readTlsReport(json: string): AggregateReport {
  const { success, data } = schema.safeParse(parsed(json))
  if (!success) throw new ReportError('it is no report of RFC 8460')
  const domainOf = ({ policy }: (typeof data.policies)[number]) =>
    policy['policy-domain'].toLowerCase().replace(/\.$/, '')
  const domain = domainOf(data.policies[0]!)
  const rows = data.policies
    .filter((policy) => domainOf(policy) === domain)
    .flatMap(({ summary, 'failure-details': failures = [] }): ReportRow[] => [
      {
        source: null,
        count: reportCount(summary['total-successful-session-count']),
        isPassed: true,
        result: 'success',
      },
      ...failures.map((failure) => ({
        source: failure['sending-mta-ip'] ?? null,
        count: reportCount(failure['failed-session-count']),
        isPassed: false,
        result: failure['result-type'],
      })),
    ])
  const range = data['date-range']
  return {
    kind: 'tls',
    domain,
    reportId: data['report-id'],
    beginsAt: reportTime(range['start-datetime']),
    endsAt: reportTime(range['end-datetime']),
    rows: largest(rows.filter(({ count }) => count > 0)),
  }
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    return null
  }
}
