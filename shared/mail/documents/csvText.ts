import { cellText, type DocumentText, TextWriter } from './document.ts'
import { decodeText } from './plainText.ts'

const DELIMITERS: readonly string[] = [',', ';', '\t', '|']
/** Sets how many characters at the beginning of a CSV file the CSV reader searches for possible delimiters. */
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
  /** Tells whether the cell has only blanks so far, from `start` on. A quote then begins a quoted cell. */
  let isBlank = true
  const endCell = (end: number) => {
    row.push(cellText(cell + text.slice(start, end)))
    cell = ''
    start = end + 1
    isBlank = true
  }
  for (let at = 0; at <= text.length && !out.isFull; at++) {
    const letter = text[at]
    if (isQuoted && letter !== undefined) {
      if (letter !== '"') continue
      cell += text.slice(start, at)
      start = at + 1
      // A doubled quote inside a quoted cell stands for one quote. The cell continues after it.
      if (text[at + 1] === '"') start = ++at
      else isQuoted = false
    } else if (letter === '"' && isBlank && cell === '') {
      isQuoted = true
      start = at + 1
    } else if (letter === delimiter) endCell(at)
    else if (letter === '\n' || letter === undefined) {
      endCell(at)
      out.write(`${row.join('\t')}\n`)
      row = []
    } else if (isBlank) isBlank = letter.trim() === ''
  }
  return out.done()
}

/**
 * Returns the delimiter of a CSV file: the character that occurs most often, outside quotes, in each of the first
 * lines. A decimal comma is therefore no delimiter if the title line has no comma. If no possible delimiter occurs in
 * each line, the function returns the most frequent one.
 */
function delimiterOf(text: string): string {
  const counts = countsOf(text.slice(0, LOOKED_CHARS), text.length > LOOKED_CHARS)
  const ranked = DELIMITERS.map((delimiter, n) => {
    const each = counts.map((line) => line[n]!)
    return { delimiter, least: Math.min(...each), sum: each.reduce((sum, one) => sum + one, 0) }
  })
  return ranked.reduce((best, one) =>
    one.least > best.least || (one.least === best.least && one.sum > best.sum) ? one : best,
  ).delimiter
}

/**
 * Counts the delimiter characters outside quotes in each line with text. If the text is cut off, its last line may be
 * incomplete, so the function ignores this line.
 */
function countsOf(head: string, isCut: boolean): number[][] {
  const lines: number[][] = []
  let line = DELIMITERS.map(() => 0)
  let isQuoted = false
  let isBlank = true
  const endLine = () => {
    if (!isBlank) lines.push(line)
    line = DELIMITERS.map(() => 0)
    isBlank = true
  }
  for (const letter of head) {
    if (letter === '\n' && !isQuoted) {
      endLine()
      continue
    }
    if (letter !== '\r') isBlank = false
    if (letter === '"') isQuoted = !isQuoted
    const n = isQuoted ? -1 : DELIMITERS.indexOf(letter)
    if (n !== -1) line[n]!++
  }
  if (!isCut || lines.length === 0) endLine()
  return lines.length === 0 ? [line] : lines
}
