import type { Logger } from 'pino'
import { createPause } from '../../shared/process/pause.ts'
import type { Running } from '../../shared/process/service.ts'

/**
 * Sets the interval at which the job alarm asks the database when the next job is due. The interval is shorter than the
 * shortest delay of a job (1 s), so that the alarm misses no retry.
 */
const LOOK_MS = 500
/**
 * The following constants limit the milliseconds between two rings of the job alarm. A job that becomes due between two
 * rings waits for the second ring, at which the pool fetches it.
 */
const GAP_MIN_MS = 5
const GAP_MAX_MS = 100
/**
 * Sets the gap between two rings of the job alarm as a multiple of the time that a fetch of jobs takes. The gap grows
 * with this time, so that the fetches take at most a fifth of the process's time. If 100,000 jobs wait, a fetch takes
 * 18 ms.
 */
const GAP_PER_FETCH = 4

/**
 * Rings when a job becomes due, to the millisecond, so that the pool fetches the job. Polling would find the due job
 * later, by half a polling interval on average.
 * @param nextInMs returns how many milliseconds remain until the next job is due, by the database's clock, which
 * decides whether a job is due. It returns `null` if no job is planned for a later time.
 * @param ring is called each time the alarm rings, and makes the pool fetch jobs.
 * @param fetchMs returns how many milliseconds a fetch of jobs currently takes.
 */
export function startAlarm(options: {
  nextInMs: () => Promise<number | null>
  ring: () => void
  fetchMs: () => number
  log: Logger
}): Running {
  let stopped = false
  const pause = createPause()
  const loop = async () => {
    let due = false
    while (!stopped) {
      let waitMs = LOOK_MS
      try {
        // The job alarm first asks when the next job is due and then rings, because the ring fetches every job that is
        // due by then.
        const nextMs = await options.nextInMs()
        if (due) options.ring()
        due = nextMs !== null && nextMs <= LOOK_MS
        if (due) {
          const gapMs = Math.min(
            Math.max(options.fetchMs() * GAP_PER_FETCH, GAP_MIN_MS),
            GAP_MAX_MS,
          )
          waitMs = Math.max(Math.ceil(nextMs!), gapMs)
        }
      } catch (error) {
        options.log.warn({ err: error }, 'the next due time is unknown; will retry')
      }
      if (stopped) return
      await pause.sleep(waitMs)
    }
  }
  const ended = loop()
  return {
    async stop() {
      stopped = true
      pause.wake()
      await ended
    },
  }
}
