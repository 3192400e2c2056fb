import { z } from 'zod'
import { cutDescription } from '../../../shared/till/description.ts'
import { parsePaidResource, ResourceUrlError } from '../../../shared/till/resourceUrl.ts'
import { USDC_NETWORKS, type UsdcNetwork } from '../../../shared/till/usdc.ts'
import {
  type DecodedPayment,
  paymentRequirementsSchema,
  versionOf,
  type X402Reason,
} from '../../../shared/till/x402.ts'
import { networkNameOf, paymentRequirementsV2Schema } from '../../../shared/till/x402v2.ts'
import { type Endpoint, findEndpointByResource } from '../../../sql/till/endpoints/endpoints.ts'
import { isSoldByAnother } from '../../../sql/till/endpoints/rivalEndpoints.ts'
import type { Services } from '../../http/services.ts'
import type { Offer, Seller } from '../payments/offer.ts'
import { findPastOffer } from '../payments/redeem/pastOffer.ts'

/** Holds a substitute for a missing resource, because a payment in x402 version 2 need not name a resource. */
const UNSPECIFIED = 'urn:x402:unspecified'
const RESOURCE_CHARS_MAX = 2048

/**
 * Describes the result of reading a seller's payment requirement: an offer, or the x402 reason for a refusal of the
 * requirement.
 */
export type FacilitatorOffer =
  | { ok: true; offer: Offer; endpoint: Endpoint | null }
  | { ok: false; reason: X402Reason }

/**
 * Describes a seller's payment requirement of either x402 version. If `resource` is `null`, the seller names no
 * resource.
 */
type Wanted = {
  scheme: string
  network: string
  amount: string
  payTo: string
  asset: string
  resource: string | null
  description: string | null
  extra: Record<string, unknown>
}

/** Reads a seller's payment requirement in the x402 version of the payment. */
export async function readFacilitatorOffer(
  services: Services,
  seller: Seller,
  decoded: DecodedPayment,
  requirements: unknown,
): Promise<FacilitatorOffer> {
  // The x402 version decides the form of a payment requirement. Therefore the service cannot read a requirement whose
  // version is unknown.
  if (!decoded.ok && decoded.reason === 'invalid_x402_version') {
    return { ok: false, reason: decoded.reason }
  }
  const wanted = readWanted(decoded, requirements)
  const reason = wanted === null ? 'invalid_payment_requirements' : faultOf(wanted, seller)
  if (wanted === null || reason !== null) {
    return { ok: false, reason: reason ?? 'invalid_payment_requirements' }
  }
  const resource = resourceOf(wanted, decoded)
  if (resource === null) return { ok: false, reason: 'invalid_payment_requirements' }
  const { url, matchKey, resourceSource } = resource
  const amountAtomic = BigInt(wanted.amount)
  if (amountAtomic < BigInt(services.config.minPriceAtomic)) {
    return { ok: false, reason: 'invalid_payment_requirements' }
  }
  if (matchKey !== null && (await isSoldByAnother(services.pool, seller.projectId, matchKey))) {
    return { ok: false, reason: 'resource_of_another_project' }
  }
  const found =
    matchKey === null
      ? null
      : await findEndpointByResource(services.pool, seller.projectId, matchKey)
  // The service compares the amount of the payment with the price of the endpoint. Otherwise a payer could pay the
  // price of a cheap resource and name an expensive one.
  const isSold = resourceSource === 'seller' || found?.priceAtomic === amountAtomic
  const endpoint = isSold ? found : null
  const offer: Offer = {
    seller,
    endpointId: endpoint?.id ?? null,
    verification: endpoint?.verification.status ?? null,
    matchKey: endpoint === null ? null : matchKey,
    resource: url,
    resourceSource,
    amountAtomic,
    description: wanted.description,
    metadata: {},
    discoverable: endpoint?.discoverable ?? false,
  }
  return { ok: true, offer, endpoint }
}

/**
 * Returns the offer that an unfinished payment accepted, if a seller's payment requirement repeats this offer. The
 * seller's middleware repeats an old requirement after the project changed its `payTo` or stopped selling.
 */
export async function findPastFacilitatorOffer(
  services: Services,
  projectId: string,
  decoded: DecodedPayment,
  requirements: unknown,
): Promise<Offer | null> {
  const wanted = decoded.ok ? readWanted(decoded, requirements) : null
  const resource = wanted === null ? null : resourceOf(wanted, decoded)
  if (wanted === null || resource === null) return null
  const sale = { projectId, resourceUrl: resource.url, amountAtomic: BigInt(wanted.amount) }
  const past = await findPastOffer(services, sale, decoded)
  return past === null || faultOf(wanted, past.seller) !== null ? null : past
}

const readWanted = (decoded: DecodedPayment, requirements: unknown): Wanted | null =>
  versionOf(decoded) === 2 ? readV2(requirements) : readV1(requirements)

/** Returns the paid resource, and who named it. @returns null if the seller named a resource that cannot be sold. */
function resourceOf(wanted: Wanted, decoded: DecodedPayment) {
  // The payer's copy of the resource is not signed, so the resource that the seller names is preferred.
  const copy = decoded.ok ? (decoded.payload.resourceUrl ?? null) : null
  const byPayer = copy === null ? null : readResource(copy)
  const resourceSource: Offer['resourceSource'] =
    wanted.resource === null && byPayer !== null ? 'payer' : 'seller'
  const bySeller = wanted.resource === null ? null : readResource(wanted.resource)
  if (wanted.resource !== null && bySeller === null) return null
  return { ...(bySeller ?? byPayer ?? { url: UNSPECIFIED, matchKey: null }), resourceSource }
}

/**
 * Describes a payment requirement of x402 version 1. The schema does not check the member `extra`, which some sellers
 * set to null. The check is not needed, because a wrong EIP-712 domain in `extra` makes the payment's signature
 * invalid. The schema does not limit the description and the media type, because x402 sets no limit.
 */
const requirementV1Schema = paymentRequirementsSchema
  .omit({ extra: true })
  .extend({ description: z.string().transform(cutDescription), mimeType: z.string() })

function readV1(requirements: unknown): Wanted | null {
  const { data } = requirementV1Schema.safeParse(requirements)
  if (data === undefined || !URL.canParse(data.resource)) return null
  return { ...data, amount: data.maxAmountRequired, extra: {} }
}

function readV2(requirements: unknown): Wanted | null {
  const { data } = paymentRequirementsV2Schema.safeParse(requirements)
  if (data === undefined) return null
  const extra = data.extra ?? {}
  const { resource = null } = extra
  if (resource === null) return { ...data, extra, resource, description: null }
  const isUrl =
    typeof resource === 'string' && resource.length <= RESOURCE_CHARS_MAX && URL.canParse(resource)
  return isUrl ? { ...data, extra, resource, description: null } : null
}

function faultOf(wanted: Wanted, { network, payTo }: Seller): X402Reason | null {
  const { usdcAddress, eip712Name, eip712Version }: UsdcNetwork = USDC_NETWORKS[network]
  const { name = eip712Name, version = eip712Version, assetTransferMethod } = wanted.extra
  if (wanted.scheme !== 'exact') return 'unsupported_scheme'
  if (networkNameOf(wanted.network) !== network) return 'invalid_network'
  if (wanted.asset.toLowerCase() !== usdcAddress.toLowerCase()) {
    return 'invalid_payment_requirements'
  }
  if (wanted.payTo.toLowerCase() !== payTo.toLowerCase()) return 'invalid_payment_requirements'
  if (name !== eip712Name) return 'invalid_exact_evm_token_name_mismatch'
  if (version !== eip712Version) return 'invalid_exact_evm_token_version_mismatch'
  const isEip3009 = assetTransferMethod === undefined || assetTransferMethod === 'eip3009'
  return isEip3009 ? null : 'unsupported_payload_type'
}

/**
 * Reads the paid resource from a text: a web address or the name of an MCP tool. Returns `null` for any other text,
 * because the service writes the resource into a signed receipt.
 */
function readResource(text: string): ReturnType<typeof parsePaidResource> | null {
  try {
    return parsePaidResource(text)
  } catch (error) {
    if (error instanceof ResourceUrlError) return null
    throw error
  }
}
