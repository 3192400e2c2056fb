import { describe, expect, test } from 'bun:test'
import { type Hex, keccak256, recoverAddress, serializeSignature, toHex } from 'viem'
import { generatePrivateKey, privateKeyToAccount, sign } from 'viem/accounts'
import { hasLibsecp256k1, signerOf } from '../../../shared/till/signer.ts'
import { GROUP_ORDER } from '../../support/till/headers/payment.ts'

/** Holds the prime of the finite field of the curve secp256k1. */
const FIELD = 2n ** 256n - 2n ** 32n - 977n

const RANDOM_SIGNATURES = 2_000

const word = (value: bigint) => value.toString(16).padStart(64, '0')
const pack = (r: bigint, s: bigint, v: number): Hex =>
  `0x${word(r)}${word(s)}${v.toString(16).padStart(2, '0')}`
const randomHash = () => keccak256(generatePrivateKey())
const randomWord = () => BigInt(generatePrivateKey())

const byViem = (hash: Hex, signature: Hex) => recoverAddress({ hash, signature }).catch(() => null)

async function expectSame(hash: Hex, signature: Hex) {
  const signer = await byViem(hash, signature)
  const ours = await signerOf(hash, signature)
  if (ours !== signer) throw new Error(`${signature} of ${hash}: ${ours}, viem finds ${signer}`)
  return signer
}

async function signed() {
  const privateKey = generatePrivateKey()
  const hash = randomHash()
  const { r, s, v } = await sign({ hash, privateKey })
  const { address } = privateKeyToAccount(privateKey)
  return { address, hash, r: BigInt(r), s: BigInt(s), v: Number(v) }
}

describe('the service recovers the same signer from a signature as viem', () => {
  test.if(process.platform === 'linux' && process.arch === 'x64')(
    'on Linux x64, the service recovers the signer of a signature with the library libsecp256k1',
    () => {
      expect(hasLibsecp256k1).toBe(true)
    },
  )

  test(`for ${RANDOM_SIGNATURES} random signatures, the service and viem recover the same signer`, async () => {
    for (let n = 0; n < RANDOM_SIGNATURES; n++) {
      const { address, hash, r, s, v } = await signed()
      const signer = await signerOf(hash, pack(r, s, v))
      if (signer !== address) throw new Error(`${pack(r, s, v)} of ${hash}: ${signer}`)
      // For about half of the random values of r, the curve has no point with this x coordinate, so no public key can
      // be recovered from the signature.
      await expectSame(hash, pack(randomWord(), s, v))
    }
  })

  test('for a high s value in a signature, the service and viem recover the same signer', async () => {
    const { address, hash, r, s, v } = await signed()
    expect(await expectSame(hash, pack(r, GROUP_ORDER - s, v === 27 ? 28 : 27))).toBe(address)
    expect(await expectSame(hash, pack(r, GROUP_ORDER - s, v))).not.toBe(address)
  })

  test('for every value of a signature’s last byte, the service and viem recover the same signer', async () => {
    const { address, hash, r, s, v } = await signed()
    for (let byte = 0; byte < 256; byte++) {
      const signer = await expectSame(hash, pack(r, s, byte))
      expect(signer !== null).toBe([0, 1, 27, 28].includes(byte))
      if (byte % 27 === v - 27 && byte < 29) expect(signer).toBe(address)
    }
  })

  test('for r and s values at the edges of their ranges, the service and viem recover the same signer', async () => {
    const { hash, r, s } = await signed()
    const edges = [
      0n,
      1n,
      2n,
      GROUP_ORDER / 2n,
      GROUP_ORDER / 2n + 1n,
      GROUP_ORDER - 1n,
      GROUP_ORDER,
      GROUP_ORDER + 1n,
      FIELD - GROUP_ORDER,
      FIELD - 1n,
      FIELD,
      FIELD + 1n,
      2n ** 256n - 1n,
    ]
    for (const v of [27, 28]) {
      for (const edge of edges) {
        for (const other of edges) await expectSame(hash, pack(edge, other, v))
        await expectSame(hash, pack(edge, s, v))
        await expectSame(hash, pack(r, edge, v))
      }
    }
    for (const bad of [0n, GROUP_ORDER, GROUP_ORDER + 1n, 2n ** 256n - 1n]) {
      expect(await signerOf(hash, pack(bad, s, 27))).toBeNull()
      expect(await signerOf(hash, pack(r, bad, 27))).toBeNull()
    }
  })

  test('for digests near 0 and near the group order of the curve, the service and viem recover the same signer', async () => {
    const { r, s, v } = await signed()
    for (const digest of [
      0n,
      1n,
      GROUP_ORDER - 1n,
      GROUP_ORDER,
      GROUP_ORDER + 1n,
      2n ** 256n - 1n,
    ]) {
      await expectSame(`0x${word(digest)}`, pack(r, s, v))
    }
  })

  test('if the key that is recovered from a signature is the point at infinity, the signer is null', async () => {
    // With R = kG, k = 1 and s = digest, the recovered public key is (sR - zG) / r = 0, so there is no signer.
    const r = 0x79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798n
    for (const v of [27, 28]) {
      const digest = BigInt(randomHash()) % GROUP_ORDER
      await expectSame(`0x${word(digest)}`, pack(r, digest, v))
    }
    // The y coordinate of the generator point G is even, so the recovery value v of the signature is 27.
    expect(await signerOf(`0x${word(5n)}`, pack(r, 5n, 27))).toBeNull()
  })

  test('for malformed signatures and digests, and for unusual spellings of valid ones, the service and viem recover the same signer', async () => {
    const { address, hash, r, s, v } = await signed()
    const signature = pack(r, s, v)
    const upper: Hex = `0x${signature.slice(2).toUpperCase()}`
    expect(await expectSame(hash, upper)).toBe(address)
    const yParity = v - 27
    const spelled = serializeSignature({
      r: toHex(r, { size: 32 }),
      s: toHex(s, { size: 32 }),
      yParity,
    })
    expect(await expectSame(hash, spelled)).toBe(address)
    const compact: Hex = `0x${word(r)}${word(s + (BigInt(yParity) << 255n))}`
    const forms: Hex[] = [
      '0x',
      '0x00',
      compact,
      `${signature}00`,
      `${compact}0`,
      signature.slice(0, -1) as Hex,
      signature.slice(0, -2) as Hex,
      `0x00${signature.slice(2)}`,
      `0X${signature.slice(2)}` as string as Hex,
      `0x${'zz'.repeat(65)}`,
      `${signature.slice(0, -1)}g` as Hex,
      `${signature}\n` as Hex,
      signature.slice(2) as Hex,
      `0x${'ab'.repeat(4096)}`,
    ]
    for (const form of forms) await expectSame(hash, form)
    const digests: Hex[] = [
      '0x',
      '0x12',
      `${hash}00`,
      hash.slice(0, -2) as Hex,
      hash.slice(0, -1) as Hex,
    ]
    for (const digest of digests) await expectSame(digest, signature)
    await expectSame(hash.toUpperCase().replace('0X', '0x') as Hex, signature)
  })
})
