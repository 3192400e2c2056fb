/**
 * Extracts the text that a sender wrote, without the quoted history and the signature. The function `replyText` works
 * line by line on plain text. The function `replyTextFromHtml` first converts HTML to plain text. The test file
 * test/shared/mail/replyText/replyText.test.ts runs the extraction on the mails of twelve public test suites.
 *
 * The function applies the following rules in this order:
 * - A bounce and a forwarded message stay whole.
 * - An Outlook header block or an "original message" line ends the sender's own text.
 * - An attribution (`On …, Bob wrote:`) also ends the sender's own text, unless `>` lines follow. The `>` marks
 *   themselves show the end of the quote.
 * - A header block or an attribution may begin after the sender's own text on the same line. A mail may also end within
 *   an attribution.
 * - The entries of a ticket system, each with a time and a name, end the sender's own text.
 * - One block of `>` lines is quoted history. Two or more blocks of `>` lines with text between them are an inline
 *   reply and stay.
 * - A line `-- ` starts a signature (RFC 3676 §4.3). The function removes the signature, a line "Sent from my …" and a
 *   closing legal notice.
 * - A sign-off without the delimiter `-- ` stays. The function removes a block that repeats the writer's name below the
 *   sign-off.
 * - If no text is left, the whole mail stays.
 */
import { htmlToMarkedText, htmlToText } from '../visibleText/htmlToText.ts'
import { attributionEndingAt, type Following } from './attribution.ts'
import { beforeCutOff } from './cutOff.ts'
import { isClosingAddress, isClosingDeviceLine } from './device.ts'
import { headerKind, isHeaderBlock, MAX_HEADER_LINES } from './headers.ts'
import { beforeHistory, isHistory, withoutRule } from './joined.ts'
import {
  announcedMessage,
  isBounceLine,
  isForwardSubject,
  isOriginalTitle,
  isRule,
  isVendorSeparator,
  lineView,
  trimUnseen,
} from './markers.ts'
import { dropFooter, startsSignature } from './signature.ts'
import { startsTicketHistory } from './ticketEntries.ts'

/**
 * Sets the maximum number of lines of a mail that the function searches for markers such as attributions. A longer mail
 * is usually a log, in which only `>` marks count as signs of quoted text.
 */
const MAX_MARKER_LINES = 10_000

/**
 * Matches a line that is only a punctuation mark. Such a line may remain when the list, quote or table around the mark
 * is removed.
 */
const LONE_MARK = /^[-–—_*|·•.~=]$/
const EMOTICON = /^>[_.:;-]{0,3}[<(]$/

const Kind = { own: 0, blank: 1, quote: 2, attribution: 3, dropped: 4 } as const

type Scan = {
  lines: string[]
  views: string[]
  kinds: Uint8Array
  /** Holds the number of lines of the mail that stand above the quoted history. */
  end: number
  attributed: boolean
}

/**
 * Returns the new text of a plain-text mail body.
 * @param text is the whole body, with any line ends.
 * @returns the sender's own text, trimmed, with lines separated by `\n`. The function returns the whole text of a
 * forwarded message, of a bounce, and of a mail that consists only of quotes. The result is empty only if `text` is
 * blank.
 * @example replyText('Yes.\n\nOn Mon, 1 Jun 2026 at 9:00, Bob <bob@x.test> wrote:\n> Ok?') // 'Yes.'
 */
export function replyText(text: string): string {
  return ownText(text, false) || tidy(text)
}

/**
 * Returns the new text of an HTML-only mail. The conversion to plain text replaces the quote containers of Gmail,
 * Outlook, Apple Mail, Yahoo and Thunderbird by quote marks. It removes signature containers.
 * @param html is the whole HTML body.
 * @returns the new text as plain text. If the mail has no quoted history, the text shows the URLs of links: `text
 * [https://…]`.
 */
export function replyTextFromHtml(html: string): string {
  const marked = htmlToMarkedText(html, false)
  const own = ownText(marked, true)
  if (own === '') return tidy(htmlToText(html))
  // A mail without quoted history is probably a notification, so its text keeps the URLs of links.
  return own === tidy(marked) ? tidy(htmlToMarkedText(html, true)) : own
}

function tidy(text: string): string {
  return trimUnseen(text.replaceAll('\r\n', '\n').replaceAll('\r', '\n'))
}

/**
 * Returns the sender's own text. @returns '' if the sender wrote no text in the mail, or if the mail must stay whole.
 */
function ownText(text: string, quotesAreHistory: boolean): string {
  const lines = tidy(text).split('\n')
  const views = lines.map(lineView)
  const scan = scanLines(lines, views)
  if (scan === undefined) return ''
  scan.attributed ||= quotesAreHistory
  foldBrokenQuotes(scan)
  return trimUnseen(dropFooter(joinOwn(scan)))
}

/**
 * Marks the lines between an opening and a closing ``` fence. A line inside a ``` fence never counts as a quote or as a
 * signature.
 */
function fencedLines(views: readonly string[]): Uint8Array {
  const fenced = new Uint8Array(views.length)
  let open = -1
  for (let i = 0; i < views.length; i++) {
    if (!views[i]!.startsWith('```')) continue
    if (open >= 0) fenced.fill(1, open, i + 1)
    open = open >= 0 ? -1 : i
  }
  return fenced
}

function followingOf(views: readonly string[], index: number): Following {
  let i = index + 1
  while (i < views.length && i < index + 4 && views[i] === '') i++
  const next = views[i] ?? ''
  if (isQuoted(next, true)) return 'quote'
  return headerKind(next) === undefined ? 'other' : 'header'
}

/**
 * Tells whether a line begins with a quote mark: `>`, or `|` below an attribution of an old version of Gmail. A table
 * row that begins and ends with `|` is no quote.
 */
function isQuoted(view: string, bars: boolean): boolean {
  return (
    (view.startsWith('>') && !EMOTICON.test(view)) ||
    (bars && view.startsWith('|') && !/.\|$/.test(view))
  )
}

/**
 * Returns the lines below the line `index`, from the first line that is not blank. The caller tests whether the
 * returned lines are the header block of a quoted message.
 */
function linesBelow(views: readonly string[], index: number): readonly string[] {
  let first = index + 1
  while (first < index + 3 && views[first] === '') first++
  return views.slice(first, first + MAX_HEADER_LINES)
}

/**
 * Gives each line of a mail a kind: the sender's own text, blank, quote, attribution or dropped. @returns undefined if
 * the whole mail must stay.
 */
function scanLines(lines: string[], views: string[]): Scan | undefined {
  const fenced = fencedLines(views)
  const kinds = new Uint8Array(lines.length)
  let attributed = false
  let inSignature = false
  let free = 0
  for (let i = 0; i < lines.length; i++) {
    const view = views[i]!
    if (view === '') {
      kinds[i] = Kind.blank
      continue
    }
    if (fenced[i]) continue
    if (i >= MAX_MARKER_LINES) {
      kinds[i] = view.startsWith('>') ? Kind.quote : Kind.own
      continue
    }
    const following = followingOf(views, i)
    const attribution = attributionEndingAt(views, i, free, following)
    if (attribution !== undefined) {
      const { start, prefix } = attribution
      kinds.fill(Kind.attribution, start, i + 1)
      if (prefix !== '') {
        lines[start] = prefix
        kinds[start] = Kind.own
      }
      free = i + 1
      inSignature = false
      if (following === 'quote') {
        attributed = true
      } else if (prefix !== '' || kinds.subarray(0, start).includes(Kind.own)) {
        return { lines, views, kinds, end: start + 1, attributed }
      }
      continue
    }
    if (isVendorSeparator(view)) return { lines, views, kinds, end: i, attributed }
    if (!attributed && startsTicketHistory(views, i) && kinds.subarray(0, i).includes(Kind.own)) {
      return { lines, views, kinds, end: i, attributed }
    }
    const before = attributed
      ? undefined
      : (beforeHistory(lines[i]!, linesBelow(views, i)) ?? beforeCutOff(views, i))
    if (typeof before === 'object') return undefined
    if (before) lines[i] = before
    if (before || (before === '' && kinds.subarray(0, i).includes(Kind.own))) {
      return { lines, views, kinds, end: before ? i + 1 : i, attributed }
    }
    if (isQuoted(view, attributed)) {
      kinds[i] = Kind.quote
      inSignature = false
      free = i + 1
      continue
    }
    const announced = announcedMessage(view)
    if (!attributed && (announced === 'forwarded' || isBounceLine(view))) return undefined
    if (!attributed && isForwardSubject(view) && isHeaderBlock(views, i + 1)) return undefined
    const isTitle =
      announced !== undefined && (announced !== 'titled' || isHistory(linesBelow(views, i)))
    if (isTitle || isHeaderBlock(views, i)) {
      return { lines, views, kinds, end: i, attributed }
    }
    inSignature ||= startsSignature(views, i)
    const isBelowDevice = kinds[i - 1] === Kind.dropped && isClosingAddress(views, i)
    if (inSignature || isBelowDevice || isClosingDeviceLine(views, i)) kinds[i] = Kind.dropped
  }
  return { lines, views, kinds, end: lines.length, attributed }
}

/**
 * Marks the fragments of wrapped quotes as quotes. Some mail clients wrap a quoted line and put no `>` before its
 * second half, which then stands between two `>` lines. If one such fragment certainly belongs to a quote, every
 * fragment that starts in lower case also counts as a quote.
 */
function foldBrokenQuotes({ views, kinds, end }: Scan): void {
  const fragments: number[] = []
  let certain = false
  for (let i = 1; i < end; i++) {
    if (kinds[i] !== Kind.own || kinds[i - 1] !== Kind.quote) continue
    const next = kinds[i + 1] === Kind.own ? i + 2 : i + 1
    if (next >= end || kinds[next] !== Kind.quote) continue
    const above = views[i - 1]!
    const fragment = views[i]!
    const soft = above.endsWith('=')
    const link = /^[(<]?https?:\S+(?:\s?>)?$/.test(fragment)
    const wrapped =
      above.length >= 40 && /[^.?!:;]$/.test(above) && /^[\p{Ll}\p{Nd}(<]/u.test(fragment)
    if (soft || link || wrapped) kinds.fill(Kind.quote, i, next)
    else if (/^\p{Ll}/u.test(fragment)) fragments.push(i)
    certain ||= soft || wrapped
  }
  if (certain) for (const i of fragments) kinds[i] = Kind.quote
}

function joinOwn({ lines, views, kinds, end, attributed }: Scan): string {
  let runs = 0
  let lastOwn = -1
  let lastQuote = -1
  let quoting = false
  for (let i = 0; i < end; i++) {
    if (kinds[i] === Kind.own) {
      lastOwn = i
      quoting = false
    }
    if (kinds[i] !== Kind.quote) continue
    if (!quoting) runs++
    lastQuote = i
    quoting = true
  }
  if (lastOwn < 0) return ''
  const answers = runs > 1 || (!attributed && runs === 1 && !quoting)
  const shown = !attributed && (answers || (quoting && isExample(views, lastOwn, lastQuote)))
  const last = shown ? Math.max(lastOwn, lastQuote) : lastOwn
  const kept: string[] = []
  if (!answers) keepCitations(kinds, views, lastOwn)
  for (let i = 0; i <= last; i++) {
    const kind = kinds[i]
    if (kind === Kind.dropped) continue
    if ((kind === Kind.quote || kind === Kind.attribution) && !answers && !shown) continue
    kept.push(lines[i]!.trimEnd())
  }
  const trails = (view: string) =>
    view === '' ||
    isRule(view) ||
    LONE_MARK.test(view) ||
    (end < lines.length && isOriginalTitle(view))
  while (kept.length > 1 && trails(lineView(kept.at(-1)!))) kept.pop()
  if (end < lines.length || quoting) kept.push(withoutRule(kept.pop()!))
  return kept.join('\n')
}

/**
 * Treats the `>` lines of a citation as a part of the sender's own text, so that they stay. A citation has at most six
 * `>` lines, between a line such as `The rule says:` and the sender's own text. A line with a date or an address is an
 * attribution and introduces no citation.
 * @param lastOwn is the index of the last line of the sender's own text.
 */
function keepCitations(kinds: Uint8Array, views: readonly string[], lastOwn: number): void {
  let intro = ''
  for (let i = 0; i < lastOwn; i++) {
    if (kinds[i] === Kind.own) intro = views[i]!
    if (kinds[i] === Kind.attribution) intro = ''
    if (kinds[i] !== Kind.quote) continue
    let end = i
    while (kinds[end] !== Kind.own && kinds[end] !== Kind.attribution) end++
    const cites = /\p{L}[:：]$/u.test(intro) && !/[\p{Nd}@]/u.test(intro)
    if (cites && kinds[end] === Kind.own && end - i <= 6) kinds.fill(Kind.own, i, end)
    intro = ''
    i = end - 1
  }
}

/**
 * Tells whether a line such as `Run this:` announces an example of up to four `>` lines. These lines are command
 * prompts or a citation, and no quoted history.
 */
function isExample(views: readonly string[], lastOwn: number, lastQuote: number): boolean {
  return lastQuote - lastOwn <= 4 && /[:：]$/.test(views[lastOwn]!)
}
