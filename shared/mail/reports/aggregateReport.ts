/** Aggregate reports that other mail hosts send about mail in our name: DMARC (RFC 7489 §7.2) and TLS (RFC 8460). */

export type ReportKind = 'dmarc' | 'tls'

/** What happened to mail of one source. */
export type ReportRow = {
  /** The address that sent; null: the report names none. */
  source: string | null
  /** Mails, or sessions in a TLS report. */
  count: number
  /** DMARC: SPF or DKIM vouches for our domain. TLS: the session was secured. */
  isPassed: boolean
  /** Such as `none, dkim=pass, spf=fail`, or the failure type of RFC 8460 §4.3. */
  result: string
}

export type AggregateReport = {
  kind: ReportKind
  /** The domain of ours that the report is about, in lower case. */
  domain: string
  /** The reporter's name for the report. */
  reportId: string
  beginsAt: Date
  endsAt: Date
  /** The largest ones. */
  rows: ReportRow[]
}

/** A report that cannot be read. The message is for the log. */
export class ReportError extends Error {
  override readonly name = 'ReportError'
}

/** Rows kept of a report. */
const ROWS_MAX = 1_000
/** Characters of a name. */
export const NAME_MAX = 255

/** The rows with the largest counts. */
export const largest = (rows: ReportRow[]): ReportRow[] =>
  rows.toSorted((one, other) => other.count - one.count).slice(0, ROWS_MAX)

/** Seconds since 1970, or a time of RFC 3339. @throws {ReportError} */
export function reportTime(text: string): Date {
  const time = new Date(/^\d{1,11}$/.test(text) ? Number(text) * 1000 : text)
  if (Number.isNaN(time.getTime())) throw new ReportError('its dates are no times')
  return time
}

/** Up to a billion; anything else counts nothing. */
export const reportCount = (text: unknown): number => {
  const count = Number(text)
  return Number.isSafeInteger(count) && count > 0 ? Math.min(count, 1_000_000_000) : 0
}
