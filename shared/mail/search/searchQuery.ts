/**
 * Translates a search query into a PostgreSQL `tsquery`, and finds the matches of the query in the text of a message.
 */
import {
  addressTerm,
  FIELD_WEIGHTS,
  isPair,
  isSingleLetter,
  lexeme,
  type SearchField,
  searchKey,
  type Term,
  termsOf,
} from './searchTerms.ts'

/** Sets the maximum number of terms in one search query. */
const TERMS_MAX = 64
/**
 * Sets the minimum number of characters of a prefix (such as begin*) in a search query, because a search reads every
 * term with the prefix, and very many terms may have a short prefix. The constant PREFIXES_MAX limits the number of
 * prefixes.
 */
const PREFIX_MIN_CHARS = 3
const PREFIXES_MAX = 8

/**
 * Holds search terms that must follow each other directly. The field `prefix` tells whether the last term of the phrase
 * is only the beginning of a word.
 */
export type Phrase = { terms: string[]; prefix: boolean }

/** Describes a search query. A message matches the query if the message satisfies every clause. */
export type SearchQuery = {
  clauses: { anyOf: Phrase[]; not: boolean; field: SearchField | null }[]
}

/** Reports that the search query is malformed. The error's `message` states the rule for search queries. */
export class SearchQueryError extends Error {}

const ITEM = /(-)?(?:"([^"]*)"?|([^\s"]+))/gu

/**
 * Reads a search query in the form that people type. The forms are words (all required), "a phrase", -without, one OR
 * other, and begin*.
 * @throws {SearchQueryError} if the query is malformed or has too many terms.
 */
export function parseSearch(q: string): SearchQuery {
  const clauses: SearchQuery['clauses'] = []
  let joinsLast = false
  for (const [, minus, quoted, word] of q.matchAll(ITEM)) {
    if (word === 'OR' && minus === undefined) {
      joinsLast = clauses.length > 0
      continue
    }
    const phrases = phrasesOf(quoted ?? word ?? '')
    if (phrases.length === 0) continue
    const last = clauses.at(-1)
    if (joinsLast && last !== undefined && !last.not && minus === undefined) {
      last.anyOf.push(...phrases)
    } else clauses.push({ anyOf: phrases, not: minus !== undefined, field: null })
    joinsLast = false
  }
  if (!clauses.some((clause) => !clause.not)) {
    throw new SearchQueryError('hold at least one word to look for')
  }
  checkSize(clauses)
  return { clauses }
}

/**
 * Makes a search query on one field of a message, such as part of a sender's address. @throws {SearchQueryError} if the
 * text has no letter or digit, or too many words.
 */
export function parseField(field: SearchField, text: string): SearchQuery {
  const phrases = phrasesOf(text)
  if (phrases.length === 0) throw new SearchQueryError('hold at least one letter or digit')
  const clauses = [{ anyOf: phrases, not: false, field }]
  checkSize(clauses)
  return { clauses }
}

function checkSize(clauses: SearchQuery['clauses']): void {
  const terms = clauses.flatMap(({ anyOf }) => anyOf.flatMap((phrase) => phrase.terms))
  const words = terms.filter((term) => !term.includes('@'))
  if (words.length > TERMS_MAX) throw new SearchQueryError(`hold at most ${TERMS_MAX} words`)
  const prefixes = clauses.flatMap(({ anyOf }) =>
    anyOf.flatMap(({ terms, prefix }) => (prefix ? [terms.at(-1)!] : [])),
  )
  if (prefixes.length > PREFIXES_MAX) {
    throw new SearchQueryError(`hold at most ${PREFIXES_MAX} beginnings of words`)
  }
  if (
    prefixes.some(
      (term) => term.length < PREFIX_MIN_CHARS && !isSingleLetter(term) && !isPair(term),
    )
  ) {
    throw new SearchQueryError(`have at least ${PREFIX_MIN_CHARS} letters before *`)
  }
}

/**
 * Returns the words of a text as a phrase (search terms that must follow each other directly). For an email address, a
 * second phrase holds the whole address as one search term. With this term, a search also finds the address in very
 * long recipient lists.
 */
function phrasesOf(text: string): Phrase[] {
  const [phrase, whole] = [phraseOf(text), addressTerm(text.trim())]
  if (phrase === null) return []
  return whole === null ? [phrase] : [phrase, { terms: [whole], prefix: false }]
}

function phraseOf(text: string): Phrase | null {
  const terms = termsOf(text).map(({ term }) => term)
  const last = terms.at(-1)
  if (last === undefined) return null
  if (!isSingleLetter(last)) return { terms, prefix: text.endsWith('*') }
  // The function `pairsOf` cuts a run of letters into pairs, and leaves the last letter alone. In a message, the same
  // run may continue after the last letter of the query. Therefore the query drops this letter if the previous pair
  // ends with it, and otherwise uses it as a prefix.
  if (terms.at(-2)?.endsWith(last)) return { terms: terms.slice(0, -1), prefix: false }
  return { terms, prefix: true }
}

/** Writes the `tsquery` for one project in its text form. */
export function searchText(projectId: string, { clauses }: SearchQuery): string {
  const key = searchKey(projectId)
  return clauses
    .map(({ anyOf, not, field }) => {
      const weight = field === null ? '' : FIELD_WEIGHTS[field]
      const options = anyOf.map(({ terms, prefix }) =>
        terms
          .map((term, n) => {
            const flags = (prefix && n === terms.length - 1 ? '*' : '') + weight
            return `${lexeme(key, term)}${flags === '' ? '' : `:${flags}`}`
          })
          .join(' <-> '),
      )
      return `${not ? '!' : ''}(${options.map((option) => `(${option})`).join(' | ')})`
    })
    .join(' & ')
}

/** Tells whether the given texts of a message satisfy every clause of the search query. */
export function holdsIn(
  { clauses }: SearchQuery,
  texts: Readonly<Partial<Record<SearchField, readonly string[]>>>,
): boolean {
  return clauses.every(({ anyOf, not, field }) => {
    const own = field === null ? Object.values(texts).flat() : (texts[field] ?? [])
    return not !== own.some((text) => findPhrases(termsOf(text), anyOf).length > 0)
  })
}

/**
 * Holds a part of a message's text around the matches of a search. The field `ranges` gives the matches as UTF-16
 * offsets into `text`.
 */
export type Highlight = { text: string; ranges: [start: number, end: number][] }

const CONTEXT_CHARS = 60
const HIGHLIGHTS_MAX = 3
/** Sets the maximum number of characters of one highlight (a shown piece of a message) with several matches. */
const HIGHLIGHT_MAX_CHARS = 400
/** Sets the maximum number of characters of a body in which `highlight` searches for matches. */
const HIGHLIGHTED_CHARS = 64 * 1024

/**
 * Returns the parts of a field's text around the first matches of a search query. The list is empty if the query
 * matched only in other fields of the message.
 */
export function highlight(text: string, { clauses }: SearchQuery, field: SearchField): Highlight[] {
  const phrases = clauses.flatMap((clause) =>
    clause.not || (clause.field !== null && clause.field !== field) ? [] : clause.anyOf,
  )
  const looked = text.slice(0, HIGHLIGHTED_CHARS)
  const found = phrases.length === 0 ? [] : findPhrases(termsOf(looked), phrases)
  const pieces: { start: number; end: number; ranges: [number, number][] }[] = []
  for (const [start, end] of found) {
    const last = pieces.at(-1)
    const fits = last !== undefined && end + CONTEXT_CHARS - last.start <= HIGHLIGHT_MAX_CHARS
    if (fits && start <= last.end) {
      last.ranges.push([start, end])
      last.end = end + CONTEXT_CHARS
    } else if (pieces.length < HIGHLIGHTS_MAX) {
      // If the previous highlighted piece has no room for another match, the code ends this piece where the next one
      // starts.
      if (last !== undefined && last.end > start) last.end = start
      pieces.push({
        start: Math.max(wordStart(looked, start - CONTEXT_CHARS), last?.end ?? 0),
        end: end + CONTEXT_CHARS,
        ranges: [[start, end]],
      })
    } else break
  }
  return pieces.map(({ start, end, ranges }) => ({
    text: looked.slice(start, end).toWellFormed(),
    ranges: ranges.map(([from, to]) => [from - start, Math.min(to, looked.length) - start]),
  }))
}

/** Sets the maximum number of matches that `highlight` collects, because it returns only three pieces. */
const MATCHES_MAX = 50

function findPhrases(terms: readonly Term[], phrases: readonly Phrase[]): [number, number][] {
  const beginnings = phrases.filter(({ terms, prefix }) => prefix && terms.length === 1)
  const byFirst = Map.groupBy(
    phrases.filter((phrase) => !beginnings.includes(phrase)),
    (phrase) => phrase.terms[0],
  )
  const matches: [number, number][] = []
  for (let at = 0; at < terms.length && matches.length < MATCHES_MAX; at++) {
    const possible = [...(byFirst.get(terms[at]!.term) ?? []), ...beginnings]
    const lengths = possible
      .filter((phrase) => matchesAt(terms, at, phrase))
      .map((phrase) => phrase.terms.length)
    if (lengths.length === 0) continue
    const length = Math.max(...lengths)
    matches.push([terms[at]!.start, terms[at + length - 1]!.end])
    at += length - 1
  }
  return matches
}

function matchesAt(terms: readonly Term[], at: number, { terms: wanted, prefix }: Phrase): boolean {
  return wanted.every((term, n) => {
    const there = terms[at + n]?.term
    return prefix && n === wanted.length - 1 ? there?.startsWith(term) === true : there === term
  })
}

/** Moves the start of a highlighted piece of text to the next word boundary, if a word boundary is near. */
function wordStart(text: string, wanted: number): number {
  if (wanted <= 0) return 0
  const space = text.slice(wanted, wanted + CONTEXT_CHARS / 2).search(/\s/)
  return space === -1 ? wanted : wanted + space + 1
}
