/**
 * Sets the maximum number of sharers (such as inboxes) whose processor time is recorded. The record of a sharer is
 * deleted when its processor budget is full again.
 */
const SHARERS_MAX = 10_000

/**
 * Limits the processor time of each sharer, such as an inbox. A sharer may use `burstMs` of processor time at once.
 * After the burst, each second gives the sharer `perSecondMs` more processor time.
 */
export class CpuBudget {
  readonly #limits: { burstMs: number; perSecondMs: number }
  readonly #nowMs: () => number
  /** Holds for each sharer (such as an inbox) the processor time that still counts against the sharer's budget. */
  readonly #used = new Map<string, { ms: number; atMs: number }>()

  constructor(limits: { burstMs: number; perSecondMs: number }, nowMs = () => performance.now()) {
    this.#limits = limits
    this.#nowMs = nowMs
  }

  /** Returns the milliseconds until the sharer may begin new work. 0 means that the sharer may begin now. */
  delayMs(sharer: string): number {
    const over = this.#usedMs(sharer) - this.#limits.burstMs
    return over < 0 ? 0 : Math.ceil(((over + 1) * 1000) / this.#limits.perSecondMs)
  }

  /**
   * Charges a sharer for the processor time of finished work. A sharer is charged only after its work, because the
   * processor time is unknown before the work has ended.
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

  /** Deletes the record of a sharer whose budget is full, or else of the sharer that was charged longest ago. */
  #forget(): void {
    for (const sharer of this.#used.keys())
      if (this.#usedMs(sharer) === 0) this.#used.delete(sharer)
    const [oldest] = this.#used.keys()
    if (this.#used.size >= SHARERS_MAX && oldest !== undefined) this.#used.delete(oldest)
  }
}
