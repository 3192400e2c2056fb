/**
 * Recognises the attribution that a mail client writes above a quote (`On …, Bob wrote:`), on one line or wrapped. The
 * file words.ts lists verbs such as "wrote" in many languages. In any other language, a date and an address identify an
 * attribution.
 */

import { isDeviceLine } from './device.ts'
import { headerKind } from './headers.ts'
import { EMAIL, fold, MAX_MARKER_LENGTH, TIME, trimDecoration } from './markers.ts'
import { QUOTING_STARTS, WROTE_RUNS, WROTE_WORDS } from './words.ts'

/**
 * Sets the maximum number of characters at the start of a line in which `attributionWithin` searches for an
 * attribution.
 */
const MAX_JOINED_LENGTH = 4000
const MAX_ADDRESSES = 5
/** Sets the maximum number of lines of an attribution: a name, a mailto link and the verb, each wrapped once. */
const MAX_ATTRIBUTION_LINES = 6

/** Matches the words that may stand at the beginning of an attribution, before its date. */
export const LEAD_WORDS =
  '(?:On|Am|Le|El|Il giorno|Il|Op|Em|Den|W dniu|Dne|Dnia|Dňa|Dana|Στις|Pada(?: tanggal)?|Vào|Pe)\\s'
const LEAD = `${LEAD_WORDS}(?:\\p{L}{2,12}[.,]{0,2}\\s){0,2}\\p{Nd}{1,4}[\\s.,/-]`
const MIDLINE_LEAD_IN = new RegExp(`(?<=[\\s.!?…。])${LEAD}`, 'u')
const MIDLINE_RULE = /(?<=\s)-{3,}\s/
/** Matches the end of a sentence: a full stop, another punctuation mark, or a smiley. */
const SENTENCE_END = /(?:\p{L}{3}\.|[!?…]|[:;]-?\)|\p{So}\ufe0f?)\s|[。！？]\s?/gu
const MAX_SENTENCES = 20
/**
 * Matches a text that ends with an abbreviation, such as `2. maalisk.` or `Il giorno lun.`. The full stop of an
 * abbreviation ends no sentence.
 */
const ABBREVIATED = /\p{Nd}\.?[^.]{0,14}\.$|^\s*(?:\S+\s){0,2}\p{L}{1,4}\.$/u
/** Matches a line that begins with a lead word and then soon a date, such as `On Wed, Oct 8`. */
const LEADS = new RegExp(`^${LEAD}`, 'u')
const LEAD_IN = /^[("'*\s-]*(?:[^\s\p{Nd}]{1,14}\s+){0,4}[^\s\p{Nd}]{0,4}\p{Nd}/u
/** Matches each date with its year, and each year alone. */
const FULL_DATES = /\p{Nd}{1,4}([./-])\p{Nd}{1,2}\1\p{Nd}{2,4}|\p{Nd}{4}/gu
export const DATE = /\p{Nd}{4}|\p{Nd}[./-]\p{Nd}/u
const EMAIL_AT_END = /@[^\s<>@]+[\])>"'\s]*[:：]$/
/**
 * Matches a line that may continue the sentence of the line above. Such a line starts with a time, a year, a lower-case
 * letter, a caseless letter, or an address.
 */
const READS_ON = /^(?:\p{Nd}{1,2}[:.]\p{Nd}{2}|\p{Nd}{4}(?![-/.年\p{Nd}])|[\p{Ll}\p{Lo}<(])/u
const SPLIT_VERB = /^>\s*\p{L}+(?:\s\p{L}+)?\s*:$/u
/** Matches a line that starts with a person's name and an email address in brackets. */
const NAMED_FIRST = /^["'\p{L}][^<>()[\]@]{0,60}[<([]{1,2}[^\s<>()[\]@]+@[^\s<>()[\]@]+[>)\]]/u
/** Matches a quote mark (`>`) at the end of a text, directly before an attribution on the same line. */
const QUOTE_MARK = /\s>\s*$/
/**
 * Matches the severity level in a log line, such as `2026-10-10 10:15:33 ERROR mailer <a@x.test> wrote: 0 bytes`. Such
 * a line is no attribution.
 */
const LOG_LEVEL = /\p{Nd}\s\[?(?:ERROR|WARN(?:ING)?|INFO|DEBUG|TRACE|FATAL|NOTICE)(?!\p{L})/u
/**
 * Matches the writer's own sentence about an earlier mail, such as `On 5 June at 14:00 we wrote to bob@x.test:`. Such a
 * sentence is no attribution.
 */
const OWN_VERB = /(?<!\p{L})(?:I|[Ww]e) (?:\p{Ll}{2,12} )?(?:wrote|write|written)(?!\p{L})/u
const BRACKETED = /[<([][^\s<>()[\]@]+@[^\s<>()[\]@]+[>)\]]/

/** Tells whether a line contains a verb such as "wrote", and whether the verb stands at the end of the line. */
export function findVerb(text: string): 'none' | 'within' | 'last' {
  const lower = fold(text)
  const run = WROTE_RUNS.find((candidate) => lower.includes(candidate))
  if (run !== undefined) return 'last'
  const tokens = lower.split(/[^\p{L}]+/u).filter(Boolean)
  const index = tokens.findLastIndex((token) => WROTE_WORDS.has(token))
  if (index < 0) return 'none'
  // After the verb, the line may have only a gendered ending of at most two letters, as in napisał(a), написал(а) and
  // כתב/ה.
  const rest = tokens.slice(index + 1)
  return rest.every((token) => token.length <= 2) && rest.length <= 1 ? 'last' : 'within'
}

/**
 * Names the kind of text below a line that may be an attribution (`On …, Bob wrote:`). An uncertain attribution counts
 * only if a quote or a header block stands below the line.
 */
export type Following = 'quote' | 'header' | 'other'

function isAttribution(joined: string, following: Following): boolean {
  const text = trimDecoration(joined)
  const dashed = joined.endsWith('--') && (joined.startsWith('--') || isDashedBehindText(joined))
  const closed = /[:：\u2024]$/.test(text) || dashed
  if (!closed && following === 'other') return false
  if (following === 'other' && OWN_VERB.test(text)) return false
  const hasEmail = EMAIL.test(text)
  const hasTime = TIME.test(text)
  const numbers = text.match(/\p{Nd}+/gu)?.length ?? 0
  const verb = findVerb(text)
  if (verb !== 'none') {
    if (!closed) return hasTime && LEAD_IN.test(text)
    if (dashed) return true
    if (following === 'quote' && text.length <= 80) return true
    // A line such as `At 8:15 he wrote:` counts as the writer's own sentence, unless quote marks follow.
    if (!hasEmail && (numbers < 2 || !(DATE.test(text) || numbers > 2))) return false
    return verb === 'last' || hasTime || numbers > 2 || EMAIL_AT_END.test(text)
  }
  // Until 2013 Gmail wrote `2013/7/20 Bob <bob@x.test>` above a quote, without a verb and without a colon.
  if (!closed) return LEAD_IN.test(text) && numbers > 2 && text.endsWith('>') && hasEmail
  const lower = fold(text)
  if (QUOTING_STARTS.some((start) => lower.startsWith(start))) {
    return hasEmail || following === 'quote'
  }
  if (!hasTime || numbers < 3) return false
  // Some attributions have a date, a time and an address, but no verb: those of Yandex, mutt, and Gmail in Japanese and
  // Hebrew.
  if (EMAIL_AT_END.test(text) || text.endsWith(']:')) return true
  // The line may have a verb for "wrote" in an unlisted language. It counts as an attribution if it has a date and a
  // time, and either quote marks below it or an address in brackets.
  if (!DATE.test(text) || !(LEAD_IN.test(text) || NAMED_FIRST.test(text))) return false
  return following === 'quote' ? text.length <= 160 : BRACKETED.test(text)
}

/**
 * Tells whether an attribution with dashes, as Zoho writes it, follows the sender's own text on the same line: `Yes.
 * ---- On … <…> wrote ----`.
 */
function isDashedBehindText(joined: string): boolean {
  const rule = MIDLINE_RULE.exec(joined)
  if (rule === null) return false
  const tail = joined.slice(rule.index)
  return DATE.test(tail) && TIME.test(tail) && EMAIL.test(tail)
}

function endsSentence(view: string): boolean {
  return /[!?]$/.test(view) || /\p{L}{5,}[.。]$/u.test(view)
}

/**
 * Joins two lines of an attribution (`On …, Bob wrote:`) into one line. In a pasted, undecoded mail, a line may end
 * with a quoted-printable soft break: `w=` and `rote:`.
 */
function join(upper: string, lower: string): string {
  return upper.endsWith('=') ? upper.slice(0, -1) + lower : `${upper} ${lower}`
}

/**
 * Finds an attribution (`On …, Bob wrote:`) by its last line, the line `end`. A wrapped attribution begins on an
 * earlier line, but not before the line `from`. @returns undefined if no attribution ends on the line `end`.
 */
export function attributionEndingAt(
  views: readonly string[],
  end: number,
  from: number,
  following: Following,
): { start: number; prefix: string } | undefined {
  const last = views[end]!
  const splitByBlanks = SPLIT_VERB.test(last)
  if (last.startsWith('>') && !splitByBlanks) return undefined
  if (!/[:：\u2024\-*_]$/.test(last) && following === 'other') return undefined
  if (headerKind(last) !== undefined) return undefined
  let joined = splitByBlanks ? last.slice(1).trim() : last
  const first = Math.max(from, end + 1 - MAX_ATTRIBUTION_LINES)
  let best: number | undefined
  for (let start = end; start >= first; start--) {
    const view = views[start]!
    if (start < end) {
      if (view === '' && splitByBlanks) continue
      if (view === '' || view.startsWith('>') || endsSentence(view)) break
      joined = join(view, joined)
      if (joined.length > MAX_MARKER_LENGTH * 1.5) break
    }
    if (splitByBlanks && start === end) continue
    const [head = '', address] = joined.split('<', 2)
    const complete = address === undefined || !head.includes('>')
    const dated = isDated(view) && (start === end || !namesAuthor(last) || announces(view))
    if (best !== undefined && !dated) continue
    if (!isAttribution(joined, following)) continue
    if (dated) return attributionAt(views, start, first)
    if (!splitByBlanks && (complete || best === undefined)) best = start
  }
  return best === undefined ? undefined : attributionAt(views, best, first)
}

/** Tells whether a line begins with a few words and a number, and holds a date or a time. */
const isDated = (view: string): boolean =>
  LEAD_IN.test(view) && (TIME.test(view) || DATE.test(view))

/** Tells whether a line holds a verb such as "wrote" and the name before the verb, as in `Bob Lee <bob@x.test> wrote:`. */
const namesAuthor = (view: string): boolean =>
  findVerb(view) !== 'none' && (EMAIL.test(view) || view.split(' ').length > 2)

/**
 * Tells whether a line is the upper part of a wrapped attribution: `On Wed, Oct 8, 2014 at 10:33 AM,`. A writer's own
 * line with a number, such as `Room 12 at 10:30 works`, is not.
 */
const isDateLine = (view: string): boolean => {
  const others = view.replaceAll(FULL_DATES, '')
  return others !== view && (TIME.test(others) || /^\p{Nd}/u.test(view))
}

/**
 * Tells whether a line may stand above the name in a wrapped attribution. A sentence such as `Am Montag um 10 Uhr
 * passt` also begins with a lead word, but does not end with its date.
 */
const announces = (view: string): boolean =>
  isDateLine(view) ||
  /[,،、，]$/.test(view) ||
  (LEADS.test(view) && /(?:\p{Nd}|[AP]M|Uhr|\.)$/iu.test(view))

/** Tells whether a line begins with a word and holds a whole date, so that it continues no line above. */
const isWhole = (view: string): boolean => /^\p{L}/u.test(view) && isDateLine(view)

/** Finds the first line of an attribution that is wrapped over several lines: `On Wed, Oct 8,` and `2014 at …`. */
function attributionAt(views: readonly string[], start: number, first: number) {
  let top = start
  while (top > first && READS_ON.test(views[top]!) && !isWhole(views[top]!)) {
    const above = views[top - 1]!
    if (above === '' || above.length > 80 || above.startsWith('>') || endsSentence(above)) break
    if (!LEAD_IN.test(above) && !EMAIL.test(above)) break
    top--
  }
  return { start: top, prefix: ownPrefix(views[top]!) }
}

/**
 * Returns the index at which an attribution begins after the sender's own text on the same line, as in `reply On Wed,
 * Apr 4, 2012 …`. The own text must end with a line of dashes or with the end of a sentence. The result 0 means that
 * the line holds no text before the attribution.
 */
export function attributionStart(text: string): number {
  const begin = MIDLINE_LEAD_IN.exec(text) ?? MIDLINE_RULE.exec(text)
  if (begin) return begin.index
  let start = 0
  for (const { index, 0: end } of text.matchAll(SENTENCE_END).take(MAX_SENTENCES)) {
    const at = index + end.length
    const tail = text.slice(at, at + MAX_MARKER_LENGTH)
    if (ABBREVIATED.test(text.slice(0, at).trimEnd())) continue
    if (!DATE.test(tail) || !TIME.test(tail)) break
    if (LEAD_IN.test(tail) || NAMED_FIRST.test(tail)) start = at
  }
  return start
}

/** Returns the sender's own text that stands on the same line before an attribution (`On …, Bob wrote:`). */
function ownPrefix(view: string): string {
  const prefix = view
    .slice(0, attributionStart(view))
    .trim()
    .replace(/\s-{3,6}$/, '')
  if (
    !/[\p{L}\p{N}]/u.test(prefix) ||
    prefix.includes('@') ||
    /^\p{L}{0,3}$/u.test(prefix) ||
    isDeviceLine(prefix)
  )
    return ''
  return prefix
}

const MAX_DEVICE_LENGTH = 60

/**
 * Removes a device line (`Sent from my …`) from the end of a text line, as in `Yes. Sent from my iPhone`. The function
 * finds the device line after the end of a sentence, or at a word with a capital letter.
 */
function withoutDevice(text: string): string {
  const end = /(?<=[.!?。！？…]\s)[^.!?。！？…]{8,60}$/u.exec(text)
  if (end && isDeviceLine(end[0].trim())) return text.slice(0, end.index)
  const from = Math.max(0, text.length - MAX_DEVICE_LENGTH)
  for (const { index } of text.slice(from).matchAll(/(?<=\p{L}\s)\p{Lu}\p{Ll}+\s/gu))
    if (isDeviceLine(text.slice(from + index).trim())) return text.slice(0, from + index)
  return text
}

/**
 * Finds an attribution (`On …, Bob wrote:`) in a line that also holds the quoted text, and maybe the new text before
 * it. Relays and some phones join these texts into one line. An attribution inside such a line must have a date, a
 * time, an address in brackets and a verb.
 * @returns the new text before the attribution, or undefined if the line contains no attribution.
 */
export function attributionWithin(line: string): string | undefined {
  const text = line.slice(0, MAX_JOINED_LENGTH)
  const addresses = text.matchAll(new RegExp(BRACKETED, 'g')).take(MAX_ADDRESSES)
  for (const { index, 0: address } of addresses) {
    const after = index + address.length
    const colon = text.slice(after, after + 40).search(/[:：](?:\s|$)/)
    if (colon < 0) continue
    const near = Math.max(0, index - MAX_MARKER_LENGTH)
    const head = text.slice(near, after + colon + 1)
    const own = attributionStart(head)
    const before = head.slice(0, own)
    const isEnded =
      QUOTE_MARK.test(before) || /[.!?。！？…)\]"”»\p{So}]\s*$/u.test(withoutDevice(before))
    const start = isEnded ? own : 0
    const attribution = head.slice(start).trim()
    if (!LEAD_IN.test(attribution) || !DATE.test(attribution) || !TIME.test(attribution)) continue
    if (findVerb(attribution) === 'none' || LOG_LEVEL.test(attribution)) continue
    return withoutDevice(text.slice(0, near + start).replace(QUOTE_MARK, '')).trim()
  }
  return undefined
}
