/**
 * Sets the maximum number of sharers (such as networks) whose sent bytes the code records. Above the limit, the code
 * deletes the records of those sharers that need not wait.
 */
const SHARERS_MAX = 10_000

/**
 * Limits the bytes a second that the service reads from each sharer, such as a network or a caller. If a sharer sends
 * faster, the service stops reading for a while, and TCP makes the sender wait. The limit only delays bytes and refuses
 * none.
 */
export class Pace {
  readonly #bytesPerS: number
  readonly #burstS: number
  readonly #nowMs: () => number
  /**
   * Maps each sharer (such as a network) to the time from which the service reads further bytes of the sharer. Each
   * received byte moves this time forward at the allowed rate.
   */
  readonly #paidAtMs = new Map<string, number>()

  /**
   * Sets the rate at which each sharer (such as a network) may send bytes, and the burst that is allowed above this
   * rate.
   * @param bytesPerS is the number of bytes a second that one sharer (such as a network) may send. The value 0 means no
   * limit. The parameter `burstS` is a number of seconds. At once, a sharer may send the bytes that the rate allows in
   * these seconds.
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
   * Counts bytes that the given sharers (such as a network and an inbox) have sent. @returns the milliseconds for which
   * the service must wait before it reads more bytes from them.
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
