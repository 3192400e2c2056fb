import { type Costs, mayShare } from '../../../shared/fair/costs.ts'
import { networkSubject } from '../../../shared/http/networkSubject.ts'
import type { SpooledMail } from '../../../sql/mail/inbound/inboundMails.ts'
import { inboxSharer } from '../sharers.ts'
import type { Arrival, Spool, SpooledSize } from './spool.ts'

/**
 * Sets the maximum number of spooled mails that the mover (from the spool to PostgreSQL) keeps in memory. When it has
 * moved them, it reads later mails from the spool's file.
 */
const WINDOW = 20_000
/**
 * Sets the load that a mail causes: BASE_MS milliseconds, plus one millisecond for each BYTES_PER_MS bytes. Both values
 * come from measurements of the mail parser and of the database.
 */
const BASE_MS = 1
const BYTES_PER_MS = 4 * 1024

/**
 * Sets the time in milliseconds after which the mover tries again to store a spooled mail that PostgreSQL has refused.
 */
const ASIDE_MS = 10 * 60_000

type Waiting = { id: number; size: number }
type Line = { sharers: readonly string[]; mails: Waiting[] }
/** Lists the spooled mails that the mover stores in PostgreSQL as one batch. */
export type SpoolBatch = (SpooledMail & { id: number })[]

/**
 * Chooses the spooled mails that the mover stores next. The mails of the inboxes and sender networks that have recently
 * caused the least load come first. Therefore a flood of mails waits in the spool until the mails of all other senders
 * are stored. Mails with the same inboxes and sender network keep their order.
 */
export class SpoolTurns {
  readonly #spool: Spool
  readonly #size: SpooledSize
  readonly #costs: Costs
  /**
   * Holds the queues of mails that wait in the spool. Each queue holds the mails with the same inboxes and the same
   * sender network.
   */
  readonly #lines = new Map<string, Line>()
  /** Maps the id of each waiting mail to the key of the queue that holds the mail. */
  readonly #keys = new Map<number, string>()
  /** Holds the mails that PostgreSQL has refused, in the order of their next attempts. */
  #aside: { untilMs: number; sharers: readonly string[]; mail: Waiting }[] = []
  #lastId = 0
  readonly #nowMs: () => number

  constructor(
    spool: Spool,
    size: SpooledSize,
    costs: Costs,
    nowMs: () => number = () => performance.now(),
  ) {
    this.#spool = spool
    this.#size = size
    this.#costs = costs
    this.#nowMs = nowMs
  }

  /**
   * Returns at most `count` spooled mails that the mover stores in PostgreSQL next. A batch holds at least one mail if
   * a mail waits, and ends as soon as it has `maxBytes` bytes.
   */
  next(limit: { count: number; maxBytes: number }): SpoolBatch {
    for (;;) {
      this.#look()
      const ids = this.#choose(limit)
      if (ids.length === 0) return []
      const batch = this.#spool.read(ids)
      if (batch.length > 0) {
        return batch.map((mail) => ({ ...mail, priority: this.#priorityOf(mail.id) }))
      }
      // The empty result means that another SMTP listener has already moved all mails of this batch out of the spool.
      this.moved(ids)
    }
  }

  /** Removes the given mails from the queues, because they are no longer in the spool. */
  moved(ids: readonly number[]): void {
    const gone = new Set(ids)
    for (const key of new Set(ids.map((id) => this.#keys.get(id)!))) {
      const line = this.#lines.get(key)!
      for (const { id, size } of line.mails) {
        if (gone.has(id)) this.#costs.charge(line.sharers, costOf(size))
      }
      line.mails = line.mails.filter(({ id }) => !gone.has(id))
      if (line.mails.length === 0) this.#lines.delete(key)
    }
    for (const id of ids) this.#keys.delete(id)
    // After the deletion of the newest spooled mail, SQLite gives its row id to the next mail. Therefore `#lastId` goes
    // back to the newest row id that still exists in the spool.
    if (gone.has(this.#lastId)) {
      this.#lastId = 0
      for (const id of this.#keys.keys()) this.#lastId = Math.max(this.#lastId, id)
    }
  }

  /** Leaves refused mails out of the next batches for ten minutes, so that all other mails still move to PostgreSQL. */
  setAside(ids: readonly number[]): void {
    for (const id of ids) {
      const key = this.#keys.get(id)!
      const line = this.#lines.get(key)!
      const mail = line.mails.find((one) => one.id === id)!
      line.mails = line.mails.filter((one) => one !== mail)
      if (line.mails.length === 0) this.#lines.delete(key)
      this.#aside.push({ untilMs: this.#nowMs() + ASIDE_MS, sharers: line.sharers, mail })
    }
  }

  #wait(sharers: readonly string[], mail: Waiting): void {
    const key = JSON.stringify(sharers)
    const line = this.#lines.get(key) ?? { sharers, mails: [] }
    this.#lines.set(key, line)
    line.mails.push(mail)
    this.#keys.set(mail.id, key)
  }

  /**
   * Reads mails that have newly arrived in the spool, and puts refused mails back into the queues after ten minutes.
   */
  #look(): void {
    while (this.#aside.length > 0 && this.#aside[0]!.untilMs <= this.#nowMs()) {
      const { sharers, mail } = this.#aside.shift()!
      this.#wait(sharers, mail)
    }
    const room = WINDOW - this.#keys.size
    for (const arrival of this.#spool.arrivals(this.#size, this.#lastId, room)) {
      this.#wait(sharersOf(arrival), { id: arrival.id, size: arrival.size })
      this.#lastId = arrival.id
    }
  }

  #choose({ count, maxBytes }: { count: number; maxBytes: number }): number[] {
    // While the mover (which moves mail to PostgreSQL) chooses a batch, the load of a queue can only grow. Therefore
    // all mails of a batch of `count` mails come from the `count` queues with the least load, and the code looks at no
    // other queue. The large mails of a flood then do not delay the mail of a sender with little load.
    const costOfLine = this.#costs.asOfNow()
    const lines = [...this.#lines.values()]
      .map((line) => ({ ...line, cost: costOfLine(line.sharers), next: 0 }))
      .sort((a, b) => a.cost - b.cost)
      .slice(0, count)
    const more = new Map<string, number>()
    const chosen: number[] = []
    for (let bytes = 0; chosen.length < count && bytes < maxBytes; ) {
      let lightest: (typeof lines)[number] | undefined
      let least = Number.POSITIVE_INFINITY
      for (const line of lines) {
        if (line.next === line.mails.length || line.cost >= least) continue
        const added = line.sharers.reduce((sum, sharer) => sum + (more.get(sharer) ?? 0), 0)
        if (line.cost + added >= least) continue
        least = line.cost + added
        lightest = line
      }
      if (lightest === undefined || !mayShare(lines[0]!.cost, lightest.cost)) break
      const { id, size } = lightest.mails[lightest.next++]!
      for (const one of lightest.sharers) more.set(one, (more.get(one) ?? 0) + costOf(size))
      bytes += size
      chosen.push(id)
    }
    return chosen
  }

  #priorityOf = (id: number): number =>
    this.#costs.priorityOf(this.#lines.get(this.#keys.get(id) ?? '')?.sharers ?? [])
}

const costOf = (size: number): number => BASE_MS + size / BYTES_PER_MS

/**
 * Returns the inboxes of a mail, and the network of its sender. For mail over HTTP, only the inboxes count, because a
 * mail service delivers everybody's mail from one address.
 */
function sharersOf({ remoteIp, inboxes, isOverHttp }: Arrival): string[] {
  const addresses = inboxes.map(({ address }) => address)
  const senders = isOverHttp
    ? addresses.map((address) => inboxSharer(address).name)
    : [networkSubject(remoteIp)]
  return [...addresses, ...senders]
}
