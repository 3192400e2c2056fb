/** Tests which piece of work must end to make room when a shared resource is full. */
import { expect, test } from 'bun:test'
import { workOfGreediest } from '../../../shared/fair/greediest.ts'

type Work = { name: string; held: number; rank: number }

const choose = (...works: [name: string, held: number, rank: number][]) =>
  workOfGreediest<Work>(
    works.map(([name, held, rank]) => ({ name, held, rank })),
    { held: (work) => work.held, rank: (work) => work.rank },
  )?.name

test('the piece of work ends whose owner uses more of the resource than all other owners', () => {
  expect(choose(['a', 1, 9], ['b', 3, 1], ['c', 2, 9])).toBe('b')
  expect(choose(['a', 3, 1], ['b', 2, 9])).toBe('a')
})

test('if several owners use equally much, the piece of work with the highest rank ends', () => {
  expect(choose(['a', 2, 1], ['b', 2, 3], ['c', 2, 2], ['d', 1, 9])).toBe('b')
})

test('if several pieces of work have equal rank, the first of them ends', () => {
  expect(choose(['a', 2, 1], ['b', 2, 1])).toBe('a')
})

test('if there is no piece of work, nothing ends', () => {
  expect(workOfGreediest([], { held: () => 0, rank: () => 0 })).toBeNull()
  expect(choose(['a', 0, 0])).toBe('a')
})
