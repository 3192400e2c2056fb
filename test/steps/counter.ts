/** The counter of steps of this process. Instrumented code adds one at each function and each round of a loop. */
import { TooManyStepsError } from './regex/regexRun.ts'

/** Position 0: the steps. Instrumented code finds it as `$steps` (`instrument.ts`). */
const counter = new Float64Array(1)
Object.assign(globalThis, { $steps: counter })

let isCounting = false

/** Whether built-ins count now: not outside of a measurement, and not inside of the counter's own work. */
export const counts = (): boolean => isCounting

export const add = (steps: number): void => {
  if (isCounting) counter[0]! += steps
}

/** Does the counter's own work, which costs no steps. */
export function uncounted<Result>(work: () => Result): Result {
  const before = isCounting
  isCounting = false
  try {
    return work()
  } finally {
    isCounting = before
  }
}

/** The steps of `work`. What it throws is an answer too. Infinity: one search took too many. */
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
