import type { Logger } from 'pino'
import { addUsage } from '../../sql/account/projects.ts'
import type { Pool } from '../../sql/db.ts'

const FLUSH_MS = 2_000

/** Counts requests per project in memory and adds them to the database every two seconds, in one statement. */
export class UsageRecorder {
  readonly #pool: Pool
  readonly #log: Logger
  readonly #timer: ReturnType<typeof setInterval>
  #counts = new Map<string, { requests: number; lastUsedAt: Date }>()

  constructor(pool: Pool, log: Logger) {
    this.#pool = pool
    this.#log = log
    this.#timer = setInterval(() => void this.flush(), FLUSH_MS)
  }

  /** Counts one request of a project. */
  record(projectId: string): void {
    const entry = this.#counts.get(projectId)
    this.#counts.set(projectId, { requests: (entry?.requests ?? 0) + 1, lastUsedAt: new Date() })
  }

  /** Writes the counts. While the database is away they are kept. */
  async flush(): Promise<void> {
    if (this.#counts.size === 0) return
    const counts = this.#counts
    this.#counts = new Map()
    try {
      await addUsage(
        this.#pool,
        [...counts].map(([projectId, count]) => ({ projectId, ...count })),
      )
    } catch (error) {
      this.#log.warn({ err: error }, 'usage could not be written; will retry')
      for (const [projectId, count] of counts) {
        const newer = this.#counts.get(projectId)
        this.#counts.set(projectId, {
          requests: count.requests + (newer?.requests ?? 0),
          lastUsedAt: newer?.lastUsedAt ?? count.lastUsedAt,
        })
      }
    }
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer)
    await this.flush()
  }
}
