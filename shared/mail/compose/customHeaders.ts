/** Maps the names of the header fields that a caller adds to its mail to their values. */
export type CustomHeaders = Readonly<Record<string, string>>

const HEADERS_MAX = 20
/**
 * Matches a name of a header field. RFC 5322 §2.2 allows printable ASCII without a colon, but letters, digits and
 * hyphens are enough.
 */
const NAME = /^[A-Za-z0-9-]{1,76}$/
/**
 * Matches a value of a header field. The name and the value of a header field fit on a line of 998 characters (RFC 5322
 * §2.1.1). The pattern refuses a line break, because it would add a header field.
 */
const VALUE = /^[\x21-\x7e](?:[\x20-\x7e]{0,898}[\x21-\x7e])?$/
const ALLOWED = /^(?:x-.+|list-.+|auto-submitted)$/i

/**
 * Lists the names of header fields that mail relays read as commands, in lower case. A name that ends with `-` stands for
 * all names that begin with it. The fields `X-SMTPAPI` and `X-MQ-Envelope`, for example, add recipients that neither an
 * approval nor a limit of this service has seen. Each relay documents its own fields.
 */
const COMMANDS = [
  ...['x-smtpapi', 'x-sg-', 'x-msys-', 'x-mc-', 'x-ses-', 'x-pm-', 'x-mailgun-', 'x-mj-'],
  ...['x-mailjet-', 'x-sib-', 'x-mailin-', 'x-smtp2go-', 'x-elasticemail-', 'x-smtpcom-', 'x-mt-'],
  ...['x-postal-', 'x-xsmessageid', 'x-xsmailingid', 'x-mq-', 'x-clab-', 'x-pmta-', 'x-virtual-'],
  ...['x-virtualmta', 'x-job', 'x-envid', 'x-dsn', 'x-greenarrow-', 'x-ms-exchange-'],
  ...['x-envelope-', 'x-rcpt-', 'x-bcc'],
]

const isCommand = (key: string): boolean =>
  COMMANDS.some((command) => (command.endsWith('-') ? key.startsWith(command) : key === command))

/**
 * Reads the header fields that a caller of the API adds to a mail. The function allows a name only if no part of this
 * service sets the field. Therefore a caller can change neither the author nor the recipients of the mail, and can add
 * no line to the header.
 * @returns the accepted header fields, or an error text for the first field that breaks a rule.
 */
export function readCustomHeaders(
  given: Readonly<Record<string, string>>,
  withUnsubscribe: boolean,
): { headers: CustomHeaders } | { error: string } {
  const fields = Object.entries(given)
  if (fields.length > HEADERS_MAX)
    return { error: `headers must name at most ${HEADERS_MAX} fields` }
  const seen = new Set<string>()
  for (const [name, value] of fields) {
    if (!NAME.test(name)) {
      return { error: 'headers must be named by at most 76 letters, digits and hyphens' }
    }
    const field = `headers.${name}`
    const key = name.toLowerCase()
    if (!ALLOWED.test(name)) return { error: `${field} must be X-*, List-* or Auto-Submitted` }
    if (isCommand(key)) {
      return { error: `${field} must not be a field that mail relays read as a command` }
    }
    if (!VALUE.test(value)) {
      return { error: `${field} must be one line of 1 to 900 visible ASCII characters` }
    }
    if (seen.has(key)) return { error: `${field} must differ from the earlier ones` }
    if (withUnsubscribe && /^list-unsubscribe(?:-post)?$/.test(key)) {
      return { error: `${field} must not stand beside unsubscribe` }
    }
    seen.add(key)
  }
  return { headers: given }
}

/** Writes the caller's header fields with their line ends. */
export const customFields = (headers: CustomHeaders): string =>
  Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('')
