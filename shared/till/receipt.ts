/**
 * Signs and checks payment receipts. The redeem response, the payment record and the webhook body hold a receipt in the
 * same format (docs/contract.md §6).
 *
 * A receipt proves that the money moved. It does not prove that the seller delivered the resource, because the service
 * signs the receipt before the delivery. Standards: Ed25519 (RFC 8032) over canonical JSON (RFC 8785). The member `jws`
 * of a receipt is a compact JWS (RFC 7515). Its payload is a receipt of the x402 extension `offer-receipt`, version 1,
 * with additional members.
 */
import { verify } from '@noble/ed25519'
import { utf8ToBytes } from '@noble/hashes/utils.js'
import { z } from 'zod'
import { canonicalJson } from '../canonicalJson.ts'
import { signEd25519 } from './ed25519.ts'
import { jwsSigningInput, signJws } from './jws.ts'
import type { ReceiptKey } from './receiptKey.ts'
import { USDC_NETWORKS } from './usdc.ts'

const receiptBodySchema = z.strictObject({
  version: z.literal(1),
  paymentId: z.string(),
  /** Holds the same value as `paymentId`, because some clients know only this older name. */
  paymentInId: z.string(),
  /**
   * Holds the id of the seller's endpoint. Null means that the facilitator settled the payment for an unregistered
   * resource.
   */
  endpointId: z.string().nullable(),
  projectId: z.string(),
  identityId: z.string(),
  payerAddress: z.string(),
  recipientAddress: z.string(),
  /** Holds the amount as a decimal number of atomic units. */
  amountUsdcRaw: z.string().regex(/^\d+$/),
  network: z.enum(['base', 'base-sepolia']),
  resource: z.string(),
  txHash: z.string(),
  /**
   * Holds `payer` if only the payer named the paid `resource`, which is possible in x402 version 2. If `resourceSource`
   * is absent, the seller named the resource.
   */
  resourceSource: z.literal('payer').optional(),
  /** Holds the name that the payer gave to the payment (x402 `payment-identifier`). */
  paymentIdentifier: z.string().optional(),
  /** Holds the id of the refunded payment, if the receipt is for a refund. */
  refundOf: z.string().optional(),
  /** Holds the UTC time of the receipt in ISO 8601 with milliseconds. */
  timestamp: z.iso.datetime({ precision: 3 }),
})

export type ReceiptBody = z.output<typeof receiptBodySchema>

export const receiptSchema = z.object({
  body: receiptBodySchema,
  /** Holds the Ed25519 signature over the canonical JSON of `body`, in base64. */
  signature: z.string(),
  alg: z.literal('Ed25519'),
  publicKeyHex: z.string().regex(/^[0-9a-f]{64}$/),
  publicKey: z.string(),
  did: z.string(),
  jws: z.string(),
})

export type Receipt = z.output<typeof receiptSchema>

/** Returns the payload of a receipt's JWS: the members of `offer-receipt`, and this service's additional members. */
function jwsPayload(body: ReceiptBody) {
  return {
    version: 1,
    type: 'payment',
    // The extension `offer-receipt` requires the CAIP-2 name of the chain even for a payment of x402 version 1.
    network: USDC_NETWORKS[body.network].caip2,
    resourceUrl: body.resource,
    payer: body.payerAddress,
    issuedAt: Math.floor(Date.parse(body.timestamp) / 1000),
    transaction: body.txHash,
    paymentId: body.paymentId,
    projectId: body.projectId,
    endpointId: body.endpointId,
    payTo: body.recipientAddress,
    amount: body.amountUsdcRaw,
    asset: USDC_NETWORKS[body.network].usdcAddress,
    ...(body.resourceSource === undefined ? {} : { resourceSource: body.resourceSource }),
    ...(body.refundOf === undefined ? {} : { refundOf: body.refundOf }),
  }
}

/** Returns the JWS payload of a receipt in the older format, which contains neither the project nor the endpoint. */
function earlierJwsPayload(body: ReceiptBody) {
  const { projectId: _, endpointId: __, ...earlier } = jwsPayload(body)
  return earlier
}

/**
 * Signs a receipt. Ed25519 is deterministic, so the same body and key give the same receipt.
 *
 * @throws ZodError if the members of the receipt's body differ from docs/contract.md §6.
 */
export function signReceipt({ body, key }: { body: ReceiptBody; key: ReceiptKey }): Receipt {
  const checked = receiptBodySchema.parse(body)
  const signature = signEd25519(utf8ToBytes(canonicalJson(checked)), key.seed)
  return {
    body: checked,
    signature: signature.toString('base64'),
    alg: 'Ed25519',
    publicKeyHex: key.publicKeyHex,
    publicKey: key.publicKeyMultibase,
    did: key.did,
    jws: signJws(jwsPayload(checked), key),
  }
}

/**
 * Writes a receipt as text. The service stores and sends this text unchanged, so that a signature over its bytes stays
 * valid on every repeated delivery.
 */
export function receiptText(receipt: Receipt): string {
  return canonicalJson(receipt)
}

export type ReceiptVerdict =
  | { ok: true; body: ReceiptBody }
  | { ok: false; reason: 'malformed' | 'unknown_key' | 'bad_signature' | 'jws_mismatch' }

/**
 * Checks the format, the key and the signature of a receipt. The function also checks that the same key signed the
 * receipt's `jws` for the same payment.
 *
 * @param receipt is any value, such as a parsed webhook body.
 * @param trustedKeys lists the issuer's keys from the issuer's JWKS, including retired keys. Each key is the member `x`
 * of the JWKS, converted from base64url to hexadecimal. The key inside a receipt proves nothing, because anyone can
 * sign a receipt with their own key.
 */
export function verifyReceipt({
  receipt,
  trustedKeys,
}: {
  receipt: unknown
  trustedKeys: readonly { publicKeyHex: string }[]
}): ReceiptVerdict {
  const parsed = receiptSchema.safeParse(receipt)
  if (!parsed.success) return { ok: false, reason: 'malformed' }
  const { body, signature, publicKeyHex, jws } = parsed.data
  if (!trustedKeys.some((key) => key.publicKeyHex === publicKeyHex)) {
    return { ok: false, reason: 'unknown_key' }
  }
  const publicKey = Buffer.from(publicKeyHex, 'hex')
  if (!verified(Buffer.from(signature, 'base64'), canonicalJson(body), publicKey)) {
    return { ok: false, reason: 'bad_signature' }
  }
  const [header = '', payload = '', jwsSignature = '', ...rest] = jws.split('.')
  const expected = [jwsPayload(body), earlierJwsPayload(body)].map(
    (one) => jwsSigningInput(one, '').split('.')[1],
  )
  const sameBytes = rest.length === 0 && expected.includes(payload)
  const signed = verified(Buffer.from(jwsSignature, 'base64url'), `${header}.${payload}`, publicKey)
  return sameBytes && signed ? { ok: true, body } : { ok: false, reason: 'jws_mismatch' }
}

function verified(signature: Uint8Array, text: string, publicKey: Uint8Array): boolean {
  if (signature.length !== 64) return false
  // The signature check follows RFC 8032 instead of ZIP 215, because ZIP 215 would accept altered encodings that are
  // equivalent to a valid signature.
  return verify(signature, utf8ToBytes(text), publicKey, { zip215: false })
}
