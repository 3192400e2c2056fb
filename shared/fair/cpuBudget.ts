/**
 * Sets the maximum number of sharers (such as inboxes) with a record of their processor time. When the processor budget
 * of a sharer is full again, the code deletes the record of this sharer.
 */
const SHARERS_MAX = 10_000

/**
 * Limits the processor time of each sharer, such as an inbox. A sharer may use `burstMs` of processor time at once. Its
 * budget then grows by `perSecondMs` of processor time in each second.
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
   * Returns the milliseconds until the sharer (such as an inbox) may begin new work. The result 0 means that the sharer
   * may begin new work now.
   */
  delayMs(sharer: string): number {
    const over = this.#usedMs(sharer) - this.#limits.burstMs
    return over < 0 ? 0 : Math.ceil(((over + 1) * 1000) / this.#limits.perSecondMs)
  }

  /**
   * Adds the processor time of finished work to the used time of a sharer (such as an inbox). The caller reports the
   * processor time only after the work, because the time is unknown before the end of the work.
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
   * Deletes the records of those sharers (such as inboxes) whose budget is full again. If the map still has too many
   * records, the function deletes the record with the oldest last work.
   */
  #forget(): void {
    for (const sharer of this.#used.keys())
      if (this.#usedMs(sharer) === 0) this.#used.delete(sharer)
    const [oldest] = this.#used.keys()
    if (this.#used.size >= SHARERS_MAX && oldest !== undefined) this.#used.delete(oldest)
  }
}
