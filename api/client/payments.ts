import { everyPage } from './everyPage.ts'
import type { CallOptions, Http } from './http.ts'
import type { Operations } from './operations.ts'

/** The body of a 402 answer (x402 version 1). */
export type Challenge = Operations['postPaymentsChallenge']['result']
/** The verdict on a payment. */
export type RedeemResult = Operations['postPaymentsRedeem']['result']
/** The verdict `ok: true`: the money has moved. */
export type Grant = Extract<RedeemResult, { ok: true }>
/** Proof of payment. */
export type Receipt = Grant['signedReceipt']
/** A payment as lists show it. */
export type PaymentItem = Operations['getPayments']['result']['payments'][number]
/** A payment with everything that is known of it. */
export type Payment = Operations['getPaymentsByPaymentId']['result']

type ListQuery = NonNullable<Operations['getPayments']['input']['query']>

/** What a seller asks for, redeems and has earned. */
export function payments(http: Http) {
  /** One page, newest first. */
  const list = (query: ListQuery = {}, options?: CallOptions) =>
    http.call('getPayments', { query }, options)
  return {
    list,
    /** Every payment, newest first; reads on as it is iterated. */
    all: (query: ListQuery = {}, options?: CallOptions) =>
      everyPage(
        (pageToken) => list({ ...query, pageToken }, options),
        (page) => page.payments,
        query.pageToken,
      ),
    get: (paymentId: string, options?: CallOptions) =>
      http.call('getPaymentsByPaymentId', { path: { paymentId } }, options),
    /** The challenge to answer a payer with, with status 402. */
    challenge: (
      price: Operations['postPaymentsChallenge']['input']['body'],
      options?: CallOptions,
    ) => http.call('postPaymentsChallenge', { body: price }, options),
    /**
     * Redeems a payment. Serve what is sold only where `ok` is true, which is said once per payment; an idempotency key
     * (made for the call unless given) gets that answer again when it was lost.
     */
    redeem: (
      payment: Operations['postPaymentsRedeem']['input']['body'],
      options: CallOptions = {},
    ): Promise<RedeemResult> => {
      const { idempotencyKey = crypto.randomUUID() } = options
      return http.call('postPaymentsRedeem', { body: payment }, { ...options, idempotencyKey })
    },
  }
}
