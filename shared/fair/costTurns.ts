import type { Costs } from './costs.ts'

type Waiting = { sharers: readonly string[]; enter: (() => void)[] }

/**
 * Limits the number of tasks that run at the same time. The next task belongs to the sharers (such as inboxes and
 * sending networks) with the least cost so far. Tasks of the same sharers (such as inboxes) run in the order of their
 * arrival.
 */
export class CostTurns {
  readonly #costs: Costs
  readonly #total: number
  /** Holds the tasks that wait for a turn. Waiting tasks with the same sharers form one group. */
  readonly #waiting = new Map<string, Waiting>()
  #taken = 0

  constructor(costs: Costs, total: number) {
    this.#costs = costs
    this.#total = total
  }

  /**
   * Waits until a task of the given sharers (such as inboxes) may run. @returns a function with which the caller ends
   * the turn. A second call of the returned function does nothing.
   */
  async enter(sharers: readonly string[]): Promise<() => void> {
    if (this.#taken < this.#total) this.#taken++
    else await this.#wait(sharers)
    let isOver = false
    return () => {
      if (isOver) return
      isOver = true
      this.#next()
    }
  }

  /** Waits for a turn, runs the task, and charges the task's sharers with the duration of the task. */
  async run<Result>(sharers: readonly string[], work: () => Promise<Result>): Promise<Result> {
    const end = await this.enter(sharers)
    const startMs = performance.now()
    try {
      return await work()
    } finally {
      this.#costs.charge(sharers, performance.now() - startMs)
      end()
    }
  }

  #wait(sharers: readonly string[]): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const key = JSON.stringify(sharers)
    const waiting = this.#waiting.get(key)
    if (waiting === undefined) this.#waiting.set(key, { sharers, enter: [resolve] })
    else waiting.enter.push(resolve)
    return promise
  }

  /** Gives a freed turn to a waiting task of the sharers with the least cost. */
  #next(): void {
    let lightest: [string, Waiting] | undefined
    let least = Number.POSITIVE_INFINITY
    for (const one of this.#waiting) {
      const cost = this.#costs.of(one[1].sharers)
      if (cost >= least) continue
      least = cost
      lightest = one
    }
    if (lightest === undefined) {
      this.#taken--
      return
    }
    const [key, { enter }] = lightest
    const resolve = enter.shift()!
    if (enter.length === 0) this.#waiting.delete(key)
    resolve()
  }
}
