/** Costs are halved in this time. */
const HALF_LIFE_MS = 30_000
/** Sharers that are remembered. A stranger has many addresses: beyond, the lighter half is forgotten. */
const SHARERS_MAX = 10_000
/** Cost without a consequence. Each doubling beyond lowers the priority by one. */
const FREE_MS = 100
const PRIORITY_MAX = 12

/** Whether works of these costs may share a batch: a light one must not wait for a heavy one's part of it. */
export const mayShare = (leastMs: number, ms: number): boolean => ms <= 2 * leastMs + FREE_MS

type Cost = { ms: number; atMs: number }

/**
 * What sharers, such as inboxes and sending networks, have cost lately, in milliseconds of work. Who has cost less goes
 * first: a flood waits behind everybody else. The costs of all sharers of a work count together. So neither many inboxes
 * nor many networks make a flood light.
 */
export class Costs {
  readonly #costs = new Map<string, Cost>()
  readonly #nowMs: () => number
  readonly #sharersMax: number

  constructor({ nowMs = () => performance.now(), sharersMax = SHARERS_MAX } = {}) {
    this.#nowMs = nowMs
    this.#sharersMax = sharersMax
  }

  /** Sharers that are remembered. */
  get size(): number {
    return this.#costs.size
  }

  charge(sharers: readonly string[], ms: number): void {
    for (const sharer of sharers) {
      const cost = this.#costs.get(sharer)
      const nowMs = this.#nowMs()
      if (cost === undefined) {
        if (this.#costs.size >= this.#sharersMax) this.#forgetLight()
        this.#costs.set(sharer, { ms, atMs: nowMs })
      } else {
        cost.ms = left(cost, nowMs) + ms
        cost.atMs = nowMs
      }
    }
  }

  /** The cost of these sharers together. */
  of(sharers: readonly string[]): number {
    const nowMs = this.#nowMs()
    let sum = 0
    for (const sharer of sharers) {
      const cost = this.#costs.get(sharer)
      if (cost !== undefined) sum += left(cost, nowMs)
    }
    return sum
  }

  /** The priority of a job of these sharers: 0 is first. */
  priorityOf(sharers: readonly string[]): number {
    const doublings = Math.log2(this.of(sharers) / FREE_MS)
    return Math.min(PRIORITY_MAX, Math.max(0, Math.ceil(doublings)))
  }

  #forgetLight(): void {
    const nowMs = this.#nowMs()
    const byCost = [...this.#costs].sort(([, a], [, b]) => left(a, nowMs) - left(b, nowMs))
    for (const [sharer] of byCost.slice(0, Math.ceil(byCost.length / 2))) {
      this.#costs.delete(sharer)
    }
  }
}

const left = ({ ms, atMs }: Cost, nowMs: number): number =>
  ms * 0.5 ** ((nowMs - atMs) / HALF_LIFE_MS)
