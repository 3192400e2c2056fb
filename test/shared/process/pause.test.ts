/** Tests functions that a process repeats at intervals. */
import { expect, test } from 'bun:test'
import { repeat } from '../../../shared/process/pause.ts'
import { waitFor } from '../../support/waitFor.ts'

test('if a repeated task runs too long, its next runs are skipped, and a stop waits only for the current run', async () => {
  const ends: (() => void)[] = []
  const { stop } = repeat(
    () =>
      new Promise((resolve) => {
        ends.push(resolve)
      }),
    1,
  )
  let ticks = 0
  const other = repeat(async () => {
    ticks++
  }, 1)
  await waitFor('many intervals', () => ticks > 20)
  expect(ends).toHaveLength(1)
  ends[0]!()
  await waitFor('the next run', () => ends.length === 2)
  let isStopped = false
  const stopped = stop().then(() => {
    isStopped = true
  })
  const before = ticks
  await waitFor('more intervals', () => ticks > before + 20)
  expect([isStopped, ends.length]).toEqual([false, 2])
  ends[1]!()
  await stopped
  await other.stop()
  expect(ends).toHaveLength(2)
})

test('the first run of a repeated task begins at once, and the caller can wait for its end', async () => {
  const seen: string[] = []
  const { first, stop } = repeat(async () => {
    seen.push('run')
  }, 60_000)
  expect(seen).toEqual(['run'])
  await first
  await stop()
  expect(seen).toEqual(['run'])
})
