/**
 * Checks receipts offline. Each receipt has an Ed25519 signature (RFC 8032, checked by WebCrypto) over canonical JSON
 * (RFC 8785), and a compact JWS (RFC 7515) of the same payment.
 */

import type { Receipt } from './calls/payments.ts'
import { PurserError } from './errors.ts'

/** Reports that a receipt is invalid, and tells the reason. */
export class InvalidReceiptError extends PurserError {
  override readonly name = 'InvalidReceiptError'
  /**
   * Holds the reason why the receipt is invalid. The value `refund` means that the receipt is for a refund although it
   * must prove a sale.
   */
  readonly reason: 'malformed' | 'unknown_key' | 'bad_signature' | 'jws_mismatch' | 'refund'
  constructor(reason: InvalidReceiptError['reason']) {
    super(`The receipt is not valid: ${reason}`)
    this.reason = reason
  }
}

/** Describes a JSON Web Key Set, as /.well-known/jwks.json returns it. */
export type Jwks = { keys: readonly { kty?: string; crv?: string; x?: string }[] }

/** Maps the short names of blockchain networks to their CAIP-2 names. */
const CAIP2: Record<string, string> = { base: 'eip155:8453', 'base-sepolia': 'eip155:84532' }

/**
 * Checks a receipt offline against the trusted keys of the service.
 *
 * @param receipt is a receipt that you got from a redeem call, a payment record or a webhook.
 * @param keys is the JWKS of the service, or its public keys as 64 hexadecimal digits each. Never use a key from a
 * receipt itself, because anyone can sign a receipt with a key of their own.
 * @param refundOf is the id of the payment whose refund the receipt must prove. Without it, a receipt of a refund is
 * refused, because such a receipt names the same project, resource and amount as the refunded sale.
 * @returns the body of the valid receipt. Compare its `projectId`, `resource` and `amountUsdcRaw` with your sale,
 * because a valid receipt can belong to another payment.
 * @throws {InvalidReceiptError} for a malformed receipt, an unknown key, a wrong signature, or a receipt of another
 * kind.
 *
 * @example
 * const keys: Jwks = JSON.parse(readFileSync('jwks.json', 'utf8'))
 * const { projectId, amountUsdcRaw } = await verifyReceipt({ receipt, keys })
 */
export async function verifyReceipt({
  receipt,
  keys,
  refundOf,
}: {
  receipt: unknown
  keys: Jwks | string | readonly string[]
  refundOf?: string | undefined
}): Promise<Receipt['body']> {
  if (!isReceipt(receipt)) throw new InvalidReceiptError('malformed')
  const { body, publicKeyHex, jws } = receipt
  if (!publicKeys(keys).includes(publicKeyHex)) throw new InvalidReceiptError('unknown_key')
  const key = await crypto.subtle.importKey('raw', fromHex(publicKeyHex), 'Ed25519', false, [
    'verify',
  ])
  const signed = (signature: Uint8Array<ArrayBuffer> | null, text: string) =>
    signature !== null &&
    crypto.subtle.verify('Ed25519', key, signature, new TextEncoder().encode(text))
  if (!(await signed(fromBase64(receipt.signature), canonical(body)))) {
    throw new InvalidReceiptError('bad_signature')
  }
  const [header = '', payload = '', signature = '', ...rest] = jws.split('.')
  const same = rest.length === 0 && isEdDsa(header) && saysTheSame(payload, body)
  if (!same || !(await signed(fromBase64(signature), `${header}.${payload}`))) {
    throw new InvalidReceiptError('jws_mismatch')
  }
  if (refundedBy(body) !== refundOf) throw new InvalidReceiptError('refund')
  return body
}

/** Returns the id of the payment that a refund pays back. Returns `undefined` for the receipt of a sale. */
const refundedBy = (body: object): unknown => (body as { refundOf?: unknown }).refundOf

function isReceipt(value: unknown): value is Receipt {
  if (typeof value !== 'object' || value === null) return false
  const { body, signature, alg, publicKeyHex, jws } = value as Record<string, unknown>
  return (
    typeof body === 'object' &&
    body !== null &&
    Object.values(body).every(
      (member) => ['string', 'number'].includes(typeof member) || member === null,
    ) &&
    alg === 'Ed25519' &&
    typeof signature === 'string' &&
    typeof publicKeyHex === 'string' &&
    /^[0-9a-f]{64}$/.test(publicKeyHex) &&
    typeof jws === 'string'
  )
}

/** Returns the trusted public keys as hexadecimal digits. */
function publicKeys(keys: Jwks | string | readonly string[]): string[] {
  if (typeof keys === 'string') return [keys.toLowerCase()]
  if (!isJwks(keys)) return keys.map((key) => key.toLowerCase())
  return keys.keys.flatMap(({ kty, crv, x }) => {
    const bytes = kty === 'OKP' && crv === 'Ed25519' && x !== undefined ? fromBase64(x) : null
    return bytes === null
      ? []
      : [Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')]
  })
}

const isJwks = (keys: Jwks | readonly string[]): keys is Jwks => !Array.isArray(keys)

/**
 * Writes the body of a receipt in canonical form (RFC 8785). The body of a receipt is a flat object of strings, whole
 * numbers and nulls. The canonical form sorts the member names by UTF-16 code units, and writes values in ECMAScript
 * notation.
 */
function canonical(body: object): string {
  const members = Object.entries(body).sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${members.map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`).join(',')}}`
}

/**
 * Tells whether the algorithm in a JWS header is EdDSA. The function allows no other algorithm, because a forged header
 * could name the algorithm `none`.
 */
function isEdDsa(header: string): boolean {
  const { alg } = readJson(header)
  return alg === 'EdDSA' || alg === 'Ed25519'
}

/**
 * Tells whether the JWS payload of a receipt and the body of the same receipt have the same members with equal values.
 */
function saysTheSame(payload: string, body: Receipt['body']): boolean {
  const said = readJson(payload)
  return (
    said.type === 'payment' &&
    said.network === CAIP2[body.network] &&
    said.resourceUrl === body.resource &&
    said.payer === body.payerAddress &&
    said.payTo === body.recipientAddress &&
    said.amount === body.amountUsdcRaw &&
    said.transaction === body.txHash &&
    said.paymentId === body.paymentId &&
    said.refundOf === refundedBy(body) &&
    said.issuedAt === Math.floor(Date.parse(body.timestamp) / 1_000)
  )
}

function readJson(part: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(
      new TextDecoder().decode(fromBase64(part) ?? new Uint8Array()),
    )
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
  } catch {
    return {}
  }
}

const fromHex = (hex: string): Uint8Array<ArrayBuffer> =>
  Uint8Array.from(hex.match(/../g)!, (pair) => Number.parseInt(pair, 16))

/** Decodes a text in base64 or base64url. Returns `null` if the text is neither base64 nor base64url. */
function fromBase64(text: string): Uint8Array<ArrayBuffer> | null {
  try {
    const binary = atob(text.replaceAll('-', '+').replaceAll('_', '/'))
    return Uint8Array.from(binary, (character) => character.charCodeAt(0))
  } catch {
    return null
  }
}
