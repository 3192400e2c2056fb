import { type Costs, mayShare } from '../../../shared/fair/costs.ts'
import { networkSubject } from '../../../shared/http/networkSubject.ts'
import type { SpooledMail } from '../../../sql/mail/inbound/inboundMails.ts'
import type { Spool, SpooledSize } from './spool.ts'

/**
 * Limits the spooled mails that wait in memory for their turn. Later mails are read from the spool's file when these
 * mails have been moved.
 */
const WINDOW = 20_000
/**
 * The cost of a mail is BASE_MS milliseconds, plus one millisecond for each BYTES_PER_MS bytes of the mail.
 * Measurements of the mail parser and of the database gave the values of BASE_MS and BYTES_PER_MS.
 */
const BASE_MS = 1
const BYTES_PER_MS = 4 * 1024

type Waiting = { id: number; size: number }
type Line = { sharers: readonly string[]; mails: Waiting[] }
/** Lists the spooled mails that the mover stores in PostgreSQL as one batch. */
export type SpoolBatch = (SpooledMail & { id: number })[]

/**
 * Chooses the spooled mails that the mover stores next: the mails whose inboxes and sender network have caused the
 * least cost. So a stranger's flood waits in the spool until the mails of all others are stored. Mails of the same
 * inboxes and network keep their order.
 */
export class SpoolTurns {
  readonly #spool: Spool
  readonly #size: SpooledSize
  readonly #costs: Costs
  /** Holds the queues of waiting mails. Each queue holds the mails of the same inboxes and network. */
  readonly #lines = new Map<string, Line>()
  /** Maps the id of each waiting mail to the key of its queue. */
  readonly #keys = new Map<number, string>()
  #lastId = 0

  constructor(spool: Spool, size: SpooledSize, costs: Costs) {
    this.#spool = spool
    this.#size = size
    this.#costs = costs
  }

  /**
   * Returns the next mails to move, at most `count`. The batch ends once `maxBytes` are reached, but holds at least one
   * mail if a mail waits.
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
      // Another SMTP listener has already moved all mails of this batch out of the spool.
      this.moved(ids)
    }
  }

  /** Removes mails that have left the spool from the queues of waiting mails. */
  moved(ids: readonly number[]): void {
    const gone = new Set(ids)
    for (const key of new Set(ids.map((id) => this.#keys.get(id)))) {
      const line = key === undefined ? undefined : this.#lines.get(key)
      if (line === undefined) continue
      for (const { id, size } of line.mails) {
        if (gone.has(id)) this.#costs.charge(line.sharers, costOf(size))
      }
      line.mails = line.mails.filter(({ id }) => !gone.has(id))
      if (line.mails.length === 0) this.#lines.delete(key!)
    }
    for (const id of ids) this.#keys.delete(id)
    // SQLite gives the row id of the last spooled mail to the next mail when the last mail is deleted. So `#lastId`
    // falls back to the newest row that still exists.
    if (gone.has(this.#lastId)) {
      this.#lastId = 0
      for (const id of this.#keys.keys()) this.#lastId = Math.max(this.#lastId, id)
    }
  }

  /** Reads newly arrived mails from the spool. */
  #look(): void {
    const room = WINDOW - this.#keys.size
    if (room <= 0) return
    for (const arrival of this.#spool.arrivals(this.#size, this.#lastId, room)) {
      const sharers = sharersOf(arrival)
      const key = JSON.stringify(sharers)
      const line = this.#lines.get(key) ?? { sharers, mails: [] }
      this.#lines.set(key, line)
      line.mails.push({ id: arrival.id, size: arrival.size })
      this.#keys.set(arrival.id, key)
      this.#lastId = arrival.id
    }
  }

  #choose({ count, maxBytes }: { count: number; maxBytes: number }): number[] {
    // The cost of a queue only grows in this loop. So a batch of `count` mails never takes a mail beyond the `count`
    // cheapest queues. The bytes that a flood has in this batch do not delay a mail of a sender with little cost.
    const lines = [...this.#lines.values()]
      .map((line) => ({ ...line, cost: this.#costs.of(line.sharers), next: 0 }))
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

const sharersOf = ({ remoteIp, inboxes }: Pick<SpooledMail, 'remoteIp' | 'inboxes'>): string[] => [
  ...inboxes.map(({ address }) => address),
  networkSubject(remoteIp),
]
