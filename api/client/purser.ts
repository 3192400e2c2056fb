import { calendar } from './calls/calendar.ts'
import { emailRules } from './calls/emailRules.ts'
import { logs } from './calls/logs.ts'
import { messages } from './calls/messages.ts'
import { payments } from './calls/payments.ts'
import { purse } from './calls/purse.ts'
import { sellers } from './calls/sellers.ts'
import { suppressions } from './calls/suppressions.ts'
import { threads } from './calls/threads.ts'
import { vault } from './calls/vault.ts'
import { webhooks } from './calls/webhooks.ts'
import { type EventsQuery, followEvents } from './events.ts'
import { type CallOptions, type ClientOptions, Http } from './http.ts'
import { type PaidFetch, paidFetch } from './paidFetch.ts'

/**
 * Gives access to a project: to its inbox, its vault and its till (the payment part).
 *
 * @example
 * const purser = new Purser({ apiKey: 'loid-…', baseUrl: 'https://purser.example.com' })
 * for await (const message of purser.messages.all({ labels: ['unread'] })) console.log(message.subject)
 */
export class Purser {
  readonly #http: Http
  readonly messages: ReturnType<typeof messages>
  readonly threads: ReturnType<typeof threads>
  readonly calendar: ReturnType<typeof calendar>
  readonly emailRules: ReturnType<typeof emailRules>
  readonly suppressions: ReturnType<typeof suppressions>
  readonly vault: ReturnType<typeof vault>
  readonly purse: ReturnType<typeof purse>
  readonly payments: ReturnType<typeof payments>
  readonly sellers: ReturnType<typeof sellers>
  readonly webhooks: ReturnType<typeof webhooks>
  readonly logs: ReturnType<typeof logs>

  /** Creates the client of a project. @throws TypeError unless `apiKey` is a project key. */
  constructor(options: ClientOptions) {
    const http = new Http(options, 'loid-')
    this.#http = http
    this.messages = messages(http)
    this.threads = threads(http)
    this.calendar = calendar(http)
    this.emailRules = emailRules(http)
    this.suppressions = suppressions(http)
    this.vault = vault(http)
    this.purse = purse(http)
    this.payments = payments(http)
    this.sellers = sellers(http)
    this.webhooks = webhooks(http)
    this.logs = logs(http)
  }

  /**
   * Returns by how many milliseconds the clock of this machine is ahead of the service's clock, with a precision of
   * about a second. The number is 0 until a response has told the service's time in its header Date.
   */
  get clockAheadMs(): number {
    return this.#http.clockAheadMs ?? 0
  }

  /** Follows the events of the project until the iteration ends, like {@link followEvents}. */
  events(query: EventsQuery = {}, options?: Pick<CallOptions, 'signal'>) {
    return followEvents(this.#http, query, options)
  }

  /**
   * Sends a request through the service, which pays from the purse if the seller asks for a payment. If the purchase
   * does not end in time, repeat the call with the `key` of the error. Two calls with the same `key` pay only once. The
   * call ends after `timeoutMs`, by default after three minutes.
   * @throws {PurchaseError} if the purchase has no response of the seller.
   * @throws {OpenPurchaseError} if the purchase has not ended in time, for example because the owner must approve it.
   */
  fetch(url: string, payment: PaidFetch, options?: CallOptions): Promise<Response> {
    return paidFetch(this.purse, url, payment, options)
  }

  /** Returns the project to which the API key belongs. */
  whoami(options?: CallOptions) {
    return this.#http.call('getWhoami', {}, options)
  }
}
