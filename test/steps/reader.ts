import type { Grammar } from './shapes.ts'

/** A function that reads what a stranger wrote. */
export type Reader = {
  /** `FILE EXPORT`, and what varies where it stands twice. */
  name: string
  /** The largest input that the service hands it, in UTF-16 units or bytes. */
  max: number
  grammar: Grammar
  read: (text: string) => unknown
  /** Steps that the function's own bound allows beyond linear work, whatever the input. */
  budget?: number
}
