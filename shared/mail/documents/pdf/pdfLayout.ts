import type { Run } from './pdfRuns.ts'

/**
 * Sets how far the base lines of two texts on the same line of a PDF page may differ, as a fraction of the letter size.
 */
const SAME_LINE = 0.45
/**
 * Sets the maximum number of lines above a table cell that may belong to the same row, because a neighbouring cell of
 * the row may have several lines.
 */
const LINES_BACK = 8
/**
 * Sets the smallest width of a space between two words, as a fraction of the letter size. A gap of the width COLUMN or
 * more separates two columns.
 */
const SPACE = 0.15
const COLUMN = 1
/**
 * Sets the distance from the previous line at which a line begins a new paragraph, as a multiple of the letter size.
 */
const PARAGRAPH = 1.9
const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/
/** Matches left-to-right words and numbers inside a right-to-left line. */
const LEFT_TO_RIGHT =
  /[\p{Script=Latin}\p{Script=Cyrillic}\p{Script=Greek}\p{N}][^\u0590-\u08ff\s]*/gu
/**
 * Matches the special forms of letters that typesetting programs use: ligatures and the presentation forms of Arabic.
 */
const PRESENTATION = /[\ufb00-\ufb4f\ufb50-\ufdff\ufe70-\ufefc]+/g

const RIGHT_TO_LEFT_LETTERS = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/g
const LETTERS = /\p{L}/gu
/** Matches right-to-left words inside a left-to-right line, with the blanks between the words. */
const RIGHT_TO_LEFT_PART =
  /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]+(?: [\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]+)*/g

type Line = { y: number; size: number; end: number; runs: Run[] }

/**
 * Writes the text of a PDF page. Each line of the page becomes a line of text, with tabs between columns and an empty
 * line between paragraphs.
 */
export function layOut(runs: readonly Run[]): string {
  const lines: Line[] = []
  for (const run of runs) {
    if (run.text === '') continue
    const line = lineOf(lines, run)
    if (line === undefined) {
      lines.push({ y: run.y, size: run.size, end: run.end, runs: [run] })
      continue
    }
    line.runs.push(run)
    line.end = Math.max(line.end, run.end)
    line.size = Math.max(line.size, run.size)
  }
  const shown = lines.filter(({ runs }) => runs.some(({ text }) => text.trim() !== ''))
  return shown
    .map((line, n) => {
      const before = shown[n - 1]
      const step = before === undefined ? 0 : Math.abs(before.y - line.y)
      const isApart = before !== undefined && step > PARAGRAPH * Math.max(line.size, before.size)
      return `${isApart ? '\n' : ''}${textOf(line)}\n`
    })
    .join('')
}

function lineOf(lines: readonly Line[], run: Run): Line | undefined {
  const isOn = (line: Line) => Math.abs(line.y - run.y) < SAME_LINE * Math.max(line.size, run.size)
  const last = lines.at(-1)
  if (last !== undefined && isOn(last)) return last
  for (let n = lines.length - 2; n >= Math.max(0, lines.length - LINES_BACK); n--) {
    const line = lines[n]!
    if (isOn(line) && run.x >= line.end) return line
  }
  return undefined
}

function textOf({ runs }: Line): string {
  const sorted = runs.toSorted(
    (one, other) => Math.min(one.x, one.end) - Math.min(other.x, other.end),
  )
  let text = ''
  let end = Number.NEGATIVE_INFINITY
  for (const run of sorted) {
    const gap = Math.min(run.x, run.end) - end
    if (text !== '' && gap > COLUMN * run.size) text = `${text.trimEnd()}\t`
    else if (text !== '' && gap > SPACE * run.size && !/\s$/.test(text)) text += ' '
    text += text.endsWith('\t') ? run.text.trimStart() : run.text
    end = Math.max(end, run.x, run.end)
  }
  return logical(text)
    .replace(PRESENTATION, (letters) => letters.normalize('NFKC'))
    .replace(/ {2,}/g, ' ')
}

const turned = (text: string): string => [...text].toReversed().join('')

/** Brings Hebrew and Arabic letters into reading order, because a PDF page holds letters in visual order. */
function logical(text: string): string {
  if (!RIGHT_TO_LEFT.test(text)) return text
  const [right, all] = [
    text.match(RIGHT_TO_LEFT_LETTERS)?.length ?? 0,
    text.match(LETTERS)?.length ?? 0,
  ]
  if (2 * right < all) return text.replace(RIGHT_TO_LEFT_PART, turned)
  return turned(text).replace(LEFT_TO_RIGHT, turned)
}
