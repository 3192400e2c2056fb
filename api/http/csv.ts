/**
 * Writes a line of CSV (RFC 4180). If a spreadsheet would run a field as a formula, the function puts an apostrophe in
 * front of the field.
 */
export function csvLine(fields: readonly unknown[]): string {
  const quoted = fields.map((field) => {
    const text = field === null ? '' : String(field)
    const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text
    return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
  })
  return `${quoted.join(',')}\r\n`
}
