import type { Grammar } from '../inputs/shapes.ts'

/** Describes a function that reads untrusted text, and whose steps the tests count. */
export type Reader = {
  /**
   * Holds the file name and the function name of a measured function. If a function is measured twice, the name of the
   * variant is added.
   */
  name: string
  /** Holds the size of the largest input that the service passes to the function, in UTF-16 units or bytes. */
  max: number
  grammar: Grammar
  read: (text: string) => unknown
  /**
   * Holds texts that are always measured, because the function was once slow with them or because they are close to a
   * limit.
   */
  own?: Readonly<Record<string, (length: number) => string>>
  /**
   * Sets how many steps the function may take besides linear work. These steps are bounded by a limit inside the
   * function.
   */
  budget?: number
}
