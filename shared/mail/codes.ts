/**
 * Finds one-time codes in a mail. A number is a code when the mail calls it one: in its sentence, or on the lines above a
 * number that stands alone. The nearest label decides: `order 482913` is none. Bounded: it reads the first characters of
 * each part, and a few dozen candidates.
 */
import { type Candidate, type CodeKind, candidatesOf, plainForm } from './codeShapes.ts'
import {
  type Label,
  type LabelKind,
  labelsOf,
  namesCode,
  namesMeeting,
  namesTrade,
  saysUse,
} from './codeWords.ts'

/** Where a code stands. */
type CodePart = 'subject' | 'text' | 'html'

/** A one-time code as the API answers it (docs/contract.md §4). */
export type Code = {
  kind: CodeKind
  /** The value to enter. */
  value: string
  /** 0 to 1. */
  confidence: number
  part: CodePart
  /** The line that holds it. */
  line: string
}

/** Characters that are read of each part: a code stands near the top. */
const CODE_SCAN_CHARS = 20_000
const LINES_MAX = 400
const LINE_MAX_CHARS = 400
const CONTEXT_MAX_CHARS = 200
/** Lines with candidates that are judged. */
const JUDGED_MAX = 60
export const CODES_MAX = 10
const SHOWN_LINE_CHARS = 160

/** A code that is announced beats one that is only likely. */
const SURE = 0.9
const LIKELY = 0.7

type Mail = { subject: string; text: string; html: string | null }

/**
 * The one-time codes of a mail, the most certain first.
 * @param mail `html`: the text of the visible HTML; null: none, or `text` is that text.
 * @returns at most {@link CODES_MAX}, each value once.
 * @example findCodes({ subject: 'Sign in', text: 'Your code is 482 913.', html: null })[0].value // '482913'
 */
export function findCodes({ subject, text, html }: Mail): Code[] {
  const subjectLine = plainForm(subject.slice(0, LINE_MAX_CHARS))
  const found = new Map<string, Code>()
  const take = (part: CodePart, codes: readonly Judged[]) => {
    for (const { candidate, confidence, line } of codes) {
      const known = found.get(candidate.value)
      if (known !== undefined && known.confidence >= confidence) continue
      const { kind, value } = candidate
      found.set(value, {
        kind,
        value,
        confidence,
        part,
        line: line.trim().slice(0, SHOWN_LINE_CHARS).toWellFormed(),
      })
    }
  }
  take('subject', judgeLines([subjectLine], ''))
  take('text', judgeLines(linesOf(text), subjectLine))
  if (html !== null) take('html', judgeLines(linesOf(html), subjectLine))
  const codes = [...found.values()].sort((one, other) => other.confidence - one.confidence)
  const isSure = (codes[0]?.confidence ?? 0) >= SURE
  return codes.filter(({ confidence }) => !isSure || confidence >= LIKELY).slice(0, CODES_MAX)
}

/** Lines with letters or digits; characters that stand one a line are joined. */
function linesOf(text: string): string[] {
  const plain = plainForm(text.slice(0, CODE_SCAN_CHARS))
    // Addresses hold numbers of their own.
    .replace(/\bhttps?:\/\/[^\s\]>)]*/g, ' ')
    .replace(/\[ *\]/g, ' ')
    .replace(/\*{1,2}([^\s*]{1,30})\*{1,2}/g, ' $1 ')
  const lines: string[] = []
  let singles: string[] = []
  const flush = () => {
    if (singles.length > 0) lines.push(singles.join(' '))
    singles = []
  }
  for (const raw of plain.split('\n', LINES_MAX)) {
    const line = raw.slice(0, LINE_MAX_CHARS).trim()
    if (/^[0-9A-Z]$/.test(line)) {
      singles.push(line)
      continue
    }
    if (!/[\p{L}\p{N}]/u.test(line)) continue
    flush()
    lines.push(line)
  }
  flush()
  return lines
}

/** Each candidate holds one of these. Few lines do: the words around them are not read. */
const MAY_HOLD = /\d|[A-Z](?:[A-Z-]| {1,3}[A-Z])|[a-z]-[a-z]{3,10}-[a-z]/

type Judged = { candidate: Candidate; confidence: number; line: string }

function judgeLines(lines: readonly string[], subject: string): Judged[] {
  const judged: Judged[] = []
  let looked = 0
  const named: boolean[] = []
  const isSubjectNamed = namesCode(subject)
  const isNamed = (n: number): boolean => {
    const line = lines[n]
    if (line === undefined) return false
    named[n] ??= namesCode(line)
    return named[n]
  }
  /** Whether the line has a candidate's letters, and words beside them that announce a code. */
  const isPossible = (n: number): boolean =>
    MAY_HOLD.test(lines[n]!) &&
    (isSubjectNamed ||
      isNamed(n - 2) ||
      isNamed(n - 1) ||
      isNamed(n) ||
      (/\d/.test(lines[n]!) && saysUse(lines[n]!)))
  for (const [n, line] of lines.entries()) {
    if (!isPossible(n)) continue
    const candidates = candidatesOf(line)
    if (candidates.length === 0) continue
    if (++looked > JUDGED_MAX) break
    for (const candidate of candidates) {
      const rest = line.slice(0, candidate.start) + line.slice(candidate.end)
      const isAlone = !/[\p{L}\p{N}]/u.test(rest)
      const isNear = isNamed(n - 1) || (isAlone ? isNamed(n - 2) || isSubjectNamed : isNamed(n))
      if (!isNear && (isAlone || !saysUse(line))) continue
      // A voucher or a booking has letters; a number beside a purchase may well be its code.
      const around = `${lines[n - 1] ?? ''} ${line} ${lines[n + 1] ?? ''}`
      if (candidate.kind === 'alphanumeric' && namesTrade(around)) continue
      if (namesMeeting(around)) continue
      const confidence = isAlone
        ? judgeAlone(candidate, lines, n, subject)
        : judgeInline(candidate, line, lines[n - 1] ?? '', subject)
      if (confidence > 0) judged.push({ candidate, confidence, line })
    }
  }
  return judged
}

/** How sure the label makes a candidate beside it. */
const SURENESS: Record<LabelKind, number> = { certain: 0.98, code: 0.92, access: 0, other: 0 }

/** A weak shape is less sure. */
const weigh = ({ isWeak }: Candidate, kind: LabelKind | undefined): number => {
  if (kind === undefined) return 0
  return isWeak && kind === 'code' ? 0.75 : SURENESS[kind]
}

/** `access` says nothing of the number. */
const names = (kind: LabelKind): boolean => kind !== 'access'

const lastLabel = (text: string): LabelKind | undefined =>
  labelsOf(text.slice(-CONTEXT_MAX_CHARS)).findLast(({ kind }) => names(kind))?.kind

/** A candidate alone on its line: the nearest line above with a label decides, else the subject. */
function judgeAlone(
  candidate: Candidate,
  lines: readonly string[],
  at: number,
  subject: string,
): number {
  for (let n = at - 1; n >= Math.max(0, at - 2); n--) {
    const kind = lastLabel(lines[n]!)
    if (kind !== undefined) return weigh(candidate, kind)
  }
  if (candidate.isWeak || candidate.isYear) return 0
  const above = lastLabel(subject)
  return above === 'certain' ? 0.85 : above === 'code' ? LIKELY : 0
}

/** A candidate among words: the nearest label of its sentence decides. */
function judgeInline(candidate: Candidate, line: string, above: string, subject: string): number {
  const { start, end } = sentenceAround(line, candidate)
  const before = labelsOf(
    line.slice(Math.max(start, candidate.start - CONTEXT_MAX_CHARS), candidate.start),
  )
  const beforeStart = Math.max(start, candidate.start - CONTEXT_MAX_CHARS)
  const after = labelsOf(
    line.slice(candidate.end, Math.min(end, candidate.end + CONTEXT_MAX_CHARS)),
  )
  const beforeLength = candidate.start - beforeStart
  if (candidate.isYear) {
    const left = before.findLast(({ kind }) => names(kind))
    return left !== undefined && beforeLength - left.end <= YEAR_CHARS
      ? weigh(candidate, left.kind)
      : 0
  }
  const nearest = nearestOf(before, beforeLength, after)
  if (nearest !== undefined)
    return candidate.isWeak && nearest === 'code' ? 0 : weigh(candidate, nearest)
  if (candidate.isWeak) return 0
  const opens = !/[\p{L}\p{N}]/u.test(line.slice(start, candidate.start))
  if (opens && start === 0 && /[:：]$/.test(above)) return weigh(candidate, lastLabel(above))
  const sentence = line.slice(start, end).slice(0, 2 * CONTEXT_MAX_CHARS)
  const isEntry = [...before, ...after].some(({ kind }) => kind === 'access')
  if (isEntry && saysUse(sentence)) return 0.8
  return saysUse(sentence) && lastLabel(subject) === 'certain' ? LIKELY : 0
}

/** A label after the candidate counts as if it stood farther away. */
const AFTER_FACTOR = 1.5
const NEAR_CHARS = 4
/** A year is a code only right behind its label. */
const YEAR_CHARS = 16
/** `code` far from a number names something else. */
const FAR_CHARS = 60

function nearestOf(
  before: readonly Label[],
  beforeLength: number,
  after: readonly Label[],
): LabelKind | undefined {
  const left = before.findLast(
    ({ kind, end }) => names(kind) && (kind !== 'code' || beforeLength - end <= FAR_CHARS),
  )
  const right = after.find(
    ({ kind, start }) => names(kind) && (kind !== 'code' || start <= FAR_CHARS),
  )
  if (left === undefined || right === undefined) return (left ?? right)?.kind
  const gap = beforeLength - left.end
  return gap <= NEAR_CHARS || gap <= right.start * AFTER_FACTOR ? left.kind : right.kind
}

/** The sentence of a line around a candidate. */
function sentenceAround(line: string, { start, end }: Candidate): { start: number; end: number } {
  let from = 0
  for (const match of line.slice(0, start).matchAll(/[.!?؟;·|](?= )|[。！？]/g))
    from = match.index + 1
  const stop = line.slice(end).search(/[.!?؟;·|](?: |$)|[。！？]/)
  return { start: from, end: stop < 0 ? line.length : end + stop }
}
