import { cellText, type DocumentText, TextWriter } from './document.ts'
import { decodeText } from './plainText.ts'

const DELIMITERS = [',', ';', '\t', '|'] as const
/** Sets the number of characters at the beginning of a CSV file in which the reader counts possible delimiters. */
const LOOKED_CHARS = 4_000

/**
 * Reads a table from a text file: CSV (RFC 4180), or a variant with semicolons or tabs instead of commas. Each row
 * becomes a line, with tabs between the cells.
 */
export function readCsv(bytes: Uint8Array): DocumentText {
  const text = decodeText(bytes)
  const delimiter = delimiterOf(text)
  const out = new TextWriter()
  let row: string[] = []
  let cell = ''
  let start = 0
  let isQuoted = false
  const endCell = (end: number) => {
    row.push(cellText(cell + text.slice(start, end)))
    cell = ''
    start = end + 1
  }
  for (let at = 0; at <= text.length && !out.isFull; at++) {
    const letter = text[at]
    if (isQuoted && letter !== undefined) {
      if (letter !== '"') continue
      cell += text.slice(start, at)
      start = at + 1
      // A doubled quote inside a quoted cell stands for one quote.
      if (text[at + 1] === '"') start = ++at
      else isQuoted = false
    } else if (letter === '"' && text.slice(start, at).trim() === '' && cell === '') {
      isQuoted = true
      start = at + 1
    } else if (letter === delimiter) endCell(at)
    else if (letter === '\n' || letter === undefined) {
      endCell(at)
      out.write(`${row.join('\t')}\n`)
      row = []
    }
  }
  return out.done()
}

/**
 * Returns the delimiter of a CSV file, which is the most frequent delimiter character outside quotes in the first
 * lines.
 */
function delimiterOf(text: string): string {
  const counts = new Map<string, number>(DELIMITERS.map((one) => [one, 0]))
  let isQuoted = false
  for (const letter of text.slice(0, LOOKED_CHARS)) {
    if (letter === '"') isQuoted = !isQuoted
    else if (!isQuoted && counts.has(letter)) counts.set(letter, counts.get(letter)! + 1)
  }
  return [...counts].reduce((best, one) => (one[1] > best[1] ? one : best))[0]
}
