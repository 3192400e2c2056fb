import { isDatabaseUnavailable } from '../../shared/process/databaseAway.ts'
import { isDeadlock } from '../../sql/db.ts'

/** The longest wait for an absent database. With one time-out added it stays under a pool's drain limit. */
const DATABASE_PATIENCE_MS = 8_000
const DATABASE_RETRY_MS = 100

/**
 * Runs `work`, and repeats it for some seconds while the database is away, and after a deadlock. The outcome of an effect
 * on the outside is recorded by heldOutcomes.ts, which has no such end.
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
