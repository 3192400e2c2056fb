/** Writes a compact JWS (RFC 7515) with Ed25519 for the x402 extension `offer-receipt`. */
import { utf8ToBytes } from '@noble/hashes/utils.js'
import { canonicalJson } from '../canonicalJson.ts'
import { signEd25519 } from './ed25519.ts'
import { base64url, type ReceiptKey } from './receiptKey.ts'

/**
 * Returns the bytes that a JWS signs. The header and the payload of the JWS are in canonical JSON (RFC 8785), so that
 * equal values give equal bytes.
 */
export function jwsSigningInput(payload: object, kid: string): string {
  const header = base64url(utf8ToBytes(canonicalJson({ alg: 'EdDSA', kid })))
  return `${header}.${base64url(utf8ToBytes(canonicalJson(payload)))}`
}

/** Signs a payload as a JWS. Ed25519 is deterministic, so the same payload and key give the same JWS. */
export function signJws(payload: object, key: Pick<ReceiptKey, 'kid' | 'seed'>): string {
  const signingInput = jwsSigningInput(payload, key.kid)
  return `${signingInput}.${base64url(signEd25519(utf8ToBytes(signingInput), key.seed))}`
}
