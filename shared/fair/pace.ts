/** Limits how many sharers are remembered. Above the limit, sharers without a debt are forgotten. */
const SHARERS_MAX = 10_000

/**
 * Limits the rate at which bytes are read for each sharer, such as a network or a caller. Above the rate the reader
 * waits, and TCP makes the sender wait. Nothing is refused.
 */
export class Pace {
  readonly #bytesPerS: number
  readonly #burstS: number
  readonly #nowMs: () => number
  /** Holds the time at which the debt of each sharer ends. */
  readonly #paidAtMs = new Map<string, number>()

  /**
   * Sets the rate. @param bytesPerS bytes a second of one sharer; 0: no limit. `burstS`: so many seconds of bytes pass
   * at once.
   */
  constructor(
    { bytesPerS, burstS }: { bytesPerS: number; burstS: number },
    nowMs = () => performance.now(),
  ) {
    this.#bytesPerS = bytesPerS
    this.#burstS = burstS
    this.#nowMs = nowMs
  }

  /** Counts bytes that arrived. @returns the milliseconds to wait before the next bytes are read. */
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
