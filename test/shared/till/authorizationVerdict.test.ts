import { describe, expect, test } from 'bun:test'
import { concatHex, encodeAbiParameters, type Hex } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { authorizationTypedData, verifyAuthorization } from '../../../shared/till/authorization.ts'
import type { UsdcNetwork } from '../../../shared/till/usdc.ts'
import type {
  Authorization,
  PaymentPayload,
  PaymentRequirements,
} from '../../../shared/till/x402.ts'
import {
  authorization,
  compact,
  highS,
  MAGIC,
  NOW_S,
  pack,
  payer,
  payment,
  payTo,
  requirement,
  SEPOLIA,
  split,
  withSignature,
} from '../../support/till/headers/payment.ts'

describe('verifyAuthorization tells whether a signed payment is valid, and returns its signature in the normal form', () => {
  type Case = { payload?: PaymentPayload; requirement?: Partial<PaymentRequirements> }
  const judge = async ({ payload, requirement: changes }: Case) =>
    verifyAuthorization({
      payload: payload ?? (await payment()),
      requirement: { ...requirement, ...changes },
      nowS: NOW_S,
    })

  test('a signed payment is valid in every form of its signature, and the signature is returned in its normal form', async () => {
    const payload = await payment()
    const { signature } = payload.payload
    const { r, s, v } = split(signature)
    for (const spelling of [signature, pack(r, s, v - 27), compact(signature)]) {
      const verdict = await judge({ payload: withSignature(payload, spelling) })
      expect(verdict).toEqual({ kind: 'valid', network: SEPOLIA, signature })
    }
    // The same address in upper case and lower case counts as one address, so this requirement is accepted.
    const lower = { payTo: payTo.toLowerCase(), asset: requirement.asset.toLowerCase() }
    expect((await judge({ requirement: lower })).kind).toBe('valid')
  })

  test.each<[string, Partial<Authorization>]>([
    ['that ends in exactly 6 s', { validBefore: BigInt(NOW_S + 6) }],
    ['that began a second ago', { validAfter: BigInt(NOW_S - 1) }],
    ['that never ends', { validAfter: 0n, validBefore: 2n ** 256n - 1n }],
  ])('an authorization with a time window %s is valid', async (_name, changes) => {
    expect((await judge({ payload: await payment(changes) })).kind).toBe('valid')
  })

  test.each<[string, Partial<Authorization>, string]>([
    [
      'a value above the price',
      { value: 10_001n },
      'invalid_exact_evm_payload_authorization_value',
    ],
    ['a value below the price', { value: 9_999n }, 'invalid_exact_evm_payload_authorization_value'],
    ['a value of zero', { value: 0n }, 'invalid_exact_evm_payload_authorization_value'],
    ['another recipient', { to: payer.address }, 'invalid_exact_evm_payload_recipient_mismatch'],
    [
      'an end in the past',
      { validBefore: BigInt(NOW_S - 1) },
      'invalid_exact_evm_payload_authorization_valid_before',
    ],
    [
      'an end in 5 s',
      { validBefore: BigInt(NOW_S + 5) },
      'invalid_exact_evm_payload_authorization_valid_before',
    ],
    [
      'a start in the future',
      { validAfter: BigInt(NOW_S + 1) },
      'invalid_exact_evm_payload_authorization_valid_after',
    ],
    [
      'a start in this second',
      { validAfter: BigInt(NOW_S) },
      'invalid_exact_evm_payload_authorization_valid_after',
    ],
  ])('an authorization with %s is invalid', async (_name, changes, reason) => {
    const verdict = await judge({ payload: await payment(changes) })
    expect(verdict).toEqual({ kind: 'invalid', reason: reason as never })
  })

  test.each<[string, Partial<PaymentPayload>, Partial<PaymentRequirements>, string]>([
    ['the scheme upto', { scheme: 'upto' }, {}, 'unsupported_scheme'],
    ['a requirement of another scheme', {}, { scheme: 'upto' }, 'unsupported_scheme'],
    ['a payload of another network', { network: 'base' }, {}, 'invalid_network'],
    ['a requirement of another network', {}, { network: 'base' }, 'invalid_network'],
    ['an unknown network on both sides', { network: 'sei' }, { network: 'sei' }, 'invalid_network'],
    [
      'a network named like a prototype member',
      { network: 'toString' },
      { network: 'toString' },
      'invalid_network',
    ],
    [
      'a CAIP-2 network name in version 1',
      { network: 'eip155:84532' },
      { network: 'eip155:84532' },
      'invalid_network',
    ],
    ['another token', {}, { asset: payTo }, 'invalid_payment_requirements'],
    [
      'a price of zero',
      {},
      { maxAmountRequired: '0' },
      'invalid_exact_evm_payload_authorization_value',
    ],
  ])('a payment with %s is invalid', async (_name, payload, changes, reason) => {
    const verdict = await judge({
      payload: { ...(await payment()), ...payload },
      requirement: changes,
    })
    expect(verdict).toEqual({ kind: 'invalid', reason: reason as never })
  })

  test('a payment is invalid if payer and payee are the same address', async () => {
    const verdict = await judge({
      payload: await payment({ to: payer.address }),
      requirement: { payTo: payer.address },
    })
    expect(verdict).toEqual({ kind: 'invalid', reason: 'invalid_payment' })
  })

  test('a payment is checked with the EIP-712 domain of its USDC network, and not with the domain in the seller’s payment requirement', async () => {
    const wrong = { ...SEPOLIA, eip712Name: 'USD Coin' }
    const verdict = await judge({
      payload: await payment({}, wrong),
      requirement: { extra: { name: 'USD Coin', version: '2' } },
    })
    expect(verdict).toMatchObject({ reasonWithoutCode: 'invalid_exact_evm_payload_signature' })
  })

  const wrongDomains: [string, UsdcNetwork][] = [
    ['wrong name', { ...SEPOLIA, eip712Name: 'USD Coin' }],
    ['wrong version', { ...SEPOLIA, eip712Version: '1' }],
    ['wrong chain', { ...SEPOLIA, chainId: 8453 }],
    ['wrong contract', { ...SEPOLIA, usdcAddress: payTo }],
  ]
  test.each(wrongDomains)(
    'a payment signed for the %s is invalid, unless a contract wallet accepts the signature',
    async (_n, domain) => {
      expect(await judge({ payload: await payment({}, domain) })).toMatchObject({
        kind: 'contract',
        erc6492: null,
        reasonWithoutCode: 'invalid_exact_evm_payload_signature',
      })
    },
  )

  const signatures: [string, (signature: Hex) => Hex, string][] = [
    ['a high s', highS, 'invalid_exact_evm_payload_signature'],
    [
      'v 29',
      (signature) => `${signature.slice(0, -2)}1d` as Hex,
      'invalid_exact_evm_payload_signature',
    ],
    ['65 zero bytes', () => `0x${'00'.repeat(65)}`, 'invalid_exact_evm_payload_signature'],
    [
      'r above the field',
      () => `0x${'ff'.repeat(32)}${'01'.repeat(32)}1b`,
      'invalid_exact_evm_payload_signature',
    ],
    [
      'a flipped bit',
      (signature) => pack(split(signature).r ^ 1n, split(signature).s, split(signature).v),
      'invalid_exact_evm_payload_signature',
    ],
    [
      'one byte after its 65 bytes',
      (signature) => `${signature}00`,
      'invalid_exact_evm_payload_undeployed_smart_wallet',
    ],
    [
      'the signatures of two owners',
      (signature) => concatHex([signature, signature]),
      'invalid_exact_evm_payload_undeployed_smart_wallet',
    ],
    [
      'the form of ERC-6492',
      (signature) =>
        concatHex([
          encodeAbiParameters(
            [{ type: 'address' }, { type: 'bytes' }, { type: 'bytes' }],
            [payTo, '0x01', signature],
          ),
          MAGIC,
        ]),
      'eip6492_factory_not_allowed',
    ],
  ]
  test.each(signatures)(
    'a payment signature with %s is invalid, unless a contract wallet accepts it',
    async (_name, change, reason) => {
      const payload = await payment()
      const verdict = await judge({
        payload: withSignature(payload, change(payload.payload.signature)),
      })
      expect(verdict).toMatchObject({ kind: 'contract', reasonWithoutCode: reason })
    },
  )

  test('an ERC-6492 signature is unwrapped, and the result also names the factory that deploys the payer’s wallet', async () => {
    const payload = await payment()
    const inner = payload.payload.signature
    const change = signatures.at(-1)?.[1]
    const verdict = await judge({ payload: withSignature(payload, change?.(inner) ?? '0x') })
    expect(verdict).toMatchObject({
      signature: inner,
      erc6492: { factory: payTo, factoryData: '0x01', signature: inner },
    })
  })

  test.each<[string, (signature: Hex) => Hex]>([
    ['an empty signature', () => '0x'],
    ['a signature of two bytes', () => '0x1234'],
    [
      'a compact signature that recovers another payer',
      (signature) => compact(highS(highS(signature))).replace(/..$/, '00') as Hex,
    ],
    ['a signature with garbage of ERC-6492', (signature) => concatHex([signature, MAGIC])],
  ])('a payment with %s is invalid for every kind of wallet', async (_name, change) => {
    const payload = await payment()
    const verdict = await judge({
      payload: withSignature(payload, change(payload.payload.signature)),
    })
    expect(verdict).toEqual({ kind: 'invalid', reason: 'invalid_exact_evm_payload_signature' })
  })

  test('a payment signed with another key is invalid, unless a contract wallet may accept the signature', async () => {
    const stranger = privateKeyToAccount(`0x${'42'.repeat(32)}`)
    const payload = await payment()
    const signature = await stranger.signTypedData(authorizationTypedData(authorization, SEPOLIA))
    expect((await judge({ payload: withSignature(payload, signature) })).kind).toBe('contract')
  })
})
