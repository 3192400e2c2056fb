import type { Logger } from 'pino'
import { isDatabaseUnavailable } from '../../shared/process/databaseAway.ts'
import { isGivenUp } from '../../sql/db.ts'

const RETRY_MIN_MS = 100
const RETRY_MAX_MS = 500
/**
 * Sets the milliseconds of waiting after which the service logs that an outcome is still not recorded in the database.
 */
const LATE_MS = 8_000
const SETTLE_POLL_MS = 25

/**
 * Holds the outcomes of external effects (such as a sent mail) that the worker pool has not yet recorded in the
 * database.
 */
export type HeldOutcomes = {
  /**
   * Repeats `work`, which records the outcome of an external effect, until the database has stored the outcome. The job
   * keeps its slot (place in the worker pool) for this time, so a pool holds at most one outcome for each slot. If the
   * recording threw an error instead, the job would run again and repeat its external effect.
   */
  record<Result>(work: () => Promise<Result>): Promise<Result>
  /**
   * Resolves when every outcome is recorded, or when the time limit ends. After the time limit, a failure to record an
   * outcome is thrown as an error.
   */
  settle(limitMs: number): Promise<void>
}

/** Creates the store of a worker pool's unrecorded outcomes, which is empty at first. */
export function createHeldOutcomes(log: Pick<Logger, 'warn' | 'info' | 'error'>): HeldOutcomes {
  let held = 0
  let late = 0
  let givenUp = false
  const became = (count: number) => {
    if (late === 0 && count > 0) log.warn('outcomes wait in memory until the database is back')
    late += count
    if (late === 0 && count < 0) log.info('the outcomes that waited in memory are recorded')
  }
  return {
    async record(work) {
      const startMs = performance.now()
      let isLate = false
      held++
      try {
        for (let delayMs = RETRY_MIN_MS; ; delayMs = Math.min(delayMs * 2, RETRY_MAX_MS)) {
          try {
            return await work()
          } catch (error) {
            if (givenUp || !passes(error)) throw error
          }
          if (!isLate && performance.now() - startMs > LATE_MS) {
            isLate = true
            became(1)
          }
          await Bun.sleep(delayMs)
        }
      } finally {
        held--
        if (isLate) became(-1)
      }
    },
    async settle(limitMs) {
      const deadlineMs = performance.now() + limitMs
      while (held > 0 && performance.now() < deadlineMs) await Bun.sleep(SETTLE_POLL_MS)
      givenUp = true
      if (held > 0) log.error({ held }, 'outcomes were not recorded: their jobs may run again')
    },
  }
}

/** Tells whether work that failed with the given error can succeed later. */
const passes = (error: unknown): boolean => isDatabaseUnavailable(error) || isGivenUp(error)
