import { isDatabaseUnavailable } from '../../shared/process/databaseAway.ts'
import { isDeadlock } from '../../sql/db.ts'

/** How long to wait for a database that is away; with a time-out it stays under the drain limit of a pool. */
const DATABASE_PATIENCE_MS = 8_000
const DATABASE_RETRY_MS = 100

/**
 * Records what was done to the outside, also when the database is away for a moment or has chosen this transaction to
 * end a deadlock. To throw would leave it to Graphile Worker, and what was done would be done again.
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
