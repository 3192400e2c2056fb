/**
 * Sets the maximum number of sharers (such as networks) whose received bytes are recorded. Above the limit, the records
 * of sharers that need not wait are deleted.
 */
const SHARERS_MAX = 10_000

/**
 * Limits the rate at which bytes are read for each sharer, such as a network or a caller. If a sharer sends faster than
 * its rate, the reader waits, and TCP makes the sender wait. The limit only delays bytes and refuses none.
 */
export class Pace {
  readonly #bytesPerS: number
  readonly #burstS: number
  readonly #nowMs: () => number
  /**
   * Maps each sharer (such as a network) to the time at which the rate has paid for the bytes that it has sent. While
   * this time lies in the future, the reader reads no more bytes of the sharer.
   */
  readonly #paidAtMs = new Map<string, number>()

  /**
   * Sets the number of bytes a second that each sharer may send. @param bytesPerS is the number of bytes a second that
   * one sharer may send. 0 means no limit. `burstS` sets the burst: a sharer may send the bytes of this many seconds at
   * once.
   */
  constructor(
    { bytesPerS, burstS }: { bytesPerS: number; burstS: number },
    nowMs = () => performance.now(),
  ) {
    this.#bytesPerS = bytesPerS
    this.#burstS = burstS
    this.#nowMs = nowMs
  }

  /**
   * Counts bytes that the given sharers (such as a network and an inbox) sent. @returns the milliseconds to wait before
   * the service reads more bytes of the sharers.
   */
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
