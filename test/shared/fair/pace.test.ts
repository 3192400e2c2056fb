import { expect, test } from 'bun:test'
import { Pace } from '../../../shared/fair/pace.ts'

const RATE = 1000

function paced(bytesPerS = RATE) {
  let nowMs = 0
  const pace = new Pace({ bytesPerS, burstS: 2 }, () => nowMs)
  return {
    take: (bytes: number, ...subjects: string[]) => pace.take(subjects, bytes),
    later: (ms: number) => {
      nowMs += ms
    },
  }
}

test('a pace (a limit on bytes per second) lets the bytes of two seconds pass at once, and delays all bytes after them', () => {
  const { take, later } = paced()
  expect(take(2 * RATE, 'a')).toBe(0)
  expect(take(RATE, 'a')).toBe(1000)
  later(1000)
  expect(take(RATE / 2, 'a')).toBe(500)
})

test('an inbox or network that sends nothing for a while may then send at most the bytes of two seconds at once', () => {
  const { take, later } = paced()
  take(5 * RATE, 'a')
  later(60_000)
  expect(take(3 * RATE, 'a')).toBe(1000)
})

test('a mail waits as long as the busiest of its inboxes and its network demands, and its bytes count for each of them', () => {
  const { take } = paced()
  take(3 * RATE, 'inbox')
  expect(take(RATE, 'network', 'inbox')).toBe(2000)
  expect(take(2 * RATE, 'network')).toBe(1000)
  expect(take(2 * RATE, 'other')).toBe(0)
})

test('a pace (a limit on bytes per second) with the rate 0 delays nothing', () => {
  expect(paced(0).take(1e9, 'a')).toBe(0)
})
