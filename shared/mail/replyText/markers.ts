/**
 * Recognises the lines that separate quoted messages, forwards and bounces. Every test reads one line of at most
 * MAX_MARKER_LENGTH characters. Therefore the total time is linear in the mail's size.
 */
import {
  ABOVE_RUNS,
  BOUNCE_STARTS,
  FORWARDED_RUNS,
  LINE_RUNS,
  MESSAGE_RUNS,
  ORIGINAL_RUNS,
  REPLY_RUNS,
} from './words.ts'

/**
 * Sets the maximum number of characters of a marker line, such as an attribution. A line with more characters is
 * ordinary prose. An attribution with a mailto link has up to about 300 characters.
 */
export const MAX_MARKER_LENGTH = 400
/**
 * Replaces a line that is too long to be a marker (such as an attribution). The replacement must also be too long for a
 * line of a signature. Otherwise a paragraph could count as a signature.
 */
const TOO_LONG = '…'.repeat(MAX_MARKER_LENGTH + 1)

const RULE = /^(?:[-_=*~#—–―─━]\s?){2,}$/
export const EMAIL = /[^\s<>@]@[^\s<>@]/
export const TIME = /\p{Nd}{1,2}\s?[:.h時시点點]\s?\p{Nd}{2}|\p{Nd}\s?(?:AM|PM|Uhr|時|시|点)/iu
const DASHED =
  /^(?:[-–—]{2,}|[_=*]{5,})\s*([^-–—_=*](?:.{0,60}[^-–—_=*])?)\s*(?:[-–—]{2,}|[_=*]{5,}):?$/
const ABOVE_THIS_LINE =
  /^[-–—#=*_~\s[(]{1,12}.{0,40}(?:reply|respond|write|type).{0,24} above this line/i
/** Matches a text between two runs of marks, such as `##- … -##`. */
const MARKED = /^[-–—#=*_~+]{1,8}[\s[(]?[^-–—#=*_~+\s].{8,100}[-–—#=*_~+]{1,8}$/
const FORWARD_SUBJECT = /^(?:fwd?|wg|tr|rv)\s?:\s?\S/i

/**
 * Matches invisible characters: control characters, direction marks, joiners, fillers, and the characters that replace
 * lost objects. The pattern does not match U+FE0F and U+E007F, because they end emoji.
 */
const UNSEEN =
  '[\\0-\\x08\\x0e-\\x1f\\x7f-\\x84\\x86-\\x9f\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180e\\u200b-\\u200f\\u202a-\\u202e\\u2060-\\u206f\\u2800\\u3164\\ufeff\\uffa0\\ufff9-\\ufffd\\u{e0000}-\\u{e007e}]'
const ALL_UNSEEN = new RegExp(UNSEEN, 'gu')
const IS_UNSEEN = new RegExp(`^(?:\\s|${UNSEEN})$`, 'u')

/** Returns `text` without the blanks at both ends and without the invisible characters at the end. */
export function trimUnseen(text: string): string {
  let end = text.length
  while (end > 0) {
    const last = /.$/su.exec(text.slice(Math.max(0, end - 2), end))![0]
    if (!IS_UNSEEN.test(last)) break
    end -= last.length
  }
  return text.slice(0, end).trim()
}

/** Tells whether a line consists only of dashes, underscores, stars, hashes, tildes or equal signs. */
export function isRule(view: string): boolean {
  return RULE.test(view)
}

/**
 * Normalises a line before the tests for markers such as attributions. The function trims the line and removes
 * direction marks. It replaces unusual spaces and the escaped angle brackets of Zoho by plain characters. If a line is
 * too long to be a marker, the function returns `>` for a quote, and otherwise `TOO_LONG`.
 */
export function lineView(line: string): string {
  const trimmed = line.trim()
  if (trimmed.length > MAX_MARKER_LENGTH) return trimmed.startsWith('>') ? '>' : TOO_LONG
  if (!/[^\x20-\x7e]|=E2=80=AF|&[lg]t;/.test(trimmed)) return trimmed
  return (
    trimmed
      .normalize('NFC')
      .replace(ALL_UNSEEN, '')
      .replace(/\s|=E2=80=AF/g, ' ')
      .replaceAll('&lt;', '<')
      .replaceAll('&gt;', '>')
      // The function converts full-width characters, because people with Japanese keyboards often write quote marks,
      // dates and times in them.
      .replace(/^＞/, '>')
      .replace(/[０-９](?:[０-９：／．]{0,3}[０-９])?/g, (wide) => wide.normalize('NFKC'))
      .trim()
  )
}

/**
 * Converts a text to lower case. A bare toLowerCase() is not enough, because it leaves a combining dot on the Turkish
 * `İ`.
 */
export function fold(text: string): string {
  const lower = text.toLowerCase()
  return lower.includes('\u0307') ? lower.replaceAll('i\u0307', 'i') : lower
}

/**
 * Makes one regular expression from a list of phrases, because the code tests every line of a mail with it, and a
 * separate search for each phrase would take six times as long.
 */
export const oneOf = (phrases: readonly string[]): string =>
  `(?:${phrases.map((phrase) => phrase.replace(/[.*+?^$(){}|[\]\\]/g, '\\$&')).join('|')})`
/**
 * Matches a line of a delivery report. The status of a delivery report consists of a class, a subject and a detail,
 * such as 5.1.1 (RFC 3463 §2).
 */
const BOUNCE_LINE = new RegExp(
  `^(?:${oneOf(BOUNCE_STARTS)}|status: [45]\\.\\d{1,3}\\.\\d{1,3}(?![\\d.]))`,
  'i',
)

/** Returns `text` without the dashes, stars and underscores that clients and Markdown put around a text. */
export function trimDecoration(text: string): string {
  let start = 0
  let end = text.length
  while (start < end && '-*_ '.includes(text[start]!)) start++
  while (end > start && '-*_ '.includes(text[end - 1]!)) end--
  return text.slice(start, end)
}

/**
 * Returns the kind of message that a line such as `-----Original Message-----` announces. The kind `titled` is
 * uncertain, because a writer's own heading such as `--- Email settings ---` also names a message.
 */
export function announcedMessage(view: string): 'original' | 'titled' | 'forwarded' | undefined {
  const bare = view.startsWith('*-') && view.endsWith('-*') ? view.slice(1, -1) : view
  const dashed = DASHED.exec(bare)?.[1]
  const inner = dashed ?? (/[:：]$/.test(view) && view.length <= 60 ? view : '')
  if (inner === '' || inner.split(' ').length > 7) return undefined
  const lower = fold(inner)
  const forwarded = FORWARDED_RUNS.some((run) => lower.includes(run))
  const message = MESSAGE_RUNS.some((run) => lower.includes(run))
  if (dashed === undefined) return forwarded && message ? 'forwarded' : undefined
  if (forwarded) return 'forwarded'
  if (!message) return undefined
  return ORIGINAL_RUNS.some((run) => lower.includes(run)) ? 'original' : 'titled'
}

/** Recognises a title without dashes above the headers of a quoted message, such as `Original Message:`. */
export function isOriginalTitle(view: string): boolean {
  if (view.length > 40 || view.split(' ').length > 3 || /[.!?]$/.test(view)) return false
  const lower = fold(view)
  return (
    ORIGINAL_RUNS.some((run) => lower.includes(run)) &&
    MESSAGE_RUNS.some((run) => lower.includes(run))
  )
}

/** Recognises `Fwd: …` as the first line of a forwarded message that somebody pasted into the mail. */
export function isForwardSubject(view: string): boolean {
  return FORWARD_SUBJECT.test(view)
}

/**
 * Recognises separator lines of GroupWise (`>>> Bob <…> 1/2/2024 10:00 AM >>>`), of Tobit david, of Gmail's print view,
 * and of ticket systems (`## reply above this line ##`).
 */
export function isVendorSeparator(view: string): boolean {
  if (/^original message processed by |^\[quoted text hidden\]$/i.test(view)) return true
  if (view.startsWith('>>>')) return view.endsWith('>>>') && TIME.test(view)
  return ABOVE_THIS_LINE.test(view) || isReplyLine(view)
}

/** Recognises a ticket system's line that asks for a reply above this line, in many languages. */
function isReplyLine(view: string): boolean {
  if (!MARKED.test(view)) return false
  const lower = fold(view)
  return [REPLY_RUNS, ABOVE_RUNS, LINE_RUNS].every((runs) =>
    runs.some((run) => lower.includes(run)),
  )
}

/** Recognises a line of a delivery report in the formats of RFC 3464, Exchange, Postfix, Exim and qmail. */
export function isBounceLine(view: string): boolean {
  return BOUNCE_LINE.test(view)
}
