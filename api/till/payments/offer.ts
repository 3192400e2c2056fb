import type { Metadata } from '../../../shared/till/bazaar/metadata.ts'
import { cutDescription } from '../../../shared/till/description.ts'
import { parsePaidResource, ResourceUrlError } from '../../../shared/till/resourceUrl.ts'
import { type NetworkName, parseUsdc, UsdcAmountError } from '../../../shared/till/usdc.ts'
import { networkNameOf } from '../../../shared/till/x402v2.ts'
import type { Queryable } from '../../../sql/db.ts'
import type { VerificationStatus } from '../../../sql/till/endpoints/endpoints.ts'
import { findSeller, type SellerRow } from '../../../sql/till/endpoints/seller.ts'
import { ApiError, badRequest } from '../../http/errors.ts'
import type { Services } from '../../http/services.ts'
import { refuseDust } from './settlementLimits.ts'

const CHAIN_RETRY_S = 2

/** Makes the 503 error that the API returns until a payment worker has reported its chain. */
export const chainUnknown = () =>
  new ApiError(503, 'unavailable', 'No payment worker has connected to the chain yet', {
    'retry-after': String(CHAIN_RETRY_S),
  })

/** Describes the project that receives the money of a payment, with its address and its blockchain. */
export type Seller = { projectId: string; payTo: string; network: NetworkName; chainId: number }

/** Describes the offer of a seller: a resource and the price that the seller asks for the resource. */
export type Offer = {
  seller: Seller
  /**
   * Holds the id of the seller's registered endpoint. Null means that no registered endpoint has this resource, which
   * only the facilitator routes accept.
   */
  endpointId: string | null
  /**
   * Holds the verification status that the last check of the endpoint found. The status `paused` means that the seller
   * accepts no new buyers.
   */
  verification: VerificationStatus | 'paused' | null
  /**
   * Holds the host and path under which the service found the endpoint `endpointId`. Null means that the resource has
   * no endpoint.
   */
  matchKey: string | null
  /** Holds the URL of the resource that the payer requests, in normal form. */
  resource: string
  /**
   * Tells who named the resource. The value `payer` means that only the payer named it, which is possible for a
   * facilitator call in x402 version 2.
   */
  resourceSource: 'seller' | 'payer'
  amountAtomic: bigint
  description: string | null
  /**
   * Describes the HTTP method, the input and the output of the paid resource. The payment challenge repeats this
   * description.
   */
  metadata: Metadata
  /** Tells whether the resource is in the public list of paid resources. */
  discoverable: boolean
}

/**
 * Returns the project as a seller on the blockchain to which the payment workers are connected.
 * @throws {ApiError} 403 if payments are not enabled for the project, 503 if no payment worker has reported its chain
 * yet.
 */
export async function loadSeller(db: Queryable, projectId: string): Promise<Seller> {
  return sellerOf(projectId, await findSeller(db, projectId))
}

function sellerOf(projectId: string, found: SellerRow | null): Seller {
  if (found === null || !found.paymentsEnabled || found.payTo === null) {
    throw new ApiError(403, 'forbidden', 'Payments are not enabled for this project')
  }
  const { payTo, network, chainId } = found
  if (network === null || chainId === null) throw chainUnknown()
  return { projectId, payTo, network, chainId }
}

/** Reads the price and the resource that a request names. @throws {ApiError} 400 for an invalid amount or resource. */
export function readTerms({ amount, resource }: { amount: string; resource: string }): {
  amountAtomic: bigint
  url: string
  matchKey: string
} {
  return { amountAtomic: readAmount(amount), ...readResource(resource) }
}

/**
 * Reads the offer of a seller from a request: a resource, and the price that the seller asks for this resource.
 * @throws {ApiError} 400 for an invalid amount, network or resource. 403 and 503 for the reasons of {@link loadSeller}.
 */
export async function readOffer(
  { sales, config }: Pick<Services, 'sales' | 'config'>,
  projectId: string,
  input: { amount: string; resource: string; network?: string; description?: string },
): Promise<Offer> {
  const { amountAtomic, url, matchKey } = readTerms(input)
  refuseDust('amount', amountAtomic, config)
  const sale = await sales.submit({ projectId, matchKey })
  const { endpoint } = sale
  const seller = sellerOf(projectId, sale.seller)
  if (input.network !== undefined && networkNameOf(input.network) !== seller.network) {
    throw badRequest(`network must be ${JSON.stringify(seller.network)}, the connected chain`)
  }
  if (endpoint === null) {
    throw badRequest('resource must match a registered, active endpoint of the project')
  }
  if (sale.isSoldByAnother) {
    throw badRequest(
      'resource must not be that of another project: its 402 names the payTo of that project, not of this one',
    )
  }
  return {
    seller,
    endpointId: endpoint.id,
    verification: endpoint.verification,
    matchKey,
    resource: url,
    resourceSource: 'seller',
    amountAtomic,
    description: input.description === undefined ? null : cutDescription(input.description),
    metadata: endpoint.metadata,
    discoverable: endpoint.discoverable,
  }
}

function readAmount(text: string): bigint {
  try {
    return parseUsdc(text)
  } catch (error) {
    if (error instanceof UsdcAmountError) throw badRequest(error.message)
    throw error
  }
}

function readResource(text: string): { url: string; matchKey: string } {
  try {
    return parsePaidResource(text)
  } catch (error) {
    if (error instanceof ResourceUrlError) throw badRequest(`resource ${error.message}`)
    throw error
  }
}
