import { everyPage } from '../everyPage.ts'
import type { CallOptions, Http } from '../http.ts'
import type { Operations } from '../operations.ts'

/** A purchase with its answer, its price, and what became of the money. */
export type Purchase = Operations['postPursePay']['result']

type PayBody = Operations['postPursePay']['input']['body']
type QuoteBody = Operations['postPurseQuote']['input']['body']
type ListQuery = NonNullable<Operations['getPursePayments']['input']['query']>
type Timeout = { timeout?: number }

/**
 * Buys, within the mandates of the owner.
 *
 * @example
 * const bought = await purser.purse.pay(
 *   { url: 'https://api.example.com/weather', maxAmount: '0.05' },
 *   { idempotencyKey: 'weather-berlin-1' },
 * )
 */
export function purse(http: Http) {
  /** One page of purchases, newest first. */
  const list = (query: ListQuery = {}, options?: CallOptions) =>
    http.call('getPursePayments', { query }, options)
  return {
    /** The purse with its balance. */
    get: (options?: CallOptions) => http.call('getPurse', {}, options),
    /** The same `idempotencyKey` buys once, for ever. `state: 'pending'`: read it with `status`. */
    pay: (
      body: PayBody,
      { timeout, ...options }: CallOptions & Timeout & { idempotencyKey: string },
    ) => http.call('postPursePay', { body, ...waiting(timeout) }, options),
    /** Asks for the price, and signs nothing. */
    quote: (body: QuoteBody, options?: CallOptions) =>
      http.call('postPurseQuote', { body }, options),
    /** A purchase; it waits for the end, at most `timeout` seconds. */
    status: (purchaseId: string, { timeout, ...options }: CallOptions & Timeout = {}) =>
      http.call(
        'getPursePaymentsByPurchaseId',
        { path: { purchaseId }, ...waiting(timeout) },
        options,
      ),
    list,
    /** Every purchase, newest first; iteration loads the pages. */
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
