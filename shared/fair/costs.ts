/** Sets the time in which the recorded cost of a sharer (such as an inbox) falls to half. */
const HALF_LIFE_MS = 30_000
/**
 * Sets the maximum number of sharers (such as inboxes and sending networks) whose cost the service records. The number
 * is limited, because an attacker may send from many addresses. Above the limit, the service forgets the half of the
 * sharers with the lower costs.
 */
const SHARERS_MAX = 10_000
/**
 * Holds the cost that a sharer (such as an inbox) may cause without losing priority. Above FREE_MS, each doubling of
 * the cost lowers the priority of the sharer's jobs by one.
 */
const FREE_MS = 100
const PRIORITY_MAX = 12
/**
 * Sets after how many half-lives the stored costs are scaled down. Instead of halving all old costs at each half-life,
 * the code doubles the numbers for new costs. Without the scaling, these numbers would overflow.
 */
const HALF_LIVES_MAX = 100

/**
 * Tells whether two jobs may run in one batch. Each parameter is the cost of one job's sharers (such as inboxes), in
 * milliseconds of work. Jobs with very different costs may not run together, because a cheap job must not wait for an
 * expensive job.
 */
export const mayShare = (leastMs: number, ms: number): boolean => ms <= 2 * leastMs + FREE_MS

/**
 * Records the cost that sharers (such as inboxes and sending networks) have recently caused, in milliseconds of work.
 * Tasks of sharers with a lower cost run first, so that a flood of mail waits behind all other mail. The cost of a task
 * is the sum of the costs of all its sharers. Therefore a flood cannot become cheaper by the use of many inboxes or
 * many networks. For mail that a mail service delivers over HTTP, only the inbox counts, because the sender's network
 * is unknown.
 */
export class Costs {
  /**
   * Holds the cost of each sharer (such as an inbox) in milliseconds, converted to the time `#sinceMs`. Time does not
   * change these numbers, because the costs of all sharers fall at the same rate.
   */
  readonly #costs = new Map<string, number>()
  #sinceMs: number
  readonly #nowMs: () => number
  readonly #sharersMax: number

  constructor({ nowMs = () => performance.now(), sharersMax = SHARERS_MAX } = {}) {
    this.#nowMs = nowMs
    this.#sinceMs = nowMs()
    this.#sharersMax = sharersMax
  }

  /** Counts the sharers (such as inboxes and sending networks) that have a recorded cost. */
  get size(): number {
    return this.#costs.size
  }

  charge(sharers: readonly string[], ms: number): void {
    const added = ms * 2 ** this.#halfLives()
    for (const sharer of sharers) {
      const cost = this.#costs.get(sharer)
      if (cost === undefined && this.#costs.size >= this.#sharersMax) this.#forgetLight()
      this.#costs.set(sharer, (cost ?? 0) + added)
    }
  }

  /** Returns the sum of the costs that the given sharers (such as inboxes) have caused. */
  of(sharers: readonly string[]): number {
    return this.asOfNow()(sharers)
  }

  /**
   * Returns a function like {@link of} that reads no clock, because it uses the present moment for all its calls. Use
   * it to compare the costs of many sharers (such as inboxes).
   */
  asOfNow(): (sharers: readonly string[]) => number {
    const scale = 0.5 ** this.#halfLives()
    return (sharers) => {
      let sum = 0
      for (const sharer of sharers) sum += this.#costs.get(sharer) ?? 0
      return sum * scale
    }
  }

  /**
   * Returns the priority of a job from the costs of the job's sharers (such as inboxes). Jobs with priority 0 run
   * first.
   */
  priorityOf(sharers: readonly string[]): number {
    const doublings = Math.log2(this.of(sharers) / FREE_MS)
    return Math.min(PRIORITY_MAX, Math.max(0, Math.ceil(doublings)))
  }

  /** Returns the number of half-lives (of recorded costs) since the time `#sinceMs`. */
  #halfLives(): number {
    const nowMs = this.#nowMs()
    const halfLives = (nowMs - this.#sinceMs) / HALF_LIFE_MS
    if (halfLives <= HALF_LIVES_MAX) return halfLives
    for (const [sharer, ms] of this.#costs) this.#costs.set(sharer, ms * 0.5 ** halfLives)
    this.#sinceMs = nowMs
    return 0
  }

  #forgetLight(): void {
    const byCost = [...this.#costs].sort(([, a], [, b]) => a - b)
    for (const [sharer] of byCost.slice(0, Math.ceil(byCost.length / 2))) {
      this.#costs.delete(sharer)
    }
  }
}
