/** Bytes that a subject may send at once, in seconds of its rate. */
const BURST_S = 2
/** Subjects remembered before those without a debt are forgotten. */
const SUBJECTS_MAX = 10_000

/**
 * The rate of large mail, for each sending network and each inbox. Past it the listener reads slower, and TCP makes the
 * sender wait: nothing is refused.
 */
export class Pace {
  readonly #bytesPerS: number
  readonly #nowMs: () => number
  /** The time at which the bytes of a subject are paid for. */
  readonly #paidAtMs = new Map<string, number>()

  /** @param bytesPerS bytes a second of one subject; 0: no limit. */
  constructor(bytesPerS: number, nowMs = () => performance.now()) {
    this.#bytesPerS = bytesPerS
    this.#nowMs = nowMs
  }

  /** Counts bytes that arrived. @returns the milliseconds to wait before the next are read. */
  take(subjects: Iterable<string>, bytes: number): number {
    if (this.#bytesPerS === 0) return 0
    const nowMs = this.#nowMs()
    const earliestMs = nowMs - BURST_S * 1000
    if (this.#paidAtMs.size > SUBJECTS_MAX) this.#forget(earliestMs)
    let waitMs = 0
    for (const subject of subjects) {
      const beginMs = Math.max(earliestMs, this.#paidAtMs.get(subject) ?? earliestMs)
      const paidAtMs = beginMs + (bytes / this.#bytesPerS) * 1000
      this.#paidAtMs.set(subject, paidAtMs)
      waitMs = Math.max(waitMs, paidAtMs - nowMs)
    }
    return waitMs
  }

  #forget(earliestMs: number): void {
    for (const [subject, paidAtMs] of this.#paidAtMs) {
      if (paidAtMs <= earliestMs) this.#paidAtMs.delete(subject)
    }
  }
}
