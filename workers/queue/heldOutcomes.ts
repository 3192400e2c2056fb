import type { Logger } from 'pino'
import { isDatabaseUnavailable } from '../../shared/process/databaseAway.ts'
import { isDeadlock, isLockTimeout, isStatementTimeout } from '../../sql/db.ts'

const RETRY_MIN_MS = 100
const RETRY_MAX_MS = 500
/** An outcome that waits for longer is worth a line in the log. */
const LATE_MS = 8_000
const SETTLE_POLL_MS = 25

/** The outcomes of effects on the outside that a pool knows and has not recorded yet. */
export type HeldOutcomes = {
  /**
   * Runs `work`, which records such an outcome, until the database has taken it. The job keeps its slot meanwhile: a pool
   * never holds more outcomes than its slots have effects. A throw would make the job repeat its effect.
   */
  record<Result>(work: () => Promise<Result>): Promise<Result>
  /** Resolves when no outcome is held, or at the end of the limit. Later failures are then thrown. */
  settle(limitMs: number): Promise<void>
}

/** Begins with no outcome. */
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

/** Whether the same work can succeed later. */
const passes = (error: unknown): boolean =>
  isDatabaseUnavailable(error) ||
  isDeadlock(error) ||
  isLockTimeout(error) ||
  isStatementTimeout(error)
