import { isDatabaseUnavailable } from '../../shared/process/databaseAway.ts'
import { isDeadlock } from '../../sql/db.ts'

/**
 * Limits how long a job waits for an unreachable database. This wait and the timeout of one SQL statement together are
 * shorter than the time in which a stopping pool must finish its jobs.
 */
const DATABASE_PATIENCE_MS = 8_000
const DATABASE_RETRY_MS = 100

/**
 * Runs `work`. Repeats `work` after a deadlock, and for some seconds while the database is unreachable. Code that
 * records the outcome of an external effect must use heldOutcomes.ts, which repeats without a time limit.
 */
export async function patiently<Result>(
  work: () => Promise<Result>,
  patienceMs = DATABASE_PATIENCE_MS,
): Promise<Result> {
  const startMs = performance.now()
  for (;;) {
    try {
      return await work()
    } catch (error) {
      const passes = isDatabaseUnavailable(error) || isDeadlock(error)
      if (!passes || performance.now() - startMs > patienceMs) throw error
      await Bun.sleep(DATABASE_RETRY_MS)
    }
  }
}
