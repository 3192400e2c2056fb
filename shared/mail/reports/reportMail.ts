/** Tells which mails hold an aggregate report (DMARC or TLS). */

const REPORT_NAMES = /^(?:dmarc|tlsrpt|postmaster)$/
/**
 * Matches the file names of aggregate reports (RFC 7489 §7.2.1.1, RFC 8460 §5.1). The media type does not identify an
 * aggregate report, because many senders use other types.
 */
const REPORT_FILE = /!.*\.(?:xml|json)(?:\.gz|\.zip)?$|\.(?:xml|json)\.gz$|!.*\.zip$/i
const REPORT_TYPE = /^application\/tlsrpt\+(?:gzip|json)$/i

/**
 * Sets the maximum number of bytes of an attachment that the service reads as an aggregate report. The reports of hosts
 * with millions of users have only a few hundred kilobytes.
 */
export const REPORT_FILE_MAX_BYTES = 2 * 1024 * 1024

/**
 * Tells whether an inbox receives aggregate reports. Such an inbox has a reserved name for reports, or receives the
 * mail of the postmaster.
 */
export const isReportInbox = (inboxAddress: string, postmaster: string | undefined): boolean =>
  inboxAddress === postmaster ||
  REPORT_NAMES.test(inboxAddress.slice(0, inboxAddress.lastIndexOf('@')))

/** Tells whether an attachment may be an aggregate report about DMARC or TLS. */
export const isReportFile = (file: {
  filename: string
  contentType: string
  size: number
}): boolean =>
  file.size <= REPORT_FILE_MAX_BYTES &&
  (REPORT_TYPE.test(file.contentType) || REPORT_FILE.test(file.filename))
