import { everyPage } from '../everyPage.ts'
import type { CallOptions, Http } from '../http.ts'
import type { Operations } from '../operations.ts'

/** Describes a purchase: the seller's response, the price, and the state of the money. */
export type Purchase = Operations['postPursePay']['result']

type PayBody = Operations['postPursePay']['input']['body']
type QuoteBody = Operations['postPurseQuote']['input']['body']
type ListQuery = NonNullable<Operations['getPursePayments']['input']['query']>
type Timeout = { timeout?: number }

/**
 * Makes purchases within the mandates of the owner.
 *
 * @example
 * const bought = await purser.purse.pay(
 *   { url: 'https://api.example.com/weather', maxAmount: '0.05' },
 *   { idempotencyKey: 'weather-berlin-1' },
 * )
 */
export function purse(http: Http) {
  /** Returns one page of purchases, newest first. */
  const list = (query: ListQuery = {}, options?: CallOptions) =>
    http.call('getPursePayments', { query }, options)
  return {
    /** Returns the purse with its balance. */
    get: (options?: CallOptions) => http.call('getPurse', {}, options),
    /**
     * Makes a purchase from the purse of the project. Two calls with the same `idempotencyKey` never buy twice. If the
     * state of the purchase is `pending`, read the result later with `status`.
     */
    pay: (
      body: PayBody,
      { timeout, ...options }: CallOptions & Timeout & { idempotencyKey: string },
    ) => http.call('postPursePay', { body, ...waiting(timeout) }, options),
    /** Asks the seller for the price of a request, and signs no payment. */
    quote: (body: QuoteBody, options?: CallOptions) =>
      http.call('postPurseQuote', { body }, options),
    /** Returns a purchase. Waits for the end of the purchase, but at most `timeout` seconds. */
    status: (purchaseId: string, { timeout, ...options }: CallOptions & Timeout = {}) =>
      http.call(
        'getPursePaymentsByPurchaseId',
        { path: { purchaseId }, ...waiting(timeout) },
        options,
      ),
    list,
    /** Iterates over every purchase, newest first. The iteration loads the pages of purchases one after another. */
    all: (query: ListQuery = {}, options?: CallOptions) =>
      everyPage(
        (pageToken) => list({ ...query, pageToken }, options),
        (page) => page.payments,
        query.pageToken,
      ),
  }
}

const waiting = (timeout: number | undefined) =>
  timeout === undefined ? {} : { query: { timeout } }
