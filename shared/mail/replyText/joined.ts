/**
 * Finds a quoted message that follows the new text on the same line, because a client or a relay has dropped the line
 * end between them.
 */
import { attributionWithin } from './attribution.ts'
import { headerKind, headersWithin } from './headers.ts'
import { announcedMessage, isRule, MAX_MARKER_LENGTH, trimDecoration } from './markers.ts'

const MAX_RULES = 4
/**
 * Matches a line of underscores above a quoted message. Outlook draws 32 underscores, and Mailman draws 47. A blank for
 * a person to fill in is shorter.
 */
const LONG_RULE = /^_{30,}$/
/** Matches a separator such as `-----Original Message-----`, even if headers follow the separator on the same line. */
const TITLE = /^[-_=*]{2,}[^-_=*]{1,60}[-_=*]{2,}/
const SENTENCE_ENDS = /[.!?。！？…]\s?$/

/**
 * Returns the new text of a line that also holds quoted history: an attribution, headers or a separator such as
 * `-----Original Message-----`.
 * @param below holds the lines that follow the searched line, without quote marks and decoration. The first line of
 * `below` is not blank.
 * @returns the new text before the quoted message in the line. The empty text means that the line holds only quoted
 * history. The result undefined means that the line holds no quoted history. The result `forward` means that the line
 * announces a forwarded message.
 */
export function beforeHistory(
  line: string,
  below: readonly string[],
): string | { forward: true } | undefined {
  // A line that starts with `>` is a quote. Therefore it holds no new text of the sender.
  if (line.startsWith('>')) return undefined
  const rule = ruleWithin(line, below)
  if (rule?.forward) return { forward: true }
  if (rule) return line.slice(0, rule.index).trim()
  if (!/[:：]/.test(line)) return undefined
  const attributed = attributionWithin(line)
  if (attributed !== undefined) return attributed
  const headers = headersWithin(line, below)
  return headers === undefined ? undefined : withoutRule(trimDecoration(line.slice(0, headers)))
}

/** Tells whether the lines below a title are those of a quoted message: its headers, or lines with quote marks. */
export const isHistory = ([first = '']: readonly string[]): boolean =>
  first.startsWith('>') || headerKind(first) !== undefined

/**
 * Finds a separator of a quoted message within a line. A separator without a title must follow the end of a sentence,
 * but a separator with a title may follow any word.
 */
function ruleWithin(
  line: string,
  below: readonly string[],
): { index: number; forward: boolean } | undefined {
  if (line.length > 10 * MAX_MARKER_LENGTH) return undefined
  for (const { index } of line.matchAll(/-{3,}|[_=*]{5,}/g).take(MAX_RULES)) {
    const tail = line.slice(index, index + MAX_MARKER_LENGTH).trim()
    const own = line.slice(0, index)
    const title = TITLE.exec(tail)?.[0] ?? tail
    const rest = tail.slice(title.length).trim()
    const announced = rest === '' || headerKind(rest) ? announcedMessage(title) : undefined
    const isHeading = announced === 'titled' && rest === '' && !isHistory(below)
    if (announced !== undefined && !isHeading) return { index, forward: announced === 'forwarded' }
    if (!/[\p{L}\p{N}]/u.test(own)) return undefined
    if (LONG_RULE.test(tail) && SENTENCE_ENDS.test(own)) return { index, forward: false }
  }
  return undefined
}

/** Removes a row of dashes, such as `-----`, that follows the text of a line. */
export function withoutRule(line: string): string {
  const index = line.search(/[-_=*]{5,}$/)
  const own = line.slice(0, Math.max(0, index)).trimEnd()
  return /[\p{L}\p{N}]/u.test(own) && isRule(line.slice(index)) ? own : line
}
