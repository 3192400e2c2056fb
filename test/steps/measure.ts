/** Measures how the steps of a reader (a function that reads untrusted text) grow with the length of its input. */
import { stepsOf } from './counter.ts'
import { randomBySeed, shapesOf } from './inputs/shapes.ts'
import type { Reader } from './readers/reader.ts'

/**
 * Limits the factor by which the steps of a reader (a function that reads untrusted text) may grow when its input
 * becomes twice as long. A sort that takes n log n steps has the factor 2.2.
 */
const RATIO_MAX = 2.5
/**
 * Limits the factor by which the steps may grow in the second-to-last doubling of the input. This limit is lower than
 * RATIO_MAX, because quadratic work beside linear work shows less in shorter inputs.
 */
const EARLIER_RATIO_MAX = 2.1
/**
 * Sets how many steps a reader (a function that reads untrusted text) may take besides linear work for any input, for
 * example to build a table once.
 */
const FLOOR = 20_000

export type Growth = { reader: string; shape: string; length: number; steps: number; ratio: number }

/**
 * Describes how thoroughly a reader (a function that reads untrusted text) is measured. The length of the input doubles
 * from `first` to `last`. A measurement stops after `stepsMax` steps. The seed decides the random texts and their
 * order.
 */
export type Effort = {
  first: number
  last: number
  draws: number
  seed: number
  stepsMax: number
}

/**
 * Returns the largest growth in the steps of a reader (a function that reads untrusted text). `isLinear` is true if the
 * steps never grow faster than the limit allows.
 */
export async function growthOf(
  { name, max, grammar, read, own = {}, budget = 0 }: Reader,
  { first, last, draws, seed, stepsMax }: Effort,
): Promise<{ isLinear: boolean; worst: Growth }> {
  let worst: Growth = { reader: name, shape: '', length: 0, steps: 0, ratio: 0 }
  let spent = 0
  const largest = Math.min(last, max)
  const shapes = Object.entries(own).map(([name, make]) => ({ name, make }))
  for (const { name: shape, make } of [
    ...shapes,
    ...shuffled(shapesOf(grammar, draws, seed), seed),
  ]) {
    const all: number[] = []
    for (let length = Math.min(first, largest / 4); length <= largest; length *= 2) {
      const text = make(Math.floor(length))
      const steps = await stepsOf(() => read(text))
      const [before = steps, older = 0] = [all.at(-1), all.at(-2)]
      all.push(steps)
      spent += steps
      const ratio = steps / Math.max(before, 1)
      // If only the longer of two texts enters a branch of the code, the number of steps jumps once. Therefore a reader
      // (a function that reads untrusted text) counts as not linear only if the fast growth continues.
      const isOver =
        steps === Number.POSITIVE_INFINITY ||
        (steps > before * RATIO_MAX + FLOOR + budget &&
          all.length > 2 &&
          before > older * EARLIER_RATIO_MAX)
      if (isOver || (steps > FLOOR && all.length > 2 && ratio > worst.ratio)) {
        worst = { reader: name, shape, length, steps, ratio }
      }
      if (isOver) return { isLinear: false, worst }
    }
    if (spent > stepsMax && !(shape in own)) break
  }
  return { isLinear: true, worst }
}

function shuffled<One>(all: readonly One[], seed: number): One[] {
  const random = randomBySeed(seed)
  return all
    .map((one) => ({ one, place: random(2 ** 30) }))
    .toSorted((left, right) => left.place - right.place)
    .map(({ one }) => one)
}
