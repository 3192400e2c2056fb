import { everyPage } from '../everyPage.ts'
import type { CallOptions, Http } from '../http.ts'
import type { Operations } from '../operations.ts'

/** The body of a 402 answer (x402 version 1). */
export type Challenge = Operations['postPaymentsChallenge']['result']
/** The verdict on a payment. */
export type RedeemResult = Operations['postPaymentsRedeem']['result']
/** The verdict `ok: true`: the payment has settled. */
export type Grant = Extract<RedeemResult, { ok: true }>
/** The signed receipt of a payment. */
export type Receipt = Grant['signedReceipt']
/** A payment as lists show it. */
export type PaymentItem = Operations['getPayments']['result']['payments'][number]
/** A payment with all its fields. */
export type Payment = Operations['getPaymentsByPaymentId']['result']

/** What came in, by day and by endpoint. */
export type PaymentActivity = Operations['getPaymentsActivity']['result']

type ListQuery = NonNullable<Operations['getPayments']['input']['query']>

/**
 * Challenges, redemptions and records of payments.
 *
 * @example
 * const verdict = await purser.payments.redeem({ paymentHeader, amount: '0.01', resource: 'https://api.example.com/report' })
 * if (verdict.ok) console.log('sold', verdict.paymentId)
 */
export function payments(http: Http) {
  /** One page, newest first. */
  const list = (query: ListQuery = {}, options?: CallOptions) =>
    http.call('getPayments', { query }, options)
  return {
    list,
    /** Every payment, newest first; iteration loads the pages. */
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
    /** How many challenges became payments. */
    funnel: (
      query: NonNullable<Operations['getPaymentsFunnel']['input']['query']> = {},
      options?: CallOptions,
    ) => http.call('getPaymentsFunnel', { query }, options),
    /** Streams the settled payments, oldest first, as CSV or JSON Lines. It never retries: go on with the last cursor. */
    export: (
      query: NonNullable<Operations['getPaymentsExport']['input']['query']> = {},
      { signal = new AbortController().signal }: { signal?: AbortSignal } = {},
    ) => http.stream('getPaymentsExport', { query }, signal),
    /** The challenge for a payer; answer it with status 402. */
    challenge: (
      price: Operations['postPaymentsChallenge']['input']['body'],
      options?: CallOptions,
    ) => http.call('postPaymentsChallenge', { body: price }, options),
    /**
     * Redeems a payment. Serve only on `ok: true`; the service answers it once per payment. A retry with the same
     * idempotency key gets a lost answer again; by default each call has a new key.
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
