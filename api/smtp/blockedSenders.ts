import type { Logger } from 'pino'
import { decidingType, type Rule } from '../../shared/mail/emailRules.ts'
import type { Pool } from '../../sql/db.ts'
import { type Subscription, subscribe } from '../../sql/listen.ts'
import { listSenderRules, RULES_CHANNEL } from '../../sql/mail/inbound/emailRules.ts'
import { RepeatedReads } from './repeatedReads.ts'

/**
 * Holds the blocked senders of each inbox, so that the SMTP listener can refuse their mail at RCPT. While PostgreSQL is
 * unreachable, this list may be outdated. Therefore the worker that stores a message checks its sender again.
 */
export class BlockedSenders {
  readonly #byInbox = new Map<string, Map<string, Rule['type']>>()
  readonly #pool: Pool
  readonly #reads: RepeatedReads
  readonly #subscription: Subscription

  constructor(options: { pool: Pool; databaseUrl: string; log: Logger }) {
    this.#pool = options.pool
    this.#reads = new RepeatedReads(options.log, 'the rules could not be read; will retry')
    this.#subscription = subscribe({
      databaseUrl: options.databaseUrl,
      channel: RULES_CHANNEL,
      name: 'purser smtp rules',
      onNotify: (inbox) => this.#inTurn(inbox),
      onConnect: () => this.#inTurn(null),
      onError: (error) => options.log.warn({ err: error }, 'rule notifications interrupted'),
    })
  }

  /** Tells whether an inbox refuses all mail from a sender. */
  has(inbox: string, sender: string): boolean {
    const types = this.#byInbox.get(inbox)
    if (types === undefined || sender === '') return false
    return decidingType(sender, (value) => types.get(value)) === 'BLOCK'
  }

  /**
   * Reads the blocked senders of one inbox from the database. If `inbox` is `null`, the function reads those of all
   * inboxes, one inbox after the other.
   */
  #inTurn(inbox: string | null): void {
    this.#reads.add(async () => {
      const rules = await listSenderRules(this.#pool, inbox)
      if (inbox === null) this.#byInbox.clear()
      else this.#byInbox.delete(inbox)
      for (const { inbox: of, type, value } of rules) {
        this.#byInbox.set(of, (this.#byInbox.get(of) ?? new Map()).set(value, type))
      }
    })
  }

  async stop(): Promise<void> {
    await this.#subscription.stop()
    await this.#reads.stop()
  }
}
