/** Subjects remembered before those without a debt are forgotten. */
const SUBJECTS_MAX = 10_000

/**
 * The rate at which bytes are read, for each subject, such as a network or a caller. Past it the reader waits, and TCP
 * makes the sender wait: nothing is refused.
 */
export class Pace {
  readonly #bytesPerS: number
  readonly #burstS: number
  readonly #nowMs: () => number
  /** The time at which the bytes of a subject are paid for. */
  readonly #paidAtMs = new Map<string, number>()

  /** @param bytesPerS bytes a second of one subject; 0: no limit. `burstS`: seconds of them that pass at once. */
  constructor(
    { bytesPerS, burstS }: { bytesPerS: number; burstS: number },
    nowMs = () => performance.now(),
  ) {
    this.#bytesPerS = bytesPerS
    this.#burstS = burstS
    this.#nowMs = nowMs
  }

  /** Counts bytes that arrived. @returns the milliseconds to wait before the next are read. */
  take(subjects: Iterable<string>, bytes: number): number {
    if (this.#bytesPerS === 0) return 0
    const nowMs = this.#nowMs()
    const earliestMs = nowMs - this.#burstS * 1000
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
