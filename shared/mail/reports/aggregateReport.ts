/**
 * Describes the aggregate reports that other mail hosts send about the mail of the service's domains: DMARC (RFC 7489
 * §7.2) and TLS (RFC 8460).
 */

export type ReportKind = 'dmarc' | 'tls'

/** Describes one row of an aggregate report, which covers the mail from one source. */
export type ReportRow = {
  /** Holds the IP address that sent the mail. Null means that the report names no IP address. */
  source: string | null
  /** Holds the number of mails in a row of a DMARC report, or the number of sessions in a row of a TLS report. */
  count: number
  /**
   * Tells whether the mail or the session passed the check that the report is about. In a DMARC report, a mail has
   * passed if SPF or DKIM proved its domain. In a TLS report, an encrypted session has passed.
   */
  isPassed: boolean
  /** Holds the result as text, such as `none, dkim=pass, spf=fail`, or the failure type of RFC 8460 §4.3. */
  result: string
}

export type AggregateReport = {
  kind: ReportKind
  /** Holds the domain of this service that the report is about, in lower case. */
  domain: string
  /** Holds the id that the reporter gave to the report. */
  reportId: string
  beginsAt: Date
  endsAt: Date
  /** Holds the rows of the report with the largest counts. */
  rows: ReportRow[]
}

/** Reports that the service cannot read an aggregate report. The service writes the error message to the log. */
export class ReportError extends Error {
  override readonly name = 'ReportError'
}

/** Sets the maximum number of rows that the service keeps of an aggregate report. */
const ROWS_MAX = 1_000
/** Sets the maximum number of characters of a name in an aggregate report. */
export const NAME_MAX = 255

/** Returns the rows of an aggregate report with the largest counts. */
export const largest = (rows: ReportRow[]): ReportRow[] =>
  rows.toSorted((one, other) => other.count - one.count).slice(0, ROWS_MAX)

const RFC_3339 = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)?$/i

/**
 * Reads a time of an aggregate report, in seconds since 1970 or in the form of RFC 3339. @throws {ReportError} if the
 * text is no such time.
 */
export function reportTime(text: string): Date {
  const isSeconds = /^\d{1,11}$/.test(text)
  const time = new Date(isSeconds ? Number(text) * 1000 : RFC_3339.test(text) ? text : Number.NaN)
  if (Number.isNaN(time.getTime())) throw new ReportError('its dates are no times')
  return time
}

/** Reads a count of an aggregate report, up to a billion. The result is 0 if the value is not a valid count. */
export const reportCount = (given: unknown): number => {
  const count = typeof given === 'string' && /^\s*\d{1,15}\s*$/.test(given) ? Number(given) : given
  return typeof count === 'number' && Number.isSafeInteger(count) && count > 0
    ? Math.min(count, 1_000_000_000)
    : 0
}
