import { expect, test } from 'bun:test'
import { MemoryShares } from '../../../shared/fair/memoryShares.ts'

test('a sharer (such as a network) gets at most half of the memory that others leave free, so that later sharers still get memory', () => {
  const shares = new MemoryShares(100)
  const granted = ['a', 'a', 'a', 'a', 'b', 'b', 'b', 'c', 'c'].flatMap((sharer) => {
    const release = shares.take(sharer, 15)
    return release === null ? [] : [{ sharer, release }]
  })
  // Sharer a (such as a network) gets at most half of 100 units, which are three times 15. Sharer b gets at most half
  // of the other 55, and c gets the remaining 25 for its first request only.
  expect(granted.map(({ sharer }) => sharer)).toEqual(['a', 'a', 'a', 'b', 'c'])
  // A second call of the same `release` function makes no additional memory free.
  granted[0]!.release()
  granted[0]!.release()
  expect(shares.take('d', 40)).not.toBeNull()
  expect(shares.take('e', 1)).toBeNull()
})

test('if nobody uses memory, even a request above the limit gets memory, and all memory is free again after its release', () => {
  const shares = new MemoryShares(10)
  const release = shares.take('a', 50)!
  expect(shares.take('b', 1)).toBeNull()
  release()
  expect(shares.take('b', 10)).not.toBeNull()
})
