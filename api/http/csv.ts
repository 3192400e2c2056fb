/** Writes a line of CSV (RFC 4180). A field that a spreadsheet would run as a formula gets an apostrophe in front. */
export function csvLine(fields: readonly unknown[]): string {
  const quoted = fields.map((field) => {
    const text = field === null ? '' : String(field)
    const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text
    return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
  })
  return `${quoted.join(',')}\r\n`
}
