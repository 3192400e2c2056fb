/** Tests which task must end to make room when a shared resource is full. */
import { expect, test } from 'bun:test'
import { workOfGreediest } from '../../../shared/fair/greediest.ts'

type Work = { name: string; held: number; rank: number }

const choose = (...works: [name: string, held: number, rank: number][]) =>
  workOfGreediest<Work>(
    works.map(([name, held, rank]) => ({ name, held, rank })),
    { held: (work) => work.held, rank: (work) => work.rank },
  )?.name

test('if a resource is used up, a task of the inbox or network that uses most of it must end', () => {
  expect(choose(['a', 1, 9], ['b', 3, 1], ['c', 2, 9])).toBe('b')
  expect(choose(['a', 3, 1], ['b', 2, 9])).toBe('a')
})

test('if several users of a resource use equally much, the task with the highest rank is ended', () => {
  expect(choose(['a', 2, 1], ['b', 2, 3], ['c', 2, 2], ['d', 1, 9])).toBe('b')
})

test('if several tasks have equal rank, the first of these tasks is ended', () => {
  expect(choose(['a', 2, 1], ['b', 2, 1])).toBe('a')
})

test('if no task uses the resource, no task is ended', () => {
  expect(workOfGreediest([], { held: () => 0, rank: () => 0 })).toBeNull()
  expect(choose(['a', 0, 0])).toBe('a')
})
