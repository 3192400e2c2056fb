/** Returns text as a person sees it, without characters that only a machine reads. */

/**
 * Matches tag characters and bidirectional control characters (Trojan Source, CVE-2021-42574). Right-to-left text needs
 * none of them.
 */
const UNSEEN = /[\u{e0000}-\u{e007f}\u202a-\u202e\u2066-\u2069]/gu
/**
 * Matches several variation selectors in a row. A character takes only one variation selector, so further selectors
 * carry hidden bytes.
 */
const SELECTORS = /([\ufe00-\ufe0f\u{e0100}-\u{e01ef}])[\ufe00-\ufe0f\u{e0100}-\u{e01ef}]+/gu
/** Matches the flags of England, Scotland and Wales. These emoji consist of tag characters, but hide nothing. */
const FLAG = /\u{1f3f4}[\u{e0061}-\u{e007a}]{2,6}\u{e007f}/gu
const TAG = /[\u{e0020}-\u{e007e}]/u

/** Removes tag characters, bidirectional control characters, and hidden bytes from a text. */
export const readableText = (text: string): string =>
  text.replace(UNSEEN, '').replace(SELECTORS, '$1')

/** Tells whether a text hides words in tag characters. */
export const holdsTags = (text: string): boolean =>
  TAG.test(text) && TAG.test(text.replace(FLAG, ''))

/**
 * Sets the maximum number of plain-text words in the comparison of a mail's plain text with its HTML. The comparison
 * reads at most twice as many words of the HTML as of the plain text.
 */
const MAX_WORDS = 5_000
const MAX_CHARS = 400_000
/** Sets the minimum number of words of a plain text for a comparison with the HTML. */
const MIN_WORDS = 5
/**
 * Sets the maximum fraction of the plain text's words that may be missing in the HTML. Above this fraction, the plain
 * text and the HTML count as different.
 */
const OWN_SHARE_MAX = 0.5

/**
 * Matches a word. In scripts without spaces between words, each character counts as a word. The comparison does not
 * count URLs of links as words.
 */
const WORD =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]|[\p{L}\p{N}]{2,40}/gu
const LINK = /\b(?:https?:\/\/|mailto:|www\.)\S{1,2000}/gi

/** Tells whether most words of a mail's plain text are missing in the mail's HTML. */
export function saysElse(plain: string, html: string): boolean {
  const words = wordsOf(plain, MAX_WORDS)
  if (words.size < MIN_WORDS) return false
  // The comparison reads twice as many words of the HTML as of the plain text, because the HTML may hold the words in
  // another order.
  const others = wordsOf(html, 2 * MAX_WORDS)
  const own = [...words].filter((word) => !others.has(word)).length
  return own / words.size > OWN_SHARE_MAX
}

function wordsOf(text: string, max: number): Set<string> {
  const words = new Set<string>()
  for (const [word] of text.slice(0, MAX_CHARS).replace(LINK, ' ').toLowerCase().matchAll(WORD)) {
    words.add(word)
    if (words.size >= max) break
  }
  return words
}
