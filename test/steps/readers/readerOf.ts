import type { Grammar } from '../inputs/shapes.ts'
import type { Reader } from './reader.ts'

/** Makes a reader (a function whose steps the tests count) from its full name and its properties. */
export const reader = (
  name: string,
  max: number,
  grammar: Grammar,
  read: (text: string) => unknown,
  budget = 0,
): Reader => ({ name, max, grammar, read, budget })

/** Makes a reader (a function whose steps the tests count) from each export of a file that reads one text. */
export const all = (
  file: string,
  max: number,
  grammar: Grammar,
  reads: Record<string, (text: string) => unknown>,
): Reader[] =>
  Object.entries(reads).map(([name, read]) => reader(`${file} ${name}`, max, grammar, read))

/** Cuts a text into pieces of the given length. */
export const pieces = (text: string, length = 8): string[] =>
  text.match(new RegExp(`.{1,${length}}`, 'gs')) ?? []

/**
 * Returns the value of a JSON text. If the text is not JSON, returns an object in which many members contain the text.
 */
export const json = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return { payload: text, x402Version: 2, accepts: [text], [text]: text, list: pieces(text) }
  }
}
