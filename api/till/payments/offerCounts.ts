import type { Logger } from 'pino'
import type { Pool } from '../../../sql/db.ts'
import { addOfferCounts, type OfferCount } from '../../../sql/till/payments/funnel.ts'
import { MemoryCounts } from '../../http/limits/memoryCounts.ts'

const FLUSH_MS = 10_000

/** Counts payment challenges and refused payments by endpoint and day. */
export class OfferCounts {
  readonly #counts: MemoryCounts<OfferCount>

  constructor(pool: Pool, log: Logger) {
    this.#counts = new MemoryCounts({
      everyMs: FLUSH_MS,
      log,
      name: 'challenges',
      keyOf: ({ day, endpointId }) => `${day} ${endpointId}`,
      sum: (before, { challenges, refusals }) => ({
        ...before,
        challenges: before.challenges + challenges,
        refusals: before.refusals + refusals,
      }),
      write: (counts) => addOfferCounts(pool, counts),
    })
  }

  /**
   * Counts one payment challenge or one refused payment of an endpoint. A seller's offer of a resource without a
   * registered endpoint is not counted.
   */
  record(
    kind: 'challenges' | 'refusals',
    { seller, endpointId }: { seller: { projectId: string }; endpointId: string | null },
  ): void {
    if (endpointId === null) return
    const day = new Date().toISOString().slice(0, 10)
    const { projectId } = seller
    this.#counts.add({ projectId, endpointId, day, challenges: 0, refusals: 0, [kind]: 1 })
  }

  /**
   * Writes the counts of payment challenges and refused payments to the database. While the database is unreachable,
   * the process keeps the counts in memory.
   */
  flush(): Promise<void> {
    return this.#counts.flush()
  }

  stop(): Promise<void> {
    return this.#counts.stop()
  }
}
