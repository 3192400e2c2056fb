/**
 * Derives receipt keys and the documents that publish these keys.
 *
 * Standards: Ed25519 (RFC 8032), OKP JWK (RFC 8037), JWK thumbprint (RFC 7638), did:web, multibase.
 */
import { getPublicKey, hashes } from '@noble/ed25519'
import { sha256, sha512 } from '@noble/hashes/sha2.js'
import { bytesToHex, hexToBytes } from '@noble/hashes/utils.js'
import { canonicalJson } from '../canonicalJson.ts'

// The library @noble/ed25519 comes without a hash function. The module sets one, because the synchronous functions of
// the library throw an error without it.
hashes.sha512 = sha512

const SEED_BYTES = 32
const BASE58 = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz'
/** Holds the multicodec number of an Ed25519 public key (`ed25519-pub`), as an unsigned varint. */
const ED25519_CODEC = [0xed, 0x01] as const

/** Holds one receipt key with its names. */
export type ReceiptKey = {
  readonly seed: Uint8Array
  readonly publicKeyHex: string
  /** Holds the public key with its multicodec prefix in base58btc: `z6Mk…`. */
  readonly publicKeyMultibase: string
  /** Holds the DID of the issuer, `did:web:…`. */
  readonly did: string
  /** Holds the DID URL of this receipt key. Its fragment is the RFC 7638 thumbprint of the key. */
  readonly kid: string
  readonly jwk: OkpJwk
}

/** Describes the public part of a receipt key. */
export type PublicReceiptKey = Pick<ReceiptKey, 'did' | 'kid' | 'jwk' | 'publicKeyMultibase'>

/**
 * Holds the older name of the signature algorithm, because programs that verify offer-receipt use jose 5, which does
 * not know the newer name "Ed25519" of RFC 9864.
 */
const ALG = 'EdDSA'

type OkpJwk = { kty: 'OKP'; crv: 'Ed25519'; x: string }

/**
 * Returns the did:web identifier of a service.
 *
 * @param baseUrl is the base URL of `/.well-known/did.json`, such as `https://till.example.com`.
 * @throws TypeError if `baseUrl` is no URL.
 *
 * @example didWeb('http://127.0.0.1:3000') // returns 'did:web:127.0.0.1%3A3000'
 */
export function didWeb(baseUrl: string): string {
  const { host, pathname } = new URL(baseUrl)
  const path = pathname.split('/').filter((segment) => segment !== '')
  // A bare colon separates the parts of a did:web. Therefore encodeURIComponent writes the colon before the port as
  // %3A.
  return ['did:web', encodeURIComponent(host), ...path.map(encodeURIComponent)].join(':')
}

/**
 * Derives a receipt key and the names of the key from a seed.
 *
 * @param seed holds 32 secret bytes, an RFC 8032 private key.
 * @throws RangeError if the seed does not have 32 bytes.
 */
export function receiptKey({ seed, did }: { seed: Uint8Array; did: string }): ReceiptKey {
  if (seed.length !== SEED_BYTES) {
    throw new RangeError(`seed must be ${SEED_BYTES} bytes, not ${seed.length}`)
  }
  const publicKeyHex = bytesToHex(getPublicKey(seed))
  return { seed, publicKeyHex, ...publicReceiptKey({ publicKeyHex, did }) }
}

/**
 * Derives the names of a receipt key from its public key, without the seed.
 *
 * @param publicKeyHex holds the 32 bytes of the public key in hexadecimal.
 */
export function publicReceiptKey({ publicKeyHex, did }: { publicKeyHex: string; did: string }) {
  const publicKey = hexToBytes(publicKeyHex)
  const jwk: OkpJwk = { kty: 'OKP', crv: 'Ed25519', x: base64url(publicKey) }
  // RFC 7638 §3 hashes the required members of a JWK in lexicographic order, without blanks. Canonical JSON has the
  // same form, so the code hashes it.
  const thumbprint = base64url(sha256(new TextEncoder().encode(canonicalJson(jwk))))
  return {
    publicKeyMultibase: `z${base58(Uint8Array.from([...ED25519_CODEC, ...publicKey]))}`,
    did,
    kid: `${did}#${thumbprint}`,
    jwk,
  }
}

/**
 * Writes `/.well-known/jwks.json`: the key set with the public receipt keys. The key set holds no secret.
 *
 * @param keys lists the signing key first, and then the retired keys. The retired keys stay in the list, because
 * clients still check older receipts with them.
 */
export function receiptJwks(keys: readonly PublicReceiptKey[]) {
  return {
    keys: keys.map(({ jwk, kid }) => ({ ...jwk, kid, use: 'sig', alg: ALG })),
  }
}

/**
 * Writes `/.well-known/did.json` and the DID documents of projects, which hold no secret. Each receipt key occurs twice
 * in a DID document: as JsonWebKey2020 and as Multikey. DID Core §5.2.1 allows only one form of the key in each entry.
 * Nevertheless the JsonWebKey2020 entry also has the member `publicKeyMultibase`, because clients expect it in both
 * entries.
 *
 * @param keys lists the same keys as {@link receiptJwks}. All keys in the list have the same DID.
 * @param options.subject is the DID of the DID document. The default is the DID of the keys.
 * @throws RangeError if the list of keys is empty.
 */
export function receiptDidDocument(
  keys: readonly PublicReceiptKey[],
  { subject }: { subject?: string } = {},
) {
  const did = keys[0]?.did
  if (did === undefined) throw new RangeError('keys must not be empty')
  const methods = [
    ...keys.map(({ kid, jwk, publicKeyMultibase }) => ({
      id: kid,
      type: 'JsonWebKey2020',
      controller: did,
      // Each key has the member `alg`, because clients check receipts with the library jose, which refuses an Ed25519
      // key (type OKP) without it.
      publicKeyJwk: { ...jwk, alg: ALG },
      publicKeyMultibase,
    })),
    ...keys.map(({ publicKeyMultibase }) => ({
      id: `${did}#${publicKeyMultibase}`,
      type: 'Multikey',
      controller: did,
      publicKeyMultibase,
    })),
  ]
  return {
    '@context': [
      'https://www.w3.org/ns/did/v1',
      'https://w3id.org/security/suites/jws-2020/v1',
      'https://w3id.org/security/multikey/v1',
    ],
    id: subject ?? did,
    ...(subject === undefined ? {} : { controller: did }),
    verificationMethod: methods,
    assertionMethod: methods.map(({ id }) => id),
  }
}

/** Encodes bytes in base64url without padding (RFC 7515 §2). */
export function base64url(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64url')
}

function base58(bytes: Uint8Array): string {
  let value = BigInt(`0x${bytesToHex(bytes)}`)
  let text = ''
  while (value > 0n) {
    text = BASE58.charAt(Number(value % 58n)) + text
    value /= 58n
  }
  // Base58 encodes leading zero bytes in a special way. The function does not implement it, because the bytes begin
  // with the multicodec prefix, which is not zero.
  return text
}
