/**
 * Reports that a caller gets no turn (no permission to run). Either too many callers of the same sharer (such as a
 * network) wait, or the caller has waited too long.
 */
export class NoTurnError extends Error {}

type Waiter = { enter: () => void; refuse: () => void }

/**
 * Lets only a limited number of callers run at a time, and chooses fairly among their sharers, such as networks. The
 * sharers with waiting callers take turns in rotation. Therefore a sharer with a thousand waiting callers delays
 * another sharer by only one turn.
 */
export class FairTurns {
  readonly #limits: { total: number; perSharer: number; waitingPerSharer: number }
  readonly #running = new Map<string, number>()
  /**
   * Holds the waiting callers of each sharer (such as a network). The order of the sharers (such as networks) in the
   * map is the order in which their callers may run next.
   */
  readonly #waiting = new Map<string, Waiter[]>()
  #taken = 0

  /**
   * Sets the limits on running and waiting callers.
   * @param limits holds three numbers. The field `total` limits how many callers run at once. The field `perSharer`
   * limits how many callers of one sharer (such as a network) run at once. The field `waitingPerSharer` limits how many
   * callers of one sharer may wait.
   */
  constructor(limits: { total: number; perSharer: number; waitingPerSharer?: number }) {
    this.#limits = { waitingPerSharer: Number.POSITIVE_INFINITY, ...limits }
  }

  /**
   * Waits until the given sharer (such as a network) may run one more caller.
   * @returns a function that the caller calls when its work has ended, so that another caller may run.
   * @throws {NoTurnError} if too many callers of the sharer wait, or if this caller has waited too long.
   */
  async enter(sharer: string, timeoutMs = Number.POSITIVE_INFINITY): Promise<() => void> {
    const queue = this.#waiting.get(sharer) ?? []
    if (queue.length > 0 || !this.#hasTurn(sharer)) {
      if (queue.length >= this.#limits.waitingPerSharer) throw new NoTurnError()
      await this.#wait(sharer, queue, timeoutMs)
    } else this.#take(sharer)
    let isOver = false
    return () => {
      if (isOver) return
      isOver = true
      this.#giveBack(sharer)
    }
  }

  #hasTurn = (sharer: string): boolean =>
    this.#taken < this.#limits.total && (this.#running.get(sharer) ?? 0) < this.#limits.perSharer

  #take(sharer: string): void {
    this.#taken++
    this.#running.set(sharer, (this.#running.get(sharer) ?? 0) + 1)
  }

  async #wait(sharer: string, queue: Waiter[], timeoutMs: number): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const waiter = { enter: resolve, refuse: () => reject(new NoTurnError()) }
    queue.push(waiter)
    this.#waiting.set(sharer, queue)
    const timer =
      timeoutMs === Number.POSITIVE_INFINITY
        ? undefined
        : setTimeout(() => {
            queue.splice(queue.indexOf(waiter), 1)
            if (queue.length === 0) this.#waiting.delete(sharer)
            waiter.refuse()
          }, timeoutMs)
    try {
      await promise
    } finally {
      clearTimeout(timer)
    }
  }

  #giveBack(sharer: string): void {
    this.#taken--
    const left = this.#running.get(sharer)! - 1
    if (left > 0) this.#running.set(sharer, left)
    else this.#running.delete(sharer)
    for (const [next, queue] of this.#waiting) {
      if (!this.#hasTurn(next)) continue
      const waiter = queue.shift()!
      // When a caller of a sharer (such as a network) begins to run, this sharer goes to the end of the rotation.
      this.#waiting.delete(next)
      if (queue.length > 0) this.#waiting.set(next, queue)
      this.#take(next)
      waiter.enter()
      return
    }
  }
}
