/** Sharers that are remembered. One whose debt is paid back is forgotten. */
const SHARERS_MAX = 10_000

/** Processor time that each sharer may use: a burst at once, and a share of each second. */
export class CpuBudget {
  readonly #limits: { burstMs: number; perSecondMs: number }
  readonly #nowMs: () => number
  /** What a sharer has used and not got back. */
  readonly #used = new Map<string, { ms: number; atMs: number }>()

  constructor(limits: { burstMs: number; perSecondMs: number }, nowMs = () => performance.now()) {
    this.#limits = limits
    this.#nowMs = nowMs
  }

  /** Milliseconds until the sharer may begin something; 0: now. */
  delayMs(sharer: string): number {
    const over = this.#usedMs(sharer) - this.#limits.burstMs
    return over < 0 ? 0 : Math.ceil(((over + 1) * 1000) / this.#limits.perSecondMs)
  }

  /** Adds processor time, which is known only afterwards. */
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

  /** Forgets who owes nothing, or else who was charged longest ago. */
  #forget(): void {
    for (const sharer of this.#used.keys())
      if (this.#usedMs(sharer) === 0) this.#used.delete(sharer)
    const [oldest] = this.#used.keys()
    if (this.#used.size >= SHARERS_MAX && oldest !== undefined) this.#used.delete(oldest)
  }
}
