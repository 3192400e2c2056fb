import { expect, test } from 'bun:test'
import { createByteSemaphore } from '../../../workers/mail/byteSemaphore.ts'

/** Until all who may enter have. */
const settle = () => new Promise((resolve) => setImmediate(resolve))

/** Enters all at once; what each does is told in `log`. */
function enterAll(capacity: number, sizes: number[]) {
  const room = createByteSemaphore(capacity)
  const leaves: (() => void)[] = []
  const inside: number[] = []
  const settled = Promise.all(
    sizes.map(async (size, n) => {
      leaves[n] = await room.enter(size)
      inside.push(n)
    }),
  )
  return { leaves, inside, settled }
}

test('so many enter as there is room for, the others in their order', async () => {
  const { leaves, inside, settled } = enterAll(10, [6, 4, 3, 1, 4])
  await settle()
  expect(inside).toEqual([0, 1])
  leaves[1]!()
  // Leaving twice makes no room twice.
  leaves[1]!()
  await settle()
  expect(inside).toEqual([0, 1, 2, 3])
  leaves[2]!()
  leaves[3]!()
  await settled
  expect(inside).toEqual([0, 1, 2, 3, 4])
})

test('what is larger than the room enters alone, and is not overtaken', async () => {
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
