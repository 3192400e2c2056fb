/**
 * Describes one row of the benchmark table: the figure of the service, and the figure of the baseline in the same run.
 */
export type Row = {
  name: string
  unit: string
  /** The following fields hold the median figures of the service and of the baseline, in the unit `unit`. */
  ours: number
  baseline: number
  /** Holds the median of a ratio over the benchmark rounds: the service's figure divided by the baseline's figure. */
  ratio: number
  /** Describes the work of the baseline, and how the benchmark measures this work. */
  detail: string
}

let measuredRounds = 5

/** Returns the number of measured rounds for each row. */
export const rounds = (): number => measuredRounds

export function setRounds(count: number): void {
  measuredRounds = count
}

const median = (values: number[]): number => {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}

/**
 * Measures all compared programs in rotation, so that other load on the machine affects them alike. Begins with one
 * unmeasured round.
 * @returns the measured values of each compared program, with one value for each round
 */
export async function byTurns<T>(
  contenders: readonly (() => Promise<T>)[],
  count = measuredRounds,
): Promise<T[][]> {
  const answers: T[][] = contenders.map(() => [])
  for (let round = 0; round <= count; round++) {
    for (const [n, contender] of contenders.entries()) {
      const answer = await contender()
      if (round > 0) answers[n]!.push(answer)
    }
  }
  return answers
}

type Measured = Pick<Row, 'name' | 'unit' | 'detail'>

/**
 * Makes a row of the benchmark table from pairs of figures: of this service (`ours`) and of the baseline in the same
 * round.
 */
export const rowOf = (measured: Measured, ours: number[], baseline: number[]): Row => ({
  ...measured,
  ours: median(ours),
  baseline: median(baseline),
  ratio: median(ours.map((value, n) => value / baseline[n]!)),
})

/**
 * Compares two functions of a benchmark, which run in rotation. Each function returns how many units of work it did per
 * second.
 */
export async function compare({
  ours,
  baseline,
  count,
  ...measured
}: Measured & {
  ours: () => Promise<number>
  baseline: () => Promise<number>
  /**
   * Holds the number of measured rounds of this comparison. If it is absent, the usual number of rounds of the
   * benchmark is measured.
   */
  count?: number
}): Promise<Row> {
  const [our, their] = await byTurns([ours, baseline], count)
  return rowOf(measured, our!, their!)
}

/**
 * Repeats `work` for `durationMs` in as many parallel loops as `lanes` says. @returns the number of runs of `work` per
 * second
 */
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
