/** Measures how the steps of a reader grow. */
import { stepsOf } from './counter.ts'
import type { Reader } from './reader.ts'
import { shapesOf } from './shapes.ts'

/** Twice the input may cost so many times the steps. A sort of n log n costs 2.2 times. */
const RATIO_MAX = 2.5
/** Steps that need no explanation: a table that is built once, a branch that only the longer text takes. */
const FLOOR = 20_000

export type Growth = { reader: string; shape: string; length: number; steps: number; ratio: number }

/** How often the length is doubled, up to which length, and how many shapes are drawn. */
export type Effort = { first: number; last: number; draws: number; seed: number }

/** The worst growth of a reader; `isLinear`: none is above the bound. */
export async function growthOf(
  { name, max, grammar, read }: Reader,
  { first, last, draws, seed }: Effort,
): Promise<{ isLinear: boolean; worst: Growth }> {
  let worst: Growth = { reader: name, shape: '', length: 0, steps: 0, ratio: 0 }
  const largest = Math.min(last, max)
  for (const { name: shape, make } of shapesOf(grammar, draws, seed)) {
    let before: number | null = null
    for (let length = Math.min(first, largest / 2); length <= largest; length *= 2) {
      const text = make(Math.floor(length))
      const steps = await stepsOf(() => read(text))
      const ratio = steps / Math.max(before ?? steps, 1)
      const isOver =
        steps === Number.POSITIVE_INFINITY ||
        (before !== null && steps > before * RATIO_MAX + FLOOR)
      if (isOver || (steps > FLOOR && ratio > worst.ratio)) {
        worst = { reader: name, shape, length, steps, ratio }
      }
      if (isOver) return { isLinear: false, worst }
      before = steps
    }
  }
  return { isLinear: true, worst }
}
