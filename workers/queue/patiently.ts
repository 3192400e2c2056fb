import { isDatabaseUnavailable } from '../../shared/process/databaseAway.ts'
import { isDeadlock } from '../../sql/db.ts'

/** The longest wait for an absent database. With one time-out added it stays under a pool's drain limit. */
const DATABASE_PATIENCE_MS = 8_000
const DATABASE_RETRY_MS = 100

/**
 * Runs `work`, which records an effect on the outside. Repeats it while the database is away, and after a deadlock. A
 * throw would make Graphile Worker repeat the effect itself.
 */
export async function patiently<Result>(work: () => Promise<Result>): Promise<Result> {
  const startMs = performance.now()
  for (;;) {
    try {
      return await work()
    } catch (error) {
      const passes = isDatabaseUnavailable(error) || isDeadlock(error)
      if (!passes || performance.now() - startMs > DATABASE_PATIENCE_MS) throw error
      await Bun.sleep(DATABASE_RETRY_MS)
    }
  }
}
