import type { Logger } from 'pino'
import { createPause } from '../../shared/process/pause.ts'
import { listFullInboxes } from '../../sql/account/projects/projectLimits.ts'
import type { Pool } from '../../sql/db.ts'

const INTERVAL_MS = 5_000

/**
 * Holds the inboxes that have reached their storage limit, so that the SMTP listener can refuse their mail at RCPT.
 * This list may be some seconds old. The listener may therefore accept mail for an inbox that has just become full. The
 * service stores accepted mail in any case.
 */
export class FullInboxes {
  #full = new Set<string>()
  readonly #pause = createPause()
  #stopping = false
  readonly #done: Promise<void>

  /**
   * @param options.defaultBytes is the storage limit of a project without its own limit. Null means no limit.
   */
  constructor(options: {
    pool: Pool
    log: Logger
    defaultBytes: number | null
    intervalMs?: number
  }) {
    this.#done = this.#run({ intervalMs: INTERVAL_MS, ...options })
  }

  has = (inbox: string): boolean => this.#full.has(inbox)

  async stop(): Promise<void> {
    this.#stopping = true
    this.#pause.wake()
    await this.#done
  }

  async #run({
    pool,
    log,
    defaultBytes,
    intervalMs,
  }: {
    pool: Pool
    log: Logger
    defaultBytes: number | null
    intervalMs: number
  }): Promise<void> {
    while (!this.#stopping) {
      try {
        this.#full = new Set(await listFullInboxes(pool, defaultBytes))
      } catch (error) {
        log.debug({ err: error }, 'the full inboxes could not be read')
      }
      if (!this.#stopping) await this.#pause.sleep(intervalMs)
    }
  }
}
