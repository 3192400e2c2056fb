import type { Logger } from 'pino'
import { recipientKeys } from '../../shared/mail/address.ts'
import type { Pool } from '../../sql/db.ts'
import { type Subscription, subscribe } from '../../sql/listen.ts'
import {
  ADDRESSES_CHANNEL,
  findAddresses,
  listAddresses,
} from '../../sql/mail/domains/addresses.ts'
import { RepeatedReads } from './repeatedReads.ts'
import type { Spool } from './spool/spool.ts'

const PAGE = 5_000

/**
 * Describes the result of looking up a recipient: the inbox address, `unknown`, or `undecided`. The result `undecided`
 * means that the local copy lacks the address, and that PostgreSQL is unreachable.
 */
export type Recipient = { inbox: string } | 'unknown' | 'undecided'

/**
 * Looks up the addresses of inboxes. A local copy of the addresses decides about known addresses. PostgreSQL decides
 * about all others, because an inbox may be new. Every (re)connection to PostgreSQL renews the local copy. In between,
 * notifications from PostgreSQL update it.
 */
export class AddressBook {
  readonly #spool: Spool
  readonly #pool: Pool
  readonly #aliases: ReadonlyMap<string, readonly string[]>
  /**
   * Applies changes to the local copy of the inbox addresses one at a time. Otherwise the listener could read a page of
   * addresses, and then write back an address that was deleted after this read.
   */
  readonly #reads: RepeatedReads
  readonly #subscription: Subscription

  /**
   * @param options.aliases maps an address without an inbox to the inboxes that get its mail. The first of these
   * inboxes that exists gets the mail.
   */
  constructor(options: {
    spool: Spool
    pool: Pool
    databaseUrl: string
    log: Logger
    aliases: ReadonlyMap<string, readonly string[]>
  }) {
    this.#aliases = options.aliases
    this.#spool = options.spool
    this.#pool = options.pool
    this.#reads = new RepeatedReads(options.log, 'the addresses could not be read; will retry')
    this.#subscription = subscribe({
      databaseUrl: options.databaseUrl,
      channel: ADDRESSES_CHANNEL,
      name: 'purser smtp addresses',
      onNotify: (address) => this.#reads.add(() => this.#refresh(address)),
      onConnect: () => this.#reads.add(() => this.#renew()),
      onError: (error) => options.log.warn({ err: error }, 'address notifications interrupted'),
    })
  }

  /** Looks up the inbox of a recipient address. An address with a `+tag` finds the inbox without the tag. */
  async find(address: string): Promise<Recipient> {
    const candidates = recipientKeys(address).flatMap((key) => [
      key,
      ...(this.#aliases.get(key) ?? []),
    ])
    const known = this.#spool.addresses.find(candidates)
    if (known !== null) return { inbox: known }
    try {
      const live = new Set(await findAddresses(this.#pool, candidates))
      const inbox = candidates.find((candidate) => live.has(candidate))
      if (inbox === undefined) return 'unknown'
      // The code does not write this result into the local copy, because the inbox may have been deleted since this
      // read. Instead it queues a new read of the address.
      this.#reads.add(() => this.#refresh(inbox))
      return { inbox }
    } catch {
      return 'undecided'
    }
  }

  async #refresh(address: string): Promise<void> {
    const live = await findAddresses(this.#pool, [address])
    this.#spool.addresses.update(live.length > 0 ? { add: live } : { remove: [address] })
  }

  async #renew(): Promise<void> {
    for (let after = ''; ; ) {
      const addresses = await listAddresses(this.#pool, { after, limit: PAGE })
      const upTo = addresses.length < PAGE ? null : addresses.at(-1)!
      this.#spool.addresses.replace({ after, upTo, addresses })
      if (upTo === null) return
      after = upTo
    }
  }

  async stop(): Promise<void> {
    await this.#subscription.stop()
    await this.#reads.stop()
  }
}
