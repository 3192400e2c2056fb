import type { Costs } from './costs.ts'

type Waiting = { sharers: readonly string[]; enter: (() => void)[] }

/**
 * Runs only a limited number of tasks at the same time. The next task to run belongs to the sharers (such as inboxes
 * and sending networks) that have caused the least cost so far. Tasks of the same sharers (such as inboxes) run in the
 * order in which they arrived.
 */
export class CostTurns {
  readonly #costs: Costs
  readonly #total: number
  /**
   * Holds the tasks that wait until they may run. Waiting tasks of the same inboxes and sending networks (their
   * "sharers") form one group.
   */
  readonly #waiting = new Map<string, Waiting>()
  #taken = 0

  constructor(costs: Costs, total: number) {
    this.#costs = costs
    this.#total = total
  }

  /**
   * Waits until a task of the given sharers (such as inboxes) may run.
   * @returns a function that the caller calls when the task has ended, so that another task may run. If the caller
   * calls the returned function a second time, nothing happens.
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

  /**
   * Waits until the task may run, runs the task, and adds the duration of the task to the cost of its sharers (such as
   * inboxes).
   */
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

  /** When a task has ended, starts the waiting task whose sharers (such as inboxes) have the least cost. */
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
