import { isDatabaseUnavailable } from './databaseAway.ts'
import { withinNone } from './workContext.ts'

/**
 * Joins the items of concurrent callers into one SQL statement (docs/decisions/batching.md). If no SQL statement runs
 * at the moment, a new item runs at once. Items that arrive while a statement runs form the next batch, which runs
 * after the end of this statement. If the running statement is late, the next batch does not wait for its end, provided
 * that fewer than `parallel` statements run.
 */
export type Batcher<Item, Result> = {
  submit(item: Item): Promise<Result>
  /** Waits until the batcher holds no waiting item and runs no SQL statement. */
  drain(): Promise<void>
}

type Waiting<Item, Result> = {
  item: Item
  resolve: (result: Result) => void
  reject: (error: unknown) => void
}

export function createBatcher<Item, Result>(options: {
  /** Runs one SQL statement for all given items, and returns one result for each item in the order of the items. */
  run: (items: Item[]) => Promise<Result[]>
  /** Holds the maximum number of items in one SQL statement. */
  batchMax: number
  /** Holds the maximum number of SQL statements that run at the same time. */
  parallel: number
  /**
   * Holds the time in milliseconds after which a running SQL statement counts as late, so that the next statement may
   * begin. A higher `lateMs` makes the batches larger. If `lateMs` is absent, the next statement begins without waiting
   * for the running statement.
   */
  lateMs?: number
  /**
   * Sets the weight of each item, and the maximum total weight of the items in one SQL statement. An item that exceeds
   * the maximum weight runs in a separate SQL statement.
   */
  weight?: { of: (item: Item) => number; max: number }
  /**
   * Sets the rank of each item in the queue. Items with the lowest rank run first. The function `mayShare` tells
   * whether an item may share an SQL statement with the item of the lowest rank. Otherwise the item waits for a later
   * statement. If `rank` is absent, the oldest items run first. The function `asOfNow` returns a function that computes
   * the rank of an item at that moment.
   */
  rank?: {
    asOfNow: () => (item: Item) => number
    mayShare: (least: number, rank: number) => boolean
  }
}): Batcher<Item, Result> {
  const queue: Waiting<Item, Result>[] = []
  let busy = 0
  let startedMs = 0
  let waits = false
  let drained: (() => void)[] = []

  const runBatch = async (batch: Waiting<Item, Result>[]) => {
    try {
      const results = await options.run(batch.map(({ item }) => item))
      for (const [n, waiting] of batch.entries()) waiting.resolve(results[n]!)
    } catch (error) {
      // After a broken database connection, the batcher does not run the batch again, because the database may still
      // commit the batch, and a second run could then send a mail twice.
      if (batch.length === 1 || isDatabaseUnavailable(error)) {
        for (const waiting of batch) waiting.reject(error)
        return
      }
      for (const waiting of batch) await runBatch([waiting])
    }
  }

  /**
   * Sorts the waiting items by their rank in the queue. @returns how many items, from the first one on, may be processed
   * in one SQL statement.
   */
  const sortByRank = (): number => {
    const { batchMax, rank } = options
    if (rank === undefined || queue.length < 2) return batchMax
    const rankOf = rank.asOfNow()
    const ranked = queue.map((waiting) => ({ waiting, rank: rankOf(waiting.item) }))
    ranked.sort((a, b) => a.rank - b.rank)
    for (const [n, { waiting }] of ranked.entries()) queue[n] = waiting
    const apart = ranked.findIndex((one) => !rank.mayShare(ranked[0]!.rank, one.rank))
    return apart === -1 ? batchMax : Math.min(batchMax, apart)
  }

  const nextBatch = (): Waiting<Item, Result>[] => {
    const { weight: { of, max } = { of: () => 0, max: 0 } } = options
    const most = sortByRank()
    let weight = 0
    let count = 0
    for (const { item } of queue) {
      weight += of(item)
      if (count === most || (count > 0 && weight > max)) break
      count++
    }
    return queue.splice(0, count)
  }

  /**
   * Tells whether the next batch must wait until the running SQL statement has ended. As soon as the running SQL
   * statement is late, a timer starts the next batch.
   */
  const gathers = (): boolean => {
    if (options.lateMs === undefined || busy === 0) return false
    const leftMs = startedMs + options.lateMs - performance.now()
    if (leftMs <= 0) return false
    if (waits) return true
    waits = true
    setTimeout(() => {
      waits = false
      pump()
    }, Math.ceil(leftMs))
    return true
  }

  const pump = () => {
    while (busy < options.parallel && queue.length > 0 && !gathers()) {
      busy++
      startedMs = performance.now()
      void withinNone(() => runBatch(nextBatch())).finally(() => {
        busy--
        pump()
      })
    }
    if (busy > 0) return
    for (const resolve of drained) resolve()
    drained = []
  }

  return {
    submit(item) {
      const { promise, resolve, reject } = Promise.withResolvers<Result>()
      queue.push({ item, resolve, reject })
      pump()
      return promise
    },
    drain() {
      if (busy === 0 && queue.length === 0) return Promise.resolve()
      const { promise, resolve } = Promise.withResolvers<void>()
      drained.push(resolve)
      return promise
    },
  }
}
