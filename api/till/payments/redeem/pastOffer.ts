import type { DecodedPayment } from '../../../../shared/till/x402.ts'
import { findSeller } from '../../../../sql/till/endpoints/seller.ts'
import type { Services } from '../../../http/services.ts'
import type { Offer } from '../offer.ts'
import { findGrantable, type Sale } from './settleWithin.ts'

/**
 * Returns the offer that the payer accepted with an unfinished payment. The service settles this payment and lets the
 * seller serve the resource, even if the seller no longer makes the offer.
 * @returns null if the payment header belongs to no payment for this sale. Also returns null if the payment failed, or
 * already got its grant (the response `ok: true`).
 */
export async function findPastOffer(
  { pool }: Services,
  sale: Sale,
  decoded: DecodedPayment,
): Promise<Offer | null> {
  if (!decoded.ok) return null
  const seller = await findSeller(pool, sale.projectId)
  if (seller === null || seller.network === null || seller.chainId === null) return null
  const { network, chainId } = seller
  const payment = await findGrantable(pool, { network, chainId }, sale, decoded.payload)
  if (payment === null) return null
  const { endpointId, matchKey, resourceUrl, resourceSource, amountAtomic, recipient } = payment
  return {
    seller: { projectId: sale.projectId, payTo: recipient, network, chainId },
    ...{ endpointId, matchKey, resource: resourceUrl, resourceSource, amountAtomic },
    ...{ verification: null, description: null, metadata: {}, discoverable: false },
  }
}
