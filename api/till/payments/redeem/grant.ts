import {
  encodePaymentResponse,
  PAYMENT_RESPONSE_HEADER,
  type PaymentResponse,
  type X402Version,
} from '../../../../shared/till/x402.ts'
import { beginIdempotent, findIdempotent } from '../../../../sql/account/idempotency.ts'
import type { Payment } from '../../../../sql/till/payments/payments.ts'
import {
  requestHash as hashOf,
  keyOfAnother,
  readIdempotencyKey,
} from '../../../http/input/idempotencyKey.ts'
import type { Services } from '../../../http/services.ts'
import type { Outcome } from './settleWithin.ts'

/**
 * Describes the response `ok: true`, which tells the seller to serve the resource. Each payment gets this response only
 * once.
 */
export type Grant = {
  ok: true
  paymentResponse: string
  txHash: string
  /**
   * Holds the index of the Transfer event in the transaction receipt. Null means that an older version of this service
   * settled the payment and stored no index.
   */
  logIndex: number | null
  payer: string
  paymentId: string
  paymentInId: string
  signedReceipt: unknown
  /** Holds the time of the response `ok: true`, in ISO 8601. A repeated response holds the time of the first one. */
  grantedAt: string
  /** Holds the HTTP headers that the seller sends to the payer, in the x402 version of the payment. */
  headers: Record<string, string>
}

/**
 * Describes the idempotency key that a caller sends with one redeem request. A repeated request with the same key gets
 * the stored response. The hash identifies the request.
 */
export type RedeemKey = { projectId: string; operation: 'redeem'; key: string; hash: Buffer }

/**
 * Reads an `Idempotency-Key` and ties it to a redeem request.
 * @param header holds the header field `Idempotency-Key`. Null means that the request has no such field.
 * @returns `null` if the request has no idempotency key.
 * @throws {ApiError} 400 for a malformed key.
 */
export function readRedeemKey(
  projectId: string,
  header: string | null,
  request: unknown,
): RedeemKey | null {
  const key = readIdempotencyKey(header)
  return key === null ? null : { projectId, operation: 'redeem', key, hash: hashOf(request) }
}

/**
 * Returns the grant (the response `ok: true`) that an earlier equal redeem request with the same idempotency key got.
 * Returns `null` if there is no such grant.
 */
export async function findGrant(
  { pool }: Pick<Services, 'pool'>,
  key: RedeemKey,
): Promise<Grant | null> {
  const found = await findIdempotent(pool, key)
  return found?.requestHash.equals(key.hash) === true ? grantIn(found.result) : null
}

const grantIn = (result: string | null): Grant | null =>
  result === null ? null : JSON.parse(result)

/**
 * Ties an idempotency key to a redeem request.
 * @param options.reserves tells whether to store the key, so that no other request can use it at the same time.
 * @returns the grant (the response `ok: true`) that an earlier request with the same key got, or `null`.
 * @throws {ApiError} 409 for a key that belongs to another request.
 */
export async function takeRedeemKey(
  { pool }: Services,
  key: RedeemKey,
  { reserves }: { reserves: boolean },
): Promise<Grant | null> {
  const found = await (reserves ? beginIdempotent : findIdempotent)(pool, key)
  if (found === null) return null
  if (!found.requestHash.equals(key.hash)) throw keyOfAnother()
  return grantIn(found.result)
}

type SettledPayment = Payment & { txHash: string; signedReceipt: string }

/** Returns the settlement of a payment in the form that the payer gets. */
export const settlementOf = (payment: SettledPayment): PaymentResponse => ({
  success: true,
  transaction: payment.txHash as `0x${string}`,
  network: payment.network,
  payer: payment.payer,
  receiptJws: (JSON.parse(payment.signedReceipt) as { jws: string }).jws,
})

/**
 * Takes the grant of a settled payment for the caller. The grant is the right to serve the paid resource, and each
 * payment has only one.
 * @returns `null` if another caller has already taken the grant.
 */
export async function grant(
  services: Pick<Services, 'pool' | 'grants'>,
  payment: SettledPayment,
  { key, x402Version }: { key: RedeemKey | null; x402Version: X402Version },
): Promise<Grant | null> {
  const paymentResponse = encodePaymentResponse(settlementOf(payment), x402Version)
  const answer: Grant = {
    ok: true,
    paymentResponse,
    txHash: payment.txHash,
    logIndex: payment.logIndex,
    payer: payment.payer,
    paymentId: payment.id,
    paymentInId: payment.id,
    signedReceipt: JSON.parse(payment.signedReceipt),
    grantedAt: new Date().toISOString(),
    headers: { [PAYMENT_RESPONSE_HEADER[x402Version]]: paymentResponse },
  }
  const { projectId } = payment
  const taken = await services.grants.submit({
    paymentId: payment.id,
    projectId,
    key,
    result: JSON.stringify(answer),
  })
  if (taken) return answer
  // Another call has taken the grant (the right to serve the resource). If this was a redeem call with the same
  // idempotency key, the function returns its grant.
  return key === null ? null : await findGrant(services, key)
}

/**
 * Returns the result of a payment that {@link grant} did not grant. A reorganisation can undo the settlement before the
 * grant (the right to serve the resource). Such a payment counts as pending, because a payer that is told to pay again
 * would pay twice.
 */
export async function ungranted(
  { payments }: Pick<Services, 'payments'>,
  payment: Payment,
): Promise<Exclude<Outcome, { kind: 'settled' }>> {
  const now = (await payments.submit(payment.id)) ?? payment
  if (!now.granted && now.failureReason === null) return { kind: 'pending', payment: now }
  const reason = now.failureReason ?? 'duplicate_settlement'
  return { kind: 'refused', stage: 'settle', reason, payment: now }
}
