import type { Logger } from 'pino'
import {
  addUsage,
  type UsageCount,
  type UsageSubject,
} from '../../../sql/account/projects/usage.ts'
import type { Pool } from '../../../sql/db.ts'

const FLUSH_MS = 2_000

/** Counts requests in memory, by project and by platform key, and adds them to the database every two seconds. */
export class UsageRecorder {
  readonly #pool: Pool
  readonly #log: Logger
  readonly #timer: ReturnType<typeof setInterval>
  #counts = new Map<string, UsageCount>()

  constructor(pool: Pool, log: Logger) {
    this.#pool = pool
    this.#log = log
    this.#timer = setInterval(() => void this.flush(), FLUSH_MS)
  }

  /** Counts one request. */
  record({ kind, id }: UsageSubject): void {
    this.#add({ kind, id, requests: 1, lastUsedAt: new Date() })
  }

  /** Writes the counts. While the database is away they are kept. */
  async flush(): Promise<void> {
    const counts = [...this.#counts.values()]
    this.#counts = new Map()
    for (const kind of ['project', 'platform'] as const) {
      const own = counts.filter((count) => count.kind === kind)
      if (own.length === 0) continue
      try {
        await addUsage(this.#pool, kind, own)
      } catch (error) {
        this.#log.warn({ err: error }, 'usage could not be written; will retry')
        for (const count of own) this.#add(count)
      }
    }
  }

  #add({ kind, id, requests, lastUsedAt }: UsageCount): void {
    const key = `${kind} ${id}`
    const known = this.#counts.get(key)
    this.#counts.set(key, {
      kind,
      id,
      requests: requests + (known?.requests ?? 0),
      lastUsedAt:
        known !== undefined && known.lastUsedAt > lastUsedAt ? known.lastUsedAt : lastUsedAt,
    })
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer)
    await this.flush()
  }
}
