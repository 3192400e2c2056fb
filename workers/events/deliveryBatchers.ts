import { type Batcher, createBatcher } from '../../sql/batcher.ts'
import type { Pool } from '../../sql/db.ts'
import { type AttemptResult, recordAttempts } from '../../sql/events/attempts.ts'
import { type DueDelivery, findDueDeliveries } from '../../sql/events/deliveries.ts'

/** What the deliveries of one process read and write together. */
export type DeliveryBatchers = {
  due: Batcher<string, DueDelivery | null>
  attempts: Batcher<AttemptResult, boolean>
}

/** With two lanes one batch gathers while the other is under way; a single delivery waits for nobody. */
const BATCHING = { batchMax: 100, lanes: 2 }

/**
 * The batches of a pool of connections. Retries come due in bursts, because what failed together is due together: one
 * statement for many keeps the last of 200 within the bound on lateness.
 */
export const createDeliveryBatchers = (pool: Pool): DeliveryBatchers => ({
  due: createBatcher({ ...BATCHING, run: (ids: string[]) => findDueDeliveries(pool, ids) }),
  attempts: createBatcher({
    ...BATCHING,
    run: (results: AttemptResult[]) => recordAttempts(pool, results),
  }),
})
