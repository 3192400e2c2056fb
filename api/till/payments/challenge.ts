import { type Metadata, outputSchemaV1 } from '../../../shared/till/bazaar/metadata.ts'
import { didWeb, receiptKey } from '../../../shared/till/receiptKey.ts'
import {
  buildChallenge,
  type Challenge,
  type PaymentRequirements,
  wireReason,
} from '../../../shared/till/x402.ts'
import { encodePaymentRequired } from '../../../shared/till/x402v2.ts'
import { isPublishedKey, receiptSeeds } from '../../../sql/till/payments/receiptKeys.ts'
import type { Services } from '../../http/services.ts'
import type { Offer } from './offer.ts'

/**
 * Holds the `error` text of the first payment challenge in x402 version 2. The x402 reference middleware sends the same
 * text.
 */
const SIGNATURE_REQUIRED = 'PAYMENT-SIGNATURE header is required'

/**
 * Returns the payment challenge for an offer in x402 version 1. With the parameter `error`, the challenge states why a
 * payment was refused, and serves as the `requirement` of the refusal.
 */
export function challengeFor(
  offer: Offer,
  { mimeType, error }: { mimeType?: string | undefined; error?: string } = {},
): Challenge {
  return buildChallenge({
    network: offer.seller.network,
    amountAtomic: offer.amountAtomic,
    resource: offer.resource,
    payTo: offer.seller.payTo,
    description: offer.description ?? undefined,
    mimeType,
    outputSchema: outputSchemaV1(offer.metadata, offer.discoverable),
    error,
  })
}

/**
 * Returns the payment requirement that a challenge contains. Each payment challenge of this service has exactly one
 * requirement.
 */
export const requirementOf = (challenge: Challenge): PaymentRequirements =>
  challenge.accepts[0] as PaymentRequirements

/**
 * Returns the HTTP header that holds a payment challenge in x402 version 2. The parameter `reason` tells why the
 * service refused a payment.
 */
export async function paymentRequiredHeader(
  services: Services,
  { challenge, metadata }: { challenge: Challenge; metadata: Metadata },
  reason: string | null,
): Promise<{ 'PAYMENT-REQUIRED': string }> {
  const error = reason === null ? SIGNATURE_REQUIRED : wireReason(reason, 2)
  const offer = { error, requirement: requirementOf(challenge), metadata }
  const nowS = Math.floor(Date.now() / 1000)
  return { 'PAYMENT-REQUIRED': encodePaymentRequired(offer, await services.offerKey(), nowS) }
}

/**
 * Creates the look-up of the key that signs offers and receipts. It returns `null` until a worker has published the
 * key, because nobody could check a signature of this key before.
 */
export function createOfferKey({ config, pool }: Pick<Services, 'config' | 'pool'>) {
  const [signing] = receiptSeeds(config)
  const key = receiptKey({ seed: signing!.seed, did: didWeb(config.http.baseUrl) })
  let published = false
  return async () => {
    published ||= await isPublishedKey(pool, key.kid)
    return published ? key : null
  }
}
