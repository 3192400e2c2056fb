/**
 * Finds one-time codes in a mail. The function judges each number or word with the shape of a code by the nearest
 * words, the lines above, and the kind of the mail. It reads only the first characters of each mail part and a few
 * dozen candidates, so that the search takes limited time.
 */
import { groupedCode, listedCode } from './backupLists.ts'
import { CodeLine, evidenceOf, evidenceOfMail, NO_PURPOSE, SHORT_MAIL } from './codeEvidence.ts'
import { asksToShare, namesInvitation, saysNotAsked, saysValidity } from './codePhrases.ts'
import {
  type Candidate,
  type CodeKind,
  candidatesOf,
  plainForm,
  standsAlone,
} from './codeShapes.ts'
import { CODE_TREES } from './codeTrees.ts'
import { namesCode, saysUse } from './codeWords.ts'
import { emphasisOf } from './emphasis.ts'
import { likelihood } from './likelihood.ts'
import { purposeOfText } from './links/linkWords.ts'
import { shownTokens, tokensInLinks } from './linkTokens.ts'

/** Names the part of the mail that contains a code. */
type CodePart = 'subject' | 'text' | 'html'

/** Describes a one-time code in the form of the API (docs/contract.md §4). */
export type Code = {
  kind: CodeKind
  /** Holds the code that a person or an agent must enter. */
  value: string
  /** Holds the confidence that the text is a one-time code, from 0 to 1. */
  confidence: number
  part: CodePart | 'attachment'
  /**
   * Holds the id of the attachment that contains the code. Only codes of the part `attachment` have an attachment id.
   */
  attachmentId?: string
  /** Holds the line of the mail that contains the code. */
  line: string
}

/**
 * Sets the maximum number of characters of each mail part that `findCodes` reads, because a one-time code is near the
 * top of its mail part.
 */
const CODE_SCAN_CHARS = 20_000
const LINES_MAX = 400
const LINE_MAX_CHARS = 400
/** Sets the maximum number of lines with candidates (possible codes) that `findCodes` judges in each mail part. */
const JUDGED_MAX = 60
export const CODES_MAX = 10
const SHOWN_LINE_CHARS = 160

/** Sets the confidence below which a candidate is probably no one-time code. */
const LIKELY = 0.5
/**
 * Sets the confidence below which a candidate is probably no one-time code, if the mail has several lines and names no
 * purpose of a code, such as a sign-in. Such a mail often comes from a shop or a machine, and contains codes of
 * products and errors.
 */
const LIKELY_IN_NOTICE = 0.9

/**
 * Tells whether a mail is probably a notice without a one-time code. Such a mail has several lines, does not say for
 * what purpose a code would be, and has a subject that names no code.
 */
const isNotice = (evidence: readonly string[]): boolean =>
  evidence.includes(NO_PURPOSE) &&
  ![SHORT_MAIL, 'subject:code'].some((exempt) => evidence.includes(exempt))

type Mail = {
  subject: string
  text: string
  html: string | null
  /**
   * Holds the visible HTML of the mail, in which large and bold texts are evidence for a code. If `shown` is absent or
   * null, the mail has no HTML.
   */
  shown?: string | null
}

/**
 * Finds the one-time codes of a mail, the most certain code first.
 * @param mail holds the parts of the mail. The field `html` is the text of the visible HTML. A null `html` means that
 * the mail has no HTML, or that `text` already is the text of the HTML.
 * @returns at most {@link CODES_MAX} codes, each code only once.
 * @example findCodes({ subject: 'Sign in', text: 'Your code is 482 913.', html: null })[0].value // '482913'
 */
export function findCodes(mail: Mail): Code[] {
  const found = new Map<string, Code>()
  for (const { candidate, part, line, evidence } of judgedOf(mail)) {
    const confidence = confidenceOf(evidence)
    const { kind, value } = candidate
    const least = isNotice(evidence) ? LIKELY_IN_NOTICE : LIKELY
    if (confidence < least || (found.get(value)?.confidence ?? 0) >= confidence) continue
    const shown = line.trim().slice(0, SHOWN_LINE_CHARS).toWellFormed()
    found.set(value, { kind, value, confidence, part, line: shown })
  }
  const codes = [...found.values()].toSorted((one, other) => other.confidence - one.confidence)
  return withoutTwins(codes).slice(0, CODES_MAX)
}

const bare = (value: string) => value.replaceAll('-', '').toLowerCase()

/**
 * Removes the second spelling of a code. For example, 4QK-9ZT and 4QK9ZT count as one code, and so do ACME-482913 and
 * 482913.
 */
const withoutTwins = (codes: readonly Code[]): Code[] =>
  codes.filter(
    ({ value }, n) =>
      !codes.some(
        (other, at) =>
          at !== n &&
          (value.endsWith(`-${other.value}`) || (at < n && bare(other.value) === bare(value))),
      ),
  )

/** Matches a number that stands before a list item of one word, as in `3. X8PB31LT`. */
const ITEM = /^\d{1,2}[.)] {1,3}(?=\S+$)/

/** Matches a line of three or more words with the shape of backup codes, such as `4F9A-71CE B208-6D3F 9E51-0A7B`. */
const LISTED =
  /^(?:(?:[A-Z0-9]{4,6}-[A-Z0-9]{4,6}(?: +|$)){3,20}|(?:(?=\S*\d)[A-Za-z0-9]{8,12}(?: +|$)){3,20})$/

/** Matches a sentence and a number that ends its line, as in `This is your verification code. 482913`. */
const NUMBER_AFTER_SENTENCE = /^(.*\p{L}{2}[.。!]) ?(\d{4,8})[.。]?$/u

/**
 * Returns the lines of a text that contain letters or digits. The function joins lines of a single character into one
 * line.
 */
function linesOf(text: string): string[] {
  const plain = plainForm(text.slice(0, CODE_SCAN_CHARS))
    // The function removes URLs, because the numbers in them are no one-time codes.
    .replace(/\bhttps?:\/\/[^\s\]>)]*/g, ' ')
    .replace(/\[ *\]/g, ' ')
    // Some senders forget the full stop after a code, as in `Your code is 482913 It is valid for an hour`.
    .replace(/(?<=\d{4}) (?=(?:It|This|The|Please|Do|If|Enter|Never) \p{Ll})/gu, '\n')
    .replace(/\*{1,2}([^\s*]{1,30})\*{1,2}/g, ' $1 ')
  const lines: string[] = []
  let singles: string[] = []
  const flush = () => {
    if (singles.length > 0) lines.push(singles.join(' '))
    singles = []
  }
  for (const raw of plain.split('\n', LINES_MAX)) {
    const line = raw.slice(0, LINE_MAX_CHARS).trim().replace(ITEM, '')
    if (LISTED.test(line)) {
      flush()
      lines.push(...line.split(/ +/))
      continue
    }
    if (/^[0-9A-Z]$/.test(line)) {
      singles.push(line)
      continue
    }
    if (!/[\p{L}\p{N}]/u.test(line)) continue
    flush()
    const [, sentence, number] = NUMBER_AFTER_SENTENCE.exec(line) ?? []
    // The function puts a number at the end of a sentence on a separate line, so that the sentence counts as a label on
    // the line above the number.
    if (sentence !== undefined && number !== undefined && namesCode(sentence)) {
      lines.push(sentence, number)
    } else lines.push(line)
  }
  flush()
  return lines
}

/**
 * Matches a line that may contain a candidate for a one-time code. Only a few lines of a mail match, so the code need
 * not recognise the words around the others.
 */
const MAY_HOLD =
  /\d|[A-Z](?:[A-Z-]| {1,3}[A-Z])|[a-z](?:[A-Z]|-[a-z]{3,10}-[a-z])|(?:^|[:：] )[a-z]{4,6}-[a-z]{4,6}\.?$/

/**
 * Sets the maximum number of lines of a mail that contains only a number and a title, such as `Confirm your e-mail`.
 */
const LONE_LINES_MAX = 6

/** Tells whether a mail contains only a number and a title that asks for a confirmation. */
const isLoneNumber = (lines: readonly CodeLine[]): boolean =>
  lines.length <= LONE_LINES_MAX &&
  lines.some(({ text }) => /^\d{4,8}$/.test(text)) &&
  lines.some(({ lower }) => purposeOfText(lower) === 'verify')

/** Holds a candidate (a possible code) with the evidence for and against a one-time code. */
export type Judged = { candidate: Candidate; part: CodePart; line: string; evidence: string[] }

/**
 * Tells whether a mail may contain a one-time code. Such a mail names a code, asks the reader to enter a number, states
 * the validity of a code, or addresses somebody who did not request the mail. It may also contain nothing but a title
 * and a number.
 */
const mayHaveCode = (lines: readonly CodeLine[]): boolean =>
  lines.some(
    (line) =>
      line.namesCode || saysUse(line.text) || saysValidity(line.lower) || saysNotAsked(line.lower),
  ) || isLoneNumber(lines)

/** Matches the subject of a mail about a commit, whose hash may consist of digits: `[owner/name] 629672: Fix it`. */
const COMMIT = /^\[[\w.-]{1,80}\/[\w.-]{1,100}\] [\da-f]{6,12}: /

/**
 * Returns the candidates for one-time codes in a mail, with the evidence about each candidate. The list is empty if the
 * mail cannot contain a one-time code.
 */
export function judgedOf({ subject, text, html, shown = null }: Mail): Judged[] {
  const head = new CodeLine(plainForm(subject.slice(0, LINE_MAX_CHARS)))
  const parts: [CodePart, CodeLine[]][] = [
    ['subject', [head]],
    ['text', linesOf(text).map((line) => new CodeLine(line))],
    ['html', html === null ? [] : linesOf(html).map((line) => new CodeLine(line))],
  ]
  const lines = parts.flatMap(([, own]) => own)
  if (!lines.some(({ text: line }) => MAY_HOLD.test(line))) return []
  const whole = [subject, text, html ?? '']
  const carried = codesInLinks(whole)
  if (carried.size === 0 && !mayHaveCode(lines)) return []
  const tokens = tokensInLinks(whole.map((text) => text.slice(0, CODE_SCAN_CHARS)))
  const shared = evidenceOfMail(head, lines)
  const isReferral = lines.some(({ lower }) => asksToShare(lower))
  const isAnnounced = head.has('certain')
  const judged: Judged[] = []
  for (const [part, own] of parts) {
    let looked = 0
    for (const [at, { text: line, lower }] of own.entries()) {
      if (!MAY_HOLD.test(line) || (isReferral && namesInvitation(lower)) || COMMIT.test(line))
        continue
      // The function skips lists of codes in a mail that names no purpose of a code, because such a mail often lists
      // commit hashes.
      const listed = shared.includes(NO_PURPOSE)
        ? null
        : (listedCode(own, at) ?? groupedCode(own, at))
      const candidates = [
        ...candidatesOf(line),
        ...(listed === null ? shownTokens(own, at, { tokens, isAnnounced }) : [listed]),
      ]
      if (candidates.length === 0) continue
      if (++looked > JUDGED_MAX) break
      for (const candidate of candidates) {
        if ('isToken' in candidate) {
          judged.push({ candidate, part, line, evidence: [TOKEN] })
          continue
        }
        const evidence = evidenceOf({ candidate, lines: own, at, isSubject: part === 'subject' })
        judged.push({ candidate, part, line, evidence: [...shared, ...evidence] })
      }
    }
  }
  return withEmphasis(withCompany(judged, { parts: whole, carried, shown }), shown)
}

/**
 * Matches a parameter of a URL that carries a one-time code, such as `unblockCode=7RK2M4QX`. The names of parameters are
 * English in the mails of all languages.
 */
const CODE_PARAMETER = /[?&;#](?:[\w.-]{0,30}(?:code|otp|pin|token|nonce))=([\w-]{4,20})(?![\w-])/gi

/** Returns the one-time codes that the links of a mail carry, without hyphens and in lower case. */
const codesInLinks = (parts: readonly string[]): ReadonlySet<string> =>
  new Set(
    parts.flatMap((part) =>
      [...part.slice(0, CODE_SCAN_CHARS).matchAll(CODE_PARAMETER)].map(([, value]) => bare(value!)),
    ),
  )

/**
 * Adds evidence to the candidates (possible codes) of a mail. This evidence comes from the other candidates, and from
 * other parts of the mail that hold the same value.
 * @param carried holds the one-time codes that the links of the mail carry.
 */
function withCompany(
  judged: Judged[],
  {
    parts,
    carried,
    shown,
  }: { parts: readonly string[]; carried: ReadonlySet<string>; shown: string | null },
): Judged[] {
  const places = Map.groupBy(judged, ({ candidate }) => candidate.value)
  // The count of different candidates leaves out postal codes, because a postal code in a footer is no second candidate
  // beside the one-time code.
  const rivals = new Set(
    judged.filter(({ candidate }) => !candidate.isPlace).map(({ candidate }) => candidate.value),
  ).size
  const matchesOf = (pattern: RegExp, texts = parts): string[] =>
    texts.flatMap((part) =>
      [...part.slice(0, CODE_SCAN_CHARS).matchAll(pattern)].map(([, value]) => value!),
    )
  const linked = new Set(matchesOf(/[=/#]([\w-]{4,20})(?![\w-])/g))
  const hostNames = new Set(
    matchesOf(/(?:@|\/\/)([\w.-]{4,80})/g, [...parts, shown ?? '']).flatMap((host) =>
      host.toLowerCase().split('.'),
    ),
  )
  const labels = new Set(matchesOf(/(?<![\w-])([A-Z]{2,6}\d) ?[:：=]/g))
  // Some candidates are no codes: a candidate of letters with as many vowels as an ordinary word, and a name such as
  // Wifi6Router. They count as codes only if a link of the mail contains the same text. A part of a host name in the
  // mail is also no code, because it is the name of a company. The text `PIN1` is no code if the mail also contains
  // `PIN1: 41907385`.
  const read = judged.filter(
    ({ candidate: { kind, value, isWord, isSmall }, evidence }) =>
      ((!isWord && !NAME.test(value)) || linked.has(value)) &&
      (!isSmall || evidence.some((one) => ANNOUNCED.test(one))) &&
      (kind === 'numeric' || !(hostNames.has(value.toLowerCase()) || labels.has(value))),
  )
  return read.map((one) => {
    const { value } = one.candidate
    const others = places.get(value)!
    return {
      ...one,
      evidence: [
        ...one.evidence,
        ...(rivals <= 1 ? ['company:none'] : rivals <= 3 ? ['company:few'] : []),
        ...(others.some(({ part }) => part !== one.part) ? ['company:otherPart'] : []),
        ...(linked.has(value) ? ['company:link'] : []),
        ...(carried.has(bare(value)) ? ['company:codeLink'] : []),
      ],
    }
  })
}

/** Matches the evidence that words beside a candidate (a possible code) announce a code, or ask the reader to enter it. */
const ANNOUNCED = /^(?:(?:left|above):certain|above:use|use:)/

/** Matches the name of a product with a digit between its words. */
const NAME = /^[A-Z][a-z]{2,}\d{1,2}(?:[A-Z]?[a-z]{2,}|[A-Z]{2,})$/

/** Adds the evidence that a candidate (a possible code) stands in large or bold text of the HTML. */
function withEmphasis(judged: Judged[], shown: string | null): Judged[] {
  if (shown === null || judged.length === 0) return judged
  const { large, bold } = emphasisOf(shown)
  const values = [valuesIn(large), valuesIn(bold)]
  return judged.map((one) => {
    const { value } = one.candidate
    const evidence = values.flatMap(({ alone, beside }, n) => {
      const kind = n === 0 ? 'large' : 'bold'
      if (alone.has(value)) return [`${kind}:this`, ...(alone.size === 1 ? [`${kind}:only`] : [])]
      if (beside.has(value)) return [`${kind}:line`]
      return alone.size > 0 ? [`${kind}:other`] : []
    })
    return { ...one, evidence: [...one.evidence, 'has:html', ...evidence] }
  })
}

/** Returns the candidates (possible codes) that are alone on their lines, and the candidates beside other words. */
function valuesIn(text: string): { alone: Set<string>; beside: Set<string> } {
  const alone = new Set<string>()
  const beside = new Set<string>()
  for (const line of linesOf(text)) {
    for (const candidate of candidatesOf(line)) {
      const values = standsAlone(line, candidate) ? alone : beside
      values.add(candidate.value)
    }
  }
  return { alone, beside }
}

/**
 * Names the evidence for a long code if the mail also holds the code in a link or in a list of codes. Such a code has
 * no other evidence.
 */
const TOKEN = 'shape:token'
/** Holds the confidence of a long code that also stands in a link of the mail, or in a list of codes. */
const TOKEN_CONFIDENCE = 0.95

/**
 * Returns the probability that a candidate (a possible code) with the given evidence is a one-time code. The result has
 * two digits after the point.
 */
const confidenceOf = (evidence: readonly string[]): number =>
  evidence.includes(TOKEN)
    ? TOKEN_CONFIDENCE
    : Math.round(100 * likelihood(CODE_TREES, new Set(evidence))) / 100
