/**
 * Names the aggregate reports that other mail hosts send about mail in our name: DMARC (RFC 7489 §7.2) and TLS (RFC
 * 8460).
 */

export type ReportKind = 'dmarc' | 'tls'

/** Reports what happened to the mail of one source. */
export type ReportRow = {
  /** Is the address that sent the mail; null: the report names none. */
  source: string | null
  /** Counts mails, or sessions in a TLS report. */
  count: number
  /** DMARC: SPF or DKIM proves our domain. TLS: the session was secured. */
  isPassed: boolean
  /** Is a text such as `none, dkim=pass, spf=fail`, or the failure type of RFC 8460 §4.3. */
  result: string
}

export type AggregateReport = {
  kind: ReportKind
  /** Is the domain of ours that the report is about, in lower case. */
  domain: string
  /** Is the name that the reporter gave to the report. */
  reportId: string
  beginsAt: Date
  endsAt: Date
  /** Holds the rows with the largest counts. */
  rows: ReportRow[]
}

/** Reports that an aggregate report cannot be read. The message is for the log. */
export class ReportError extends Error {
  override readonly name = 'ReportError'
}

/** Limits the rows that are kept of a report. */
const ROWS_MAX = 1_000
/** Limits the characters of a name. */
export const NAME_MAX = 255

/** Returns the rows with the largest counts. */
export const largest = (rows: ReportRow[]): ReportRow[] =>
  rows.toSorted((one, other) => other.count - one.count).slice(0, ROWS_MAX)

/** Reads a time in seconds since 1970, or a time of RFC 3339. @throws {ReportError} */
export function reportTime(text: string): Date {
  const time = new Date(/^\d{1,11}$/.test(text) ? Number(text) * 1000 : text)
  if (Number.isNaN(time.getTime())) throw new ReportError('its dates are no times')
  return time
}

/** Reads a count of up to a billion. Any other value counts as 0. */
export const reportCount = (text: unknown): number => {
  const count = Number(text)
  return Number.isSafeInteger(count) && count > 0 ? Math.min(count, 1_000_000_000) : 0
}
