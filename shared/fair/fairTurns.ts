/**
 * Reports that a caller gets no turn, because too many callers of the same sharer (such as a network) wait, or because
 * the caller has waited too long.
 */
export class NoTurnError extends Error {}

type Waiter = { enter: () => void; refuse: () => void }

/**
 * Divides a limited number of simultaneous turns fairly among sharers, such as networks or callers. The waiting sharers
 * (such as networks) get the free turns in rotation. Therefore a sharer (such as a network) with a thousand waiting
 * callers delays another sharer by only one turn.
 */
export class FairTurns {
  readonly #limits: { total: number; perSharer: number; waitingPerSharer: number }
  readonly #running = new Map<string, number>()
  /**
   * Holds the waiting callers of each sharer (such as a network). The order of the sharers in the map is the order in
   * which they get their next turns.
   */
  readonly #waiting = new Map<string, Waiter[]>()
  #taken = 0

  /**
   * Sets the limits on turns. @param limits holds three numbers. The field `total` limits the turns of all sharers at
   * once, and `perSharer` limits the turns of one sharer (such as a network) at once. The field `waitingPerSharer`
   * limits how many callers of one sharer may wait.
   */
  constructor(limits: { total: number; perSharer: number; waitingPerSharer?: number }) {
    this.#limits = { waitingPerSharer: Number.POSITIVE_INFINITY, ...limits }
  }

  /**
   * Waits until the sharer (such as a network) gets one of the limited turns. @returns a function with which the caller
   * ends the turn. @throws {NoTurnError}
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
      // A sharer (such as a network) that has just got a turn goes to the end of the rotation.
      this.#waiting.delete(next)
      if (queue.length > 0) this.#waiting.set(next, queue)
      this.#take(next)
      waiter.enter()
      return
    }
  }
}
