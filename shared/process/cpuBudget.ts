/** Owners that are remembered. One whose debt is paid back is forgotten. */
const OWNERS_MAX = 10_000

/** Processor time that each owner may use: a burst at once, and a share of each second. */
export class CpuBudget {
  readonly #limits: { burstMs: number; perSecondMs: number }
  readonly #nowMs: () => number
  /** What an owner has used and not got back. */
  readonly #used = new Map<string, { ms: number; atMs: number }>()

  constructor(limits: { burstMs: number; perSecondMs: number }, nowMs = () => performance.now()) {
    this.#limits = limits
    this.#nowMs = nowMs
  }

  /** Milliseconds until the owner may begin something; 0: now. */
  delayMs(owner: string): number {
    const over = this.#usedMs(owner) - this.#limits.burstMs
    return over < 0 ? 0 : Math.ceil(((over + 1) * 1000) / this.#limits.perSecondMs)
  }

  /** Adds processor time, which is known only afterwards. */
  charge(owner: string, cpuMs: number): void {
    const ms = this.#usedMs(owner) + cpuMs
    this.#used.delete(owner)
    if (this.#used.size >= OWNERS_MAX) this.#forget()
    this.#used.set(owner, { ms, atMs: this.#nowMs() })
  }

  #usedMs(owner: string): number {
    const used = this.#used.get(owner)
    if (used === undefined) return 0
    const backMs = ((this.#nowMs() - used.atMs) / 1000) * this.#limits.perSecondMs
    return Math.max(0, used.ms - backMs)
  }

  /** Forgets who owes nothing, or else who was charged longest ago. */
  #forget(): void {
    for (const owner of this.#used.keys()) if (this.#usedMs(owner) === 0) this.#used.delete(owner)
    const [oldest] = this.#used.keys()
    if (this.#used.size >= OWNERS_MAX && oldest !== undefined) this.#used.delete(oldest)
  }
}
