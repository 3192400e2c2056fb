/**
 * Reads and writes the x402 v2 wire format: `PAYMENT-REQUIRED`, the payload of `PAYMENT-SIGNATURE`, and requirements.
 *
 * Standards: x402 specification v2 §5, HTTP transport v2, extensions `offer-receipt` and `payment-identifier`.
 */
import { z } from 'zod'
import { BAZAAR, bazaarOf, type Metadata, serviceWords } from './bazaar/metadata.ts'
import { exactPayloadSchema } from './exactPayload.ts'
import { signJws } from './jws.ts'
import type { ReceiptKey } from './receiptKey.ts'
import { usdcNetworkOf } from './usdc.ts'

/** Names the x402 extensions that the facilitator supports. */
export const OFFER_RECEIPT = 'offer-receipt'
export const PAYMENT_IDENTIFIER = 'payment-identifier'

/**
 * Sets the maximum number of characters of the header `PAYMENT-REQUIRED`, because a proxy accepted a 402 response with
 * a header of 2,996 bytes, and refused one with 3,564 bytes (coinbase/cdp-sdk #759).
 */
const PAYMENT_REQUIRED_CHARS_MAX = 2990

const PAYMENT_IDENTIFIER_PATTERN = '^[A-Za-z0-9_-]{16,128}$'

/**
 * Returns the x402 version 1 name of a chain that the caller names in the spelling of either version. If the chain is
 * unknown, the function returns the given name unchanged.
 */
export const networkNameOf = (text: string): string => usdcNetworkOf(text)?.network ?? text

/** Describes an optional part of a payment. A null or malformed optional part counts as absent. */
const lenient = <Schema extends z.ZodType>(schema: Schema) => schema.nullish().catch(null)

/**
 * Describes the header `PAYMENT-SIGNATURE` after the decoding of base64 and JSON. Of the member `accepted`, the service
 * reads only the scheme and the network. All other fields of `accepted` only repeat this service's challenge.
 */
export const paymentPayloadV2Schema = z
  .object({
    x402Version: z.literal(2),
    accepted: z.object({ scheme: z.string().max(64), network: z.string().max(64) }),
    payload: exactPayloadSchema,
    resource: lenient(z.object({ url: z.string().min(1).max(2048) })),
    extensions: lenient(
      z.object({
        [PAYMENT_IDENTIFIER]: lenient(z.object({ info: lenient(z.object({ id: z.unknown() })) })),
      }),
    ),
  })
  .transform(({ accepted, payload, resource, extensions }, context) => {
    const id = extensions?.[PAYMENT_IDENTIFIER]?.info?.id ?? null
    if (
      id !== null &&
      (typeof id !== 'string' || !new RegExp(PAYMENT_IDENTIFIER_PATTERN).test(id))
    ) {
      const path = ['extensions', PAYMENT_IDENTIFIER, 'info', 'id']
      context.addIssue({ code: 'custom', path, message: 'malformed' })
      return z.NEVER
    }
    return {
      x402Version: 2 as const,
      scheme: accepted.scheme,
      network: networkNameOf(accepted.network),
      payload,
      ...(resource?.url === undefined ? {} : { resourceUrl: resource.url }),
      ...(id === null ? {} : { paymentIdentifier: id }),
    }
  })

/**
 * Describes one entry of the list `accepts` in x402 version 2. This service sends such entries to payers, and sellers
 * send them to the facilitator.
 */
export const paymentRequirementsV2Schema = z.object({
  scheme: z.string().max(64),
  network: z.string().max(64),
  amount: z.string().regex(/^\d{1,18}$/),
  payTo: z.string().regex(/^0x[0-9a-fA-F]{40}$/),
  asset: z.string().regex(/^0x[0-9a-fA-F]{40}$/),
  maxTimeoutSeconds: z.number().positive(),
  extra: z.record(z.string(), z.unknown()).nullish(),
})

type Requirement = {
  scheme: string
  network: string
  maxAmountRequired: string
  resource: string
  description: string
  mimeType: string
  payTo: string
  maxTimeoutSeconds: number
  asset: string
  extra?: Record<string, unknown> | undefined
}

/** Converts a payment requirement of version 1 to the form of version 2. */
export const toRequirementV2 = (requirement: Requirement) => ({
  scheme: requirement.scheme,
  network: usdcNetworkOf(requirement.network)?.caip2 ?? requirement.network,
  amount: requirement.maxAmountRequired,
  asset: requirement.asset,
  payTo: requirement.payTo,
  maxTimeoutSeconds: requirement.maxTimeoutSeconds,
  extra: { ...requirement.extra },
})

/** Signs an offer with the price of a resource, so that the payer can prove the price (extension `offer-receipt`). */
function signedOffer(requirement: Requirement, key: ReceiptKey, nowS: number) {
  const { scheme, network, asset, payTo, amount } = toRequirementV2(requirement)
  const validUntil = nowS + requirement.maxTimeoutSeconds
  const { resource: resourceUrl } = requirement
  const payload = { version: 1, resourceUrl, scheme, network, asset, payTo, amount, validUntil }
  return { format: 'jws', acceptIndex: 0, signature: signJws(payload, key) }
}

const OFFERS_SCHEMA = { type: 'object', required: ['offers'] }
const IDENTIFIER_EXTENSION = {
  info: { required: false },
  schema: {
    type: 'object',
    properties: {
      required: { type: 'boolean' },
      id: { type: 'string', pattern: PAYMENT_IDENTIFIER_PATTERN },
    },
    required: ['required'],
  },
}

/**
 * Encodes the `PAYMENT-REQUIRED` header of a challenge. If the header would exceed 3 kB, the function drops the signed
 * offer first, then the description, then the metadata. After that, only a very long resource URL can make the header
 * too long.
 *
 * @param offerKey is the receipt key that signs the offer in the header. Null means that the header gets no signed
 * offer.
 */
export function encodePaymentRequired(
  { error, requirement, metadata = {} }: Required402,
  offerKey: ReceiptKey | null,
  nowS: number,
): string {
  const identifier = { [PAYMENT_IDENTIFIER]: IDENTIFIER_EXTENSION }
  const offer =
    offerKey === null
      ? null
      : {
          [OFFER_RECEIPT]: {
            info: { offers: [signedOffer(requirement, offerKey, nowS)] },
            schema: OFFERS_SCHEMA,
          },
        }
  const { description, mimeType } = requirement
  const text = { ...(description && { description }), ...(mimeType && { mimeType }) }
  const how = bazaarOf(metadata, requirement.resource)
  const listing = how === null ? {} : { [BAZAAR]: how }
  const words = serviceWords(metadata)
  const forms: [object, object][] = [
    [
      { ...text, ...words },
      { ...offer, ...identifier, ...listing },
    ],
    [
      { ...text, ...words },
      { ...identifier, ...listing },
    ],
    [{ ...text, ...words }, listing],
    [words, listing],
    [text, {}],
    [{}, {}],
  ]
  let header = ''
  for (const [more, extensions] of forms) {
    header = encodeForm({ error, requirement, more, extensions })
    if (header.length <= PAYMENT_REQUIRED_CHARS_MAX) break
  }
  return header
}

type Required402 = { error: string; requirement: Requirement; metadata?: Metadata | undefined }

function encodeForm({
  error,
  requirement,
  more,
  extensions,
}: {
  error: string
  requirement: Requirement
  more: object
  extensions: object
}): string {
  const terms = toRequirementV2(requirement)
  return encodeHeader({
    x402Version: 2,
    error,
    resource: { url: requirement.resource, ...more },
    // The payment flow `upfront` means that the seller's redeem call moves the money before the seller delivers the
    // resource.
    accepts: [{ ...terms, extra: { ...terms.extra, paymentFlow: 'upfront' } }],
    ...(Object.keys(extensions).length > 0 && { extensions }),
  })
}

/**
 * Holds a placeholder that is longer than every error text of an x402 challenge. The function `fitsChallenge` measures
 * a challenge with this longest possible error.
 */
const LONGEST_ERROR = 'e'.repeat(80)
const ADDRESS = `0x${'0'.repeat(40)}`

/**
 * Tells whether the metadata of a resource fit into the header of every challenge for the resource. The function
 * assumes the longest possible price and the longest error text.
 */
export function fitsChallenge(url: string, metadata: Metadata): boolean {
  const how = bazaarOf(metadata, url)
  const requirement: Requirement = {
    scheme: 'exact',
    network: 'base-sepolia',
    maxAmountRequired: '9'.repeat(18),
    resource: url,
    description: '',
    mimeType: '',
    payTo: ADDRESS,
    maxTimeoutSeconds: 999,
    asset: ADDRESS,
    extra: { name: 'USD Coin', version: '2' },
  }
  const form = {
    error: LONGEST_ERROR,
    requirement,
    more: serviceWords(metadata),
    extensions: how === null ? {} : { [BAZAAR]: how },
  }
  return encodeForm(form).length <= PAYMENT_REQUIRED_CHARS_MAX
}

/** Encodes a value as base64 of ASCII JSON, because clients of version 1 decode with `atob`. */
export function encodeHeader(value: object): string {
  const ascii = JSON.stringify(value).replace(
    /[\u0080-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
  return Buffer.from(ascii, 'latin1').toString('base64')
}
