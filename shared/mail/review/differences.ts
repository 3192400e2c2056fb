/**
 * Describes a piece of the mail text that a person reviews before the mail is sent. The field `mark` tells why the
 * person should look closely at this piece of the text.
 */
export type Piece = { text: string; mark?: string }

const WORD = /[\p{L}\p{N}]+/gu

/** Returns all pairs of neighbouring words in a text, and also all single words of the text. */
function pairsOf(text: string): Set<string> {
  const pairs = new Set<string>()
  let before = ''
  for (const [word] of text.matchAll(WORD)) {
    const lower = word.toLowerCase()
    pairs.add(`${before} ${lower}`)
    before = lower
  }
  pairs.add(`${before} `)
  return pairs
}

/**
 * Marks the words of `text` that are missing in `other`, or that have other neighbouring words in `other`. The function
 * compares only pairs of neighbouring words. Therefore it needs only one pass, and also marks words in another order.
 */
export function markDifferences(text: string, other: string, mark: string): Piece[] {
  const known = pairsOf(other)
  const words = [...text.matchAll(WORD)].map((match) => ({
    word: match[0].toLowerCase(),
    start: match.index,
    end: match.index + match[0].length,
  }))
  const pieces: Piece[] = []
  let done = 0
  let marked: { start: number; end: number } | null = null
  const flush = () => {
    if (marked === null) return
    if (marked.start > done) pieces.push({ text: text.slice(done, marked.start) })
    pieces.push({ text: text.slice(marked.start, marked.end), mark })
    done = marked.end
    marked = null
  }
  for (const [n, { word, start, end }] of words.entries()) {
    const isKnown =
      known.has(`${words[n - 1]?.word ?? ''} ${word}`) ||
      known.has(`${word} ${words[n + 1]?.word ?? ''}`)
    if (isKnown) flush()
    else if (marked === null) marked = { start, end }
    else marked.end = end
  }
  flush()
  if (done < text.length) pieces.push({ text: text.slice(done) })
  return pieces
}

/** Cuts a text into pieces, and marks the pieces that match a pattern. */
export function markMatches(text: string, pattern: RegExp, mark: string): Piece[] {
  const pieces: Piece[] = []
  let done = 0
  for (const match of text.matchAll(pattern)) {
    if (match.index > done) pieces.push({ text: text.slice(done, match.index) })
    pieces.push({ text: match[0], mark })
    done = match.index + match[0].length
  }
  if (done < text.length) pieces.push({ text: text.slice(done) })
  return pieces
}
