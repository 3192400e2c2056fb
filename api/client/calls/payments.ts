import { everyPage } from '../everyPage.ts'
import type { CallOptions, Http } from '../http.ts'
import type { Operations } from '../operations.ts'

/** Describes the body of a 402 response in x402 version 1. */
export type Challenge = Operations['postPaymentsChallenge']['result']
/** Describes the verdict of the service on a payment. */
export type RedeemResult = Operations['postPaymentsRedeem']['result']
/** Describes the verdict `ok: true`, which means that the payment is settled. */
export type Grant = Extract<RedeemResult, { ok: true }>
/** Describes the signed receipt of a payment. */
export type Receipt = Grant['signedReceipt']
/** Describes a payment as it appears in a list. */
export type PaymentItem = Operations['getPayments']['result']['payments'][number]
/** Describes a payment with all its fields. */
export type Payment = Operations['getPaymentsByPaymentId']['result']

/** Holds the sums that a seller received, by day and by endpoint. */
export type PaymentActivity = Operations['getPaymentsActivity']['result']

type ListQuery = NonNullable<Operations['getPayments']['input']['query']>

/**
 * Makes x402 challenges, redeems payments, and reads the records of payments.
 *
 * @example
 * const verdict = await purser.payments.redeem({ paymentHeader, amount: '0.01', resource: 'https://api.example.com/report' })
 * if (verdict.ok) console.log('sold', verdict.paymentId)
 */
export function payments(http: Http) {
  /** Returns one page of payments, newest first. */
  const list = (query: ListQuery = {}, options?: CallOptions) =>
    http.call('getPayments', { query }, options)
  return {
    list,
    /** Iterates over every payment, newest first. The iteration loads the pages of payments one after another. */
    all: (query: ListQuery = {}, options?: CallOptions) =>
      everyPage(
        (pageToken) => list({ ...query, pageToken }, options),
        (page) => page.payments,
        query.pageToken,
      ),
    get: (paymentId: string, options?: CallOptions) =>
      http.call('getPaymentsByPaymentId', { path: { paymentId } }, options),
    activity: (
      query: NonNullable<Operations['getPaymentsActivity']['input']['query']> = {},
      options?: CallOptions,
    ): Promise<PaymentActivity> => http.call('getPaymentsActivity', { query }, options),
    /** Returns how many x402 challenges the seller's endpoints sent, and how many payments followed. */
    funnel: (
      query: NonNullable<Operations['getPaymentsFunnel']['input']['query']> = {},
      options?: CallOptions,
    ) => http.call('getPaymentsFunnel', { query }, options),
    /**
     * Streams the settled payments, oldest first, as CSV or JSON Lines. The client never retries this call. To continue
     * an export that broke off, pass the last cursor that you received.
     */
    export: (
      query: NonNullable<Operations['getPaymentsExport']['input']['query']> = {},
      { signal = new AbortController().signal }: { signal?: AbortSignal } = {},
    ) => http.stream('getPaymentsExport', { query }, signal),
    /** Returns the x402 challenge for a payer. Send the x402 challenge to the payer with status 402. */
    challenge: (
      price: Operations['postPaymentsChallenge']['input']['body'],
      options?: CallOptions,
    ) => http.call('postPaymentsChallenge', { body: price }, options),
    /**
     * Redeems a payment. Serve the paid resource only if the verdict is `ok: true`, which the service returns once for
     * each payment. If the response is lost, a retry with the same idempotency key gets the same response again. By
     * default, each redeem call has a new idempotency key.
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
