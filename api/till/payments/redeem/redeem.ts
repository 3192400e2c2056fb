/**
 * Redeems a payment: checks and settles a payer's payment header, and returns a grant (the response `ok: true`) or a
 * refusal.
 */
import { reasonMessage } from '../../../../shared/till/reasonMessage.ts'
import { USDC_NETWORKS } from '../../../../shared/till/usdc.ts'
import {
  type DecodedPayment,
  decodePaymentHeader,
  encodePaymentResponse,
  PAYMENT_RESPONSE_HEADER,
  type PaymentPayload,
  type PaymentResponse,
  parsePaymentPayload,
  versionOf,
  type X402Reason,
  type X402Version,
} from '../../../../shared/till/x402.ts'
import { freeIdempotent } from '../../../../sql/account/idempotency.ts'
import { ApiError } from '../../../http/errors.ts'
import { GateRefusal } from '../../../http/gate.ts'
import type { Services } from '../../../http/services.ts'
import { challengeFor, paymentRequiredHeader } from '../challenge.ts'
import { type Offer, readOffer, readTerms } from '../offer.ts'
import {
  findGrant,
  type Grant,
  grant,
  type RedeemKey,
  readRedeemKey,
  takeRedeemKey,
  ungranted,
} from './grant.ts'
import { findPastOffer } from './pastOffer.ts'
import { type RedeemPlaces, redeemPlaces } from './redeemPlaces.ts'
import { type Judged, judge, type Outcome, settleWithin } from './settleWithin.ts'

/**
 * Describes the body of a redeem request, with which a seller lets the service settle a payment. The field `network`
 * holds the name of the network in x402 version 1 or in version 2.
 */
export type RedeemInput = {
  paymentHeader: string | object
  amount: string
  resource: string
  network?: string
  description?: string
}

/**
 * Settles the payment in a payment header, and takes its grant (the right to serve its resource). A payment gets `ok:
 * true` only under one idempotency key.
 * @returns the grant (the response `ok: true`), or a refusal with the payment requirement that the seller shows to the
 * payer.
 * @throws {ApiError} 400 for an invalid request. 409 for an idempotency key that belongs to another request.
 * @throws {GateRefusal} 429 if the request exceeds the limit of its kind.
 */
export async function redeem(
  services: Services,
  projectId: string,
  request: Request,
  body: RedeemInput,
) {
  const places = redeemPlaces(services, projectId, request)
  try {
    return await redeemAt(places, services, projectId, request, body)
  } catch (error) {
    // The service throws an ApiError only before it stores a payment. Therefore this call makes no new payment, and
    // gives back its place (a unit of the limit of new payments).
    if (error instanceof ApiError) await places.free()
    throw error
  }
}

async function redeemAt(
  places: RedeemPlaces,
  services: Services,
  projectId: string,
  request: Request,
  body: RedeemInput,
) {
  const deadlineMs = performance.now() + services.config.settlementWaitMs
  const { url, amountAtomic } = readTerms(body)
  const { paymentHeader } = body
  const asked = { paymentHeader, resource: url, amount: amountAtomic.toString() }
  const key = readRedeemKey(projectId, request.headers.get('idempotency-key'), asked)
  const decoded =
    typeof paymentHeader === 'string'
      ? decodePaymentHeader(paymentHeader)
      : parsePaymentPayload(paymentHeader)
  let offer: Offer
  try {
    offer = await readOffer(services, projectId, body)
  } catch (error) {
    // If the idempotency key already has a grant (a response `ok: true`), this grant counts even without a valid offer,
    // because the seller may have deleted the endpoint or stopped selling after the payment.
    const granted = key === null ? null : await findGrant(services, key)
    if (granted !== null) {
      await places.free()
      return granted
    }
    const past = await findPastOffer(
      services,
      { projectId, resourceUrl: url, amountAtomic },
      decoded,
    )
    if (past === null) throw error
    offer = past
  }
  const judged = await judge(offer, decoded)
  // Only a valid payment reserves a key, because anybody can send any number of worthless payment headers to a paywall,
  // and they must not fill the table of idempotency keys.
  const reserves = judged.ok && judged.verdict.kind !== 'invalid'
  if (key !== null) {
    const stored = await takeRedeemKey(services, key, { reserves })
    if (stored !== null) {
      await places.free()
      return stored
    }
  }
  const freeKey = async () => {
    if (key !== null && reserves) await freeIdempotent(services.pool, key)
  }
  const call = { key, x402Version: versionOf(decoded), deadlineMs, places }
  const outcome = await settleAndGrant(services, offer, judged, call).catch(async (error) => {
    if (error instanceof GateRefusal) await freeKey()
    throw error
  })
  if (!('kind' in outcome)) return outcome
  // A refused call frees its idempotency key. Otherwise a payer who repeats the header of an already granted payment
  // with any number of keys could fill the table of keys.
  if (outcome.kind === 'refused') await freeKey()
  return refusal(services, offer, decoded, outcome)
}

/**
 * Settles a payment, and takes its grant (the right to serve its resource) for the caller. If the payment gets no
 * grant, the function returns the reason.
 */
async function settleAndGrant(
  services: Services,
  offer: Offer,
  judged: Judged,
  call: {
    key: RedeemKey | null
    x402Version: X402Version
    deadlineMs: number
    places: RedeemPlaces
  },
): Promise<Grant | Exclude<Outcome, { kind: 'settled' }>> {
  const { key, x402Version, deadlineMs, places } = call
  const outcome = await settleWithin(services, offer, judged, deadlineMs, places)
  if (outcome.kind !== 'settled') return outcome
  const granted = await grant(services, outcome.payment, { key, x402Version })
  return granted ?? (await ungranted(services, outcome.payment))
}

/**
 * Returns the refusal of a payment (`ok: false`). If the payment already exists, the refusal names the id of the
 * payment, so that the caller can follow the payment.
 */
async function refusal(
  services: Services,
  offer: Offer,
  decoded: DecodedPayment,
  outcome: Exclude<Outcome, { kind: 'settled' }>,
) {
  const pending = outcome.kind === 'pending'
  const stage = pending ? 'settle' : outcome.stage
  const reason: X402Reason = pending ? 'settlement_pending' : outcome.reason
  const { payment } = outcome
  // If a payment is stored, the refusal is not counted here, because the statistics already count the stored payment as
  // failed.
  if (stage === 'verify' && payment === null) services.offerCounts.record('refusals', offer)
  const network = USDC_NETWORKS[offer.seller.network]
  const detail = payment?.failureDetail ?? (decoded.ok ? null : decoded.detail)
  const message = reasonMessage(reason, { network, detail })
  const requirement = challengeFor(offer, { error: reason })
  return {
    ok: false as const,
    stage,
    reason,
    message,
    requirement,
    headers: {
      // While a payment is pending, the payer gets no new payment challenge, because a wallet would sign it and pay
      // twice.
      ...(pending
        ? {}
        : await paymentRequiredHeader(
            services,
            { challenge: requirement, metadata: offer.metadata },
            reason,
          )),
      ...(stage === 'settle' && decoded.ok
        ? failureHeader(decoded.payload, {
            transaction: payment?.txHash ?? '',
            network: network.network,
            errorReason: reason,
            errorMessage: message,
          })
        : {}),
    },
    ...(payment === null
      ? {}
      : {
          paymentId: payment.id,
          paymentInId: payment.id,
          ...(payment.txHash === null ? {} : { txHash: payment.txHash }),
          ...(payment.failureDetail === null ? {} : { detail: payment.failureDetail }),
        }),
  }
}

/**
 * Returns the HTTP header that tells the payer about a failed or pending settlement, in the x402 version of the
 * payment.
 */
function failureHeader(
  { x402Version, payload }: PaymentPayload,
  failure: Omit<PaymentResponse, 'success' | 'payer'>,
) {
  const response = { success: false, ...failure, payer: payload.authorization.from }
  return { [PAYMENT_RESPONSE_HEADER[x402Version]]: encodePaymentResponse(response, x402Version) }
}
