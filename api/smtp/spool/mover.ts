import type { Logger } from 'pino'
import { BlobsAwayError } from '../../../shared/blobs/objectStore.ts'
import { Costs } from '../../../shared/fair/costs.ts'
import { createPause } from '../../../shared/process/pause.ts'
import { type Blobs, OWN_AT_ONCE } from '../../../sql/blobs/blobs.ts'
import type { Pool } from '../../../sql/db.ts'
import { insertInboundMails } from '../../../sql/mail/inbound/inboundMails.ts'
import type { Spool, SpooledSize } from './spool.ts'
import { type SpoolBatch, SpoolTurns } from './spoolTurns.ts'

/**
 * Sets the maximum number of mails, and of bytes, that the mover stores in one batch. A mail from a sender that has
 * caused less load than other senders waits at most for the end of the current batch.
 */
const BATCH = { count: 200, maxBytes: 256 * 1024 }
const RETRY_MIN_MS = 250
const RETRY_MAX_MS = 2_000

/**
 * Moves spooled mails to PostgreSQL in batches. The mover first takes the mails of the inboxes and sender networks that
 * have recently caused the least load. The mover moves small and large mails separately, so that a small mail never
 * waits for a large mail. The mover deletes a batch from the spool after PostgreSQL has committed the batch. After a
 * crash between commit and deletion, the mover stores the batch again, and because of unique source keys the second
 * insert changes nothing. While the object store is unreachable, large mails stay in the spool.
 */
export class Mover {
  readonly #spool: Spool
  readonly #costs = new Costs()
  readonly #pool: Pool
  readonly #blobs: Blobs
  readonly #log: Logger
  readonly #pauses = { small: createPause(), large: createPause() }
  #stopping = false
  readonly #done: Promise<unknown>

  constructor(options: { spool: Spool; pool: Pool; blobs: Blobs; log: Logger }) {
    this.#spool = options.spool
    this.#pool = options.pool
    this.#blobs = options.blobs
    this.#log = options.log
    this.#done = Promise.all([this.#run('small'), this.#run('large')])
  }

  /** Signals that new mail of this size class (small or large) has arrived in the spool. */
  nudge(size: SpooledSize): void {
    this.#pauses[size].wake()
  }

  /**
   * Moves the remaining mails to PostgreSQL before the process ends. If PostgreSQL is unreachable, the spool keeps the
   * mails for the next start.
   */
  async stop(): Promise<void> {
    this.#stopping = true
    this.nudge('small')
    this.nudge('large')
    await this.#done
  }

  async #run(size: SpooledSize): Promise<void> {
    let retryMs = RETRY_MIN_MS
    const turns = new SpoolTurns(this.#spool, size, this.#costs)
    for (;;) {
      try {
        const batch = turns.next(BATCH)
        if (batch.length === 0) {
          if (this.#stopping) return
          await this.#sleep(size, RETRY_MAX_MS)
          continue
        }
        const { kept, failure } = await this.#keep(batch)
        if (kept.length > 0) {
          await insertInboundMails(this.#pool, kept)
          await this.#spool.remove(kept.map((mail) => mail.sourceKey))
          turns.moved(kept.map(({ id }) => id))
        }
        if (failure !== null) throw failure
        retryMs = RETRY_MIN_MS
      } catch (error) {
        // The mover does not log that the object store is unreachable, because the client of the object store logs this
        // itself.
        if (!(error instanceof BlobsAwayError)) {
          this.#log.warn({ err: error }, 'spool not moved; will retry')
        }
        if (this.#stopping) return
        await this.#sleep(size, retryMs)
        retryMs = Math.min(retryMs * 2, RETRY_MAX_MS)
      }
    }
  }

  /**
   * Writes the large mails of a batch to the object store. @returns the oldest mails of the batch, up to the first mail
   * that could not be stored.
   */
  async #keep(batch: SpoolBatch): Promise<{ kept: SpoolBatch; failure: Error | null }> {
    const kept: SpoolBatch = []
    for (let at = 0; at < batch.length; at += OWN_AT_ONCE) {
      const part = batch.slice(at, at + OWN_AT_ONCE)
      const ends = await Promise.allSettled(part.map(({ bytes }) => this.#blobs.keep(bytes)))
      for (const [n, end] of ends.entries()) {
        if (end.status === 'rejected') return { kept, failure: end.reason }
        kept.push({ ...part[n]!, blob: end.value })
      }
    }
    return { kept, failure: null }
  }

  async #sleep(size: SpooledSize, ms: number): Promise<void> {
    if (!this.#stopping) await this.#pauses[size].sleep(ms)
  }
}
