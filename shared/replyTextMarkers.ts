/**
 * Recognises the lines that mail clients put around quoted text and signatures. Every test runs on
 * one line of at most MAX_MARKER_LENGTH characters, or on a window of a few of them, so that the
 * cost of a mail stays linear in its size.
 */
import {
  BOUNCE_STARTS,
  DEVICE_WORDS,
  FORWARDED_RUNS,
  HEADER_LABELS,
  type HeaderKind,
  MESSAGE_RUNS,
  QUOTING_STARTS,
  SENT_ENDS,
  SENT_STARTS,
  WROTE_RUNS,
  WROTE_WORDS,
} from './replyTextWords.ts'

/** Characters; a longer line is prose. Attributions with a mailto link reach about 300. */
const MAX_MARKER_LENGTH = 400
/** Lines; a name, a mailto link and the verb, each wrapped once. */
const MAX_ATTRIBUTION_LINES = 6
/** Lines; five headers with wrapped recipients. */
const MAX_HEADER_LINES = 14

const RULE = /^(?:[-_=*~#—–―─━]\s?){2,}$/
const EMAIL = /[^\s<>@]@[^\s<>@]/
const EMAIL_AT_END = /@[^\s<>@]+[\])>"'\s]*[:：]$/
const TIME = /\p{Nd}{1,2}\s?[:.h時시点點]\s?\p{Nd}{2}|\p{Nd}\s?(?:AM|PM|Uhr|時|시|点)/iu
const DATE = /\p{Nd}{4}|\p{Nd}[./-]\p{Nd}/u
const LEAD_IN = /^[("'*\s]*(?:[^\s\p{Nd}]{1,14}\s+){0,4}\p{Nd}/u
const MIDLINE_LEAD_IN =
  /\s(?:On|Am|Le|El|Il|Op|Em|Den|W dniu|Dne|Dnia)\s(?:\p{L}{2,12}[.,]{0,2}\s){0,2}\p{Nd}{1,4}[\s.,/-]/u
const SPLIT_VERB = /^>\s*\p{L}+(?:\s\p{L}+)?\s*:$/u
const DASHED =
  /^(?:[-–—]{2,}|[_=*]{5,})\s*([^-–—_=*](?:.{0,60}[^-–—_=*])?)\s*(?:[-–—]{2,}|[_=*]{5,}):?$/
/** Devices nobody listed, and lines without a verb: `Sent from my TI-85`, `Bob via mobile`. */
const ANY_DEVICE =
  /^(?:sent|typed|written) (?:from|on|via) my (?:\S+ ?){1,3}$|^(?:[\p{L}.]+ ){1,2}(?:from|via) (?:mobile|phone|iphone|ipad)$|^from my (?:mobile|phone|iphone|ipad|cell)(?: \S+)?$/u
const FORWARD_SUBJECT = /^(?:fwd?|wg|tr|rv)\s?:\s?\S/i
const ENHANCED_STATUS = /^status: [45]\.\d/

/** A line of nothing but dashes, underscores, stars, hashes or equal signs. */
export function isRule(view: string): boolean {
  return RULE.test(view)
}

/**
 * `line` as the tests below want it: trimmed, direction marks gone, exotic spaces and escaped angle
 * brackets (Zoho) plain. A line too long for a marker becomes `>` or `…`.
 */
export function lineView(line: string): string {
  const trimmed = line.trim()
  if (trimmed.length > MAX_MARKER_LENGTH) return trimmed.startsWith('>') ? '>' : '…'
  if (!/[^\x20-\x7e]|=E2=80=AF|&[lg]t;/.test(trimmed)) return trimmed
  return trimmed
    .normalize('NFC')
    .replace(/[\u00ad\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g, '')
    .replace(/\s|=E2=80=AF/g, ' ')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .trim()
}

function trimDecoration(text: string): string {
  let start = 0
  let end = text.length
  while (start < end && '-*_ '.includes(text[start]!)) start++
  while (end > start && '-*_ '.includes(text[end - 1]!)) end--
  return text.slice(start, end)
}

/** Whether a verb of writing occurs, and whether it ends the line. */
function findVerb(text: string): 'none' | 'within' | 'last' {
  const lower = text.toLowerCase()
  const run = WROTE_RUNS.find((candidate) => lower.includes(candidate))
  if (run !== undefined) return 'last'
  const tokens = lower.split(/[^\p{L}]+/u).filter(Boolean)
  const index = tokens.findLastIndex((token) => WROTE_WORDS.has(token))
  if (index < 0) return 'none'
  // Two letters of grace for gendered endings: napisał(a), написал(а), כתב/ה.
  const rest = tokens.slice(index + 1)
  return rest.every((token) => token.length <= 2) && rest.length <= 1 ? 'last' : 'within'
}

/** What comes after a possible attribution; a quote or header block backs up a weak one. */
export type Following = 'quote' | 'header' | 'other'

function isAttribution(joined: string, following: Following): boolean {
  const text = trimDecoration(joined)
  const dashed = joined.startsWith('--') && joined.endsWith('--')
  const closed = text.endsWith(':') || text.endsWith('：') || dashed
  if (!closed && following === 'other') return false
  const hasEmail = EMAIL.test(text)
  const hasTime = TIME.test(text)
  const numbers = text.match(/\p{Nd}+/gu)?.length ?? 0
  const verb = findVerb(text)
  if (verb !== 'none') {
    if (!closed) return hasTime && LEAD_IN.test(text)
    if (dashed) return true
    if (following === 'quote' && text.length <= 80) return true
    if (!hasEmail && numbers < 2) return false
    return verb === 'last' || hasTime || numbers > 2 || EMAIL_AT_END.test(text)
  }
  // Gmail up to 2013: `2013/7/20 Bob <bob@x.test>`, no verb, no colon.
  if (!closed) return LEAD_IN.test(text) && numbers > 2 && text.endsWith('>') && hasEmail
  const lower = text.toLowerCase()
  if (QUOTING_STARTS.some((start) => lower.startsWith(start))) {
    return hasEmail || following === 'quote'
  }
  // Gmail in Japanese and Hebrew, Yandex, old Gmail: a date, a time, an address, no verb.
  return hasTime && numbers > 2 && EMAIL_AT_END.test(text)
}

function endsSentence(view: string): boolean {
  return /[!?]$/.test(view) || /\p{L}{5,}[.。]$/u.test(view)
}

/** QP soft breaks survive in mails that were pasted undecoded: `w=` + `rote:`. */
function join(upper: string, lower: string): string {
  return upper.endsWith('=') ? upper.slice(0, -1) + lower : `${upper} ${lower}`
}

/**
 * The attribution whose last line is `end`, or undefined. It may be wrapped: its first line is
 * looked for upwards, not above `from`.
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
  if (!/[:：\-*_]$/.test(last) && following === 'other') return undefined
  let joined = splitByBlanks ? last.slice(1).trim() : last
  let best = -1
  for (let start = end; start >= from && end - start < MAX_ATTRIBUTION_LINES; start--) {
    const view = views[start]!
    if (start < end) {
      if (view === '' && splitByBlanks) continue
      if (view === '' || view.startsWith('>') || endsSentence(view)) break
      joined = join(view, joined)
      if (joined.length > MAX_MARKER_LENGTH * 1.5) break
    }
    if (splitByBlanks && start === end) continue
    const complete = joined.indexOf('>') < 0 || joined.indexOf('<') < joined.indexOf('>')
    const dated = LEAD_IN.test(view) && (TIME.test(view) || DATE.test(view))
    if (best >= 0 && !dated) {
      continue
    }
    if (!isAttribution(joined, following)) continue
    if (dated) return { start, prefix: ownPrefix(view) }
    if (!splitByBlanks && (complete || best < 0)) best = start
  }
  return best < 0 ? undefined : { start: best, prefix: ownPrefix(views[best]!) }
}

/** `reply On Wed, Apr 4, 2012 …, bob@example.com wrote:` begins with own text. */
function ownPrefix(view: string): string {
  const index = view.search(MIDLINE_LEAD_IN)
  const prefix = index > 0 ? view.slice(0, index).trim() : ''
  if (
    !/[\p{L}\p{N}]/u.test(prefix) ||
    prefix.includes('@') ||
    /^\p{L}{0,3}$/u.test(prefix) ||
    isDeviceLine(prefix)
  )
    return ''
  return prefix
}

/** The kind of header `view` is, such as `from` for `*Von:* Bob`. */
export function headerKind(view: string): HeaderKind | undefined {
  const colon = view.slice(0, 32).search(/[:：]/)
  if (colon < 1) return undefined
  return HEADER_LABELS.get(view.slice(0, colon).replace(/[*_|]/g, '').trim().toLowerCase())
}

/** NetEase writes all headers on one line, without colons: `发件人 李<…> 发送日期 … 收件人 …`. */
function isOneLineHeader(view: string): boolean {
  return (
    /^(?:发件人|寄件者|寄件人)[\s:：]/.test(view) &&
    EMAIL.test(view) &&
    /收件|发送|寄件日期/.test(view)
  )
}

/**
 * Whether the lines from `index` on are the headers of a quoted message (Outlook and its kin). Many
 * labels are everyday words (`Da:`, `Van:`, `To:`), so each must be backed up by others; `From:` and
 * `To:` with a date alone may be a journey.
 */
export function isHeaderBlock(views: readonly string[], index: number): boolean {
  if (views[index] === undefined) return false
  if (isOneLineHeader(views[index])) return true
  if (headerKind(views[index]) === undefined) return false
  const kinds = new Set<HeaderKind>()
  let gap = 0
  let email = false
  const end = Math.min(views.length, index + MAX_HEADER_LINES)
  for (let i = index; i < end && gap <= 2; i++) {
    const kind = headerKind(views[i]!)
    if (kind === undefined) {
      gap++
      continue
    }
    if (kinds.has(kind) && kind === 'from') break
    kinds.add(kind)
    gap = 0
    email ||= EMAIL.test(views[i]!)
  }
  if (!kinds.has('from')) return false
  if (kinds.size >= 2 && email) return true
  if (kinds.size >= 3) return kinds.has('subject') || kinds.has('sent')
  const bracketed = /^[^:：]{1,24}[:：]\**\s*[^<]{0,100}<[^\s<>@]+@[^\s<>@]+>$/.test(views[index]!)
  return bracketed && (index === 0 || views[index - 1] === '' || isRule(views[index - 1]!))
}

/** What a line such as `-----Original Message-----` announces. */
export function announcedMessage(view: string): 'original' | 'forwarded' | undefined {
  const bare = view.startsWith('*-') && view.endsWith('-*') ? view.slice(1, -1) : view
  const dashed = DASHED.exec(bare)?.[1]
  const inner = dashed ?? (/[:：]$/.test(view) && view.length <= 60 ? view : '')
  if (inner === '' || inner.split(' ').length > 7) return undefined
  const lower = inner.toLowerCase()
  const forwarded = FORWARDED_RUNS.some((run) => lower.includes(run))
  const message = MESSAGE_RUNS.some((run) => lower.includes(run))
  if (dashed === undefined) return forwarded && message ? 'forwarded' : undefined
  if (forwarded) return 'forwarded'
  return message ? 'original' : undefined
}

/** `Fwd: …` as the first line of a pasted forward. */
export function isForwardSubject(view: string): boolean {
  return FORWARD_SUBJECT.test(view)
}

/** GroupWise (`>>> Bob <…> 1/2/2024 10:00 AM >>>`), Tobit david and ticket systems (`## reply above this line ##`). */
export function isVendorSeparator(view: string): boolean {
  if (/^original message processed by /i.test(view)) return true
  if (view.startsWith('>>>')) return view.endsWith('>>>') && TIME.test(view) && view.length > 12
  return /^[-#=*_\s[(]{1,12}.{0,40}(?:reply|respond|write|type).{0,24} above this line/i.test(view)
}

/** A line of a delivery report (RFC 3464, Exchange, Postfix, Exim, qmail). */
export function isBounceLine(view: string): boolean {
  const lower = view.toLowerCase()
  return ENHANCED_STATUS.test(lower) || BOUNCE_STARTS.some((start) => lower.startsWith(start))
}

/** "Sent from my iPhone", "Get Outlook for Android" and their kin in other languages. */
export function isDeviceLine(view: string): boolean {
  if (view.length > 200) return false
  const text = trimDecoration(view.replace(/<[^<>\s]{4,}>|\]?\(?https?:\S+/g, ''))
  const lower = text
    .replace(/^[<([«]{1,2}|[>)\].!。»\s]{1,4}$/g, '')
    .trim()
    .toLowerCase()
  const words = lower.split(' ')
  if (lower.length > 120 || words.length > 14 || /[?:]$/.test(lower)) return false
  if (/outlook/.test(lower) && /ios|android|iphone/.test(lower) && words.length <= 7) return true
  if (words.length <= 7 && ANY_DEVICE.test(lower)) return true
  // A device named late in the line belongs to a sentence: "Sent from my desk, easier than a phone".
  const opening = words.slice(0, 8).join(' ').slice(0, 60)
  if (SENT_STARTS.some((start) => lower.startsWith(start))) {
    return DEVICE_WORDS.some((word) => opening.includes(word))
  }
  const ends = words.length <= 9 && SENT_ENDS.some((end) => lower.endsWith(end))
  return ends && DEVICE_WORDS.some((word) => lower.includes(word))
}
