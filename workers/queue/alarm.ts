import type { Logger } from 'pino'
import { createPause } from '../../shared/process/pause.ts'
import type { Running } from '../../shared/process/service.ts'

/** How often the next due time is read: more often than the shortest delay (1 s), so no retry is missed. */
const LOOK_MS = 500
/** Rings at least this far apart; jobs due in between share one ring. */
const GAP_MIN_MS = 5
const GAP_MAX_MS = 100
/** A fetch takes longer with more waiting jobs (18 ms at 100,000). The gap keeps fetches at a fifth of the time. */
const GAP_PER_FETCH = 4

/**
 * Rings when a job falls due, to the millisecond. Polling would find it half an interval later on average.
 * @param nextInMs milliseconds until the next job is due, by the clock that decides whether it is; null for never.
 * @param ring makes the pool fetch jobs.
 * @param fetchMs how long a fetch takes at present.
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
        // Read before the ring: the ring fetches every job due by then, and the next due time is known.
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
