import type { Logger } from 'pino'
import { BlobsAwayError } from '../../../shared/blobs/objectStore.ts'
import { Costs } from '../../../shared/fair/costs.ts'
import { isRefusedRow } from '../../../shared/process/databaseAway.ts'
import { createPause } from '../../../shared/process/pause.ts'
import { type Blobs, OWN_AT_ONCE } from '../../../sql/blobs/blobs.ts'
import type { Pool } from '../../../sql/db.ts'
import { insertInboundMails } from '../../../sql/mail/inbound/inboundMails.ts'
import type { Spool, SpooledSize } from './spool.ts'
import { type SpoolBatch, SpoolTurns } from './spoolTurns.ts'

/**
 * Sets the maximum number of mails, and of bytes, that the mover (from the spool to PostgreSQL) stores in one batch. A
 * mail from a sender that has caused little load waits at most for the end of the current batch.
 */
const BATCH = { count: 200, maxBytes: 256 * 1024 }
const RETRY_MIN_MS = 250
const RETRY_MAX_MS = 2_000

/**
 * Moves spooled mails to PostgreSQL in batches. The mover prefers the mails of the inboxes and sender networks that
 * have recently caused the least load. It moves small and large mails separately, so that a small mail never waits for
 * a large one. It deletes a batch from the spool after PostgreSQL has committed the batch. If the process crashes
 * before the deletion, the mover stores the batch again, but the unique source keys prevent duplicates. While the
 * object store is unreachable, large mails stay in the spool.
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
        await this.#insert(turns, kept)
        if (failure !== null) throw failure
        retryMs = RETRY_MIN_MS
      } catch (error) {
        // The mover (which moves mail from the spool to PostgreSQL) does not log that the object store is unreachable,
        // because the client of the object store logs this itself.
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
   * Stores mails in PostgreSQL and then deletes them from the spool. If PostgreSQL refuses a mail, only this mail stays
   * in the spool. Otherwise one refused mail would stop the mail of all inboxes.
   */
  async #insert(turns: SpoolTurns, mails: SpoolBatch): Promise<void> {
    if (mails.length === 0) return
    try {
      await insertInboundMails(this.#pool, mails)
    } catch (error) {
      if (!isRefusedRow(error)) throw error
      if (mails.length > 1) {
        const half = Math.ceil(mails.length / 2)
        await this.#insert(turns, mails.slice(0, half))
        await this.#insert(turns, mails.slice(half))
        return
      }
      turns.setAside([mails[0]!.id])
      // The log does not contain the error, because its message may quote the mail.
      this.#log.error(
        { sourceKey: mails[0]!.sourceKey, code: (error as { code?: string }).code },
        'PostgreSQL refuses a mail; the mail stays in the spool, and the listener tries again in ten minutes',
      )
      return
    }
    await this.#spool.remove(mails.map((mail) => mail.sourceKey))
    turns.moved(mails.map(({ id }) => id))
  }

  /**
   * Writes the large mails of a batch to the object store. @returns the mails that the object store has taken. The
   * function stops at the first failure.
   */
  async #keep(batch: SpoolBatch): Promise<{ kept: SpoolBatch; failure: Error | null }> {
    const kept: SpoolBatch = []
    let failure: Error | null = null
    for (let at = 0; at < batch.length && failure === null; at += OWN_AT_ONCE) {
      const part = batch.slice(at, at + OWN_AT_ONCE)
      const ends = await Promise.allSettled(part.map(({ bytes }) => this.#blobs.keep(bytes)))
      for (const [n, end] of ends.entries()) {
        if (end.status === 'rejected') failure = end.reason
        else kept.push({ ...part[n]!, blob: end.value })
      }
    }
    return { kept, failure }
  }

  async #sleep(size: SpooledSize, ms: number): Promise<void> {
    if (!this.#stopping) await this.#pauses[size].sleep(ms)
  }
}
