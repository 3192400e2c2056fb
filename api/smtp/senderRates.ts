import { networkSharers, type Sharer } from './sharers.ts'

const MINUTE_MS = 60_000
/**
 * Sets the maximum number of unknown recipients that one network may name in ten minutes, because a client that guesses
 * addresses needs thousands of guesses to find an existing address.
 */
const UNKNOWN_MAX = 100
const UNKNOWN_WINDOW_MS = 10 * MINUTE_MS
/**
 * Sets which part of an inbox's limit is guaranteed to each network: the limit divided by this number. Without this
 * guarantee, one network that sent 1,200 mails at the start of each minute closed an inbox to all other senders.
 */
const LEAST_DIVISOR = 100
/**
 * Sets the maximum number of mails that an inbox receives in a minute, as a multiple of the inbox's limit. Mails that
 * an inbox receives above its limit, because each network has a guaranteed part, also count.
 */
const INBOX_FACTOR = 2

/** Measures how many mails arrive from each network and for each inbox, over all SMTP connections of this listener. */
export class SenderRates {
  readonly #limits: { messagesPerIp: number; messagesPerInbox: number }
  readonly #messages: WindowCounts
  readonly #unknown: WindowCounts

  /** @param limits are numbers of messages per minute. The value 0 turns a limit off. */
  constructor(
    limits: { messagesPerIp: number; messagesPerInbox: number },
    nowMs = () => performance.now(),
  ) {
    this.#limits = limits
    this.#messages = new WindowCounts(MINUTE_MS, nowMs)
    this.#unknown = new WindowCounts(UNKNOWN_WINDOW_MS, nowMs)
  }

  /** Tells whether the network of an IP address may send another message in the current minute. */
  takesFrom = (address: string): boolean =>
    this.#within(this.#messages, address, this.#limits.messagesPerIp)

  /**
   * Tells whether an inbox may receive another message of a network in the current minute. If the inbox has reached its
   * limit, only networks that have not used up their guaranteed part may send to it.
   * @param address is `null` for a message over HTTP.
   */
  takesFor(inbox: string, address: string | null): boolean {
    const { messagesPerInbox: max } = this.#limits
    const received = this.#messages.get(inboxSubject(inbox))
    if (max === 0 || received < max) return true
    if (received >= max * INBOX_FACTOR) return false
    const least = Math.max(1, Math.floor(max / LEAST_DIVISOR))
    return sendersOf(address).every(
      ({ name, factor }) => this.#messages.get(inboxSubject(inbox, name)) < least * factor,
    )
  }

  /**
   * Counts an accepted message against the limits of the sending network and of the receiving inboxes.
   * @param address is `null` for a message over HTTP. A mail service delivers everybody's mail from one address, so its
   * network does not count.
   */
  count(address: string | null, inboxes: Iterable<string>): void {
    for (const { name } of address === null ? [] : networkSharers(address)) this.#messages.add(name)
    for (const inbox of inboxes) {
      this.#messages.add(inboxSubject(inbox))
      for (const { name } of sendersOf(address)) this.#messages.add(inboxSubject(inbox, name))
    }
  }

  /** Tells whether the network of an IP address is trying to guess inbox addresses. */
  isGuessing = (address: string): boolean => !this.#within(this.#unknown, address, UNKNOWN_MAX)

  /** Counts a recipient that does not exist against the limit of the sending network. */
  countUnknown(address: string): void {
    for (const { name } of networkSharers(address)) this.#unknown.add(name)
  }

  #within(counts: WindowCounts, address: string, max: number): boolean {
    if (max === 0) return true
    return networkSharers(address).every(({ name, factor }) => counts.get(name) < max * factor)
  }
}

/**
 * Returns the names under which a mail counts in the limit of an inbox, such as the sender's network. All mail over
 * HTTP counts under one name.
 */
const sendersOf = (address: string | null): Sharer[] =>
  address === null ? [{ name: 'mail service', factor: 1 }] : networkSharers(address)

const inboxSubject = (inbox: string, sender = ''): string => `inbox ${inbox} ${sender}`

/**
 * Counts events, such as the messages of a network, by name within time windows of fixed length. When a window ends,
 * the count of an event begins again at 0.
 */
class WindowCounts {
  readonly #windowMs: number
  readonly #nowMs: () => number
  #startedMs: number
  #counts = new Map<string, number>()

  constructor(windowMs: number, nowMs: () => number) {
    this.#windowMs = windowMs
    this.#nowMs = nowMs
    this.#startedMs = nowMs()
  }

  get(subject: string): number {
    this.#renew()
    return this.#counts.get(subject) ?? 0
  }

  add(subject: string): void {
    this.#counts.set(subject, this.get(subject) + 1)
  }

  #renew(): void {
    const nowMs = this.#nowMs()
    if (nowMs - this.#startedMs < this.#windowMs) return
    this.#startedMs = nowMs
    this.#counts = new Map()
  }
}
