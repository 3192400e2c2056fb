import type { Grammar } from '../inputs/shapes.ts'

/** Is a function that reads a stranger’s text, and that the step check measures. */
export type Reader = {
  /** Is the file and the name of the exported function. A variant follows if the function is measured twice. */
  name: string
  /** Is the size of the largest input that the service passes, in UTF-16 units or bytes. */
  max: number
  grammar: Grammar
  read: (text: string) => unknown
  /** Holds texts that are always measured, because the reader was once slow or the text is close to a limit. */
  own?: Readonly<Record<string, (length: number) => string>>
  /**
   * Is the number of steps that the reader may take in addition to linear work, because a limit in the reader bounds
   * these steps.
   */
  budget?: number
}
