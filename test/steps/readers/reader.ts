import type { Grammar } from '../inputs/shapes.ts'

/** Describes a function that reads a stranger’s text, and that the step check measures. */
export type Reader = {
  /**
   * Holds the file name and the function name of the exported function. If a function is measured twice, the name of
   * the variant is added.
   */
  name: string
  /** Holds the size of the largest input that the service passes to the function, in UTF-16 units or bytes. */
  max: number
  grammar: Grammar
  read: (text: string) => unknown
  /**
   * Holds the texts that are always measured, because the reader was once slow with these texts or because they are
   * close to a limit.
   */
  own?: Readonly<Record<string, (length: number) => string>>
  /**
   * Besides linear work, the reader may take this number of additional steps, because a limit inside the reader bounds
   * these steps.
   */
  budget?: number
}
