/** Tells which mails hold an aggregate report. */

const REPORT_NAMES = /^(?:dmarc|tlsrpt|postmaster)$/
/** RFC 7489 §7.2.1.1 and RFC 8460 §5.1 define the file names. Many senders use other media types. */
const REPORT_FILE = /!.*\.(?:xml|json)(?:\.gz|\.zip)?$|\.(?:xml|json)\.gz$|!.*\.zip$/i
const REPORT_TYPE = /^application\/tlsrpt\+(?:gzip|json)$/i

/** A larger attachment is no report. Hosts with millions of users send a few hundred kilobytes. */
export const REPORT_FILE_MAX_BYTES = 2 * 1024 * 1024

/** Tells whether reports come to an inbox, because of its name, or because it receives the mail of the postmaster. */
export const isReportInbox = (inboxAddress: string, postmaster: string | undefined): boolean =>
  inboxAddress === postmaster ||
  REPORT_NAMES.test(inboxAddress.slice(0, inboxAddress.lastIndexOf('@')))

/** Tells whether an attachment may be a report. */
export const isReportFile = (file: {
  filename: string
  contentType: string
  size: number
}): boolean =>
  file.size <= REPORT_FILE_MAX_BYTES &&
  (REPORT_TYPE.test(file.contentType) || REPORT_FILE.test(file.filename))
