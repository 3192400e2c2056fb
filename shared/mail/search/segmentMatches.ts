/**
 * Finds the messages of a search segment that may match a query. The function uses the postings of the query's words:
 * for each word, the list of messages that hold it.
 */
import { LEAF_MESSAGES, setBits } from './postings.ts'
import type { Phrase, SearchQuery } from './searchQuery.ts'
import { byteString } from './termBlocks.ts'

/**
 * Names a search term whose postings (the messages that hold the term) the query reads. With `prefix`, the query reads
 * all terms that begin with the byte string `term`.
 */
export type WantedTerm = { term: string; prefix: boolean }

/**
 * Describes a range of leaves (groups of messages in the search index). One segment stores the search terms of these
 * leaves together.
 */
export type LeafRange = { firstLeaf: number; lastLeaf: number }

/**
 * Holds a set of messages as a bitmap, with one bit for each message of each leaf (group of messages) in a range. The
 * methods use plain loops over the bitmap, because iterators would take ten times as long.
 */
export class Places {
  readonly #firstLeaf: number
  readonly #bits: Uint8Array
  constructor({ firstLeaf, lastLeaf }: LeafRange) {
    this.#firstLeaf = firstLeaf
    this.#bits = new Uint8Array(((lastLeaf - firstLeaf + 1) * LEAF_MESSAGES) / 8)
  }

  /**
   * Returns the set of all messages that the leaves (groups of messages) in the range can hold. The set also includes
   * the unused indexes of a leaf with few messages.
   */
  static all(range: LeafRange): Places {
    const all = new Places(range)
    all.#bits.fill(0xff)
    return all
  }

  /** Adds the messages in the postings of a term (the list of messages with this term) to this set. */
  add(postings: Uint8Array): void {
    setBits(this.#bits, this.#firstLeaf, postings)
  }

  /** Removes from this set the messages that another set of the same segment does not contain. */
  keep(other: Places): void {
    for (let n = 0; n < this.#bits.length; n++) this.#bits[n]! &= other.#bits[n]!
  }

  /** Adds the messages of another set of the same segment to this set. */
  join(other: Places): void {
    for (let n = 0; n < this.#bits.length; n++) this.#bits[n]! |= other.#bits[n]!
  }

  /**
   * Returns the leaves (groups of messages) that contain at least one message of the set, sorted by leaf number. Each
   * leaf lists the indexes of these messages within the leaf.
   */
  byLeaf(): [leaf: number, places: number[]][] {
    const found: [number, number[]][] = []
    for (const [n, bits] of this.#bits.entries()) {
      if (bits === 0) continue
      const leaf = this.#firstLeaf + Math.floor((n * 8) / LEAF_MESSAGES)
      const start = (n * 8) % LEAF_MESSAGES
      if (found.at(-1)?.[0] !== leaf) found.push([leaf, []])
      const places = found.at(-1)![1]
      for (let bit = 0; bit < 8; bit++) if (bits & (1 << bit)) places.push(start + bit)
    }
    return found
  }
}

/**
 * Returns the search terms that select the candidate messages of a query. For each term, the caller reads the postings
 * (the list of messages with the term). Phrases that a message must not contain give no search terms.
 */
export function wantedTerms(queries: readonly SearchQuery[]): WantedTerm[] {
  const phrases = queries.flatMap(({ clauses }) =>
    clauses.flatMap(({ anyOf, not }) => (not ? [] : anyOf)),
  )
  const wanted = new Map(
    phrases.flatMap((phrase) => termsOf(phrase).map((term) => [wantedKey(term), term] as const)),
  )
  return [...wanted.values()]
}

/**
 * Tells whether a segment (part) of the search index holds the query's whole words. Only then may a message of the
 * segment match the query. The function does not check the query's prefixes.
 */
export function mayMatch(
  queries: readonly SearchQuery[],
  placesOf: ReadonlyMap<string, Places>,
): boolean {
  const holds = (term: WantedTerm) => term.prefix || placesOf.has(wantedKey(term))
  return queries.every(({ clauses }) =>
    clauses.every(({ anyOf, not }) => not || anyOf.some((phrase) => termsOf(phrase).every(holds))),
  )
}

/**
 * Returns the messages that contain the required words of every given query. The function does not check the order of
 * words, their fields, or excluded words. Therefore it never leaves out a matching message, but may return messages
 * that do not match.
 * @param placesOf maps the key of each wanted search term to the messages that contain the term.
 */
export function segmentMatches(
  range: LeafRange,
  queries: readonly SearchQuery[],
  placesOf: ReadonlyMap<string, Places>,
): Places {
  const ofPhrase = (phrase: Phrase) =>
    allOf(termsOf(phrase).map((term) => placesOf.get(wantedKey(term)) ?? new Places(range)))
  const allOf = ([first, ...others]: readonly Places[]): Places => {
    const all = new Places(range)
    if (first !== undefined) all.join(first)
    for (const other of others) all.keep(other)
    return all
  }
  const anyOf = (phrases: readonly Phrase[]): Places => {
    const any = new Places(range)
    for (const phrase of phrases) any.join(ofPhrase(phrase))
    return any
  }
  return allOf(
    queries.flatMap(({ clauses }) =>
      clauses.flatMap((clause) => (clause.not ? [] : anyOf(clause.anyOf))),
    ),
  )
}

/** Returns the key of a wanted search term in the map `placesOf`. */
export const wantedKey = ({ term, prefix }: WantedTerm): string => `${term}${prefix ? '*' : ''}`

const termsOf = ({ terms, prefix }: Phrase): WantedTerm[] =>
  terms.map((term, n) => ({
    term: byteString(term),
    prefix: prefix && n === terms.length - 1,
  }))
