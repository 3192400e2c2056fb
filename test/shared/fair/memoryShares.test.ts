import { expect, test } from 'bun:test'
import { MemoryShares } from '../../../shared/fair/memoryShares.ts'

test('a sharer (such as a network) gets at most half of the memory that others leave free, so that later sharers still get memory', () => {
  const shares = new MemoryShares(100)
  const granted = ['a', 'a', 'a', 'a', 'b', 'b', 'b', 'c', 'c'].flatMap((sharer) => {
    const release = shares.take(sharer, 15)
    return release === null ? [] : [{ sharer, release }]
  })
  // Each request takes 15 of 100 memory units. Sharer a (such as a network) gets at most half of 100 units, so three
  // requests. Sharer b gets one, because half of the other 55 units is 27. Sharer c gets one, because half of the last
  // 40 units is 20.
  expect(granted.map(({ sharer }) => sharer)).toEqual(['a', 'a', 'a', 'b', 'c'])
  // A second call of the same `release` function frees no memory a second time.
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
