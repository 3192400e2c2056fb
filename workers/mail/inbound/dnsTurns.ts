import { Costs } from '../../../shared/fair/costs.ts'
import { CostTurns } from '../../../shared/fair/costTurns.ts'
import type { InboundMail } from '../../../sql/mail/inbound/inboundMails.ts'
import { sharersOf } from './sharers.ts'

/**
 * The following constants limit how many mails wait for DNS answers at once. A stranger chooses the name servers of a
 * mail, and can delay each answer for seconds. The mails from one network to one inbox have fewer places than the inbox
 * and the network, so that other mail to this inbox or from this network still gets places. WAITING_PART is the
 * fraction of the job slots (places for running jobs) that all waiting mails together may occupy.
 */
const WAITING_PER_INBOX = 32
const WAITING_PER_NETWORK = 32
const WAITING_PER_PAIR = 8
const WAITING_PART = 3 / 4

/**
 * Holds the cost in milliseconds of a mail that begins to wait. Without this cost, an inbox whose mails have waited for
 * seconds would cost as little as an inbox whose first mail has arrived.
 */
const BEGIN_MS = 100

/**
 * Reports that DNS did not answer within the time limit of the caller. A DNS answer that arrives after the time limit
 * is still cached.
 */
export class SlowDnsError extends Error {}

/**
 * Limits how many mails wait for DNS answers at once. The mails of inboxes and networks that have waited least lately
 * get the free places first.
 */
export class DnsTurns {
  readonly #costs = new Costs()
  readonly #turns: CostTurns

  /** @param slots is the number of mails that the pool parses at the same time. */
  constructor(slots: number) {
    const perSharer = [WAITING_PER_INBOX, WAITING_PER_NETWORK, WAITING_PER_PAIR]
    this.#turns = new CostTurns(this.#costs, Math.ceil(slots * WAITING_PART), { perSharer })
  }

  /** Returns the priority of a job that waits for DNS answers again. Jobs with priority 0 run first. */
  priorityOf(mail: Pick<InboundMail, 'projectId' | 'remoteIp' | 'provider'>): number {
    return this.#costs.priorityOf(pairedSharersOf(mail))
  }

  /**
   * Runs work that waits for DNS answers as soon as a place is free.
   * @param patienceMs limits in milliseconds the wait for the place and for the answers together.
   * @param work gets a signal that aborts at the time limit. The work must then end at once, because it holds a place
   * and the bytes of the mail.
   * @throws {SlowDnsError} if the time limit is exceeded.
   */
  async run<Result>(
    mail: InboundMail,
    patienceMs: number,
    work: (signal: AbortSignal) => Promise<Result>,
  ): Promise<Result> {
    const late = new AbortController()
    // Mail from an inbox of this service needs no DNS answers.
    if (mail.remoteIp === null) return await work(late.signal)
    const timer =
      patienceMs === Number.POSITIVE_INFINITY
        ? undefined
        : setTimeout(() => late.abort(new SlowDnsError('the DNS is slow')), patienceMs)
    const sharers = pairedSharersOf(mail)
    try {
      const leave = await this.#turns.enter(sharers, late.signal)
      this.#costs.charge(sharers, BEGIN_MS)
      const startMs = performance.now()
      try {
        const result = await work(late.signal)
        late.signal.throwIfAborted()
        return result
      } finally {
        this.#costs.charge(sharers, performance.now() - startMs)
        leave()
      }
    } finally {
      clearTimeout(timer)
    }
  }
}

/** Returns the inbox and the network of a mail, and their pair as a third sharer. */
function pairedSharersOf(mail: Parameters<typeof sharersOf>[0]): string[] {
  const sharers = sharersOf(mail)
  return [...sharers, sharers.join(' ')]
}
