/**
 * Collects the evidence that a candidate (a word or number) in a mail is a one-time code: its shape, its position, the
 * words around it, and the kind of the mail. Each piece of evidence has a name. The decision trees in codeTrees.ts
 * weigh the pieces of evidence.
 */

import {
  saysFailure,
  saysNobodyAsks,
  saysNotAsked,
  saysValidity,
  startsReply,
} from './codePhrases.ts'
import { type Candidate, standsAlone } from './codeShapes.ts'
import {
  type Label,
  type LabelKind,
  labelsOf,
  namesCode,
  namesCompany,
  namesMeeting,
  namesPurpose,
  namesTrade,
  saysUse,
} from './codeWords.ts'

/**
 * Holds a line of a mail part after the normalisation by codeShapes.ts. The object recognises the words of the line
 * only when they are first needed, and then keeps them.
 */
export class CodeLine {
  readonly #text: string
  #labels: Label[] | undefined
  #lower: string | undefined
  #namesCode: boolean | undefined

  constructor(text: string) {
    this.#text = text
  }

  get text(): string {
    return this.#text
  }

  get labels(): Label[] {
    this.#labels ??= labelsOf(this.#text)
    return this.#labels
  }

  get lower(): string {
    this.#lower ??= this.#text.toLowerCase()
    return this.#lower
  }

  get namesCode(): boolean {
    this.#namesCode ??= namesCode(this.#text)
    return this.#namesCode
  }

  has(kind: LabelKind): boolean {
    return this.labels.some((label) => label.kind === kind)
  }
}

export type Found = {
  candidate: Candidate
  lines: readonly CodeLine[]
  at: number
  isSubject: boolean
}

/**
 * Sets the maximum number of lines above a candidate (a possible code) in which the function searches for words about
 * one-time codes.
 */
const ABOVE_MAX_LINES = 8
/** Sets the maximum number of lines of a short mail. All lines of a short mail are taken to concern one subject. */
const SHORT_LINES = 3
/**
 * Lists the kinds of labels that name a number, such as "code". Words of the kind `access` tell only the purpose of a
 * number.
 */
const NAMING: readonly LabelKind[] = ['certain', 'code', 'other']
const KINDS: readonly LabelKind[] = [...NAMING, 'access']

/** Names the evidence that a mail is short, because a short mail with a number often carries a code. */
export const SHORT_MAIL = 'mail:short'
/** Names the evidence that no word of the mail tells what a one-time code would be for, such as a sign-in. */
export const NO_PURPOSE = 'mail:noPurpose'

/**
 * Returns the evidence about one-time codes that comes from the whole mail. This evidence is the same for all
 * candidates (possible codes) of the mail.
 */
export function evidenceOfMail(subject: CodeLine, lines: readonly CodeLine[]): string[] {
  const some = (says: (lower: string) => boolean) => lines.some(({ lower }) => says(lower))
  const evidence = KINDS.filter((kind) => subject.has(kind)).map((kind) => `subject:${kind}`)
  if (some(saysValidity)) evidence.push('mail:validity')
  if (some(saysNotAsked)) evidence.push('mail:notAsked')
  if (some(saysNobodyAsks)) evidence.push('mail:nobodyAsks')
  if (!lines.some((line) => line.namesCode)) evidence.push('mail:namesNoCode')
  // A mail with a one-time code names its purpose, such as a sign-in or a confirmation. If no line names a purpose,
  // this is evidence against a code.
  if (![subject, ...lines].some((line) => line.has('certain') || namesPurpose(line.text))) {
    evidence.push(NO_PURPOSE)
  }
  // The mails of shops, issue trackers and machines contain many numbers that are no codes. Therefore, several lines with words such as "order number" are evidence against a code.
  const others = lines.filter((line) => line.has('other')).length
  if (others >= 2) evidence.push(others >= 5 ? 'mail:manyOthers' : 'mail:someOthers')
  if (lines.length <= SHORT_LINES) evidence.push(SHORT_MAIL)
  if (startsReply(subject.lower)) evidence.push('mail:reply')
  if (namesTrade(subject.text)) evidence.push('mail:trade')
  if (namesMeeting(subject.text) || some(namesMeeting)) evidence.push('mail:meeting')
  return evidence
}

/** Matches a text in quotation marks that ends directly before a candidate (a possible one-time code). */
const QUOTATION = /"[^"]*"|[“„][^“”„]*[“”]|«[^«»]*»|「[^「」]*」/g

/** Returns the evidence that one candidate is a one-time code. */
export function evidenceOf({ candidate, lines, at, isSubject }: Found): string[] {
  const line = lines[at]!
  const { text } = line
  const before = text.slice(0, candidate.start)
  const after = text.slice(candidate.end)
  const isAlone = standsAlone(text, candidate)
  return [
    ...shapeEvidence(candidate),
    ...(isSubject ? ['in:subject'] : []),
    ...(isAlone ? ['alone'] : [...inlineEvidence(candidate, line), ...wordEvidence(before, after)]),
    ...aboveEvidence(lines, at, isAlone),
    ...belowEvidence(lines[at + 1], isAlone),
    ...lineEvidence(line, lines[at - 1], lines[at + 1], isAlone ? undefined : before + after),
    ...(/^\s*>/.test(text) ? ['quoted'] : []),
    ...(/[:：=]\s*$/.test(before) ? ['colon'] : []),
    ...(/["“„«「]/.test(before.replace(QUOTATION, '')) ? ['inQuotes'] : []),
  ]
}

function shapeEvidence(candidate: Candidate): string[] {
  const { kind, value, isWeak, isYear, isKey, isPlace, isWord, isJumble } = candidate
  const length = kind === 'numeric' ? String(value.length) : ''
  return [
    `shape:${kind}${length}`,
    ...(isWeak ? ['shape:weak'] : []),
    ...(isWord === true ? ['shape:word'] : []),
    ...(isJumble === true ? ['shape:jumble'] : []),
    ...(isYear ? ['shape:year'] : []),
    ...(isKey ? ['shape:key'] : []),
    ...(isPlace ? ['shape:place'] : []),
    // A text like WELCOME15 joins a word and a number, so it is probably a voucher and no one-time code.
    ...(/^[A-Z]{4,}\d{1,4}$/.test(value) && /[AEIOU]/.test(value) ? ['shape:voucher'] : []),
    // Mails with advice about security often show example codes such as 123456 and 0000, so such a number is probably
    // no real code.
    ...(/^(?:123456?7?8?|(\d)\1+)$/.test(value) ? ['shape:example'] : []),
  ]
}

/** Matches a word. In languages that put no spaces between words, each character counts as a word. */
const WORD = /[\p{Script=Han}\p{Script=Thai}]|(?![\p{Script=Han}\p{Script=Thai}])\p{L}{2,}/gu
const WORDS_BESIDE = 4
const STEM_CHARS = 6

/**
 * Returns the first letters of each word beside the candidate (a possible one-time code). The model in codeTrees.ts
 * uses only words that occur in several mails.
 */
function wordEvidence(before: string, after: string): string[] {
  const stems = (side: string, words: readonly string[]) =>
    words.map((word) => `${side}:${word.toLowerCase().slice(0, STEM_CHARS)}`)
  return [
    ...stems('word:left', (before.match(WORD) ?? []).slice(-WORDS_BESIDE)),
    ...stems('word:right', (after.match(WORD) ?? []).slice(0, WORDS_BESIDE)),
  ]
}

/** Matches the words and signs between a number and a following label, as in `482913 is your code`. */
const COPULA =
  /^ ?(?:(?:is|ist|est|es|é|è|е|је|är|er|on|to|jest|je|az|a|este|είναι|es tu|это|це|adalah|là)(?!\p{L})|[-–—:]|は|是|은|는|هو)/u

/** Sets the maximum number of characters between a verb such as "enter" and its number. */
const USE_CHARS = 40

/** Matches the text between a label and a following number, as in `your code is 482913`. */
const BETWEEN =
  /^ ?(?:(?:is|ist|lautet|est|es|é|è|е|је|är|er|on|to|jest|je|este|είναι|это|це|adalah|là|của bạn(?: là)?|anda(?: adalah| ialah)?|ialah|mo ay|ของคุณ(?:คือ)?|คือ|(?:שלך )?הוא|yang|(?:ви|ти|вам|ваш) е|ви|是|为|は|が|은|는|이|هو)(?!\p{L}))? ?[:：=-]? {0,2}$/u

/**
 * Matches the text between a label and a following number if this text says what the label is for, as in `Your PIN for
 * locker 14: 482913`. Other labels in this text, such as "parcel", do not name the number.
 */
const FOR =
  /^ (?:for|für|zum|zur|pour|para|per|voor|dla|для|för|till|til|pentru|για) [^.!?:：]{1,60}[:：] {0,2}$/u

/** Matches the space or the dots between two columns of a table row, as in `Code ........ 482913`. */
const LEADER = /[ .·_…|]{2,}/g
const GAP_CHARS = 40

/**
 * Names the distance between a label (such as "code") and a candidate by a word: `beside`, `close`, `near` or `far`.
 */
function distance(chars: number): string {
  if (chars <= 3) return 'beside'
  if (chars <= 16) return 'close'
  return chars <= 60 ? 'near' : 'far'
}

/**
 * Returns the evidence from the sentence that contains the candidate (a possible code): the verbs, and the nearest
 * label of each kind (such as "code").
 */
function inlineEvidence(candidate: Candidate, line: CodeLine): string[] {
  const { start, end } = sentenceAround(line.text, candidate)
  const evidence: string[] = []
  const lefts = line.labels.filter(
    (label) => label.start >= start && label.end <= candidate.start && label.kind !== 'access',
  )
  const headed = lefts.findIndex(({ end: from }) =>
    FOR.test(line.lower.slice(from, candidate.start)),
  )
  const dropped = headed < 0 ? [] : lefts.splice(headed + 1)
  // In `PIN for phone: 482913`, the word directly before the colon may also name the number.
  const isClear = !BETWEEN.test(line.lower.slice(dropped.at(-1)?.end, candidate.start))
  const head = isClear && dropped.some(({ kind }) => kind === 'other') ? lefts[headed] : undefined
  for (const kind of NAMING) {
    const left = lefts.findLast((label) => label.kind === kind)
    const right = line.labels.find(
      (label) => label.kind === kind && label.start >= candidate.end && label.end <= end,
    )
    if (left !== undefined) {
      const gap = line.lower.slice(left.end, candidate.start)
      const isNamed =
        (gap.length <= GAP_CHARS && BETWEEN.test(gap.replace(LEADER, ' '))) || left === head
      evidence.push(`left:${kind}:${isNamed ? 'beside' : distance(gap.length)}`)
    }
    if (right !== undefined) evidence.push(`right:${kind}:${distance(right.start - candidate.end)}`)
  }
  if (COPULA.test(line.lower.slice(candidate.end, candidate.end + 12))) evidence.push('right:is')
  const sentence = line.text.slice(start, end)
  const isEntry = line.labels.some(
    (label) => label.kind === 'access' && label.start >= start && label.end <= end,
  )
  const isUsed = saysUse(sentence)
  const verbs = line.text.slice(Math.max(start, candidate.start - USE_CHARS), candidate.start)
  if (saysUse(verbs)) evidence.push('use:left')
  // In `Enter 482913`, a verb stands before the number. At most one other word may stand between the verb and the
  // number.
  if (saysUse(verbs.split(/ +/).slice(-2).join(' '))) evidence.push('use:beside')
  else if (saysUse(verbs.split(/ +/).slice(-4).join(' '))) evidence.push('use:close')
  else if (saysUse(line.text.slice(candidate.end, Math.min(end, candidate.end + USE_CHARS))))
    evidence.push('use:right')
  if (
    (line.text.slice(start, candidate.start) + line.text.slice(candidate.end, end)).match(
      /\d{2,}/g,
    )?.[2]
  )
    evidence.push('sentence:manyNumbers')
  // A word for access, such as "pair", may stand before the number: `On the hub, to pair: 4476`.
  const entry = line.labels.findLast(
    (label) => label.kind === 'access' && label.start >= start && label.end <= candidate.start,
  )
  if (entry !== undefined) evidence.push(`left:access:${distance(candidate.start - entry.end)}`)
  if (isEntry) evidence.push(isUsed ? 'sentence:useForAccess' : 'sentence:access')
  else if (isUsed) evidence.push('sentence:use')
  const first = line.text.slice(start, candidate.start)
  if (!/[\p{L}\p{N}]/u.test(first)) evidence.push(start === 0 ? 'opens:line' : 'opens:sentence')
  if (!/[\p{L}\p{N}]/u.test(line.text.slice(candidate.end, end))) evidence.push('ends:sentence')
  return evidence
}

/**
 * Returns the evidence from the lines above a candidate (a possible code): for each kind of label (such as "code"), the
 * nearest line with such a label.
 */
function aboveEvidence(lines: readonly CodeLine[], at: number, isAlone: boolean): string[] {
  const place = isAlone ? 'above' : 'aboveInline'
  const evidence: string[] = []
  const last = lines[at - 1]
  if (last !== undefined && saysUse(last.text)) evidence.push(`${place}:use`)
  for (const kind of NAMING) {
    for (let n = at - 1; n >= Math.max(0, at - ABOVE_MAX_LINES); n--) {
      if (!lines[n]!.has(kind)) continue
      evidence.push(`${place}:${kind}:${at - n <= 2 ? at - n : 'more'}`)
      break
    }
  }
  if (last?.labels.findLast(({ kind }) => kind !== 'access')?.kind === 'other')
    evidence.push(`${place}:endsOther`)
  return evidence
}

function belowEvidence(below: CodeLine | undefined, isAlone: boolean): string[] {
  if (below === undefined || !isAlone) return []
  const named = below.labels.find(({ kind }) => kind !== 'access')
  return [
    ...(named === undefined ? [] : [`below:${named.kind}`]),
    ...(saysValidity(below.lower) ? ['below:validity'] : []),
    ...(saysUse(below.text) ? ['below:use'] : []),
  ]
}

/**
 * Reads the line that contains a candidate (a possible one-time code), and returns the evidence in this line.
 * @param rest is the line without the candidate.
 * Undefined means that the line contains only the candidate.
 */
function lineEvidence(
  line: CodeLine,
  above: CodeLine | undefined,
  below: CodeLine | undefined,
  rest: string | undefined,
): string[] {
  const around = `${above?.text ?? ''} ${line.text} ${below?.text ?? ''}`
  const isAlone = rest === undefined
  const numbers = rest?.match(/\d{2,}/g)?.length ?? 0
  return [
    ...(namesTrade(around) ? ['around:trade'] : []),
    ...(namesMeeting(around) ? ['around:meeting'] : []),
    ...(!isAlone && namesCompany(line.text) ? ['line:company'] : []),
    ...(!isAlone && namesMeeting(line.text) ? ['line:meeting'] : []),
    ...(!isAlone && saysFailure(line.lower) ? ['line:failure'] : []),
    ...(!isAlone && saysValidity(line.lower) ? ['line:validity'] : []),
    ...(numbers >= 5 ? ['line:manyNumbers'] : []),
    ...(/[#№]/.test(line.text) ? ['line:numberSign'] : []),
  ]
}

/** Returns the start and the end of the candidate's sentence in a line. */
function sentenceAround(line: string, { start, end }: Candidate): { start: number; end: number } {
  let from = 0
  for (const match of line.slice(0, start).matchAll(/(?<!\.)[.!?؟;·](?= )|[。！？]/g))
    from = match.index + 1
  const stop = line.slice(end).search(/[.!?؟;·](?: |$)|[。！？]/)
  return { start: from, end: stop < 0 ? line.length : end + stop }
}
