/**
 * Finds one-time codes in a mail. Each number or word with the shape of a code is weighed by what stands around it: the nearest
 * words, the lines above, the kind of the mail. Bounded: it reads the first characters of each part, and a few dozen candidates.
 */
import { CodeLine, evidenceOf, evidenceOfMail } from './codeEvidence.ts'
import { saysNotAsked, saysValidity } from './codePhrases.ts'
import { type Candidate, type CodeKind, candidatesOf, plainForm } from './codeShapes.ts'
import { CODE_TREES } from './codeTrees.ts'
import { namesCode, saysUse } from './codeWords.ts'
import { likelihood } from './likelihood.ts'

/** Where a code stands. */
type CodePart = 'subject' | 'text' | 'html'

/** A one-time code as the API answers it (docs/contract.md §4). */
export type Code = {
  kind: CodeKind
  /** The value to enter. */
  value: string
  /** 0 to 1. */
  confidence: number
  part: CodePart | 'attachment'
  /** Of the part `attachment`. */
  attachmentId?: string
  /** The line that holds it. */
  line: string
}

/** Characters that are read of each part: a code stands near the top. */
const CODE_SCAN_CHARS = 20_000
const LINES_MAX = 400
const LINE_MAX_CHARS = 400
/** Lines of a part with candidates that are judged. */
const JUDGED_MAX = 60
export const CODES_MAX = 10
const SHOWN_LINE_CHARS = 160

/** A candidate with less is more likely none. */
const LIKELY = 0.5

type Mail = { subject: string; text: string; html: string | null }

/**
 * The one-time codes of a mail, the most certain first.
 * @param mail `html`: the text of the visible HTML; null: none, or `text` is that text.
 * @returns at most {@link CODES_MAX}, each value once.
 * @example findCodes({ subject: 'Sign in', text: 'Your code is 482 913.', html: null })[0].value // '482913'
 */
export function findCodes(mail: Mail): Code[] {
  const found = new Map<string, Code>()
  for (const { candidate, part, line, evidence } of judgedOf(mail)) {
    const confidence = confidenceOf(evidence)
    const { kind, value } = candidate
    if (confidence < LIKELY || (found.get(value)?.confidence ?? 0) >= confidence) continue
    const shown = line.trim().slice(0, SHOWN_LINE_CHARS).toWellFormed()
    found.set(value, { kind, value, confidence, part, line: shown })
  }
  const codes = [...found.values()].toSorted((one, other) => other.confidence - one.confidence)
  return withoutTwins(codes).slice(0, CODES_MAX)
}

const bare = (value: string) => value.replaceAll('-', '').toLowerCase()

/** One of each code that a mail writes twice: 4QK-9ZT and 4QK9ZT, or ACME-482913 and 482913. */
const withoutTwins = (codes: readonly Code[]): Code[] =>
  codes.filter(
    ({ value }, n) =>
      !codes.some(
        (other, at) =>
          at !== n &&
          (value.endsWith(`-${other.value}`) || (at < n && bare(other.value) === bare(value))),
      ),
  )

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

/** Each candidate holds one of these. Few lines do: the words around the others are not read. */
const MAY_HOLD = /\d|[A-Z](?:[A-Z-]| {1,3}[A-Z])|[a-z]-[a-z]{3,10}-[a-z]/

/** A candidate, with what speaks for and against it. */
export type Judged = { candidate: Candidate; part: CodePart; line: string; evidence: string[] }

/** A mail names a code, says to enter a number, tells for how long, or speaks to somebody who did not ask. */
const mayHaveCode = (lines: readonly CodeLine[]): boolean =>
  lines.some(
    ({ text, lower }) =>
      namesCode(text) || saysUse(text) || saysValidity(lower) || saysNotAsked(lower),
  )

/** The candidates of a mail. It is empty for a mail that never names a code. */
export function judgedOf({ subject, text, html }: Mail): Judged[] {
  const head = new CodeLine(plainForm(subject.slice(0, LINE_MAX_CHARS)))
  const parts: [CodePart, CodeLine[]][] = [
    ['subject', [head]],
    ['text', linesOf(text).map((line) => new CodeLine(line))],
    ['html', html === null ? [] : linesOf(html).map((line) => new CodeLine(line))],
  ]
  const lines = parts.flatMap(([, own]) => own)
  if (!mayHaveCode(lines)) return []
  const shared = evidenceOfMail(head, lines)
  const judged: Judged[] = []
  for (const [part, own] of parts) {
    let looked = 0
    for (const [at, { text: line }] of own.entries()) {
      if (!MAY_HOLD.test(line)) continue
      const candidates = candidatesOf(line)
      if (candidates.length === 0) continue
      if (++looked > JUDGED_MAX) break
      for (const candidate of candidates) {
        const evidence = evidenceOf({ candidate, lines: own, at, isSubject: part === 'subject' })
        judged.push({ candidate, part, line, evidence: [...shared, ...evidence] })
      }
    }
  }
  return withCompany(judged, [subject, text, html ?? ''])
}

/** Adds the evidence that comes from the other places of the same value, and from the other candidates. */
function withCompany(judged: Judged[], parts: readonly string[]): Judged[] {
  const places = Map.groupBy(judged, ({ candidate }) => candidate.value)
  const linked = new Set(
    parts.flatMap((part) =>
      [...part.slice(0, CODE_SCAN_CHARS).matchAll(/[=/#]([\w-]{4,20})(?![\w-])/g)].map(
        ([, value]) => value,
      ),
    ),
  )
  return judged.map((one) => {
    const { value } = one.candidate
    const others = places.get(value)!
    return {
      ...one,
      evidence: [
        ...one.evidence,
        ...(places.size === 1 ? ['company:none'] : places.size <= 3 ? ['company:few'] : []),
        ...(others.some(({ part }) => part !== one.part) ? ['company:otherPart'] : []),
        ...(linked.has(value) ? ['company:link'] : []),
      ],
    }
  })
}

/** The share of candidates with this evidence that are codes, with two digits. */
const confidenceOf = (evidence: readonly string[]): number =>
  Math.round(100 * likelihood(CODE_TREES, new Set(evidence))) / 100
