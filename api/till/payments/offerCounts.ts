import type { Logger } from 'pino'
import type { Pool } from '../../../sql/db.ts'
import { addOfferCounts, type OfferCount } from '../../../sql/till/payments/funnel.ts'

const FLUSH_MS = 10_000

/** Counts challenges and refusals in memory, and adds them to the database every ten seconds: a challenge writes no row. */
export class OfferCounts {
  readonly #pool: Pool
  readonly #log: Logger
  readonly #timer: ReturnType<typeof setInterval>
  #counts = new Map<string, OfferCount>()

  constructor(pool: Pool, log: Logger) {
    this.#pool = pool
    this.#log = log
    this.#timer = setInterval(() => void this.flush(), FLUSH_MS)
  }

  /** Counts one challenge or refusal. Without an endpoint nothing is counted. */
  record(
    kind: 'challenges' | 'refusals',
    { seller, endpointId }: { seller: { projectId: string }; endpointId: string | null },
  ): void {
    if (endpointId === null) return
    const day = new Date().toISOString().slice(0, 10)
    const { projectId } = seller
    this.#add({ projectId, endpointId, day, challenges: 0, refusals: 0, [kind]: 1 })
  }

  /** Writes the counts. While the database is away they are kept. */
  async flush(): Promise<void> {
    const counts = [...this.#counts.values()]
    this.#counts = new Map()
    try {
      await addOfferCounts(this.#pool, counts)
    } catch (error) {
      this.#log.warn({ err: error }, 'counts of challenges could not be written; will retry')
      for (const count of counts) this.#add(count)
    }
  }

  #add(count: OfferCount): void {
    const key = `${count.day} ${count.endpointId}`
    const known = this.#counts.get(key)
    this.#counts.set(key, {
      ...count,
      challenges: count.challenges + (known?.challenges ?? 0),
      refusals: count.refusals + (known?.refusals ?? 0),
    })
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer)
    await this.flush()
  }
}
