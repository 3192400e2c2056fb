import { expect, test } from 'bun:test'
import { sign, verify } from '@noble/ed25519'
import { signEd25519 } from '../../../shared/till/ed25519.ts'
import { receiptKey } from '../../../shared/till/receiptKey.ts'

const hex = (text: string) => Buffer.from(text, 'hex')

/** Holds the seeds, messages and signatures of the tests 1 to 3 in RFC 8032 §7.1. */
const VECTORS = [
  [
    '9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60',
    '',
    'e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b',
  ],
  [
    '4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb',
    '72',
    '92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00',
  ],
  [
    'c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7',
    'af82',
    '6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a',
  ],
] as const

test('Ed25519 signatures equal the test vectors of RFC 8032', () => {
  for (const [seed, message, signature] of VECTORS) {
    expect(signEd25519(hex(message), hex(seed)).toString('hex')).toBe(signature)
  }
})

test('Ed25519 signatures equal the signatures of @noble/ed25519, and @noble/ed25519 accepts them', () => {
  // The call of receiptKey also sets the hash function that @noble/ed25519 needs.
  receiptKey({ seed: new Uint8Array(32).fill(1), did: 'did:web:localhost' })
  for (let n = 0; n < 200; n++) {
    const seed = crypto.getRandomValues(new Uint8Array(32))
    const message = crypto.getRandomValues(new Uint8Array(n * 7))
    const signature = signEd25519(message, seed)
    expect(signature.equals(sign(message, seed))).toBe(true)
    // The second call of signEd25519 uses the private key that the first call has stored in the cache, and must make
    // the same signature.
    expect(signEd25519(message, seed).equals(signature)).toBe(true)
  }
  const [seed, message, signature] = VECTORS[1]
  const publicKey = hex('3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c')
  expect(seed).toHaveLength(64)
  expect(verify(hex(signature), hex(message), publicKey)).toBe(true)
})
