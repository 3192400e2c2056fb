/**
 * Cuts a sorted list of search terms into blocks, each with its postings (the messages that hold the term). Each block
 * fits into a quarter of a PostgreSQL page. For each term, a block stores how many leading bytes it shares with the
 * previous term. The remaining bytes of the term and its postings follow.
 *
 * A search term is a byte string: each character stands for one byte of the term's UTF-8. Therefore JavaScript sorts
 * the terms in the same order as PostgreSQL sorts `bytea`.
 */
import { leb128, readLeb128 } from './postings.ts'

/**
 * Sets the maximum number of bytes of a block of search terms, because PostgreSQL moves parts of a row with more than
 * 2,032 bytes out of the page. A search term with longer postings has a separate block.
 */
const BLOCK_BYTES = 1_900

/**
 * Describes a block of sorted search terms. The field `terms` holds the terms with their postings, and `firstTerm` is
 * the byte string of the first term.
 */
export type TermBlock = { firstTerm: string; terms: Buffer }

/** Returns the byte string of a text, in which each character stands for one byte of the text's UTF-8. */
export const byteString = (text: string): string => Buffer.from(text).toString('latin1')

/** Cuts search terms into blocks. */
export class BlockWriter {
  #firstTerm = ''
  #lastTerm = ''
  #parts: Uint8Array[] = []
  #bytes = 0
  #done: TermBlock[] = []

  /**
   * Adds a search term with its postings to the current block. The caller must add the search terms in ascending order.
   */
  add(term: string, postings: Uint8Array): void {
    const isFirst = this.#parts.length === 0
    const shared = isFirst ? 0 : sharedBytes(this.#lastTerm, term)
    const rest = Buffer.from(term.slice(shared), 'latin1')
    const head = [...leb128(shared), ...leb128(rest.length)]
    const size = leb128(postings.length)
    const bytes = head.length + rest.length + size.length + postings.length
    if (!isFirst && this.#bytes + bytes > BLOCK_BYTES) {
      this.#end()
      this.add(term, postings)
      return
    }
    if (isFirst) this.#firstTerm = term
    this.#lastTerm = term
    this.#parts.push(Uint8Array.from(head), rest, Uint8Array.from(size), postings)
    this.#bytes += bytes
  }

  /** Returns the number of full blocks of terms that the writer holds. */
  get full(): number {
    return this.#done.length
  }

  /**
   * Takes the full blocks out of the writer. With `isLast`, the function also takes out the last block, even if it is
   * not full.
   */
  take(isLast: boolean): TermBlock[] {
    if (isLast) this.#end()
    const taken = this.#done
    this.#done = []
    return taken
  }

  #end(): void {
    if (this.#parts.length === 0) return
    this.#done.push({ firstTerm: this.#firstTerm, terms: Buffer.concat(this.#parts) })
    this.#parts = []
    this.#bytes = 0
  }
}

/** Calls `visit` with each term of a block in order, until `visit` returns false. */
export function eachTermOf(
  { terms }: Pick<TermBlock, 'terms'>,
  visit: (term: string, postings: Uint8Array) => boolean,
): void {
  let term = ''
  for (let at = 0; at < terms.length; ) {
    const [shared, lengthAt] = readLeb128(terms, at)
    const [length, restAt] = readLeb128(terms, lengthAt)
    term = term.slice(0, shared) + terms.toString('latin1', restAt, restAt + length)
    const [size, postingsAt] = readLeb128(terms, restAt + length)
    at = postingsAt + size
    if (!visit(term, terms.subarray(postingsAt, at))) return
  }
}

function sharedBytes(one: string, other: string): number {
  const most = Math.min(one.length, other.length)
  let n = 0
  while (n < most && one.charCodeAt(n) === other.charCodeAt(n)) n++
  return n
}
