/**
 * Full-text search in any script: what a message is found by, and what a query asks for.
 *
 * Terms are words without case, accents and compatibility forms (Unicode NFKC), never stemmed: a stemmer for one language
 * is wrong for all others. Scripts that put no spaces between words are cut into pairs of letters, and a query for a
 * longer run asks for its pairs in a row; this is what search engines do for Chinese, Japanese, Korean and Thai.
 */
import { createHash } from 'node:crypto'
import { addressKey, parseAddress } from './address.ts'

/** Characters of a body that are searched; past this only attachments' worth of logs and tables is left. */
const TEXT_MAX_CHARS = 256 * 1024
/** Postgres holds positions up to 16,383, and 1 MB a tsvector. */
const TERMS_MAX = 16_000
const TERM_MAX_CHARS = 48
/** Places of one term that Postgres keeps; of those after them it knows nothing. */
const PLACES_MAX = 255
/** Well below that megabyte: a term of 48 letters can have 190 bytes. */
const VECTOR_MAX_BYTES = 700_000

const UNSPACED =
  '\\p{Script=Han}\\p{Script=Hiragana}\\p{Script=Katakana}\\p{Script=Hangul}\\p{Script=Thai}\\p{Script=Lao}\\p{Script=Khmer}\\p{Script=Myanmar}'
/** A run of an unspaced script, or a word of any other. */
const RUN = new RegExp(
  `[${UNSPACED}][${UNSPACED}\\p{M}ー]*|(?:(?![${UNSPACED}])[\\p{L}\\p{N}\\p{M}])+`,
  'gu',
)
const STARTS_UNSPACED = new RegExp(`^[${UNSPACED}]`, 'u')

/** Accents of Latin, Greek and Cyrillic, points of Hebrew and Arabic. Vowel signs of Indic scripts are letters in all but name. */
const ACCENTS = /[\u0300-\u036f\u0591-\u05c7\u064b-\u0652\u0670]/gu
const LIGATURES: Readonly<Record<string, string>> = {
  ß: 'ss',
  æ: 'ae',
  œ: 'oe',
  ø: 'o',
  ł: 'l',
  đ: 'd',
  ı: 'i',
  ς: 'σ',
}

/** One term of a text, and where it stands there (UTF-16 offsets). */
export type Term = { term: string; start: number; end: number }

function fold(word: string): string {
  const plain = word.normalize('NFKD').toLowerCase().replace(ACCENTS, '').normalize('NFC')
  return plain.replace(/[ßæœøłđıς]/g, (letter) => LIGATURES[letter]!)
}

/** The terms of a text, in order. */
export function* termsOf(text: string): Generator<Term> {
  for (const match of text.matchAll(RUN)) {
    const [run] = match
    const start = match.index
    if (STARTS_UNSPACED.test(run)) yield* pairsOf(run, start)
    else {
      const term = fold(run.slice(0, TERM_MAX_CHARS)).slice(0, TERM_MAX_CHARS).toWellFormed()
      if (term !== '') yield { term, start, end: start + run.length }
    }
  }
}

/** `甲乙丙` gives 甲乙, 乙丙 and 丙: the last letter alone, so that each letter begins a term. */
function* pairsOf(run: string, start: number): Generator<Term> {
  const letters: Term[] = []
  let at = start
  for (const letter of run) {
    const end = at + letter.length
    const term = fold(letter)
    if (term !== '') letters.push({ term, start: at, end })
    at = end
  }
  for (const [n, letter] of letters.entries()) {
    const next = letters[n + 1]
    yield next === undefined
      ? letter
      : { term: letter.term + next.term, start: letter.start, end: next.end }
  }
}

/** A whole address as one term, such as no word is; null for anything else. */
export function addressTerm(text: string): string | null {
  const address = parseAddress(text)
  return address === null ? null : fold(addressKey(address))
}

/** Whether a term is one letter of an unspaced script, such as ends a run. */
export const isSingleLetter = (term: string): boolean =>
  [...term].length === 1 && (STARTS_UNSPACED.test(term) || term === 'ー')

/** The parts of a message that are told apart in a search; each has a weight of its own in the tsvector. */
export type SearchedMail = {
  subject: string
  from: readonly string[]
  /** To, Cc and Bcc. */
  to: readonly string[]
  /** The body, and the names of attachments. */
  text: string
}

export const FIELD_WEIGHTS = { subject: 'A', from: 'B', to: 'C', text: 'D' } as const
export type SearchField = keyof typeof FIELD_WEIGHTS

/**
 * What the terms of one project begin with in the index: a word that every tenant uses then costs each of them only
 * his own messages. Two projects that share it only cost each other a little time.
 */
export function searchKey(projectId: string): string {
  return createHash('sha256').update(projectId).digest('base64url').slice(0, 5)
}

/** A term as Postgres reads it in a `tsvector` or `tsquery`. */
export const lexeme = (key: string, term: string): string =>
  `'${`${key}:${term}`.replaceAll('\\', '\\\\').replaceAll("'", "''")}'`

/** The project's mark, one position, alignment and the entry of the term. */
const TERM_OVERHEAD_BYTES = 20
const POSITION_BYTES = 2

/** The text form of the `tsvector` by which a message is found. */
export function searchVector(projectId: string, mail: SearchedMail): string {
  const key = searchKey(projectId)
  const places = new Map<string, string[]>()
  let position = 1
  let bytes = 0
  /** @returns how many places the term has now; 0 where the vector is full. */
  const put = (term: string, place: string): number => {
    const found = places.get(term)
    bytes += found === undefined ? Buffer.byteLength(term) + TERM_OVERHEAD_BYTES : POSITION_BYTES
    if (position > TERMS_MAX || bytes > VECTOR_MAX_BYTES) return 0
    if (found === undefined) places.set(term, [place])
    return found === undefined ? 1 : found.push(place)
  }
  const add = (field: SearchField, text: string) => {
    const start = `${position}${FIELD_WEIGHTS[field]}`
    let isCrowded = false
    for (const { term } of termsOf(text)) {
      const count = put(term, `${position}${FIELD_WEIGHTS[field]}`)
      if (count === 0) return
      if (count > PLACES_MAX) isCrowded = true
      position++
    }
    // Among hundreds of one domain the words of an address have lost their places, and stand in no row any more.
    const whole = isCrowded && (field === 'from' || field === 'to') ? addressTerm(text) : null
    if (whole !== null && !places.has(whole)) put(whole, start)
    // No phrase reaches from one part into the next.
    position += 2
  }
  add('subject', mail.subject)
  for (const address of mail.from) add('from', address)
  for (const address of mail.to) add('to', address)
  add('text', mail.text.slice(0, TEXT_MAX_CHARS))
  return [...places].map(([term, at]) => `${lexeme(key, term)}:${at.join(',')}`).join(' ')
}
