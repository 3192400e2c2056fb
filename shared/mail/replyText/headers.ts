/**
 * Recognises the headers (`From:`, `Sent:`) that a mail program writes above a quoted message, on separate lines or on
 * one line. Every test reads either one line of limited length, or a few neighbouring lines.
 */
import { EMAIL, fold, isRule, MAX_MARKER_LENGTH, TIME } from './markers.ts'
import { HEADER_LABELS, type HeaderKind } from './words.ts'

/**
 * Sets the maximum number of lines of a header block above a quoted message. The limit leaves room for five headers
 * with wrapped recipients.
 */
export const MAX_HEADER_LINES = 14
/**
 * Sets the maximum number of characters of a header label such as `From`, because no label in the word lists is longer.
 */
const MAX_LABEL_LENGTH = 20
const MAX_LABELS = 12
/**
 * Sets the maximum number of characters of a date in a header block, such as `Sent: Wednesday, 30 September 2026
 * 09:14`.
 */
const MAX_DATE_LENGTH = 60
/** Matches a line of the form `label: value`. A header label has only a few words. */
const LABELLED = /^[*_]{0,2}(?:[^\s:：]{1,20} ){0,2}[^\s:：]{1,20}\s?[:：][*_]{0,2}(?:\s|$)/u
const SENDER = /^[^:：@]{1,40}[:：][^:：<>@]{1,80}<[^\s<>@]+@[^\s<>@]+>$/u

/** Returns the header kind of a line, for example `from` for `*Von:* Bob`. */
export function headerKind(view: string): HeaderKind | undefined {
  const colon = view.slice(0, 32).search(/[:：]/)
  if (colon < 1) return undefined
  return HEADER_LABELS.get(fold(view.slice(0, colon).replace(/[*_|]/g, '').trim()))
}

type Label = { kind: HeaderKind; index: number }

/**
 * Tells whether a header label such as `Sent:` begins at this index of a line. A label normally begins at the beginning
 * of a word. A label may also follow the value of the previous header without a space, as in `AnnSent: 9:14To: Tom`. In
 * this case, the label must begin with a capital letter, or with a letter of a script without capitals.
 */
function beginsLabel(text: string, index: number): boolean {
  if (index === 0 || !/[\p{L}\p{M}]/u.test(text[index - 1]!)) return true
  return /^(?:\p{Lo}|\p{Lu}(?:\p{Ll}|\s?[:：]))/u.test(text.slice(index, index + 4))
}

/** Returns the listed header labels of a text, in their order. */
function labelsWithin(text: string): Label[] {
  const labels: Label[] = []
  let from = 0
  for (const { index: colon } of text.matchAll(/[:：]/g)) {
    const end = text[colon - 1] === ' ' ? colon - 1 : colon
    const start = Math.max(from, end - MAX_LABEL_LENGTH)
    from = colon + 1
    if (!/[\p{L}\p{M}]/u.test(text[end - 1] ?? '')) continue
    for (let index = start; index < end; index++) {
      const kind = HEADER_LABELS.get(fold(text.slice(index, end)))
      if (kind === undefined || !beginsLabel(text, index)) continue
      labels.push({ kind, index })
      break
    }
    if (labels.length === MAX_LABELS) break
  }
  return labels
}

/**
 * Tells whether a text has header labels for the sender, for the date, and for the recipient or subject. The labels
 * `From:`, `To:` and `Date:` alone are not enough, because a travel ticket has the same labels.
 */
function isHeaderRun(text: string, labels: readonly Label[]): boolean {
  const kinds = new Set(labels.slice(0, 5).map(({ kind }) => kind))
  const date = labels.find(({ kind }) => kind === 'sent' || kind === 'date')
  if (!kinds.has('from') || date === undefined) return false
  if (!/\p{Nd}/u.test(text.slice(date.index, date.index + MAX_DATE_LENGTH))) return false
  if (kinds.has('subject')) return true
  return kinds.has('to') && EMAIL.test(text)
}

/**
 * Recognises the headers of a quoted message if all of them stand on one line. NetEase writes them without colons (`发件人
 * 李<…> 发送日期 … 收件人 …`). A conversion of HTML to text may drop the line ends between headers.
 */
function isOneLineHeader(view: string): boolean {
  if (/^(?:发件人|寄件者|寄件人)[\s:：]/.test(view) && EMAIL.test(view))
    return /收件|发送|寄件日期/.test(view)
  if (headerKind(view) === undefined) return false
  return isHeaderRun(view, labelsWithin(view))
}

/**
 * Finds the headers of a quoted message that begin on the same line as the new text. Further headers may stand on the
 * same line or on the lines below.
 * @param line is the line to search. The caller has already cut the line to 4,000 characters.
 * @param below holds the following lines, without quote marks and decoration.
 * @returns the index of the first header in the line, or undefined if no headers begin there.
 */
export function headersWithin(line: string, below: readonly string[]): number | undefined {
  if (headerKind(line) !== undefined) return undefined
  const text = line.slice(0, 10 * MAX_MARKER_LENGTH)
  const labels = labelsWithin(text)
  const goesOn = headerKind(below[0] ?? '') !== undefined
  for (const [at, { kind, index }] of labels.entries()) {
    if (index === 0 || (kind !== 'from' && kind !== 'date' && kind !== 'sent')) continue
    const head = text.slice(index, index + MAX_MARKER_LENGTH)
    const rest = labels.slice(at)
    const full = rest.some((label) => label.kind === 'subject') && EMAIL.test(head)
    if (full && isHeaderRun(text, rest)) return index
    if (goesOn && isHeaderBlock([head, ...below], 0)) return index
  }
  return undefined
}

/**
 * Tells whether the headers of a quoted message (Outlook and others) begin on the line `index`. Many header labels are
 * everyday words (`Da:`, `Van:`, `To:`), so one label alone proves nothing. The labels `From:` and `To:` with only a
 * date may also describe a journey.
 */
export function isHeaderBlock(views: readonly string[], index: number): boolean {
  if (views[index] === undefined) return false
  if (isOneLineHeader(views[index])) return true
  if (isUnlistedHeader(views, index) || isNotesHeader(views, index)) return true
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
    if (kind === 'from' && (kinds.has(kind) || isNewBlock(views, i, index))) break
    kinds.add(kind)
    for (const label of labelsWithin(views[i]!)) kinds.add(label.kind)
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
  // A block of header labels without a date counts only if it names no recipient. With a recipient, it may be the
  // writer's own instruction to send a mail.
  return above === '' && !kinds.has('to') && /<[^\s<>@]+@[^\s<>@]+>$/.test(views[index])
}

/**
 * Tells whether a new block of headers begins on a line. At least two header lines below a blank line form a new block.
 * A single line such as `To: be decided` may continue the text above.
 */
function isNewBlock(views: readonly string[], index: number, from: number): boolean {
  return index > from && views[index - 1] === '' && headerKind(views[index + 1] ?? '') !== undefined
}

/** Sets the maximum number of lines of a header block in a language without a word list. */
const MAX_UNLISTED_LINES = 8

/**
 * Recognises the header block of a quoted message in a language without a word list. Such a block has at least three
 * lines of the form `label: value`. Its first line holds `Name <address>`, and another line holds a date and a time.
 * The sender's own text must stand above it, because the answers to a web form also begin with `label: value` lines.
 */
function isUnlistedHeader(views: readonly string[], index: number): boolean {
  if (index < 2 || !SENDER.test(views[index]!)) return false
  const above = views[index - 1]!
  if (above !== '' && !isRule(above)) return false
  let count = 0
  let dated = false
  for (const view of views.slice(index, index + MAX_UNLISTED_LINES + 1)) {
    if (!LABELLED.test(view)) break
    if (++count > MAX_UNLISTED_LINES) return false
    dated ||= TIME.test(view) && /\p{Nd}{4}/u.test(view)
  }
  return dated && count >= 3
}

/** Matches a name in HCL Notes, such as `Ann Doe/HQ/ACME`. */
const NOTES_NAME = /^\p{Lu}[^\s/:@]*(?: [^\s/:@]+){0,4}(?:\/[^\s/:@]+){1,4}(?:@\S+)?$/u
/** Sets the maximum number of lines of a header block of HCL Notes, including the blank lines between the headers. */
const MAX_NOTES_LINES = 16

/**
 * Recognises the header block of HCL Notes: a name with its organization, a date and a time, and the labels for
 * recipient and subject on separate lines.
 */
function isNotesHeader(views: readonly string[], index: number): boolean {
  if (!NOTES_NAME.test(views[index]!)) return false
  const below = views.slice(index + 1, index + MAX_NOTES_LINES).filter((view) => view !== '')
  if (!TIME.test(below[0] ?? '') || !/\p{Nd}{4}/u.test(below[0]!)) return false
  const kinds = new Set(below.map((view) => HEADER_LABELS.get(fold(view))))
  return kinds.has('to') && kinds.has('subject')
}
