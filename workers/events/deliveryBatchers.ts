import { type Batcher, createBatcher } from '../../shared/process/batcher.ts'
import type { Pool } from '../../sql/db.ts'
import { type AttemptResult, recordAttempts } from '../../sql/events/attempts.ts'
import { type DueDelivery, findDueDeliveries } from '../../sql/events/deliveries.ts'

/**
 * Holds two batchers of one process: one batcher reads due webhook deliveries, and the other records delivery attempts.
 */
export type DeliveryBatchers = {
  due: Batcher<string, DueDelivery | null>
  attempts: Batcher<AttemptResult, boolean>
}

/**
 * Sets how webhook deliveries are batched. While one batch runs, the batcher collects deliveries for the next batch. A
 * single webhook delivery never waits for a batch to fill.
 */
const BATCHING = { batchMax: 200, parallel: 2, lateMs: 20 }

/**
 * Creates the two delivery batchers for one database connection pool. Deliveries that failed together are due again
 * together, so retries come in bursts. One SQL statement handles up to 200 webhook deliveries, so that even the last
 * delivery of a burst is on time.
 */
export const createDeliveryBatchers = (pool: Pool): DeliveryBatchers => ({
  due: createBatcher({ ...BATCHING, run: (ids: string[]) => findDueDeliveries(pool, ids) }),
  attempts: createBatcher({
    ...BATCHING,
    run: (results: AttemptResult[]) => recordAttempts(pool, results),
  }),
})
