import type { Logger } from 'pino'
import {
  addUsage,
  type UsageCount,
  type UsageSubject,
} from '../../../sql/account/projects/usage.ts'
import type { Pool } from '../../../sql/db.ts'
import { MemoryCounts } from './memoryCounts.ts'

const FLUSH_MS = 2_000

/**
 * Counts requests by project and by platform key. Each of the two kinds of counts has its own SQL statement. After a
 * failure, the process repeats only the failed SQL statement, so that it writes no count twice.
 */
export class UsageRecorder {
  readonly #counts: Record<UsageSubject['kind'], MemoryCounts<UsageCount>>

  constructor(pool: Pool, log: Logger) {
    const countsOf = (kind: UsageSubject['kind']) =>
      new MemoryCounts<UsageCount>({
        everyMs: FLUSH_MS,
        log,
        name: `requests of a ${kind} key`,
        keyOf: ({ id }) => id,
        sum: (before, { requests, lastUsedAt }) => ({
          ...before,
          requests: before.requests + requests,
          lastUsedAt: new Date(Math.max(before.lastUsedAt.getTime(), lastUsedAt.getTime())),
        }),
        write: (counts) => addUsage(pool, kind, counts),
      })
    this.#counts = { project: countsOf('project'), platform: countsOf('platform') }
  }

  /** Counts one request of a project or a platform key. */
  record({ kind, id }: UsageSubject): void {
    this.#counts[kind].add({ kind, id, requests: 1, lastUsedAt: new Date() })
  }

  async stop(): Promise<void> {
    await Promise.all(Object.values(this.#counts).map((counts) => counts.stop()))
  }
}
