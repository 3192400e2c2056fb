/**
 * Makes the terms of messages and queries for full-text search in any script.
 *
 * Terms are words without case, accents and compatibility forms (Unicode NFKC). They are not stemmed, because a stemmer
 * for one language is wrong for all others. In scripts without spaces between words, the terms are pairs of
 * neighbouring letters. For a longer run of letters, a search requires that its pairs follow each other directly.
 * Search engines treat Chinese, Japanese, Korean and Thai in the same way.
 */
import { createHash } from 'node:crypto'
import { addressKey, parseAnyAddress } from '../address.ts'

/**
 * Sets the maximum number of characters of a message body that the search index covers. A message body beyond this
 * limit is usually a log or a table.
 */
const TEXT_MAX_CHARS = 256 * 1024
/**
 * Sets the maximum number of search terms of a message, because a PostgreSQL tsvector holds positions up to 16,383 and
 * at most 1 MB.
 */
const TERMS_MAX = 16_000
const TERM_MAX_CHARS = 48
/**
 * Sets the maximum number of positions of one search term in a message, because Postgres keeps 255 positions per term
 * and drops later positions.
 */
const PLACES_MAX = 255
/**
 * Sets the maximum number of bytes of a tsvector. It stays well below Postgres's limit of 1 MB, because a term of 48
 * letters can have 190 bytes.
 */
const VECTOR_MAX_BYTES = 700_000

const UNSPACED =
  '\\p{Script=Han}\\p{Script=Hiragana}\\p{Script=Katakana}\\p{Script=Hangul}\\p{Script=Thai}\\p{Script=Lao}\\p{Script=Khmer}\\p{Script=Myanmar}'
/** Matches a run of letters in a script without spaces between words, or one word in any other script. */
const RUN = new RegExp(
  `[${UNSPACED}][${UNSPACED}\\p{M}ー]*|(?:(?![${UNSPACED}])[\\p{L}\\p{N}\\p{M}])+`,
  'gu',
)
const STARTS_UNSPACED = new RegExp(`^[${UNSPACED}]`, 'u')

/**
 * Matches accents of Latin, Greek and Cyrillic, and points of Hebrew and Arabic. The pattern does not match vowel signs
 * of Indic scripts, which act as letters.
 */
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

/** Holds one term of a text with its UTF-16 offsets. */
export type Term = { term: string; start: number; end: number }

/**
 * Matches ASCII text. Most mail is ASCII, and a search for words in ASCII text without Unicode rules takes a tenth of
 * the time.
 */
const ASCII = /^[\0-\x7f]*$/
const ASCII_RUN = /[0-9A-Za-z]+/g

function fold(word: string): string {
  if (ASCII.test(word)) return word.toLowerCase()
  const plain = word.normalize('NFKD').toLowerCase().replace(ACCENTS, '').normalize('NFC')
  return plain.replace(/[ßæœøłđıς]/g, (letter) => LIGATURES[letter]!)
}

/** Returns the search terms of a text, in order. */
export function termsOf(text: string): Term[] {
  const terms: Term[] = []
  eachTerm(text, (term, start, end) => {
    terms.push({ term, start, end })
    return true
  })
  return terms
}

/**
 * Calls `visit` with each search term of a text, in order, until `visit` returns false, because a generator function
 * would take twice as long.
 */
function eachTerm(text: string, visit: (term: string, start: number, end: number) => boolean) {
  const isAscii = ASCII.test(text)
  const runs = isAscii ? ASCII_RUN : RUN
  runs.lastIndex = 0
  for (let match = runs.exec(text); match !== null; match = runs.exec(text)) {
    const [run] = match
    const start = match.index
    if (isAscii) {
      if (!visit(run.slice(0, TERM_MAX_CHARS).toLowerCase(), start, start + run.length)) return
    } else if (STARTS_UNSPACED.test(run)) {
      for (const { term, start: from, end } of pairsOf(run, start)) {
        if (!visit(term, from, end)) return
      }
    } else {
      const term = fold(run.slice(0, TERM_MAX_CHARS)).slice(0, TERM_MAX_CHARS).toWellFormed()
      if (term !== '' && !visit(term, start, start + run.length)) return
    }
  }
}

/**
 * Calls `visit` with each search term of a text, without the term's offsets, because for ASCII text, the visit without
 * offsets takes half the time of a visit with offsets.
 */
function eachWord(text: string, visit: (term: string) => boolean): void {
  const isAscii = ASCII.test(text)
  if (!isAscii) eachTerm(text, visit)
  for (const run of isAscii ? (text.toLowerCase().match(ASCII_RUN) ?? []) : []) {
    if (!visit(run.length > TERM_MAX_CHARS ? run.slice(0, TERM_MAX_CHARS) : run)) return
  }
}

/**
 * Matches the parts into which Unicode NFD decomposes Hangul and kana, because a Mac writes file names in NFD. The
 * pattern LETTER joins the parts of one letter.
 */
const DECOMPOSED = /[\u1100-\u11ff\u3099\u309a]/
const LETTER = /[\u1100-\u1112][\u1161-\u1175][\u11a8-\u11c2]?|.[\u3099\u309a]?/gsu

/**
 * Cuts a run of letters into pairs: `甲乙丙` gives 甲乙, 乙丙 and 丙. The last letter is also a term by itself, so that each
 * letter begins a term.
 */
function* pairsOf(run: string, start: number): Generator<Term> {
  const letters: Term[] = []
  let at = start
  for (const letter of DECOMPOSED.test(run) ? run.match(LETTER)! : run) {
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

/**
 * Returns a whole email address as one search term. The search term of an address contains `@`, but the term of a word
 * never contains `@`. @returns null if the text is no address.
 */
export function addressTerm(text: string): string | null {
  const address = parseAnyAddress(text)
  return address === null ? null : fold(addressKey(address))
}

/**
 * Tells whether a search term is a single letter from a script without spaces between words. Only the last letter of a
 * run of letters is such a term.
 */
export const isSingleLetter = (term: string): boolean =>
  [...term].length === 1 && (STARTS_UNSPACED.test(term) || term === 'ー')

/** Tells whether a search term is a pair of letters from a script without spaces between words. */
export const isPair = (term: string): boolean =>
  [...term].length === 2 && STARTS_UNSPACED.test(term)

/** Holds the searchable fields of a message. In the tsvector, each field of a message has a separate weight. */
export type SearchedMail = {
  subject: string
  from: readonly string[]
  /** Holds the addresses in To, Cc and Bcc. */
  to: readonly string[]
  /** Holds the body of the message, and the names of the message's attachments. */
  text: string
}

export const FIELD_WEIGHTS = { subject: 'A', from: 'B', to: 'C', text: 'D' } as const
export type SearchField = keyof typeof FIELD_WEIGHTS

/**
 * Returns the prefix of a project's terms in the search index. With this prefix, a search for a common word reads only
 * the messages of one project. If two projects have the same prefix, their searches are slower, but never show messages
 * of the other project.
 */
export function searchKey(projectId: string): string {
  return createHash('sha256').update(projectId).digest('base64url').slice(0, 5)
}

/** Puts the project's prefix before a search term, and quotes it for the text form of a `tsvector` or `tsquery`. */
export const lexeme = (key: string, term: string): string =>
  // Only a search term from an address may hold a quote or a backslash, which the function must escape.
  /[\\']/.test(term)
    ? `'${key}:${term.replaceAll('\\', '\\\\').replaceAll("'", "''")}'`
    : `'${key}:${term}'`

/**
 * Estimates the bytes that a new term takes in a tsvector besides its letters: the project's prefix, one position, the
 * alignment and the entry.
 */
const TERM_OVERHEAD_BYTES = 20
const POSITION_BYTES = 2

/**
 * Maps each search term to its positions in a message, in the order of the text. A position has the packed form of
 * Postgres: two bits of weight and fourteen bits of position.
 */
type Places = Map<string, number[]>
const POSITION_BITS = 14
const PACKED_WEIGHTS = 'DCBA'

/** Writes a message's `tsvector` in its text form. */
export function searchVector(projectId: string, mail: SearchedMail): string {
  const key = searchKey(projectId)
  const shown = (place: number) =>
    `${place & (2 ** POSITION_BITS - 1)}${PACKED_WEIGHTS[place >> POSITION_BITS]}`
  return [...placesOf(mail).places]
    .map(([term, places]) => `${lexeme(key, term)}:${places.map(shown).join(',')}`)
    .join(' ')
}

/**
 * Writes a message's `tsvector` in its binary form (tsvectorrecv): the number of terms, then each term with its
 * positions. Postgres reads 480 terms in 0.33 ms in the text form, and in 0.15 ms in this form.
 */
export function binarySearchVector(projectId: string, mail: SearchedMail): Buffer {
  const key = `${searchKey(projectId)}:`
  const { places, maxBytes } = placesOf(mail)
  const vector = Buffer.allocUnsafe(4 + maxBytes)
  let at = vector.writeInt32BE(places.size)
  for (const [term, ofTerm] of places) {
    at += vector.write(`${key}${term}\0`, at)
    at = vector.writeUInt16BE(ofTerm.length, at)
    for (const place of ofTerm) at = vector.writeUInt16BE(place, at)
  }
  return vector.subarray(0, at)
}

function placesOf(mail: SearchedMail): { places: Places; maxBytes: number } {
  const places: Places = new Map()
  let position = 1
  let bytes = 0
  /**
   * Adds a term at a position of the message to the search vector. @returns how many positions the term then has in the
   * vector. The result 0 means that the vector is full.
   */
  const put = (term: string, place: number): number => {
    const found = places.get(term)
    bytes += found === undefined ? Buffer.byteLength(term) + TERM_OVERHEAD_BYTES : POSITION_BYTES
    if (position > TERMS_MAX || bytes > VECTOR_MAX_BYTES) return 0
    if (found === undefined) {
      places.set(term, [place])
      return 1
    }
    return found.length === PLACES_MAX ? PLACES_MAX + 1 : found.push(place)
  }
  const add = (field: SearchField, text: string) => {
    const weight = PACKED_WEIGHTS.indexOf(FIELD_WEIGHTS[field]) << POSITION_BITS
    const start = weight | position
    let isCrowded = false
    let isFull = false
    eachWord(text, (term) => {
      const count = put(term, weight | position)
      isFull = count === 0
      if (count > PLACES_MAX) isCrowded = true
      if (!isFull) position++
      return !isFull
    })
    if (isFull) return
    // A field with hundreds of addresses in one domain uses up the positions of the domain's words. A phrase with these
    // words then no longer matches. For this reason, each whole address of such a field becomes an additional search
    // term.
    const whole = isCrowded && (field === 'from' || field === 'to') ? addressTerm(text) : null
    if (whole !== null && !places.has(whole)) put(whole, start)
    // The gap between the positions of two fields prevents a phrase from matching across both fields.
    position += 2
  }
  add('subject', mail.subject)
  for (const address of mail.from) add('from', address)
  for (const address of mail.to) add('to', address)
  add('text', mail.text.slice(0, TEXT_MAX_CHARS))
  return { places, maxBytes: bytes }
}
