/** Compact JWS (RFC 7515) with Ed25519, as the x402 `offer-receipt` extension wants it. */
import { createPrivateKey, sign } from 'node:crypto'
import { utf8ToBytes } from '@noble/hashes/utils.js'
import { canonicalJson } from '../canonicalJson.ts'
import { base64url, type ReceiptKey } from './receiptKey.ts'

/** The head of an Ed25519 private key in PKCS #8 (RFC 8410); the seed follows. */
const PKCS8_HEAD = Buffer.from('302e020100300506032b657004220420', 'hex')

/** The signed bytes: header and payload in canonical JSON (RFC 8785), so that they have one spelling. */
export function jwsSigningInput(payload: object, kid: string): string {
  const header = base64url(utf8ToBytes(canonicalJson({ alg: 'EdDSA', kid })))
  return `${header}.${base64url(utf8ToBytes(canonicalJson(payload)))}`
}

/** Signs a payload. Ed25519 is deterministic: the same payload and key give the same text. */
export function signJws(payload: object, key: Pick<ReceiptKey, 'kid' | 'seed'>): string {
  const signingInput = jwsSigningInput(payload, key.kid)
  // Every challenge is signed. @noble/ed25519 takes 0.54 ms for it.
  const privateKey = createPrivateKey({
    key: Buffer.concat([PKCS8_HEAD, key.seed]),
    format: 'der',
    type: 'pkcs8',
  })
  return `${signingInput}.${base64url(sign(null, Buffer.from(signingInput), privateKey))}`
}
