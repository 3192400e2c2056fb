/**
 * The x402 v1 wire: challenge (402 body), payment (`X-PAYMENT`), settlement (`X-PAYMENT-RESPONSE`).
 *
 * Standards: x402 specification v1 §5 and §9, HTTP transport v1; scheme `exact` on EVM only.
 */
import { type Address, getAddress, type Hex } from 'viem'
import { z } from 'zod'
import { type NetworkName, USDC_NETWORKS } from './usdc.ts'

/** Our reason codes: x402 v1 §9 first, then codes of later facilitators for cases that v1 lacks. */
const X402_REASONS = [
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
  'eip6492_factory_not_allowed',
  'smart_wallet_deployment_failed',
  'smart_wallet_suspended',
  'duplicate_settlement',
  'settlement_pending',
  'settlement_limit_reached',
  'resource_of_another_project',
] as const

export type X402Reason = (typeof X402_REASONS)[number]

/** The `error` of a first challenge, as in the reference middleware. */
const PAYMENT_REQUIRED_ERROR = 'X-PAYMENT header is required'

/** Longest `X-PAYMENT` we decode: a plain payment has ~0.6 KB, an ERC-6492 wrapped one ~3 KB. */
export const PAYMENT_HEADER_CHARS_MAX = 8192

/** Lifetime of a payer's signature: long enough for re-priced transactions on 2 s blocks. */
const MAX_TIMEOUT_S = 120

const UINT256_MAX = 2n ** 256n - 1n

const addressSchema = z
  .string()
  .regex(/^0x[0-9a-fA-F]{40}$/)
  // Case carries only a checksum. viem throws on a wrong one; the chain ignores case.
  .transform((text): Address => getAddress(text.toLowerCase()))

const uint256Schema = z
  .string()
  .regex(/^\d{1,78}$/)
  .transform((text) => BigInt(text))
  .refine((value) => value <= UINT256_MAX)

const hexSchema = (pattern: RegExp) =>
  z
    .string()
    .max(PAYMENT_HEADER_CHARS_MAX)
    .regex(pattern)
    // One spelling: the nonce is part of the unique key that stops double payment.
    .transform((text) => text.toLowerCase() as Hex)

/** EIP-3009 authorization: decimal strings on the wire, parsed into bigints. Times are Unix seconds. */
const authorizationSchema = z.object({
  from: addressSchema,
  to: addressSchema,
  value: z
    .string()
    .regex(/^\d{1,18}$/)
    .transform((text) => BigInt(text)),
  validAfter: uint256Schema,
  validBefore: uint256Schema,
  nonce: hexSchema(/^0x[0-9a-fA-F]{64}$/),
})

export type Authorization = z.output<typeof authorizationSchema>

/** `X-PAYMENT` after base64 and JSON. `verifyAuthorization` judges scheme and network. */
const paymentPayloadSchema = z.object({
  x402Version: z.number(),
  scheme: z.string().max(64),
  network: z.string().max(64),
  payload: z.object({
    signature: hexSchema(/^0x(?:[0-9a-fA-F]{2})+$/),
    authorization: authorizationSchema,
  }),
})

export type PaymentPayload = z.output<typeof paymentPayloadSchema>

const envelopeSchema = z.object({ x402Version: z.unknown(), scheme: z.unknown() }).partial()

/**
 * One entry of `accepts`, sent by us or by sellers to the facilitator face. v1 clients refuse entries
 * without `mimeType` and `extra`.
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
  extra: z.record(z.string(), z.unknown()).optional(),
})

export type PaymentRequirements = z.output<typeof paymentRequirementsSchema>

/** The body of a 402. */
export const challengeSchema = z.object({
  x402Version: z.literal(1),
  error: z.string(),
  accepts: z.array(paymentRequirementsSchema).min(1),
})

export type Challenge = z.output<typeof challengeSchema>

export type BuildChallengeParameters = {
  network: NetworkName
  amountAtomic: bigint
  /** The full URL as the payer sees it; v1 clients refuse a text that does not parse as a URL. */
  resource: string
  payTo: string
  description?: string | undefined
  mimeType?: string | undefined
  /** The reason code of a refused payment; default {@link PAYMENT_REQUIRED_ERROR}. */
  error?: string | undefined
}

/**
 * Builds the 402 body for one price.
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
    // The clients' schemas require both strings and refuse `outputSchema: null`.
    description: parameters.description ?? '',
    mimeType: parameters.mimeType ?? '',
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
  | { ok: false; reason: X402Reason; detail: string }

function refused(reason: X402Reason, detail: string): DecodedPayment {
  return { ok: false, reason, detail }
}

/**
 * Reads a decoded payment object (MCP `_meta`, facilitator body).
 *
 * @returns the payload with checksummed addresses, lower-case hex and bigint numbers; or a reason. A
 * payload of another version or scheme gets that reason: its inner shape is unknown.
 */
export function parsePaymentPayload(value: unknown): DecodedPayment {
  const parsed = paymentPayloadSchema.safeParse(value)
  if (parsed.success && parsed.data.x402Version === 1 && parsed.data.scheme === 'exact') {
    return { ok: true, payload: parsed.data }
  }
  const envelope = envelopeSchema.safeParse(value)
  if (envelope.success) {
    const { x402Version, scheme } = envelope.data
    if (typeof x402Version === 'number' && x402Version !== 1) {
      return refused('invalid_x402_version', 'x402Version must be 1')
    }
    if (typeof scheme === 'string' && scheme !== 'exact') {
      return refused('unsupported_scheme', 'scheme must be "exact"')
    }
  }
  const issue = parsed.error?.issues[0]
  const at = issue === undefined || issue.path.length === 0 ? 'payment' : issue.path.join('.')
  return refused('invalid_payload', `${at} is malformed`)
}

/**
 * Decodes an `X-PAYMENT` header value. Never throws.
 *
 * @param header standard base64 with padding of UTF-8 JSON, at most {@link PAYMENT_HEADER_CHARS_MAX}.
 */
export function decodePaymentHeader(header: string): DecodedPayment {
  if (header.length > PAYMENT_HEADER_CHARS_MAX) {
    return refused(
      'invalid_payload',
      `header is longer than ${PAYMENT_HEADER_CHARS_MAX} characters`,
    )
  }
  const bytes = Buffer.from(header, 'base64')
  // Buffer skips characters outside base64. The round trip leaves one spelling per payment.
  if (header === '' || bytes.toString('base64') !== header) {
    return refused('invalid_payload', 'header is not standard base64')
  }
  try {
    return parsePaymentPayload(JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)))
  } catch {
    // Also the RangeError of a JSON text nested thousands deep.
    return refused('invalid_payload', 'header is not UTF-8 JSON')
  }
}

export type PaymentResponse = {
  success: boolean
  /** Transaction hash; empty: none was sent. */
  transaction: Hex | ''
  network: NetworkName
  payer: string
  errorReason?: X402Reason
  /** Compact JWS of the receipt, placed as the `offer-receipt` extension prescribes. */
  receiptJws?: string
}

/**
 * Encodes `X-PAYMENT-RESPONSE`: base64 of ASCII JSON. Clients decode it with `atob`.
 */
export function encodePaymentResponse(response: PaymentResponse): string {
  const { receiptJws, ...rest } = response
  const receipt = { format: 'jws', signature: receiptJws }
  const json = JSON.stringify({
    ...rest,
    ...(receiptJws && { extensions: { 'offer-receipt': { info: { receipt } } } }),
  })
  const ascii = json.replace(
    /[\u0080-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
  return Buffer.from(ascii, 'latin1').toString('base64')
}
