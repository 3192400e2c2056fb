import { Costs } from '../../../shared/fair/costs.ts'
import { CostTurns } from '../../../shared/fair/costTurns.ts'
import type { InboundMail } from '../../../sql/mail/inbound/inboundMails.ts'
import { sharersOf } from './sharers.ts'

/**
 * The following constants limit how many mails may wait for DNS answers at once. A stranger chooses the name servers of
 * a mail, and can delay each answer for seconds. The limit for mails from one network to one inbox (WAITING_PER_PAIR)
 * is lower than the limits of the inbox and the network. Therefore other mail to this inbox or from this network can
 * still wait for DNS. WAITING_PART is the fraction of the job slots (places for running jobs) that all waiting mails
 * together may occupy.
 */
const WAITING_PER_INBOX = 32
const WAITING_PER_NETWORK = 32
const WAITING_PER_PAIR = 8
const WAITING_PART = 3 / 4

/**
 * Sets the cost in milliseconds that counts for a mail as soon as it begins to wait for DNS. Without this initial cost,
 * an inbox with many waiting mails would seem as cheap as an inbox that has just got its first mail.
 */
const BEGIN_MS = 100

/**
 * Reports that DNS did not answer within the time limit of the caller. A DNS answer that arrives after the time limit
 * is still cached.
 */
export class SlowDnsError extends Error {}

/**
 * Limits how many mails wait for DNS answers at once. The inboxes and networks whose mails have waited least in the
 * recent past come first.
 */
export class DnsTurns {
  readonly #costs = new Costs()
  readonly #turns: CostTurns

  /** @param slots is the number of mails that the pool parses at the same time. */
  constructor(slots: number) {
    const perSharer = [WAITING_PER_INBOX, WAITING_PER_NETWORK, WAITING_PER_PAIR]
    this.#turns = new CostTurns(this.#costs, Math.ceil(slots * WAITING_PART), { perSharer })
  }

  /** Returns the priority of the job that waits again for the DNS answers of a mail. Jobs with priority 0 run first. */
  priorityOf(mail: Pick<InboundMail, 'projectId' | 'remoteIp' | 'provider'>): number {
    return this.#costs.priorityOf(pairedSharersOf(mail))
  }

  /**
   * Runs a function that waits for DNS answers, as soon as the limit of waiting mails allows another one.
   * @param patienceMs limits in milliseconds the total wait: for permission to start, and for the DNS answers.
   * @param work gets a signal that aborts at the time limit. The function must then end at once, because it occupies
   * one of the few places for waiting mails and the memory of the mail.
   * @throws {SlowDnsError} if the time limit is exceeded.
   */
  async run<Result>(
    mail: InboundMail,
    patienceMs: number,
    work: (signal: AbortSignal) => Promise<Result>,
  ): Promise<Result> {
    const late = new AbortController()
    // Mail from an inbox of this service needs no DNS answers, so this mail does not wait behind other mails that need
    // DNS answers.
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

/**
 * Returns the three parties to which the waiting time of a mail is charged: its inbox, its network, and the pair of
 * both.
 */
function pairedSharersOf(mail: Parameters<typeof sharersOf>[0]): string[] {
  const sharers = sharersOf(mail)
  return [...sharers, sharers.join(' ')]
}
