import { describe, expect, test } from 'bun:test'
import {
  concatHex,
  domainSeparator,
  encodeAbiParameters,
  getAddress,
  type Hex,
  hashTypedData,
  keccak256,
  parseCompactSignature,
  parseSignature,
  stringToHex,
  toHex,
  zeroAddress,
} from 'viem'
import {
  authorizationDigest,
  authorizationTypedData,
  classifySignature,
  normaliseSignature,
  verifyAuthorization,
} from '../../../shared/till/authorization.ts'
import { USDC_NETWORKS } from '../../../shared/till/usdc.ts'
import { decodePaymentHeader } from '../../../shared/till/x402.ts'
import {
  authorization,
  GROUP_ORDER,
  MAGIC,
  pack,
  payTo,
  requirement,
  SEPOLIA,
} from '../../support/till/headers/payment.ts'
import { SPEC_PAYMENT_HEADER } from '../../support/till/headers/specPayment.ts'

describe('the EIP-712 typed data that the service builds for an authorization equal those of the USDC contract', () => {
  // The expected domain separators were read from DOMAIN_SEPARATOR() of the deployed USDC contracts.
  test.each([
    ['base', '0x02fa7265e7c5d81118673727957699e4d68f74cd74b7db77da710fe8a2c7834f'],
    ['base-sepolia', '0x71f17a3b2ff373b803d70a5a07c046c1a2bc8e89c09ef722fcb047abe94c9818'],
  ] as const)(
    'the EIP-712 domain separator for %s equals that of the deployed USDC contract',
    (network, separator) => {
      const { domain } = authorizationTypedData(authorization, USDC_NETWORKS[network])
      expect(domainSeparator({ domain })).toBe(separator)
    },
  )

  test('the EIP-712 type hash of an authorization equals the type hash in EIP3009.sol', () => {
    const { types, primaryType } = authorizationTypedData(authorization, SEPOLIA)
    const members = types[primaryType].map(({ type, name }) => `${type} ${name}`).join(',')
    expect(keccak256(stringToHex(`${primaryType}(${members})`))).toBe(
      '0x7c7c6cdb67a18743f49ec6fa9b35f50d52ed05cbed4cc592e13b44501c1a2267',
    )
  })

  test.each(['base', 'base-sepolia'] as const)(
    'the EIP-712 digest of an authorization on %s equals the digest that viem computes',
    (name) => {
      const network = USDC_NETWORKS[name]
      const expectSame = (changes: Partial<typeof authorization>) => {
        const changed = { ...authorization, ...changes }
        const data = authorizationTypedData(changed, network)
        expect(authorizationDigest(changed, network)).toBe(hashTypedData(data))
      }
      const random = (size: number) => toHex(crypto.getRandomValues(new Uint8Array(size)))
      for (let n = 0; n < 200; n++) {
        expectSame({
          from: getAddress(random(20)),
          to: getAddress(random(20)),
          value: BigInt(random(7)),
          validAfter: BigInt(random(1 + (n % 32))),
          validBefore: BigInt(random(32)),
          nonce: random(32),
        })
      }
      for (const number of [0n, 1n, 2n ** 256n - 1n]) {
        expectSame({ value: number, validAfter: number, validBefore: number })
      }
      expectSame({ from: zeroAddress, nonce: `0x${'00'.repeat(32)}` })
    },
  )

  test('the EIP-712 digest of an authorization changes if the EIP-712 domain changes', () => {
    const renamed = { ...SEPOLIA, eip712Name: 'USD Coin' }
    const data = authorizationTypedData(authorization, renamed)
    expect(authorizationDigest(authorization, renamed)).toBe(hashTypedData(data))
    expect(authorizationDigest(authorization, SEPOLIA)).not.toBe(hashTypedData(data))
  })

  test('the signature of the example payment in the x402 specification is valid for the service’s typed data', async () => {
    const decoded = decodePaymentHeader(SPEC_PAYMENT_HEADER)
    if (!decoded.ok) throw new Error(decoded.detail)
    const { payload } = decoded
    expect(authorizationDigest(payload.payload.authorization, SEPOLIA)).toBe(
      '0xf256992871671abcb27ff92885a7afa46218724e5fc0bac35d050115aa1d22e6',
    )
    const verdict = await verifyAuthorization({
      payload,
      requirement: { ...requirement, payTo: payload.payload.authorization.to },
      nowS: 1740672100,
    })
    expect(verdict).toEqual({
      kind: 'valid',
      network: SEPOLIA,
      signature: payload.payload.signature,
    })
  })
})

describe('normaliseSignature converts every form of a signature to the form with 65 bytes', () => {
  // The values come from the section Test Cases of EIP-2098, which defines compact signatures.
  test.each([
    [
      '0x68a020a209d3d56c46f38cc50a33f704f4a9a10a59377f8dd762ac66910e9b907e865ad05c4035ab5792787d4a0297a43617ae897930a6fe4d822b8faea52064',
      '0x68a020a209d3d56c46f38cc50a33f704f4a9a10a59377f8dd762ac66910e9b907e865ad05c4035ab5792787d4a0297a43617ae897930a6fe4d822b8faea520641b',
    ],
    [
      '0x9328da16089fcba9bececa81663203989f2df5fe1faa6291a45381c81bd17f76939c6d6b623b42da56557e5e734a43dc83345ddfadec52cbe24d0cc64f550793',
      '0x9328da16089fcba9bececa81663203989f2df5fe1faa6291a45381c81bd17f76139c6d6b623b42da56557e5e734a43dc83345ddfadec52cbe24d0cc64f5507931c',
    ],
  ] as const)(
    'the function normaliseSignature expands the compact signature in test case %# of EIP-2098',
    (short, long) => {
      expect(normaliseSignature(short)).toBe(long)
      expect(parseCompactSignature(short).r).toBe(parseSignature(long).r)
      expect(normaliseSignature(long)).toBe(long)
    },
  )

  const half = (GROUP_ORDER - 1n) / 2n
  test.each<[string, Hex, Hex | null]>([
    ['v 0', pack(1n, 1n, 0), pack(1n, 1n, 27)],
    ['v 1', pack(1n, 1n, 1), pack(1n, 1n, 28)],
    ['v 2', pack(1n, 1n, 2), null],
    ['v 26', pack(1n, 1n, 26), null],
    ['v 29', pack(1n, 1n, 29), null],
    ['v 35 (EIP-155)', pack(1n, 1n, 35), null],
    ['v 255', pack(1n, 1n, 255), null],
    ['the largest low s', pack(1n, half, 27), pack(1n, half, 27)],
    ['the smallest high s', pack(1n, half + 1n, 27), null],
    ['a compact signature with a high s', pack(1n, half + 1n, 0).slice(0, 130) as Hex, null],
    ['63 bytes', `0x${'11'.repeat(63)}`, null],
    ['66 bytes', `0x${'11'.repeat(66)}`, null],
  ])(
    'the normal form of the signature, or null, is returned for %s',
    (_name, signature, normal) => {
      expect(normaliseSignature(signature)).toBe(normal)
    },
  )
})

describe('classifySignature tells whether an ordinary account or a contract wallet made the signature', () => {
  const wrapped = (factory: Hex, data: Hex, inner: Hex) =>
    concatHex([
      encodeAbiParameters(
        [{ type: 'address' }, { type: 'bytes' }, { type: 'bytes' }],
        [factory, data, inner],
      ),
      MAGIC,
    ])

  test('the function classifySignature unwraps an ERC-6492 signature', () => {
    expect(classifySignature(wrapped(payTo, '0xaabb', '0xccdd'))).toEqual({
      kind: 'contract',
      erc6492: { factory: payTo, factoryData: '0xaabb', signature: '0xccdd' },
    })
  })

  test.each<[string, Hex, string]>([
    ['one byte', '0x00', 'malformed'],
    ['64 bytes of high s', `0x${'11'.repeat(32)}7f${'ff'.repeat(31)}`, 'malformed'],
    ['the suffix of ERC-6492 alone', MAGIC, 'malformed'],
    [
      'garbage with the suffix of ERC-6492',
      concatHex([`0x${'ff'.repeat(64)}`, MAGIC]),
      'malformed',
    ],
    ['65 bytes', `0x${'11'.repeat(64)}1b`, 'eoa'],
    ['65 bytes with v of a Safe', `0x${'11'.repeat(64)}1f`, 'contract'],
    ['130 bytes', `0x${'11'.repeat(130)}`, 'contract'],
  ])('a payment signature of %s is classified as %s', (_name, signature, kind) => {
    expect(classifySignature(signature).kind).toBe(kind as never)
  })
})
