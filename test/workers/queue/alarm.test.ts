import { expect, test } from 'bun:test'
import { startAlarm } from '../../../workers/queue/alarm.ts'
import { silentLog } from '../../support/service.ts'
import { waitFor } from '../../support/waitFor.ts'
import '../../support/process/alone.ts'

test('the job alarm rings when a job is due, and rings rarely before the next job is due', async () => {
  const dueMs = [60, 61, 62, 200].map((ms) => performance.now() + ms)
  const rings: number[] = []
  const alarm = startAlarm({
    nextInMs: async () => {
      const next = dueMs.find((due) => due > performance.now())
      return next === undefined ? null : next - performance.now()
    },
    ring: () => rings.push(performance.now()),
    fetchMs: () => 0,
    log: silentLog,
  })
  await waitFor('both', () => (rings.at(-1) ?? 0) >= dueMs[3]!)
  await alarm.stop()
  for (const due of dueMs) {
    // A timer can fire slightly too early, so the test looks for the first ring of the job alarm at or after the due
    // time.
    const after = rings.find((ring) => ring >= due)!
    // If the alarm did not know the due time of the job, the alarm would ring only at its next poll of the queue, after
    // 500 ms. Therefore a ring within 450 ms shows that the alarm was set for the due time of the job.
    expect(after - due).toBeLessThan(450)
  }
  expect(rings.filter((ring) => ring >= dueMs[2]! && ring < dueMs[3]! - 5).length).toBeLessThan(3)
})

test('the job alarm continues after a failed poll of the queue, and rings less often while fetching jobs is slow', async () => {
  let looks = 0
  const rings: number[] = []
  const alarm = startAlarm({
    nextInMs: async () => {
      if (++looks === 1) throw new Error('away')
      return 1
    },
    ring: () => rings.push(performance.now()),
    fetchMs: () => 18,
    log: silentLog,
  })
  await waitFor('five rings', () => rings.length >= 5)
  await alarm.stop()
  expect((rings[4]! - rings[0]!) / 4).toBeGreaterThanOrEqual(70)
})

test('the job alarm stops at once, even during a poll of the queue', async () => {
  const look = Promise.withResolvers<number | null>()
  const alarm = startAlarm({
    nextInMs: () => look.promise,
    ring: () => {},
    fetchMs: () => 0,
    log: silentLog,
  })
  const startMs = performance.now()
  const stopped = alarm.stop()
  look.resolve(null)
  await stopped
  expect(performance.now() - startMs).toBeLessThan(200)
})
