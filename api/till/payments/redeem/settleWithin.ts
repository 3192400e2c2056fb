/**
 * Turns a payer's authorization into a verdict about the payment. The redeem route and the facilitator routes share
 * this code.
 */

import { normalEncoding } from '../../../../shared/http/normalUrl.ts'
import { newPaymentId } from '../../../../shared/ids.ts'
import { traceparent } from '../../../../shared/process/workContext.ts'
import {
  type AuthorizationVerdict,
  classifySignature,
  verifyAuthorization,
} from '../../../../shared/till/authorization.ts'
import { USDC_NETWORKS } from '../../../../shared/till/usdc.ts'
import type { DecodedPayment, PaymentPayload, X402Reason } from '../../../../shared/till/x402.ts'
import { findClaim, isNamedPayment, type Payment } from '../../../../sql/till/payments/payments.ts'
import type { NewClaim } from '../../../../sql/till/settle/claims.ts'
import type { Services } from '../../../http/services.ts'
import { challengeFor, requirementOf } from '../challenge.ts'
import type { Offer, Seller } from '../offer.ts'
import { limitReached } from '../settlementLimits.ts'
import { askChain } from './askChain.ts'
import { NO_PLACES, type RedeemPlaces } from './redeemPlaces.ts'

/** Describes the verdict of the service on a payment that a payer has presented. */
export type Outcome =
  /**
   * Means that the payment has settled. The function `grant` then decides whether this caller or another one gets the
   * paid resource.
   */
  | { kind: 'settled'; payment: Payment & { txHash: string; signedReceipt: string } }
  | { kind: 'refused'; stage: 'verify' | 'settle'; reason: X402Reason; payment: Payment | null }
  /**
   * Means that the payment is still pending. The response to a repeated request tells whether it has settled or failed.
   */
  | { kind: 'pending'; payment: Payment }

const refused = (
  stage: 'verify' | 'settle',
  reason: X402Reason,
  payment: Payment | null = null,
): Outcome => ({ kind: 'refused', stage, reason, payment })

/** Holds a decoded payment header with the verdict of all checks that need no chain. */
export type Judged =
  | { ok: false; reason: X402Reason }
  | { ok: true; payload: PaymentPayload; verdict: AuthorizationVerdict }

/** Checks everything about a payment header that can be checked without the chain and the database. */
export async function judge(offer: Offer, decoded: DecodedPayment): Promise<Judged> {
  if (!decoded.ok) return { ok: false, reason: decoded.reason }
  const { payload } = decoded
  return { ok: true, payload, verdict: await verify(offer, payload) }
}

/**
 * Settles the payment that a payer makes for a seller's offer (a resource and its price). The function waits until
 * `deadlineMs` (performance.now()) at most. It stores the authorization as a payment before the service broadcasts a
 * transaction. A second request with the same authorization waits for the end of the existing payment.
 * @param places counts the redeem call against the limit that applies to the call.
 * @throws {GateRefusal} 429 if the request exceeds its limit.
 */
export async function settleWithin(
  services: Services,
  offer: Offer,
  judged: Judged,
  deadlineMs: number,
  places: RedeemPlaces = NO_PLACES,
): Promise<Outcome> {
  const refuseFree = async (reason: X402Reason) => {
    await places.free()
    return refused('verify', reason)
  }
  if (!judged.ok) return refuseFree(judged.reason)
  const { payload, verdict } = judged
  if (verdict.kind === 'valid') {
    return claimAndWait(services, claimOf(offer, payload, verdict), { deadlineMs, places })
  }
  // The service reports an existing payment even if the payment header has expired in the meantime, or if the signer is
  // a contract wallet.
  const existing = await findClaim(services.pool, keyOf(offer.seller, payload))
  if (existing !== null && isSame(existing, saleOf(offer), payload)) {
    await places.repeat(existing.id)
    return waitForEnd(services, existing.id, deadlineMs)
  }
  if (verdict.kind === 'invalid') return refuseFree(verdict.reason)
  if (existing !== null) return refuseFree('duplicate_settlement')
  const claim = claimOf(offer, payload, verdict)
  return checkAndWait(services, { claim, verdict, deadlineMs, places })
}

/**
 * Checks everything about a payment that can be checked without the chain. These checks use the service's own payment
 * requirement, and never the caller's copy.
 */
export function verify(offer: Offer, payload: PaymentPayload): Promise<AuthorizationVerdict> {
  const requirement = requirementOf(challengeFor(offer))
  return verifyAuthorization({ payload, requirement, nowS: Math.floor(Date.now() / 1000) })
}

type Chain = Pick<Seller, 'chainId' | 'network'>

const keyOf = ({ chainId, network }: Chain, payload: PaymentPayload) => ({
  chainId,
  asset: USDC_NETWORKS[network].usdcAddress,
  payer: payload.payload.authorization.from,
  nonce: payload.payload.authorization.nonce,
})

/**
 * Returns the record that the service stores when it accepts an authorization for a seller's offer (a resource and its
 * price).
 */
export function claimOf(
  offer: Offer,
  payload: PaymentPayload,
  verdict: Exclude<AuthorizationVerdict, { kind: 'invalid' }>,
) {
  const { authorization } = payload.payload
  return {
    id: newPaymentId(),
    projectId: offer.seller.projectId,
    endpointId: offer.endpointId,
    matchKey: offer.matchKey,
    resourceUrl: offer.resource,
    description: offer.description,
    network: offer.seller.network,
    ...keyOf(offer.seller, payload),
    recipient: authorization.to,
    amountAtomic: authorization.value,
    validAfter: authorization.validAfter,
    validBefore: authorization.validBefore,
    signature: verdict.signature,
    deployment: verdict.kind === 'contract' ? verdict.erc6492 : null,
    x402Version: payload.x402Version,
    resourceSource: offer.resourceSource,
    paymentIdentifier: payload.paymentIdentifier ?? null,
    traceparent: traceparent(),
  } satisfies NewClaim
}

/**
 * Finds the stored payment that belongs to a payment header and a sale, if this payment can still get its grant (the
 * response `ok: true`). The caller need not check the payment's authorization again, because the chain no longer
 * accepts it and the daily limit already counts it.
 */
export async function findGrantable(
  pool: Services['pool'],
  chain: Chain,
  sale: Sale,
  payload: PaymentPayload,
): Promise<Payment | null> {
  const existing = await findClaim(pool, keyOf(chain, payload))
  if (existing === null || existing.granted || existing.failureReason !== null) return null
  return isSame(existing, sale, payload) ? existing : null
}

/** Tells whether a stored payment was made with the given payment header for the given sale. */
function isSame(payment: Payment, sale: Sale, payload: PaymentPayload): boolean {
  const { signature, authorization } = payload.payload
  const form = classifySignature(signature)
  const spellings = [
    signature,
    form.kind === 'eoa' ? form.signature : null,
    form.kind === 'contract' ? form.erc6492?.signature : null,
  ]
  return (
    isSameSale(payment, sale) &&
    payment.validAfter === authorization.validAfter &&
    payment.validBefore === authorization.validBefore &&
    payment.recipient === authorization.to &&
    payment.amountAtomic === authorization.value &&
    spellings.includes(payment.signature)
  )
}

export const saleOf = (offer: Offer): Sale => ({
  projectId: offer.seller.projectId,
  resourceUrl: offer.resource,
  amountAtomic: offer.amountAtomic,
})

export type Sale = Pick<NewClaim, 'projectId' | 'resourceUrl' | 'amountAtomic'>

/**
 * Tells whether two stored authorizations belong to the same sale. The function compares project, resource and amount,
 * because an EIP-3009 authorization itself names no project and no resource. It normalises the resources, because an
 * earlier version stored resources without their normal form.
 */
const isSameSale = (one: Sale, other: Sale): boolean =>
  one.projectId === other.projectId &&
  normalEncoding(one.resourceUrl) === normalEncoding(other.resourceUrl) &&
  one.amountAtomic === other.amountAtomic

async function claimAndWait(
  services: Services,
  claim: NewClaim,
  { deadlineMs, places }: { deadlineMs: number; places: RedeemPlaces },
): Promise<Outcome> {
  const waitForOther = async (existing: Payment) => {
    if (!isSameSale(existing, claim)) {
      await places.free()
      return refused('verify', 'duplicate_settlement')
    }
    await places.repeat(existing.id)
    return waitForEnd(services, existing.id, deadlineMs)
  }
  if (places.isLate) {
    // The service first looks for an existing payment. If it finds one, the call takes no place (no unit of the limit
    // of new payments).
    const existing = await findClaim(services.pool, claim)
    if (existing !== null) return waitForOther(existing)
    await places.take()
  }
  const watch = services.waiters.watch(claim.id)
  try {
    if (await services.claims.submit(claim)) {
      return await waitOn(services, { id: claim.id, watch, deadlineMs, isNew: true })
    }
  } finally {
    watch.close()
  }
  const existing = await findClaim(services.pool, claim)
  if (existing !== null) return waitForOther(existing)
  await places.free()
  return refused('verify', await whyUnclaimed(services, claim))
}

/**
 * Returns the reason why the service did not store an authorization: a limit is reached, the payment identifier is
 * taken, or the project is deleted.
 */
async function whyUnclaimed(services: Services, claim: NewClaim): Promise<X402Reason> {
  const limit = await limitReached(services, claim.projectId)
  if (limit !== null) return limit
  return (await isNameTaken(services.pool, claim))
    ? 'payment_identifier_conflict'
    : 'unexpected_verify_error'
}

/** Tells whether the payer has already used the same payment identifier for another payment in the project. */
export async function isNameTaken(pool: Services['pool'], claim: NewClaim): Promise<boolean> {
  const { paymentIdentifier } = claim
  return paymentIdentifier !== null && isNamedPayment(pool, { ...claim, paymentIdentifier })
}

/**
 * Returns the reason why the service refuses an authorization that is already stored as a payment. Returns `null` if it
 * is not stored, or if its payment belongs to the same sale and may still get its grant (the response `ok: true`).
 */
export async function reasonOfClaim(
  pool: Services['pool'],
  claim: NewClaim,
): Promise<X402Reason | null> {
  const existing = await findClaim(pool, claim)
  if (existing === null) return null
  if (existing.granted || !isSameSale(existing, claim)) return 'duplicate_settlement'
  return existing.failureReason
}

async function waitForEnd(services: Services, id: string, deadlineMs: number): Promise<Outcome> {
  const watch = services.waiters.watch(id)
  try {
    return await waitOn(services, { id, watch, deadlineMs, isNew: false })
  } finally {
    watch.close()
  }
}

async function waitOn(
  services: Services,
  wait: {
    id: string
    watch: ReturnType<Services['waiters']['watch']>
    deadlineMs: number
    /**
     * Tells whether this call itself has just stored the authorization as a payment. The payment's state is then known
     * without a read of the database.
     */
    isNew: boolean
  },
): Promise<Outcome> {
  let mayHaveChanged = !wait.isNew || (await wait.watch.changed(wait.deadlineMs))
  for (;;) {
    const payment = await services.payments.submit(wait.id)
    if (payment === null) throw new Error(`the payment ${wait.id} is gone`)
    const { txHash, signedReceipt } = payment
    if (payment.state === 'settled' && txHash !== null && signedReceipt !== null) {
      return { kind: 'settled', payment: { ...payment, txHash, signedReceipt } }
    }
    if (payment.state === 'failed' && payment.failureReason !== null) {
      return refused(payment.failureStage ?? 'settle', payment.failureReason, payment)
    }
    if (!mayHaveChanged) return { kind: 'pending', payment }
    mayHaveChanged = await wait.watch.changed(wait.deadlineMs)
  }
}

/** Checks the signature of a contract wallet on the chain, and then waits for the end of the payment. */
async function checkAndWait(
  services: Services,
  wanted: {
    claim: NewClaim
    verdict: Extract<AuthorizationVerdict, { kind: 'contract' }>
    deadlineMs: number
    places: RedeemPlaces
  },
): Promise<Outcome> {
  const { claim, verdict, deadlineMs, places } = wanted
  const [limit] = await Promise.all([limitReached(services, claim.projectId), places.check()])
  if (limit !== null) return refused('verify', limit)
  const checked = await askChain(services, { claim, verdict, deadlineMs, claims: true })
  // The service looks for a stored payment even after the chain has refused the authorization, because a parallel call
  // may have stored and sent the same authorization. The chain then reports that the authorization is already used.
  const payment = await findClaim(services.pool, claim)
  if (payment === null) {
    return refused('verify', checked.ok ? await whyUnclaimed(services, claim) : checked.reason)
  }
  // The chain has verified only the signature of this request. Therefore the stored payment must have the same
  // signature.
  const same = isSameSale(payment, claim) && payment.signature === claim.signature
  if (!same) return refused('verify', 'duplicate_settlement')
  return waitForEnd(services, payment.id, deadlineMs)
}
