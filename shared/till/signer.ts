/**
 * Finds the signer of an ECDSA signature. The library libsecp256k1 recovers an address in 0.07 ms, and viem in 0.7 ms.
 * On a platform without a build of libsecp256k1, the code uses viem.
 */

import { createRequire } from 'node:module'
import { keccak_256 } from '@noble/hashes/sha3.js'
import { type Address, getAddress, type Hex, recoverAddress } from 'viem'

type Secp256k1 = {
  /** Recovers the public key of a signature. @throws if no public key fits the signature. */
  ecdsaRecover(
    signature: Uint8Array,
    recoveryBit: number,
    digest: Uint8Array,
    compressed: false,
  ): Uint8Array
}

const require = createRequire(import.meta.url)
const secp256k1 = loadSecp256k1()

function loadSecp256k1(): Secp256k1 | null {
  try {
    // The code loads the native build of the package secp256k1 directly, because the package's main file would silently
    // use slower JavaScript if the native build were missing.
    return require('secp256k1/bindings.js')
  } catch {
    return null
  }
}

/** Tells whether libsecp256k1 runs on this platform. */
export const hasLibsecp256k1 = secp256k1 !== null

const DIGEST = /^0x[0-9a-fA-F]{64}$/
const SIGNATURE = /^0x[0-9a-fA-F]{130}$/

/** Maps each value of a signature's last byte (v) to the recovery bit. */
const RECOVERY_BIT: Readonly<Record<number, number>> = { 0: 0, 1: 1, 27: 0, 28: 1 }

/**
 * Returns the address that signed a digest, with the same result as viem's `recoverAddress`.
 *
 * @param signature is a signature of 65 bytes. The last byte v of the signature is 0, 1, 27 or 28. The function accepts
 * a signature with a high s.
 * @returns null where viem would throw an error: the signature is malformed, r or s is out of range, or no point on the
 * curve fits.
 */
export async function signerOf(digest: Hex, signature: Hex): Promise<Address | null> {
  try {
    if (secp256k1 === null || !DIGEST.test(digest) || !SIGNATURE.test(signature)) {
      return await recoverAddress({ hash: digest, signature })
    }
    const bytes = Buffer.from(signature.slice(2), 'hex')
    const recoveryBit = RECOVERY_BIT[bytes[64]!]
    if (recoveryBit === undefined) return null
    const hash = Buffer.from(digest.slice(2), 'hex')
    const key = secp256k1.ecdsaRecover(bytes.subarray(0, 64), recoveryBit, hash, false)
    // An address is the last 20 bytes of the hash of a public key's two coordinates. The hash leaves out the key's
    // first byte, which tells only the format of the key.
    return getAddress(`0x${Buffer.from(keccak_256(key.subarray(1))).toString('hex', 12)}`)
  } catch {
    return null
  }
}
