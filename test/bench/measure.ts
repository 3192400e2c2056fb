/** One row of the table: what was measured, beside what it is compared with in the same run. */
export type Row = {
  name: string
  unit: string
  /** Median of ours and of the baseline, in `unit`. */
  ours: number
  baseline: number
  /** Median over the rounds of ours / baseline. */
  ratio: number
  /** What the baseline is, and how it was measured. */
  detail: string
}

export const ROUNDS = 5

const median = (values: number[]): number => {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}

/**
 * Measures two things by turns, so that whatever else the machine does falls on both alike: one unmeasured round, then
 * `ROUNDS` measured ones. Each function answers how many units a second it did.
 */
export async function compare(options: {
  name: string
  unit: string
  detail: string
  ours: () => Promise<number>
  baseline: () => Promise<number>
}): Promise<Row> {
  await options.ours()
  await options.baseline()
  const ours: number[] = []
  const baseline: number[] = []
  for (let round = 0; round < ROUNDS; round++) {
    ours.push(await options.ours())
    baseline.push(await options.baseline())
  }
  return {
    name: options.name,
    unit: options.unit,
    detail: options.detail,
    ours: median(ours),
    baseline: median(baseline),
    ratio: median(ours.map((value, n) => value / baseline[n]!)),
  }
}

/** Runs `work` over and over in `lanes` lanes for `durationMs`; answers how often a second it ended. */
export async function perSecond(options: {
  lanes: number
  durationMs: number
  work: (n: number) => Promise<unknown>
}): Promise<number> {
  const startMs = performance.now()
  let done = 0
  let next = 0
  await Promise.all(
    Array.from({ length: options.lanes }, async () => {
      while (performance.now() - startMs < options.durationMs) {
        await options.work(next++)
        done++
      }
    }),
  )
  return (done * 1000) / (performance.now() - startMs)
}
