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
  readonly #most: readonly number[]
  /** Counts the running tasks of each sharer that has a limit of its own. */
  readonly #running = new Map<string, number>()
  /**
   * Holds the tasks that wait until they may run. Waiting tasks of the same inboxes and sending networks (their
   * "sharers") form one group.
   */
  readonly #waiting = new Map<string, Waiting>()
  #taken = 0

  /**
   * Sets the limits on tasks.
   * @param total limits how many tasks run at once.
   * @param most limits how many tasks of one sharer run at once. Its first number holds for the first sharer of a task,
   * such as the inbox, and so on. A sharer without a number has no limit.
   */
  constructor(costs: Costs, total: number, most: readonly number[] = []) {
    this.#costs = costs
    this.#total = total
    this.#most = most
  }

  /**
   * Waits until a task of the given sharers (such as inboxes) may run.
   * @param signal ends the wait. The task then gets no turn.
   * @returns a function that the caller calls when the task has ended, so that another task may run. If the caller
   * calls the returned function a second time, nothing happens.
   * @throws the reason of the signal.
   */
  async enter(sharers: readonly string[], signal?: AbortSignal): Promise<() => void> {
    signal?.throwIfAborted()
    if (this.#mayRun(sharers)) this.#count(sharers, 1)
    else await this.#wait(sharers, signal)
    let isOver = false
    return () => {
      if (isOver) return
      isOver = true
      this.#count(sharers, -1)
      while (this.#startLightest());
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

  #mayRun(sharers: readonly string[]): boolean {
    if (this.#taken >= this.#total) return false
    return this.#most.every((most, n) => (this.#running.get(sharers[n] ?? '') ?? 0) < most)
  }

  #count(sharers: readonly string[], change: 1 | -1): void {
    this.#taken += change
    for (const sharer of sharers.slice(0, this.#most.length)) {
      const running = (this.#running.get(sharer) ?? 0) + change
      if (running > 0) this.#running.set(sharer, running)
      else this.#running.delete(sharer)
    }
  }

  async #wait(sharers: readonly string[], signal: AbortSignal | undefined): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const key = JSON.stringify(sharers)
    const waiting = this.#waiting.get(key) ?? { sharers, enter: [] }
    waiting.enter.push(resolve)
    this.#waiting.set(key, waiting)
    const leave = () => {
      const at = waiting.enter.indexOf(resolve)
      if (at === -1) return
      waiting.enter.splice(at, 1)
      if (waiting.enter.length === 0) this.#waiting.delete(key)
      reject(signal!.reason)
    }
    signal?.addEventListener('abort', leave, { once: true })
    try {
      await promise
    } finally {
      signal?.removeEventListener('abort', leave)
    }
  }

  /**
   * Starts the waiting task whose sharers (such as inboxes) have the least cost. @returns false if no waiting task may
   * run.
   */
  #startLightest(): boolean {
    let lightest: [string, Waiting] | undefined
    let least = Number.POSITIVE_INFINITY
    for (const one of this.#waiting) {
      if (!this.#mayRun(one[1].sharers)) continue
      const cost = this.#costs.of(one[1].sharers)
      if (cost >= least) continue
      least = cost
      lightest = one
    }
    if (lightest === undefined) return false
    const [key, { sharers, enter }] = lightest
    const resolve = enter.shift()!
    if (enter.length === 0) this.#waiting.delete(key)
    this.#count(sharers, 1)
    resolve()
    return true
  }
}
