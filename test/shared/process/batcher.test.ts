import { expect, test } from 'bun:test'
import { createBatcher } from '../../../shared/process/batcher.ts'
import { waitFor } from '../../support/waitFor.ts'

/**
 * Starts a batcher, which collects items and runs one statement for each batch of items. Each statement runs until the
 * test ends it.
 */
function startBatcher(lateMs: number) {
  const batches: { items: number[]; end: () => void }[] = []
  const batcher = createBatcher({
    batchMax: 100,
    parallel: 2,
    lateMs,
    run: async (items: number[]) => {
      const { promise, resolve } = Promise.withResolvers<void>()
      batches.push({ items, end: resolve })
      await promise
      return items.map((item) => item * 2)
    },
  })
  return { batcher, batches }
}

test('items that arrive while a batcher’s database statement runs are sent together in the next statement', async () => {
  const { batcher, batches } = startBatcher(60_000)
  const results = [1, 2, 3, 4].map((item) => batcher.submit(item))
  expect(batches.map(({ items }) => items)).toEqual([[1]])
  batches[0]!.end()
  await waitFor('the next batch', () => batches.length === 2)
  expect(batches[1]!.items).toEqual([2, 3, 4])
  batches[1]!.end()
  expect(await Promise.all(results)).toEqual([2, 4, 6, 8])
  await batcher.drain()
})

test('if the SQL statement of one batch is slow, the batcher still handles the items of other batches without delay', async () => {
  const { batcher, batches } = startBatcher(20)
  const stuck = batcher.submit(1)
  const others = [2, 3].map((item) => batcher.submit(item))
  await waitFor('the second batch', () => batches.length === 2)
  batches[1]!.end()
  expect(await Promise.all(others)).toEqual([4, 6])
  const third = batcher.submit(5)
  await waitFor('the third batch', () => batches.length === 3)
  batches[2]!.end()
  expect(await third).toBe(10)
  batches[0]!.end()
  expect(await stuck).toBe(2)
})

test('a batcher (which runs one SQL statement for many items) runs those with the lowest given rank first, and combines only items with similar ranks in one statement', async () => {
  const batches: number[][] = []
  let end = () => {}
  const batcher = createBatcher({
    batchMax: 3,
    parallel: 1,
    rank: { asOfNow: () => (item: number) => item, mayShare: (least, rank) => rank <= least + 10 },
    run: async (items: number[]) => {
      batches.push(items)
      if (batches.length === 1) {
        await new Promise<void>((resolve) => {
          end = resolve
        })
      }
      return items
    },
  })
  const results = [0, 500, 7, 501, 9, 502, 503, 8, 1].map((item) => batcher.submit(item))
  end()
  expect(await Promise.all(results)).toEqual([0, 500, 7, 501, 9, 502, 503, 8, 1])
  expect(batches).toEqual([[0], [1, 7, 8], [9], [500, 501, 502], [503]])
})

test('the function drain of the batcher (which runs one SQL statement for many items) waits for all statements that are running', async () => {
  const { batcher, batches } = startBatcher(0)
  const first = batcher.submit(1)
  const second = batcher.submit(2)
  await waitFor('both statements', () => batches.length === 2)
  let isDrained = false
  const drained = batcher.drain().then(() => {
    isDrained = true
  })
  batches[0]!.end()
  await first
  // One cycle of the event loop is enough time for the batcher (which runs one SQL statement for many items) to handle
  // the end of a statement.
  await new Promise((resolve) => setImmediate(resolve))
  expect(isDrained).toBe(false)
  batches[1]!.end()
  await second
  await drained
})
