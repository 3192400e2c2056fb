/** Tests the wire format of x402 version 2. */
import { describe, expect, test } from 'bun:test'
import { receiptKey } from '../../../shared/till/receiptKey.ts'
import { usdcNetworkOf } from '../../../shared/till/usdc.ts'
import {
  buildChallenge,
  decodePaymentHeader,
  encodePaymentResponse,
  type PaymentRequirements,
  parsePaymentPayload,
  wireReason,
} from '../../../shared/till/x402.ts'
import { encodePaymentRequired } from '../../../shared/till/x402v2.ts'
import { payTo } from '../../support/till/headers/payment.ts'
import { SPEC_PAYMENT, SPEC_PAYMENT_HEADER } from '../../support/till/headers/specPayment.ts'

const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64')
const decode = (header: string) => JSON.parse(atob(header))
const key = receiptKey({ seed: new Uint8Array(32).fill(7), did: 'did:web:till.example.com' })

/** Holds the example payment of the x402 specification of version 1, written in the form of version 2. */
const PAYMENT = {
  x402Version: 2,
  accepted: { scheme: 'exact', network: 'eip155:84532', amount: '10000', extra: null },
  payload: SPEC_PAYMENT.payload,
  resource: { url: 'https://api.example.com/a', description: 'a' },
  extensions: { 'payment-identifier': { info: { required: false, id: 'order_0123456789' } } },
}

describe('parsePaymentPayload reads a payment of either x402 version, or tells what is wrong with it', () => {
  test('parsePaymentPayload reads the same payment from both x402 versions', () => {
    const v1 = decodePaymentHeader(SPEC_PAYMENT_HEADER)
    if (!v1.ok) throw new Error(v1.detail)
    expect(decodePaymentHeader(encode(PAYMENT))).toEqual({
      ok: true,
      payload: {
        ...v1.payload,
        x402Version: 2,
        resourceUrl: 'https://api.example.com/a',
        paymentIdentifier: 'order_0123456789',
      },
    })
  })

  test.each<[string, object]>([
    ['no resource', { resource: undefined }],
    ['a resource that is null', { resource: null, extensions: null }],
    ['a resource as text', { resource: 'https://a.example' }],
    ['a resource without a URL', { resource: { url: 7 } }],
    ['a URL that is too long', { resource: { url: `https://a.example/${'a'.repeat(3_000)}` } }],
  ])('a payment with %s is accepted, and its resource counts as unnamed', (_name, changes) => {
    const parsed = parsePaymentPayload({ ...PAYMENT, ...changes })
    expect(parsed.ok && parsed.payload.resourceUrl).toBeUndefined()
    expect(parsed.ok).toBe(true)
  })

  test.each<[string, object, string]>([
    ['no `accepted`', { accepted: undefined }, 'invalid_payload'],
    ['`accepted` as text', { accepted: 'exact' }, 'invalid_payload'],
    ['the form of version 1', { accepted: undefined, scheme: 'exact' }, 'invalid_payload'],
    ['no network', { accepted: { scheme: 'exact' } }, 'invalid_payload'],
    [
      'the scheme batch-settlement',
      { accepted: { scheme: 'batch-settlement' } },
      'unsupported_scheme',
    ],
    [
      'the scheme upto',
      { accepted: { scheme: 'upto', network: 'eip155:1' } },
      'unsupported_scheme',
    ],
    [
      'an authorization of Permit2',
      { payload: { signature: '0x12', permit2Authorization: {} } },
      'unsupported_payload_type',
    ],
    ['no payload', { payload: null }, 'invalid_payload'],
    ['a version as text', { x402Version: '2' }, 'invalid_payload'],
    ['version 3', { x402Version: 3 }, 'invalid_x402_version'],
    [
      'an identifier of 15 characters',
      { extensions: { 'payment-identifier': { info: { id: 'a'.repeat(15) } } } },
      'invalid_payload',
    ],
    [
      'an identifier with a blank',
      { extensions: { 'payment-identifier': { info: { id: `${'a'.repeat(16)} b` } } } },
      'invalid_payload',
    ],
  ])('a payment with %s is refused', (_name, changes, reason) => {
    expect(parsePaymentPayload({ ...PAYMENT, ...changes })).toMatchObject({ ok: false, reason })
  })

  test('parsePaymentPayload neither throws nor hangs on 2,000 randomly changed headers', () => {
    let seed = 1
    const random = (below: number) => {
      seed = (seed * 48271) % 2147483647
      return seed % below
    }
    const header = encode(PAYMENT)
    for (let round = 0; round < 2000; round++) {
      const bytes = Buffer.from(header, random(2) === 0 ? 'utf8' : 'base64')
      for (let flips = random(8); flips >= 0; flips--) bytes[random(bytes.length)] = random(256)
      const mutated = random(2) === 0 ? bytes.toString('base64') : bytes.toString('latin1')
      expect(typeof decodePaymentHeader(mutated).ok).toBe('boolean')
    }
  })
})

describe('encodePaymentRequired writes the challenge of x402 version 2 into a header', () => {
  const offer = (changes: { resource?: string; description?: string; mimeType?: string } = {}) => ({
    error: 'PAYMENT-SIGNATURE header is required',
    requirement: buildChallenge({
      network: 'base',
      amountAtomic: 10_000n,
      resource: 'https://api.example.com/a',
      payTo,
      ...changes,
    }).accepts[0] as PaymentRequirements,
  })

  test('if the service has a key for signing receipts, the x402 challenge includes a signed offer', () => {
    const signed = decode(encodePaymentRequired(offer(), key, 1_000))
    const [one] = signed.extensions['offer-receipt'].info.offers
    const [, payload] = one.signature.split('.')
    expect(JSON.parse(Buffer.from(payload, 'base64url').toString())).toEqual({
      version: 1,
      resourceUrl: 'https://api.example.com/a',
      scheme: 'exact',
      network: 'eip155:8453',
      asset: signed.accepts[0].asset,
      payTo,
      amount: '10000',
      validUntil: 1_120,
    })
    const unsigned = decode(encodePaymentRequired(offer(), null, 1_000))
    expect(Object.keys(unsigned.extensions)).toEqual(['payment-identifier'])
    expect(unsigned.accepts).toEqual(signed.accepts)
  })

  test.each<[string, { resource?: string; description?: string; mimeType?: string }]>([
    ['a description of 500 letters', { description: 'x'.repeat(500) }],
    ['a description of 500 two-byte letters', { description: 'ü'.repeat(500) }],
    ['a description of 250 emoji', { description: '😀'.repeat(250) }],
    ['a media type of 255 letters', { mimeType: 'x'.repeat(255), description: 'ü'.repeat(500) }],
    ['a URL of about 1,000 letters', { resource: `https://a.example/${'a'.repeat(980)}` }],
  ])(
    'a PAYMENT-REQUIRED header for an offer with %s stays below 3 kB and keeps its price',
    (_name, changes) => {
      const header = encodePaymentRequired(offer(changes), key, 1_000)
      expect(header.length).toBeLessThan(3_000)
      const { resource, accepts } = decode(header)
      expect([resource.url, accepts.length]).toEqual([
        changes.resource ?? 'https://api.example.com/a',
        1,
      ])
    },
  )
})

test('the settlement response writes the network name and the failure reason in the form of the payment’s x402 version', () => {
  const failure = {
    success: false,
    transaction: '',
    network: 'base',
    payer: payTo,
    errorReason: 'invalid_exact_evm_payload_authorization_value',
  } as const
  expect(decode(encodePaymentResponse(failure, 1))).toEqual(failure)
  expect(decode(encodePaymentResponse(failure, 2))).toEqual({
    ...failure,
    network: 'eip155:8453',
    errorReason: 'invalid_exact_evm_payload_authorization_value_mismatch',
  })
  expect(wireReason('insufficient_funds', 2)).toBe('insufficient_funds')
})

test('an x402 network is found by its plain name and by its CAIP-2 name', () => {
  expect(usdcNetworkOf('base')?.chainId).toBe(8453)
  expect(usdcNetworkOf('eip155:84532')?.network).toBe('base-sepolia')
  for (const name of ['eip155:1', 'eip155:*', 'Base', '', 'constructor', '__proto__']) {
    expect(usdcNetworkOf(name)).toBeUndefined()
  }
})
