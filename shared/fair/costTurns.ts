import type { Costs } from './costs.ts'

/**
 * Describes a waiting task. Only a task of {@link CostTurns.runInPlace} has the function `sendAway`, which ends the
 * wait before the task begins.
 */
type WaitingTask = { begin: () => void; sendAway?: () => void }
type Waiting = { key: string; sharers: readonly string[]; tasks: WaitingTask[] }

type Limits = {
  /**
   * Limits how many tasks of one sharer (such as an inbox) run at once. The first number limits the first sharer in a
   * task's list of sharers, and so on. A sharer without a number has no separate limit.
   */
  perSharer?: readonly number[]
  /**
   * Sets the maximum number of tasks that may wait in {@link CostTurns.runInPlace}. Each waiting task takes one of
   * these places.
   */
  placesMax?: number
}

/**
 * Runs only a limited number of tasks at the same time. A task has sharers, such as an inbox and a sending network. The
 * task whose sharers have caused the least cost so far runs next. Tasks of the same sharers run in the order in which
 * they arrived.
 */
export class CostTurns {
  readonly #costs: Costs
  readonly #total: number
  readonly #limits: Required<Limits>
  /** Counts the running tasks of each sharer (such as an inbox) that has a separate limit. */
  readonly #running = new Map<string, number>()
  /**
   * Holds the tasks that wait until they may run. Waiting tasks with the same sharers (such as one inbox and one
   * sending network) form one group.
   */
  readonly #waiting = new Map<string, Waiting>()
  #taken = 0
  #placed = 0

  /** @param total limits how many tasks of all sharers (such as inboxes) run at once. */
  constructor(costs: Costs, total: number, limits: Limits = {}) {
    this.#costs = costs
    this.#total = total
    this.#limits = { perSharer: [], placesMax: Number.POSITIVE_INFINITY, ...limits }
  }

  /**
   * Waits until a task of the given sharers (such as inboxes) may run.
   * @param signal ends the wait, so that the task never begins.
   * @returns a function that the caller calls when the task has ended, so that another task may run. A second call of
   * the returned function has no effect.
   * @throws the reason of the signal.
   */
  async enter(sharers: readonly string[], signal?: AbortSignal): Promise<() => void> {
    signal?.throwIfAborted()
    if (this.#mayRun(sharers)) this.#count(sharers, 1)
    else await this.#waitUntil(sharers, signal)
    return this.#turn(sharers)
  }

  #turn(sharers: readonly string[]): () => void {
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
    return await this.#work(await this.enter(sharers), sharers, work)
  }

  /**
   * Runs the task like {@link run}, but lets at most `placesMax` tasks wait. If all waiting places are taken, the task
   * replaces the waiting task with the highest cost, provided that this cost is higher than its own. Without this
   * replacement, the waiting places would stay with the sharers (such as inboxes) whose tasks ask first.
   * @returns false if a cheaper task replaced this task before it began, or if no waiting place was free. The caller
   * tries again later.
   */
  async runInPlace(sharers: readonly string[], work: () => Promise<void>): Promise<boolean> {
    if (this.#mayRun(sharers)) this.#count(sharers, 1)
    else if (!(await this.#waitInPlace(sharers))) return false
    await this.#work(this.#turn(sharers), sharers, work)
    return true
  }

  async #work<Result>(
    end: () => void,
    sharers: readonly string[],
    work: () => Promise<Result>,
  ): Promise<Result> {
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
    return this.#limits.perSharer.every((most, n) => (this.#running.get(sharers[n]!) ?? 0) < most)
  }

  #count(sharers: readonly string[], change: 1 | -1): void {
    this.#taken += change
    for (const sharer of sharers.slice(0, this.#limits.perSharer.length)) {
      const running = (this.#running.get(sharer) ?? 0) + change
      if (running > 0) this.#running.set(sharer, running)
      else this.#running.delete(sharer)
    }
  }

  async #waitUntil(sharers: readonly string[], signal: AbortSignal | undefined): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const task = { begin: resolve }
    const waiting = this.#wait(sharers, task)
    const leave = () => {
      const at = waiting.tasks.indexOf(task)
      // A task that has left the queue may already run, so the abort has no effect on it.
      if (at === -1) return
      this.#take(waiting, at)
      reject(signal!.reason)
    }
    signal?.addEventListener('abort', leave, { once: true })
    try {
      await promise
    } finally {
      signal?.removeEventListener('abort', leave)
    }
  }

  /** @returns false if the task gets no waiting place, or if a cheaper task takes its place. */
  async #waitInPlace(sharers: readonly string[]): Promise<boolean> {
    const isFull = this.#placed >= this.#limits.placesMax
    if (isFull && !this.#sendAwayAbove(this.#costs.of(sharers))) return false
    this.#placed++
    return await new Promise<boolean>((resolve) => {
      const end = (isIn: boolean) => {
        this.#placed--
        resolve(isIn)
      }
      this.#wait(sharers, { begin: () => end(true), sendAway: () => end(false) })
    })
  }

  #wait(sharers: readonly string[], task: WaitingTask): Waiting {
    const key = JSON.stringify(sharers)
    const waiting = this.#waiting.get(key) ?? { key, sharers, tasks: [] }
    this.#waiting.set(key, waiting)
    waiting.tasks.push(task)
    return waiting
  }

  /**
   * Removes the task with the highest cost from the waiting places. @returns false if no waiting task costs more than
   * `ms` milliseconds.
   */
  #sendAwayAbove(ms: number): boolean {
    const costOf = this.#costs.asOfNow()
    let heaviest: [Waiting, number] | undefined
    let most = ms
    for (const waiting of this.#waiting.values()) {
      const at = waiting.tasks.findLastIndex(({ sendAway }) => sendAway !== undefined)
      const cost = at < 0 ? 0 : costOf(waiting.sharers)
      if (cost <= most) continue
      most = cost
      heaviest = [waiting, at]
    }
    if (heaviest === undefined) return false
    this.#take(...heaviest).sendAway!()
    return true
  }

  /** Removes a task from the tasks that wait for their turn. */
  #take({ key, tasks }: Waiting, at: number): WaitingTask {
    const [task] = tasks.splice(at, 1)
    if (tasks.length === 0) this.#waiting.delete(key)
    return task!
  }

  /**
   * Starts the waiting task whose sharers (such as inboxes) have the least cost. @returns false if no waiting task may
   * run.
   */
  #startLightest(): boolean {
    const costOf = this.#costs.asOfNow()
    let lightest: Waiting | undefined
    let least = Number.POSITIVE_INFINITY
    for (const waiting of this.#waiting.values()) {
      if (!this.#mayRun(waiting.sharers)) continue
      const cost = costOf(waiting.sharers)
      if (cost >= least) continue
      least = cost
      lightest = waiting
    }
    if (lightest === undefined) return false
    this.#count(lightest.sharers, 1)
    this.#take(lightest, 0).begin()
    return true
  }
}
