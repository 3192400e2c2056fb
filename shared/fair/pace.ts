/** Sharers remembered before those without a debt are forgotten. */
const SHARERS_MAX = 10_000

/**
 * The rate at which bytes are read, for each sharer, such as a network or a caller. Past it the reader waits, and TCP
 * makes the sender wait: nothing is refused.
 */
export class Pace {
  readonly #bytesPerS: number
  readonly #burstS: number
  readonly #nowMs: () => number
  /** The time at which the bytes of a sharer are paid for. */
  readonly #paidAtMs = new Map<string, number>()

  /** @param bytesPerS bytes a second of one sharer; 0: no limit. `burstS`: seconds of them that pass at once. */
  constructor(
    { bytesPerS, burstS }: { bytesPerS: number; burstS: number },
    nowMs = () => performance.now(),
  ) {
    this.#bytesPerS = bytesPerS
    this.#burstS = burstS
    this.#nowMs = nowMs
  }

  /** Counts bytes that arrived. @returns the milliseconds to wait before the next are read. */
  take(sharers: Iterable<string>, bytes: number): number {
    if (this.#bytesPerS === 0) return 0
    const nowMs = this.#nowMs()
    const earliestMs = nowMs - this.#burstS * 1000
    if (this.#paidAtMs.size > SHARERS_MAX) this.#forget(earliestMs)
    let waitMs = 0
    for (const sharer of sharers) {
      const beginMs = Math.max(earliestMs, this.#paidAtMs.get(sharer) ?? earliestMs)
      const paidAtMs = beginMs + (bytes / this.#bytesPerS) * 1000
      this.#paidAtMs.set(sharer, paidAtMs)
      waitMs = Math.max(waitMs, paidAtMs - nowMs)
    }
    return waitMs
  }

  #forget(earliestMs: number): void {
    for (const [sharer, paidAtMs] of this.#paidAtMs) {
      if (paidAtMs <= earliestMs) this.#paidAtMs.delete(sharer)
    }
  }
}
