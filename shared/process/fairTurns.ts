/** Too many callers of one owner wait, or the turn came too late. */
export class NoTurnError extends Error {}

type Waiter = { enter: () => void; refuse: () => void }

/**
 * Shares turns between owners. Owners that wait get the next free turn by rotation: an owner with a thousand callers
 * delays another by one turn.
 */
export class FairTurns {
  readonly #limits: { total: number; perOwner: number; waitingPerOwner: number }
  readonly #running = new Map<string, number>()
  /** In order of rotation. */
  readonly #waiting = new Map<string, Waiter[]>()
  #taken = 0

  /** @param limits turns at once, of all and of one owner, and the callers of one owner that may wait. */
  constructor(limits: { total: number; perOwner: number; waitingPerOwner?: number }) {
    this.#limits = { waitingPerOwner: Number.POSITIVE_INFINITY, ...limits }
  }

  /** Waits for a turn. @returns the end of the turn. @throws {NoTurnError} */
  async enter(owner: string, timeoutMs = Number.POSITIVE_INFINITY): Promise<() => void> {
    const queue = this.#waiting.get(owner) ?? []
    if (queue.length > 0 || !this.#hasTurn(owner)) {
      if (queue.length >= this.#limits.waitingPerOwner) throw new NoTurnError()
      await this.#wait(owner, queue, timeoutMs)
    } else this.#take(owner)
    let isOver = false
    return () => {
      if (isOver) return
      isOver = true
      this.#giveBack(owner)
    }
  }

  #hasTurn = (owner: string): boolean =>
    this.#taken < this.#limits.total && (this.#running.get(owner) ?? 0) < this.#limits.perOwner

  #take(owner: string): void {
    this.#taken++
    this.#running.set(owner, (this.#running.get(owner) ?? 0) + 1)
  }

  async #wait(owner: string, queue: Waiter[], timeoutMs: number): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const waiter = { enter: resolve, refuse: () => reject(new NoTurnError()) }
    queue.push(waiter)
    this.#waiting.set(owner, queue)
    const timer =
      timeoutMs === Number.POSITIVE_INFINITY
        ? undefined
        : setTimeout(() => {
            queue.splice(queue.indexOf(waiter), 1)
            if (queue.length === 0) this.#waiting.delete(owner)
            waiter.refuse()
          }, timeoutMs)
    try {
      await promise
    } finally {
      clearTimeout(timer)
    }
  }

  #giveBack(owner: string): void {
    this.#taken--
    const left = this.#running.get(owner)! - 1
    if (left > 0) this.#running.set(owner, left)
    else this.#running.delete(owner)
    for (const [next, queue] of this.#waiting) {
      if (!this.#hasTurn(next)) continue
      const waiter = queue.shift()!
      // The owner goes to the end of the rotation.
      this.#waiting.delete(next)
      if (queue.length > 0) this.#waiting.set(next, queue)
      this.#take(next)
      waiter.enter()
      return
    }
  }
}
