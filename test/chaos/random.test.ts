import { expect, test } from 'bun:test'
import { createRandom } from './random.ts'

const choices = (seed: number, stream: string) => {
  const random = createRandom(seed, stream)
  return Array.from({ length: 50 }, () => random.int(1, 6))
}

test('the random generator of the chaos test repeats its choices if seed and stream are the same', () => {
  expect(choices(7, 'mail 0')).toEqual(choices(7, 'mail 0'))
})

test('the random generator of the chaos test makes other choices if the seed or the stream differs', () => {
  expect(choices(8, 'mail 0')).not.toEqual(choices(7, 'mail 0'))
  expect(choices(7, 'mail 1')).not.toEqual(choices(7, 'mail 0'))
})

test('random whole numbers stay within both bounds and reach both bounds', () => {
  const random = createRandom(1, '')
  const seen = new Set(Array.from({ length: 500 }, () => random.int(-1, 2)))
  expect([...seen].toSorted((a, b) => a - b)).toEqual([-1, 0, 1, 2])
})
