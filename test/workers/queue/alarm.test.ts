import { expect, test } from 'bun:test'
import { startAlarm } from '../../../workers/queue/alarm.ts'
import { silentLog } from '../../support/logs.ts'
import { shortestMs } from '../../support/process/shortestMs.ts'
import { waitFor } from '../../support/waitFor.ts'
import '../../support/process/alone.ts'

/**
 * Runs a job alarm, which wakes the worker when a job is due, for jobs that become due after the given times.
 * @returns the due times of the jobs, and the times at which the alarm rang
 */
async function ringsFor(...afterMs: number[]): Promise<{ dueMs: number[]; rings: number[] }> {
  const dueMs = afterMs.map((ms) => performance.now() + ms)
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
  await waitFor('the last ring', () => (rings.at(-1) ?? 0) >= dueMs.at(-1)!)
  await alarm.stop()
  return { dueMs, rings }
}

test('the job alarm wakes the worker when a job is due, and seldom earlier', async () => {
  // A job alarm that ignored the due time of a job would wake the worker only at its next poll of the queue. This poll
  // comes 440 ms after the first of these jobs is due.
  const lateMs = await shortestMs(250, async () => {
    const { dueMs, rings } = await ringsFor(60, 61, 62, 200)
    // A timer can fire slightly too early, so the test looks for the first ring of the job alarm at or after the due
    // time.
    const late = dueMs.map((due) => rings.find((ring) => ring >= due)! - due)
    const early = rings.filter((ring) => ring >= dueMs[2]! && ring < dueMs[3]! - 5)
    expect(early.length).toBeLessThan(3)
    return Math.max(...late)
  })
  expect(lateMs).toBeLessThan(250)
})

test('the job alarm (which wakes the worker) continues after a failed query of the queue, and wakes the worker less often if fetching jobs is slow', async () => {
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

test('the job alarm can be stopped at once, even during a query of the queue', async () => {
  const stopMs = await shortestMs(200, async () => {
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
    return performance.now() - startMs
  })
  expect(stopMs).toBeLessThan(200)
})
