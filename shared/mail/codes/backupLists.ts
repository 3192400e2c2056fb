/** Finds lists of long backup codes with one code in each line, and single long codes in groups of characters. */
import type { CodeLine } from './codeEvidence.ts'
import type { Candidate } from './codeShapes.ts'

/** Matches a line that contains only a long word of letters and digits, such as `09a81f8dd993dc59`. */
const LONG_LINE = /^(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z\d]{11,32}$/
/** Sets the minimum number of lines of equal length that count as a list of backup codes. */
const LIST_MIN = 3
/** Sets how many lines above and below a line the search for a list of codes reads. */
const LIST_MAX = 20

/**
 * Returns the code in one line of a list of long backup codes. All lines of the list have the same length. Above the
 * list, the last word that names any number must be a word for a code. Returns null if the line is no part of such a
 * list.
 */
export function listedCode(
  lines: readonly CodeLine[],
  at: number,
): (Candidate & { isToken: true }) | null {
  const value = lines[at]!.text
  if (!LONG_LINE.test(value)) return null
  const isListed = (n: number) => {
    const text = lines[n]?.text ?? ''
    return text.length === value.length && LONG_LINE.test(text)
  }
  let start = at
  while (at - start < LIST_MAX && isListed(start - 1)) start--
  let end = at
  while (end - start < LIST_MAX && isListed(end + 1)) end++
  if (end - start + 1 < LIST_MIN) return null
  const named = lines[start - 1]?.labels.findLast(({ kind }) => kind !== 'access')
  if (named?.kind !== 'certain' && named?.kind !== 'code') return null
  return wholeLine(value, value)
}

/** Matches a line that contains only groups of four or five capital letters and digits, as in `K5ZQ 7WXD 3MTA HV2P`. */
const GROUPED_LINE =
  /^(?:(?:(?=\d*[A-Z])[A-Z\d]{4}(?: |$)){3,8}|(?:(?=\d*[A-Z])[A-Z\d]{5}(?: |$)){3,8})$/

/**
 * Returns the long code that a line shows in groups. On one of the two lines above, the last word that names any number
 * must be a word for a code. Each group holds a letter, so that the number of a bank account does not count.
 */
export function groupedCode(
  lines: readonly CodeLine[],
  at: number,
): (Candidate & { isToken: true }) | null {
  const { text } = lines[at]!
  if (!GROUPED_LINE.test(text) || !/\d/.test(text)) return null
  const named = lines
    .slice(Math.max(0, at - 2), at)
    .flatMap(({ labels }) => labels)
    .findLast(({ kind }) => kind !== 'access')
  if (named?.kind !== 'certain' && named?.kind !== 'code') return null
  return wholeLine(text, text.replaceAll(' ', ''))
}

/** Makes a candidate of a whole line. */
const wholeLine = (line: string, value: string): Candidate & { isToken: true } => ({
  value,
  ...{ start: 0, end: line.length, kind: 'alphanumeric', isToken: true, isWeak: true },
  ...{ isYear: false, isKey: false, isPlace: false },
})
