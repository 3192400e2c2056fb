import type { Grammar } from '../inputs/shapes.ts'

/** A function that reads what a stranger wrote. */
export type Reader = {
  /** `FILE EXPORT`, and what varies where it stands twice. */
  name: string
  /** The largest input that the service hands it, in UTF-16 units or bytes. */
  max: number
  grammar: Grammar
  read: (text: string) => unknown
  /** Texts of a given length that always run: each was slow once, or is close to a bound. */
  own?: Readonly<Record<string, (length: number) => string>>
  /** Steps that the function's own bound allows beyond linear work, whatever the input. */
  budget?: number
}
