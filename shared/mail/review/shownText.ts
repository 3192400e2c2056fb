/**
 * Writes a text for a person who decides about a mail. No character of the text can hide the rest of it. The person
 * sees a sign for each invisible character, and a short note for a long run of blanks.
 */

/**
 * Sets the maximum number of consecutive blank lines in a shown text. The constant BLANKS_MAX limits the consecutive
 * blanks within one line. For a longer run of blanks, the text shows only their number.
 */
const LINES_MAX = 20
const BLANKS_MAX = 200

/**
 * Lists the ranges of invisible characters: controls, direction marks, zero-width characters, variation selectors and
 * tags.
 */
const UNSEEN_RANGES = [
  [0x00, 0x08],
  [0x0b, 0x1f],
  [0x7f, 0x9f],
  [0xad, 0xad],
  [0x34f, 0x34f],
  [0x61c, 0x61c],
  [0x115f, 0x1160],
  [0x17b4, 0x17b5],
  [0x180b, 0x180f],
  [0x200b, 0x200f],
  [0x2028, 0x202e],
  [0x2060, 0x206f],
  [0x2800, 0x2800],
  [0x3164, 0x3164],
  [0xfe00, 0xfe0e],
  [0xfeff, 0xfeff],
  [0xffa0, 0xffa0],
  [0xfff0, 0xfffb],
  [0x1bca0, 0x1bca3],
  [0x1d173, 0x1d17a],
  [0xe0000, 0xe0fff],
] as const
const hex = (code: number): string => code.toString(16).toUpperCase().padStart(4, '0')
const UNSEEN = new RegExp(
  `[${UNSEEN_RANGES.map(([from, to]) => `\\u{${hex(from)}}-\\u{${hex(to)}}`).join('')}]`,
  'gu',
)
// The patterns for blanks match runs of any length, because with a minimum length, the regular expression engine would
// read a short run again from each of its positions.
const BLANK_LINES = /\n(?:[^\S\n]*\n)+/g
const BLANKS = /[^\S\n]+/g

/** Makes all characters of a text visible. @param text is any text. The line ends of the text may be CRLF. */
export const shownText = (text: string): string =>
  text
    .replace(/\r\n/g, '\n')
    .replace(BLANKS, (run) => (run.length < BLANKS_MAX ? run : `⟨${run.length} blanks⟩`))
    .replace(BLANK_LINES, (run) => {
      const lines = run.split('\n').length - 2
      return lines < LINES_MAX ? run : `\n⟨${lines} empty lines⟩\n`
    })
    .replace(UNSEEN, (sign) => `⟨U+${hex(sign.codePointAt(0)!)}⟩`)
