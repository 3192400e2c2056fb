import { expect, test } from 'bun:test'
import { createByteSemaphore } from '../../../workers/mail/byteSemaphore.ts'

/** Resolves once every admitted request has entered. */
const settle = () => new Promise((resolve) => setImmediate(resolve))

/** Requests all sizes at once; `inside` holds the indexes of those that entered. */
function enterAll(capacity: number, sizes: number[]) {
  const semaphore = createByteSemaphore(capacity)
  const leaves: (() => void)[] = []
  const inside: number[] = []
  const settled = Promise.all(
    sizes.map(async (size, n) => {
      leaves[n] = await semaphore.enter(size)
      inside.push(n)
    }),
  )
  return { leaves, inside, settled }
}

test('requests enter while bytes are free, the others in FIFO order', async () => {
  const { leaves, inside, settled } = enterAll(10, [6, 4, 3, 1, 4])
  await settle()
  expect(inside).toEqual([0, 1])
  leaves[1]!()
  // A second release frees nothing.
  leaves[1]!()
  await settle()
  expect(inside).toEqual([0, 1, 2, 3])
  leaves[2]!()
  leaves[3]!()
  await settled
  expect(inside).toEqual([0, 1, 2, 3, 4])
})

test('a request larger than the capacity enters alone, and is not overtaken', async () => {
  const { leaves, inside, settled } = enterAll(10, [5, 50, 1])
  await settle()
  expect(inside).toEqual([0])
  leaves[0]!()
  await settle()
  expect(inside).toEqual([0, 1])
  leaves[1]!()
  await settled
  expect(inside).toEqual([0, 1, 2])
})
