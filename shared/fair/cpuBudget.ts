/**
 * Sets the maximum number of sharers (such as inboxes) with a record of their processor time. The code deletes the
 * record of a sharer after the sharer's processor budget is full again.
 */
const SHARERS_MAX = 10_000

/**
 * Limits the processor time of each sharer, such as an inbox. A sharer may use `burstMs` of processor time at once.
 * After the burst, each second gives the sharer `perSecondMs` more processor time.
 */
export class CpuBudget {
  readonly #limits: { burstMs: number; perSecondMs: number }
  readonly #nowMs: () => number
  /** Maps each sharer (such as an inbox) to the processor time that still counts against the sharer's budget. */
  readonly #used = new Map<string, { ms: number; atMs: number }>()

  constructor(limits: { burstMs: number; perSecondMs: number }, nowMs = () => performance.now()) {
    this.#limits = limits
    this.#nowMs = nowMs
  }

  /**
   * Returns the milliseconds until the sharer may begin new work. The result 0 means that the sharer may begin new work
   * now.
   */
  delayMs(sharer: string): number {
    const over = this.#usedMs(sharer) - this.#limits.burstMs
    return over < 0 ? 0 : Math.ceil(((over + 1) * 1000) / this.#limits.perSecondMs)
  }

  /**
   * Charges a sharer for the processor time of finished work. The caller charges a sharer only after the work, because
   * the processor time is unknown before the end of the work.
   */
  charge(sharer: string, cpuMs: number): void {
    const ms = this.#usedMs(sharer) + cpuMs
    this.#used.delete(sharer)
    if (this.#used.size >= SHARERS_MAX) this.#forget()
    this.#used.set(sharer, { ms, atMs: this.#nowMs() })
  }

  #usedMs(sharer: string): number {
    const used = this.#used.get(sharer)
    if (used === undefined) return 0
    const backMs = ((this.#nowMs() - used.atMs) / 1000) * this.#limits.perSecondMs
    return Math.max(0, used.ms - backMs)
  }

  /**
   * Deletes the records of sharers with a full budget. If the map is still full, the function deletes the record of the
   * sharer with the oldest charge.
   */
  #forget(): void {
    for (const sharer of this.#used.keys())
      if (this.#usedMs(sharer) === 0) this.#used.delete(sharer)
    const [oldest] = this.#used.keys()
    if (this.#used.size >= SHARERS_MAX && oldest !== undefined) this.#used.delete(oldest)
  }
}
