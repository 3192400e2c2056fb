/**
 * Reads and writes the x402 wire format: the challenge (402 body of version 1), payments of both versions, and the
 * settlement header.
 *
 * Standards: x402 specifications v1 §5 and §9, v2 §5; HTTP transports v1 and v2; scheme `exact` on EVM only.
 */
import { getAddress, type Hex } from 'viem'
import { z } from 'zod'
import { type ExactPayload, exactPayloadSchema } from './exactPayload.ts'
import { type NetworkName, USDC_NETWORKS } from './usdc.ts'
import { encodeHeader, networkNameOf, paymentPayloadV2Schema } from './x402v2.ts'

/**
 * Lists the reason codes for the refusal of a payment. The codes of x402 v1 §9 come first. The other codes come from
 * later facilitators, for cases that x402 v1 does not name.
 */
export const X402_REASONS = [
  'insufficient_funds',
  'invalid_exact_evm_payload_authorization_valid_after',
  'invalid_exact_evm_payload_authorization_valid_before',
  'invalid_exact_evm_payload_authorization_value',
  'invalid_exact_evm_payload_signature',
  'invalid_exact_evm_payload_recipient_mismatch',
  'invalid_network',
  'invalid_payload',
  'invalid_payment',
  'invalid_payment_requirements',
  'invalid_scheme',
  'unsupported_scheme',
  'invalid_x402_version',
  'invalid_transaction_state',
  'unexpected_verify_error',
  'unexpected_settle_error',
  'invalid_exact_evm_payload_undeployed_smart_wallet',
  'invalid_exact_evm_nonce_already_used',
  'invalid_exact_evm_token_name_mismatch',
  'invalid_exact_evm_token_version_mismatch',
  'unsupported_payload_type',
  'payment_identifier_conflict',
  'eip6492_factory_not_allowed',
  'smart_wallet_deployment_failed',
  'smart_wallet_suspended',
  'duplicate_settlement',
  'settlement_pending',
  'settlement_limit_reached',
  'resource_of_another_project',
] as const

export type X402Reason = (typeof X402_REASONS)[number]

/**
 * Returns the spelling of a reason code in the given x402 version, because version 2 has renamed one code of version 1.
 */
export const wireReason = (reason: string, x402Version: X402Version): string =>
  x402Version === 2 && reason === 'invalid_exact_evm_payload_authorization_value'
    ? `${reason}_mismatch`
    : reason

/**
 * Holds the field `error` of the x402 challenge that answers a request without payment. The reference middleware uses
 * the same text.
 */
const PAYMENT_REQUIRED_ERROR = 'X-PAYMENT header is required'

/**
 * Sets the maximum number of characters of a payment header that the service decodes. A header of x402 version 2 with
 * extensions has about 3 KB, and a wrapped signature adds more.
 */
export const PAYMENT_HEADER_CHARS_MAX = 16_384

/**
 * Holds the lifetime of a payer's signature in seconds. On a chain with 2 s blocks, this is enough time for the service
 * to send the transaction a second time at a higher fee.
 */
const MAX_TIMEOUT_S = 120

export type Authorization = ExactPayload['authorization']

/** Lists the versions of x402. */
export type X402Version = 1 | 2

/**
 * Describes an x402 payment of either version. The function `verifyAuthorization` checks the scheme and the network of
 * the payment.
 */
export type PaymentPayload = {
  x402Version: X402Version
  scheme: string
  /**
   * Holds the x402 version 1 name of a known chain. For an unknown chain, `network` holds the network name that the
   * payer sent.
   */
  network: string
  payload: ExactPayload
  /**
   * Holds the resource's URL as the payer has copied it into the payment (version 2). No signature protects this copy.
   */
  resourceUrl?: string
  /** Holds the name that the payer gave to the payment: the extension `payment-identifier`. */
  paymentIdentifier?: string
}

/** Describes the header `X-PAYMENT` after the decoding of base64 and JSON. */
const paymentPayloadV1Schema = z
  .object({
    x402Version: z.literal(1),
    scheme: z.string().max(64),
    network: z.string().max(64),
    payload: exactPayloadSchema,
  })
  .transform((payment): PaymentPayload => ({ ...payment, network: networkNameOf(payment.network) }))

const envelopeSchema = z
  .object({
    x402Version: z.unknown(),
    scheme: z.unknown(),
    accepted: z.object({ scheme: z.unknown() }).partial().nullish().catch(null),
    payload: z.object({ permit2Authorization: z.unknown() }).partial().nullish().catch(null),
  })
  .partial()

/**
 * Describes one entry of the list `accepts` in an x402 challenge. This service sends such entries to payers, and
 * sellers send them to the facilitator. Clients of version 1 refuse entries without `mimeType` and `extra`.
 */
export const paymentRequirementsSchema = z.object({
  scheme: z.string().max(64),
  network: z.string().max(64),
  maxAmountRequired: z.string().regex(/^\d{1,18}$/),
  resource: z.string().max(2048),
  description: z.string().max(2048),
  mimeType: z.string().max(255),
  payTo: z.string().regex(/^0x[0-9a-fA-F]{40}$/),
  maxTimeoutSeconds: z.number().int().nonnegative(),
  asset: z.string().regex(/^0x[0-9a-fA-F]{40}$/),
  /** Describes how a client calls the resource, and describes the output of the resource. */
  outputSchema: z.record(z.string(), z.unknown()).optional().catch(undefined),
  extra: z.record(z.string(), z.unknown()).optional(),
})

export type PaymentRequirements = z.output<typeof paymentRequirementsSchema>

/** Describes the body of a 402 response with an x402 challenge. */
export const challengeSchema = z.object({
  x402Version: z.literal(1),
  error: z.string(),
  accepts: z.array(paymentRequirementsSchema).min(1),
})

export type Challenge = z.output<typeof challengeSchema>

export type BuildChallengeParameters = {
  network: NetworkName
  amountAtomic: bigint
  /**
   * Holds the full URL of the resource as the payer sees it. Clients of version 1 refuse a text that does not parse as
   * a URL.
   */
  resource: string
  payTo: string
  description?: string | undefined
  mimeType?: string | undefined
  /** Describes how a client calls the resource, and describes the output of the resource. */
  outputSchema?: Record<string, unknown> | null | undefined
  /**
   * Holds the reason code if the challenge refuses a payment. For a request without a payment, the error of the
   * challenge is {@link PAYMENT_REQUIRED_ERROR}.
   */
  error?: string | undefined
}

/**
 * Builds the body of a 402 response for one price.
 *
 * @example
 * buildChallenge({ network: 'base', amountAtomic: 10000n, resource: 'https://a.b/c', payTo: '0x…' })
 */
export function buildChallenge(parameters: BuildChallengeParameters): Challenge {
  const { network, usdcAddress, eip712Name, eip712Version } = USDC_NETWORKS[parameters.network]
  const requirement: PaymentRequirements = {
    scheme: 'exact',
    network,
    maxAmountRequired: parameters.amountAtomic.toString(),
    resource: parameters.resource,
    // Clients of x402 version 1 require `description` and `mimeType` as strings, and refuse `outputSchema: null`.
    description: parameters.description ?? '',
    mimeType: parameters.mimeType ?? '',
    ...(parameters.outputSchema && { outputSchema: parameters.outputSchema }),
    payTo: getAddress(parameters.payTo.toLowerCase()),
    maxTimeoutSeconds: MAX_TIMEOUT_S,
    asset: usdcAddress,
    extra: { name: eip712Name, version: eip712Version },
  }
  const { error = PAYMENT_REQUIRED_ERROR } = parameters
  return { x402Version: 1, error, accepts: [requirement] }
}

export type DecodedPayment =
  | { ok: true; payload: PaymentPayload }
  /** Refuses a malformed payment. The field `x402Version` is the version in which the service must respond. */
  | { ok: false; x402Version: X402Version; reason: X402Reason; detail: string }

/** Returns the x402 version in which the service must respond to a payment: the version of the payment itself. */
export const versionOf = (decoded: DecodedPayment): X402Version =>
  decoded.ok ? decoded.payload.x402Version : decoded.x402Version

function refused(reason: X402Reason, detail: string, x402Version: X402Version = 1): DecodedPayment {
  return { ok: false, x402Version, reason, detail }
}

/**
 * Reads a decoded payment object from MCP `_meta` or from a facilitator body. The member `x402Version` of the payment
 * object determines its format.
 *
 * @returns the payload with checksummed addresses, lower-case hex and bigint numbers, or a reason to refuse the
 * payment. The function refuses an unknown version or scheme, because the service does not know the format of its
 * payload.
 */
export function parsePaymentPayload(value: unknown): DecodedPayment {
  const envelope = envelopeSchema.safeParse(value).data ?? {}
  const { x402Version } = envelope
  if (typeof x402Version === 'number' && x402Version !== 1 && x402Version !== 2) {
    return refused('invalid_x402_version', 'x402Version must be 1 or 2')
  }
  const version = x402Version === 2 ? 2 : 1
  const scheme = version === 2 ? envelope.accepted?.scheme : envelope.scheme
  if (typeof scheme === 'string' && scheme !== 'exact') {
    return refused('unsupported_scheme', 'scheme must be "exact"', version)
  }
  if (envelope.payload?.permit2Authorization !== undefined) {
    return refused(
      'unsupported_payload_type',
      'payload must hold an EIP-3009 authorization',
      version,
    )
  }
  const schema = version === 2 ? paymentPayloadV2Schema : paymentPayloadV1Schema
  const parsed = schema.safeParse(value)
  if (parsed.success) return { ok: true, payload: parsed.data }
  const issue = parsed.error.issues[0]
  const at = issue === undefined || issue.path.length === 0 ? 'payment' : issue.path.join('.')
  return refused('invalid_payload', `${at} is malformed`, version)
}

/**
 * Decodes the value of a `PAYMENT-SIGNATURE` or `X-PAYMENT` header. The function never throws.
 *
 * @param header is UTF-8 JSON in standard base64 with padding, with at most {@link PAYMENT_HEADER_CHARS_MAX}
 * characters.
 */
export function decodePaymentHeader(header: string): DecodedPayment {
  if (header.length > PAYMENT_HEADER_CHARS_MAX) {
    return refused(
      'invalid_payload',
      `header is longer than ${PAYMENT_HEADER_CHARS_MAX} characters`,
    )
  }
  const bytes = Buffer.from(header, 'base64')
  // Buffer skips characters outside the base64 alphabet. Therefore the function encodes the decoded bytes again and
  // compares the result with the header. In this way, each payment has only one accepted spelling.
  if (header === '' || bytes.toString('base64') !== header) {
    return refused('invalid_payload', 'header is not standard base64')
  }
  try {
    return parsePaymentPayload(JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)))
  } catch {
    // This `catch` also handles the RangeError that JSON with thousands of nested levels causes.
    return refused('invalid_payload', 'header is not UTF-8 JSON')
  }
}

export type PaymentResponse = {
  success: boolean
  /**
   * Holds the hash of the transaction that settled the payment. The hash is an empty text if the service sent no
   * transaction.
   */
  transaction: Hex | ''
  network: NetworkName
  payer: string
  errorReason?: X402Reason
  errorMessage?: string
  /** Holds the receipt as a compact JWS for the extension `offer-receipt`. */
  receiptJws?: string
}

/**
 * Writes the settlement of a payment in the form of a facilitator's response, with the spelling of the given x402
 * version.
 */
export function settleResponse(response: PaymentResponse, x402Version: X402Version) {
  const { receiptJws, errorReason, network, ...rest } = response
  const receipt = { format: 'jws', signature: receiptJws }
  return {
    ...rest,
    network: x402Version === 2 ? USDC_NETWORKS[network].caip2 : network,
    ...(errorReason && { errorReason: wireReason(errorReason, x402Version) }),
    ...(receiptJws && { extensions: { 'offer-receipt': { info: { receipt } } } }),
  }
}

/** Names the settlement header of each x402 version. */
export const PAYMENT_RESPONSE_HEADER = { 1: 'X-PAYMENT-RESPONSE', 2: 'PAYMENT-RESPONSE' } as const

/** Encodes the settlement for the header `X-PAYMENT-RESPONSE` (version 1) or `PAYMENT-RESPONSE` (version 2). */
export const encodePaymentResponse = (
  response: PaymentResponse,
  x402Version: X402Version = 1,
): string => encodeHeader(settleResponse(response, x402Version))
