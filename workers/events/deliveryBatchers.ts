import { type Batcher, createBatcher } from '../../shared/process/batcher.ts'
import type { Pool } from '../../sql/db.ts'
import { type AttemptResult, recordAttempts } from '../../sql/events/attempts.ts'
import { type DueDelivery, findDueDeliveries } from '../../sql/events/deliveries.ts'

/** The batched reads and writes of one process's deliveries. */
export type DeliveryBatchers = {
  due: Batcher<string, DueDelivery | null>
  attempts: Batcher<AttemptResult, boolean>
}

/** One batch gathers while another runs; a single delivery never waits. */
const BATCHING = { batchMax: 200, parallel: 2, lateMs: 20 }

/**
 * The batches of one connection pool. Retries come due in bursts, because deliveries that failed together are due
 * together. One statement for many keeps the last of 200 within the bound on lateness.
 */
export const createDeliveryBatchers = (pool: Pool): DeliveryBatchers => ({
  due: createBatcher({ ...BATCHING, run: (ids: string[]) => findDueDeliveries(pool, ids) }),
  attempts: createBatcher({
    ...BATCHING,
    run: (results: AttemptResult[]) => recordAttempts(pool, results),
  }),
})
