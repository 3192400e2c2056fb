/**
 * Counts the steps of this process. The instrumented code adds one step at each function entry and in each iteration of
 * a loop.
 */
import { TooManyStepsError } from './regex/regexRun.ts'

/**
 * Holds the step count at index 0, which instrumented code (see `instrument.ts`) increases through the global variable
 * `$steps`.
 */
const counter = new Float64Array(1)
Object.assign(globalThis, { $steps: counter })

let isCounting = false

/**
 * Tells whether built-in functions currently add to the step count. They do so only during a measurement, and not in
 * the code of the counter itself.
 */
export const counts = (): boolean => isCounting

export const add = (steps: number): void => {
  if (isCounting) counter[0]! += steps
}

/**
 * Runs `work` without counting its steps, because `work` belongs to the step counter itself.
 */
export function uncounted<Result>(work: () => Result): Result {
  const before = isCounting
  isCounting = false
  try {
    return work()
  } finally {
    isCounting = before
  }
}

/**
 * Returns the number of steps of `work`, even if `work` throws. Returns Infinity if a regular expression search took
 * too many steps.
 */
export async function stepsOf(work: () => unknown): Promise<number> {
  counter[0] = 0
  isCounting = true
  try {
    await work()
  } catch (error) {
    if (error instanceof TooManyStepsError) return Number.POSITIVE_INFINITY
  } finally {
    isCounting = false
  }
  return counter[0]!
}
