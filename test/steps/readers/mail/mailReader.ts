import type { Grammar } from '../../inputs/shapes.ts'
import type { Reader } from '../reader.ts'

/** Sets the size of the largest mail that the listener accepts (docs/contract.md §4). */
export const MAIL_MAX = 35 * 1024 * 1024
export const HTML_MAX = 2_000_000
/** Sets the maximum size of a header block that the mail parser reads. */
export const HEADER_MAX = 1024 * 1024
export const TYPED_MAX = 2 * 1024 * 1024

/** Makes a reader (a function whose steps the tests count) for a function in `shared/mail`. */
export const mailReader = (
  name: string,
  max: number,
  grammar: Grammar,
  read: (text: string) => unknown,
  beyond: Pick<Reader, 'budget' | 'own'> = {},
): Reader => ({ name: `mail/${name}`, max, grammar, read, ...beyond })
