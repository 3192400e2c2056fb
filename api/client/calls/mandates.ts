import { everyPage } from '../everyPage.ts'
import type { CallOptions, Http } from '../http.ts'
import type { Operations } from '../operations.ts'

/**
 * Describes a mandate (a limit on the payments of a project), together with the sums that the project has paid so far.
 */
export type Mandate = Operations['getPlatformProjectsByProjectIdMandatesByMandateId']['result']

type Terms = Operations['postPlatformProjectsByProjectIdMandates']['input']['body']
type Change = Operations['patchPlatformProjectsByProjectIdMandatesByMandateId']['input']['body']
type MandatesQuery = NonNullable<
  Operations['getPlatformProjectsByProjectIdMandates']['input']['query']
>
type AskedQuery = NonNullable<
  Operations['getPlatformProjectsByProjectIdPurseAsked']['input']['query']
>
type PaymentsQuery = NonNullable<
  Operations['getPlatformProjectsByProjectIdPursePayments']['input']['query']
>

/**
 * Manages the purses of projects. A purse is the wallet from which a project pays.
 *
 * @example
 * const { address } = await platform.purses.open('prj_…')
 * await platform.purses.setLow('prj_…', '5')
 */
export function purses(http: Http) {
  const at = (projectId: string) => ({ path: { projectId } })
  const payments = (projectId: string, query: PaymentsQuery = {}, options?: CallOptions) =>
    http.call(
      'getPlatformProjectsByProjectIdPursePayments',
      { path: { projectId }, query },
      options,
    )
  return {
    get: (projectId: string, options?: CallOptions) =>
      http.call('getPlatformProjectsByProjectIdPurse', at(projectId), options),
    /**
     * Opens the purse of a project, which is the wallet from which the project pays. A second call to open the purse
     * changes nothing.
     */
    open: (projectId: string, options?: CallOptions) =>
      http.call('postPlatformProjectsByProjectIdPurse', at(projectId), options),
    /**
     * Sets the balance in USDC below which the service sends the event purse.low. The value `null` turns off this
     * event.
     */
    setLow: (projectId: string, low: string | null, options?: CallOptions) =>
      http.call(
        'patchPlatformProjectsByProjectIdPurse',
        { ...at(projectId), body: { low } },
        options,
      ),
    /**
     * Sets the highest USDC balance of the purse, and the address that receives any USDC above this balance. The value
     * `null` removes a setting.
     * @param change holds the new payout settings of the purse. A new `payoutAddress` takes effect after 24 hours.
     */
    setPayout: (
      projectId: string,
      change: { max?: string | null; payoutAddress?: string | null },
      options?: CallOptions,
    ) =>
      http.call(
        'patchPlatformProjectsByProjectIdPurse',
        { ...at(projectId), body: change },
        options,
      ),
    /**
     * Refunds a final payment, or a part of it, to the payer. If the response holds the value `by_hand`, you must send
     * the refund yourself, because the purse was not the payee of the payment.
     */
    refund: (
      paymentId: string,
      refund: { amount: string },
      options: CallOptions & { idempotencyKey: string },
    ) => http.call('postPaymentsByPaymentIdRefund', { path: { paymentId }, body: refund }, options),
    refunds: (paymentId: string, options?: CallOptions) =>
      http.call('getPaymentsByPaymentIdRefunds', { path: { paymentId } }, options),
    /**
     * Names the transaction of a refund that you made by hand. The service looks up this transaction on the chain as
     * the proof of the refund.
     */
    proveRefund: (
      { paymentId, refundId }: { paymentId: string; refundId: string },
      txHash: string,
      options?: CallOptions,
    ) =>
      http.call(
        'putPaymentsByPaymentIdRefundsByRefundId',
        { path: { paymentId, refundId }, body: { txHash } },
        options,
      ),
    /** Withdraws a refund that you had to send by hand but have not sent. */
    withdrawRefund: (
      { paymentId, refundId }: { paymentId: string; refundId: string },
      options?: CallOptions,
    ) =>
      http.call(
        'deletePaymentsByPaymentIdRefundsByRefundId',
        { path: { paymentId, refundId } },
        options,
      ),
    /** Stops the purse (the wallet of a project) at once. A stopped purse signs no payments. */
    stop: (projectId: string, options?: CallOptions) =>
      http.call('postPlatformProjectsByProjectIdPurseStop', at(projectId), options),
    resume: (projectId: string, options?: CallOptions) =>
      http.call('postPlatformProjectsByProjectIdPurseResume', at(projectId), options),
    /**
     * Returns the sums that the purse paid in recent days, grouped by day and host. By default the sums cover the last
     * 30 days.
     */
    spending: (projectId: string, query: { days?: number } = {}, options?: CallOptions) =>
      http.call(
        'getPlatformProjectsByProjectIdPurseSpending',
        { path: { projectId }, query },
        options,
      ),
    /**
     * Lists the payments that wait for the owner's approval, newest first. With the query parameter `state`, the list
     * can also hold payments that the owner has already approved or rejected.
     */
    asked: (projectId: string, query: AskedQuery = {}, options?: CallOptions) =>
      http.call(
        'getPlatformProjectsByProjectIdPurseAsked',
        { path: { projectId }, query },
        options,
      ),
    askedPayment: (projectId: string, approvalId: string, options?: CallOptions) =>
      http.call(
        'getPlatformProjectsByProjectIdPurseAskedByApprovalId',
        { path: { projectId, approvalId } },
        options,
      ),
    /**
     * Approves a payment that waits for the owner. The service signs the payment only if its terms have the hash that
     * the approval names. A second approval changes nothing.
     */
    approve: (
      projectId: string,
      approvalId: string,
      seen: { sha256: string },
      options?: CallOptions,
    ) =>
      http.call(
        'postPlatformProjectsByProjectIdPurseAskedByApprovalIdApprove',
        { path: { projectId, approvalId }, body: seen },
        options,
      ),
    /** Rejects a payment that waits for the owner. The agent can read the reason why its payment was rejected. */
    reject: (
      projectId: string,
      approvalId: string,
      why: { reason?: string } = {},
      options?: CallOptions,
    ) =>
      http.call(
        'postPlatformProjectsByProjectIdPurseAskedByApprovalIdReject',
        { path: { projectId, approvalId }, body: why },
        options,
      ),
    /** Returns one page of purchases, newest first. */
    payments,
    /** Iterates over every purchase, newest first. The iteration loads the pages of purchases one after another. */
    allPayments: (projectId: string, query: PaymentsQuery = {}, options?: CallOptions) =>
      everyPage(
        (pageToken) => payments(projectId, { ...query, pageToken }, options),
        (page) => page.payments,
        query.pageToken,
      ),
  }
}

/**
 * Manages the mandates, which limit what projects may pay.
 *
 * @example
 * await platform.mandates.give('prj_…', {
 *   name: 'Weather', hosts: ['api.example.com'], maxPerPayment: '0.05', maxPerDay: '2',
 * })
 */
export function mandates(http: Http) {
  const list = (projectId: string, query: MandatesQuery = {}, options?: CallOptions) =>
    http.call('getPlatformProjectsByProjectIdMandates', { path: { projectId }, query }, options)
  return {
    list,
    /** Iterates over every mandate, newest first. The iteration loads the pages of mandates one after another. */
    all: (projectId: string, query: MandatesQuery = {}, options?: CallOptions) =>
      everyPage(
        (pageToken) => list(projectId, { ...query, pageToken }, options),
        (page) => page.mandates,
        query.pageToken,
      ),
    get: (projectId: string, mandateId: string, options?: CallOptions) =>
      http.call(
        'getPlatformProjectsByProjectIdMandatesByMandateId',
        { path: { projectId, mandateId } },
        options,
      ),
    give: (projectId: string, terms: Terms, options?: CallOptions) =>
      http.call(
        'postPlatformProjectsByProjectIdMandates',
        { path: { projectId }, body: terms },
        options,
      ),
    /** Changes a mandate. Fields that the change leaves out stay as they are. The value `null` removes a limit. */
    change: (projectId: string, mandateId: string, change: Change, options?: CallOptions) =>
      http.call(
        'patchPlatformProjectsByProjectIdMandatesByMandateId',
        { path: { projectId, mandateId }, body: change },
        options,
      ),
    /** Ends a mandate. An ended mandate allows no payments, but the service keeps its record. */
    end: (projectId: string, mandateId: string, options?: CallOptions) =>
      http.call(
        'deletePlatformProjectsByProjectIdMandatesByMandateId',
        { path: { projectId, mandateId } },
        options,
      ),
  }
}
