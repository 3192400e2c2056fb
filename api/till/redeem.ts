/** The till's engine: an authorization in, one verdict out. What a redeem and the facilitator face have in common. */

import { newPaymentId } from '../../shared/ids.ts'
import {
  type AuthorizationVerdict,
  classifySignature,
  verifyAuthorization,
} from '../../shared/till/authorization.ts'
import { USDC_NETWORKS } from '../../shared/till/usdc.ts'
import {
  buildChallenge,
  type Challenge,
  type DecodedPayment,
  type PaymentPayload,
  type PaymentRequirements,
  type X402Reason,
} from '../../shared/till/x402.ts'
import type { NewClaim } from '../../sql/till/claims.ts'
import { findClaim, type Payment } from '../../sql/till/payments.ts'
import type { Services } from '../http/services.ts'
import { askChain } from './askChain.ts'
import type { Offer } from './offer.ts'

/** What became of a payment that was presented. */
export type Outcome =
  /** Settled; whether this caller is the one who gets it is still to be decided. */
  | { kind: 'settled'; payment: Payment & { txHash: string; signedReceipt: string } }
  | { kind: 'refused'; stage: 'verify' | 'settle'; reason: X402Reason; payment: Payment | null }
  /** On its way; asking again tells the end. */
  | { kind: 'pending'; payment: Payment }

const refused = (
  stage: 'verify' | 'settle',
  reason: X402Reason,
  payment: Payment | null = null,
): Outcome => ({ kind: 'refused', stage, reason, payment })

/** The challenge for an offer; a reason makes it the `requirement` of a refusal. */
export function challengeFor(
  offer: Offer,
  { mimeType, error }: { mimeType?: string; error?: string } = {},
): Challenge {
  return buildChallenge({
    network: offer.seller.network,
    amountAtomic: offer.amountAtomic,
    resource: offer.resource,
    payTo: offer.seller.payTo,
    description: offer.description ?? undefined,
    mimeType,
    error,
  })
}

/**
 * Presents a payment for an offer and waits for its end, at most until `deadlineMs` (performance.now()).
 * Claims the authorization before anything is broadcast; the same authorization again joins the payment that has it.
 */
export async function present(
  services: Services,
  offer: Offer,
  decoded: DecodedPayment,
  deadlineMs: number,
): Promise<Outcome> {
  if (!decoded.ok) return refused('verify', decoded.reason)
  const { payload } = decoded
  const verdict = await verify(offer, payload)
  if (verdict.verdict === 'valid') {
    return claimAndWait(services, claimOf(offer, payload, verdict), deadlineMs)
  }
  // A payment that is on its way or over is reported, also when its time has passed or its signature is a contract's.
  const existing = await findClaim(services.pool, keyOf(offer, payload))
  if (existing !== null && isSame(existing, offer, payload)) {
    return waitForEnd(services, existing.id, deadlineMs)
  }
  if (verdict.verdict === 'invalid') return refused('verify', verdict.reason)
  if (existing !== null) return refused('verify', 'duplicate_settlement')
  const claim = claimOf(offer, payload, verdict)
  return checkAndWait(services, { claim, verdict, deadlineMs })
}

/** The checks that need no chain, against our own requirement: what a caller says of it counts for nothing. */
export function verify(offer: Offer, payload: PaymentPayload): Promise<AuthorizationVerdict> {
  const [requirement] = challengeFor(offer).accepts as [PaymentRequirements]
  return verifyAuthorization({ payload, requirement, nowS: Math.floor(Date.now() / 1000) })
}

const keyOf = (offer: Offer, payload: PaymentPayload) => ({
  chainId: offer.seller.chainId,
  asset: USDC_NETWORKS[offer.seller.network].usdcAddress,
  payer: payload.payload.authorization.from,
  nonce: payload.payload.authorization.nonce,
})

/** What a claim of this authorization for this offer stores. */
export function claimOf(
  offer: Offer,
  payload: PaymentPayload,
  verdict: Exclude<AuthorizationVerdict, { verdict: 'invalid' }>,
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
    ...keyOf(offer, payload),
    recipient: authorization.to,
    amountAtomic: authorization.value,
    validAfter: authorization.validAfter,
    validBefore: authorization.validBefore,
    signature: verdict.signature,
    deployment: verdict.verdict === 'contract' ? verdict.erc6492 : null,
  } satisfies NewClaim
}

/** Whether a payment was made by this very header for this very offer. */
function isSame(payment: Payment, offer: Offer, payload: PaymentPayload): boolean {
  const { signature, authorization } = payload.payload
  const form = classifySignature(signature)
  const spellings = [
    signature,
    form.kind === 'eoa' ? form.signature : null,
    form.kind === 'contract' ? form.erc6492?.signature : null,
  ]
  return (
    isFor(payment, offer) &&
    payment.validAfter === authorization.validAfter &&
    payment.validBefore === authorization.validBefore &&
    payment.recipient === authorization.to &&
    payment.amountAtomic === authorization.value &&
    spellings.includes(payment.signature)
  )
}

/** Whether a payment is this project's, for this resource and amount: EIP-3009 itself binds it to neither. */
function isFor(payment: Payment, offer: Offer): boolean {
  return (
    payment.projectId === offer.seller.projectId &&
    payment.resourceUrl === offer.resource &&
    payment.amountAtomic === offer.amountAtomic
  )
}

async function claimAndWait(
  services: Services,
  claim: NewClaim,
  deadlineMs: number,
): Promise<Outcome> {
  const watch = services.waiters.watch(claim.id)
  try {
    if (await services.claims.submit(claim)) {
      return await waitOn(services, { id: claim.id, watch, deadlineMs, isNew: true })
    }
  } finally {
    watch.close()
  }
  const existing = await findClaim(services.pool, claim)
  if (existing === null) return refused('verify', 'unexpected_verify_error')
  const same =
    existing.projectId === claim.projectId &&
    existing.resourceUrl === claim.resourceUrl &&
    existing.amountAtomic === claim.amountAtomic
  if (!same) return refused('verify', 'duplicate_settlement')
  return waitForEnd(services, existing.id, deadlineMs)
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
    /** Claimed a moment ago: there is nothing to read before the first change. */
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

/** What only the chain can judge: a signature of a wallet contract, or whatever the facilitator's verify asks about. */
async function checkAndWait(
  services: Services,
  wanted: {
    claim: NewClaim
    verdict: Extract<AuthorizationVerdict, { verdict: 'contract' }>
    deadlineMs: number
  },
): Promise<Outcome> {
  const { claim, verdict, deadlineMs } = wanted
  const checked = await askChain(services, { claim, verdict, deadlineMs, claims: true })
  // Also after a refusal: somebody who asked at the same time may have claimed it, and the chain calls it used by now.
  const payment = await findClaim(services.pool, claim)
  if (payment === null) {
    return refused('verify', checked.ok ? 'unexpected_verify_error' : checked.reason)
  }
  const same =
    payment.projectId === claim.projectId &&
    payment.resourceUrl === claim.resourceUrl &&
    payment.amountAtomic === claim.amountAtomic &&
    // Nobody verified this signature but the chain, for the payment that has it.
    payment.signature === claim.signature
  if (!same) return refused('verify', 'duplicate_settlement')
  return waitForEnd(services, payment.id, deadlineMs)
}
