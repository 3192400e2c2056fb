/** Tests which task the service must stop to free a shared resource that is used up. */
import { expect, test } from 'bun:test'
import { workOfGreediest } from '../../../shared/fair/greediest.ts'

type Work = { name: string; held: number; rank: number }

const choose = (...works: [name: string, held: number, rank: number][]) =>
  workOfGreediest<Work>(
    works.map(([name, held, rank]) => ({ name, held, rank })),
    { held: (work) => work.held, rank: (work) => work.rank },
  )?.name

test('if a resource is used up, the service must stop a task of the inbox or network that uses most of the resource', () => {
  expect(choose(['a', 1, 9], ['b', 3, 1], ['c', 2, 9])).toBe('b')
  expect(choose(['a', 3, 1], ['b', 2, 9])).toBe('a')
})

test('if several tasks use equally much of a resource, the service stops the task that the given ranking function ranks highest', () => {
  expect(choose(['a', 2, 1], ['b', 2, 3], ['c', 2, 2], ['d', 1, 9])).toBe('b')
})

test('if several tasks use equally much of a resource and rank equally, the service stops the first of them', () => {
  expect(choose(['a', 2, 1], ['b', 2, 1])).toBe('a')
})

test('if no task holds a shared resource, the service chooses no task to stop', () => {
  expect(workOfGreediest([], { held: () => 0, rank: () => 0 })).toBeNull()
  expect(choose(['a', 0, 0])).toBe('a')
})
