import { isDatabaseUnavailable } from '../shared/process/databaseAway.ts'

/**
 * Gathers items that callers submit at the same time into one statement. There is no timer: an item that finds a free
 * lane goes at once, and only what arrives while every lane is busy is gathered, so a single caller waits for nobody.
 */
export type Batcher<Item, Result> = {
  submit(item: Item): Promise<Result>
  /** Resolves when nothing is under way. */
  drain(): Promise<void>
}

type Waiting<Item, Result> = {
  item: Item
  resolve: (result: Result) => void
  reject: (error: unknown) => void
}

export function createBatcher<Item, Result>(options: {
  /** Runs one statement for the items; answers one result per item, in order. */
  run: (items: Item[]) => Promise<Result[]>
  /** Items in one statement at most. */
  batchMax: number
  /** Statements under way at most. */
  lanes: number
  /** What an item weighs, and how much one statement takes; a heavier item has a statement of its own. */
  weight?: { of: (item: Item) => number; max: number }
}): Batcher<Item, Result> {
  const queue: Waiting<Item, Result>[] = []
  let busy = 0
  let drained: (() => void)[] = []

  const runBatch = async (batch: Waiting<Item, Result>[]) => {
    try {
      const results = await options.run(batch.map(({ item }) => item))
      for (const [n, waiting] of batch.entries()) waiting.resolve(results[n]!)
    } catch (error) {
      // When the connection broke, whether the batch was committed is unknown: to run it again could send a mail twice.
      if (batch.length === 1 || isDatabaseUnavailable(error)) {
        for (const waiting of batch) waiting.reject(error)
        return
      }
      for (const waiting of batch) await runBatch([waiting])
    }
  }

  const nextBatch = (): Waiting<Item, Result>[] => {
    const { of, max } = options.weight ?? { of: () => 0, max: 0 }
    let weight = 0
    let count = 0
    for (const { item } of queue) {
      weight += of(item)
      if (count === options.batchMax || (count > 0 && weight > max)) break
      count++
    }
    return queue.splice(0, count)
  }

  const pump = () => {
    while (busy < options.lanes && queue.length > 0) {
      busy++
      void runBatch(nextBatch()).finally(() => {
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
