/**
 * Recognises header blocks, separators, forwards and bounces. Every test reads one line of at most
 * MAX_MARKER_LENGTH characters or a window of a few lines: the time is linear in the mail's size.
 */
import {
  BOUNCE_STARTS,
  FORWARDED_RUNS,
  HEADER_LABELS,
  type HeaderKind,
  MESSAGE_RUNS,
  ORIGINAL_RUNS,
} from './replyTextWords.ts'

/** Characters; a longer line is prose. Attributions with a mailto link reach about 300. */
export const MAX_MARKER_LENGTH = 400
/** Lines: five headers with wrapped recipients. */
const MAX_HEADER_LINES = 14

const RULE = /^(?:[-_=*~#—–―─━]\s?){2,}$/
export const EMAIL = /[^\s<>@]@[^\s<>@]/
export const TIME = /\p{Nd}{1,2}\s?[:.h時시点點]\s?\p{Nd}{2}|\p{Nd}\s?(?:AM|PM|Uhr|時|시|点)/iu
const DASHED =
  /^(?:[-–—]{2,}|[_=*]{5,})\s*([^-–—_=*](?:.{0,60}[^-–—_=*])?)\s*(?:[-–—]{2,}|[_=*]{5,}):?$/
const FORWARD_SUBJECT = /^(?:fwd?|wg|tr|rv)\s?:\s?\S/i
/** `label: value`; a label has few words. */
const LABELLED = /^[*_]{0,2}(?:[^\s:：]{1,20} ){0,2}[^\s:：]{1,20}\s?[:：][*_]{0,2}(?:\s|$)/u
const SENDER = /^[^:：@]{1,40}[:：][^:：<>@]{1,80}<[^\s<>@]+@[^\s<>@]+>$/u

/** A line of dashes, underscores, stars, hashes or equal signs. */
export function isRule(view: string): boolean {
  return RULE.test(view)
}

/**
 * Normalises a line for the tests below: trimmed, direction marks removed, exotic spaces and escaped
 * angle brackets (Zoho) plain. A line too long for a marker becomes `>` or `…`.
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

/** Lower case. toLowerCase() leaves a combining dot on the Turkish `İ`. */
export function fold(text: string): string {
  const lower = text.toLowerCase()
  return lower.includes('\u0307') ? lower.replaceAll('i\u0307', 'i') : lower
}

/** One expression for a list of phrases: this runs for each line of each mail. A search phrase by phrase takes six times as long. */
export const oneOf = (phrases: readonly string[]): string =>
  `(?:${phrases.map((phrase) => phrase.replace(/[.*+?^$(){}|[\]\\]/g, '\\$&')).join('|')})`
const BOUNCE_LINE = new RegExp(`^(?:${oneOf(BOUNCE_STARTS)}|status: [45]\\.\\d)`, 'i')

/** `text` without the dashes, stars and underscores that clients and Markdown set around it. */
export function trimDecoration(text: string): string {
  let start = 0
  let end = text.length
  while (start < end && '-*_ '.includes(text[start]!)) start++
  while (end > start && '-*_ '.includes(text[end - 1]!)) end--
  return text.slice(start, end)
}

/** The header kind of a line: `from` for `*Von:* Bob`. */
export function headerKind(view: string): HeaderKind | undefined {
  const colon = view.slice(0, 32).search(/[:：]/)
  if (colon < 1) return undefined
  return HEADER_LABELS.get(fold(view.slice(0, colon).replace(/[*_|]/g, '').trim()))
}

/**
 * All headers on one line. NetEase omits the colons (`发件人 李<…> 发送日期 … 收件人 …`); flattened HTML
 * omits the line ends.
 */
function isOneLineHeader(view: string): boolean {
  if (/^(?:发件人|寄件者|寄件人)[\s:：]/.test(view) && EMAIL.test(view))
    return /收件|发送|寄件日期/.test(view)
  if (!/[:：]/.test(view)) return false
  const labels = view.match(/[\p{L}]{1,14}(?=\s?[:：](?:\s|\*))/gu) ?? []
  const kinds = labels.map((label) => HEADER_LABELS.get(fold(label)))
  if (kinds[0] !== 'from' || !(kinds.includes('sent') || kinds.includes('date'))) return false
  return kinds.includes('subject') || kinds.includes('to')
}

/**
 * Headers joined to one line behind the new text. Undefined unless sender, address, date and recipient or subject follow
 * each other.
 * @returns the text before them
 */
export function headersWithin(line: string): string | undefined {
  const text = line.slice(0, 10 * MAX_MARKER_LENGTH)
  const labels = [...text.matchAll(/(?<=[\s*])\p{L}{1,14}(?=\s?[:：](?:\s|\*))/gu)]
  const kinds = labels.map(([label]) => HEADER_LABELS.get(fold(label)))
  const from = kinds.findIndex((kind, index) => {
    const next = kinds.slice(index + 1, index + 5)
    if (kind !== 'from' || !(next.includes('sent') || next.includes('date'))) return false
    return next.includes('to') && next.includes('subject')
  })
  const index = labels[from]?.index
  if (index === undefined || !EMAIL.test(text.slice(index, index + MAX_MARKER_LENGTH)))
    return undefined
  return text.slice(0, index).replace(/[\s*]+$/, '')
}

/**
 * Whether the lines from `index` on are the headers of a quoted message (Outlook and others). Many
 * labels are everyday words (`Da:`, `Van:`, `To:`): one label needs others beside it. `From:` and
 * `To:` with only a date may be a journey.
 */
export function isHeaderBlock(views: readonly string[], index: number): boolean {
  if (views[index] === undefined) return false
  if (isOneLineHeader(views[index])) return true
  if (isUnlistedHeader(views, index)) return true
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
  const dated = kinds.has('sent') || kinds.has('date')
  const above = views[index - 1] ?? ''
  if (dated || isRule(above) || (above === '' && isRule(views[index - 2] ?? ''))) {
    const many = kinds.size >= 3 && (kinds.has('subject') || kinds.has('sent'))
    return many || (kinds.size >= 2 && email)
  }
  // Without a date it may be a request to write a mail, unless it names only a sender.
  return above === '' && !kinds.has('to') && /<[^\s<>@]+@[^\s<>@]+>$/.test(views[index])
}

/**
 * Headers in a language without a list: three lines `label: value` or more, first `Name <address>`, one with date and
 * time. Own text stands above: a form begins its mail.
 */
function isUnlistedHeader(views: readonly string[], index: number): boolean {
  if (index < 2 || !SENDER.test(views[index]!)) return false
  const above = views[index - 1]!
  if (above !== '' && !isRule(above)) return false
  let count = 0
  let dated = false
  for (let i = index; i < views.length && LABELLED.test(views[i]!); i++) {
    if (++count > 8) return false
    dated ||= TIME.test(views[i]!) && /\p{Nd}{4}/u.test(views[i]!)
  }
  return dated && count >= 3
}

/** The kind of message that a line such as `-----Original Message-----` announces. */
export function announcedMessage(view: string): 'original' | 'forwarded' | undefined {
  const bare = view.startsWith('*-') && view.endsWith('-*') ? view.slice(1, -1) : view
  const dashed = DASHED.exec(bare)?.[1]
  const inner = dashed ?? (/[:：]$/.test(view) && view.length <= 60 ? view : '')
  if (inner === '' || inner.split(' ').length > 7) return undefined
  const lower = fold(inner)
  const forwarded = FORWARDED_RUNS.some((run) => lower.includes(run))
  const message = MESSAGE_RUNS.some((run) => lower.includes(run))
  if (dashed === undefined) return forwarded && message ? 'forwarded' : undefined
  if (forwarded) return 'forwarded'
  return message ? 'original' : undefined
}

/** A title without dashes above the headers, such as `Original Message:`. */
export function isOriginalTitle(view: string): boolean {
  if (view.length > 40 || view.split(' ').length > 3 || /[.!?]$/.test(view)) return false
  const lower = fold(view)
  return (
    ORIGINAL_RUNS.some((run) => lower.includes(run)) &&
    MESSAGE_RUNS.some((run) => lower.includes(run))
  )
}

/** `Fwd: …` as the first line of a pasted forward. */
export function isForwardSubject(view: string): boolean {
  return FORWARD_SUBJECT.test(view)
}

/**
 * GroupWise (`>>> Bob <…> 1/2/2024 10:00 AM >>>`), Tobit david, Gmail's print view, and
 * ticket systems (`## reply above this line ##`).
 */
export function isVendorSeparator(view: string): boolean {
  if (/^original message processed by |^\[quoted text hidden\]$/i.test(view)) return true
  if (view.startsWith('>>>')) return view.endsWith('>>>') && TIME.test(view) && view.length > 12
  return /^[-#=*_\s[(]{1,12}.{0,40}(?:reply|respond|write|type).{0,24} above this line/i.test(view)
}

/** A line of a delivery report (RFC 3464, Exchange, Postfix, Exim, qmail). */
export function isBounceLine(view: string): boolean {
  return BOUNCE_LINE.test(view)
}
