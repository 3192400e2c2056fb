import { expect, test } from 'bun:test'
import { EventLoopDelay } from '../../../shared/process/eventLoop.ts'

const histogram = { max: 0, enable: () => true, reset: () => {} }
histogram.reset = () => {
  histogram.max = 0
}

test('an event loop delay is reported in its window of ten seconds and in the next window, but not afterwards', () => {
  let nowMs = 0
  const delay = new EventLoopDelay(histogram as never, () => nowMs)
  histogram.max = 3e9
  nowMs = 9_000
  expect(delay.longestMs()).toBe(3_000)
  nowMs = 11_000
  expect(delay.longestMs()).toBe(3_000)
  nowMs = 20_000
  expect(delay.longestMs()).toBe(3_000)
  nowMs = 22_000
  expect(delay.longestMs()).toBe(3_000)
  nowMs = 33_000
  expect(delay.longestMs()).toBe(0)
})

test('a real block of the event loop is measured', async () => {
  const delay = new EventLoopDelay()
  await new Promise((resolve) => setTimeout(resolve, 50))
  const end = performance.now() + 120
  while (performance.now() < end);
  // The histogram of the event loop delay records a delay only when its own timer fires. The timer fires late, so the
  // test waits for the record.
  while (delay.longestMs() < 90) await new Promise((resolve) => setTimeout(resolve, 5))
})
