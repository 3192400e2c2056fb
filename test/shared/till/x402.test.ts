import { describe, expect, test } from 'bun:test'
import {
  buildChallenge,
  challengeSchema,
  decodePaymentHeader,
  encodePaymentResponse,
  PAYMENT_HEADER_CHARS_MAX,
  parsePaymentPayload,
} from '../../../shared/till/x402.ts'
import { SPEC_PAYMENT, SPEC_PAYMENT_HEADER } from '../../support/till/headers/specPayment.ts'

const encode = (value: unknown) =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64')

/**
 * Returns the example payment of the x402 specification with one member set, or with the member deleted if the value is
 * `undefined`.
 */
function changed(path: string, value: unknown): unknown {
  const payment = structuredClone(SPEC_PAYMENT)
  const names = path.split('.')
  const last = names.pop() ?? ''
  let parent = payment as Record<string, unknown>
  for (const name of names) parent = parent[name] as Record<string, unknown>
  parent[last] = value
  return payment
}

describe('buildChallenge makes an x402 challenge that every x402 client can read', () => {
  const parameters = {
    network: 'base-sepolia',
    amountAtomic: 10_000n,
    resource: 'https://api.example.com/premium-data',
    payTo: '0x209693bc6afc0c5328ba36faf03c514ef312287c',
  } as const

  test('buildChallenge writes the example body of the x402 specification', () => {
    expect(
      buildChallenge({
        ...parameters,
        description: 'Access to premium market data',
        mimeType: 'application/json',
      }),
    ).toEqual({
      x402Version: 1,
      error: 'X-PAYMENT header is required',
      accepts: [
        {
          scheme: 'exact',
          network: 'base-sepolia',
          maxAmountRequired: '10000',
          resource: 'https://api.example.com/premium-data',
          description: 'Access to premium market data',
          mimeType: 'application/json',
          payTo: '0x209693Bc6afc0C5328bA36FaF03C514EF312287C',
          maxTimeoutSeconds: 120,
          asset: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
          extra: { name: 'USDC', version: '2' },
        },
      ],
    })
  })

  test('buildChallenge writes every member that clients of x402 version 1 require, and never null', () => {
    const challenge = buildChallenge({
      ...parameters,
      network: 'base',
      error: 'insufficient_funds',
    })
    expect(challenge.error).toBe('insufficient_funds')
    expect(challenge.accepts[0]).toMatchObject({
      description: '',
      mimeType: '',
      extra: { name: 'USD Coin', version: '2' },
    })
    expect(JSON.stringify(challenge)).not.toContain('null')
    expect(challengeSchema.parse(JSON.parse(JSON.stringify(challenge)))).toEqual(challenge)
  })
})

describe('decodePaymentHeader reads an x402 payment header, or tells what is wrong with it', () => {
  test('decodePaymentHeader reads the example header of the x402 specification', () => {
    const decoded = decodePaymentHeader(SPEC_PAYMENT_HEADER)
    expect(decoded).toEqual({
      ok: true,
      payload: {
        x402Version: 1,
        scheme: 'exact',
        network: 'base-sepolia',
        payload: {
          signature: SPEC_PAYMENT.payload.signature,
          authorization: {
            from: '0x857b06519E91e3A54538791bDbb0E22373e36b66',
            to: '0x209693Bc6afc0C5328bA36FaF03C514EF312287C',
            value: 10000n,
            validAfter: 1740672089n,
            validBefore: 1740672154n,
            nonce: '0xf3746613c2d920b5fdabc0856f2aeb2d4f88ee6037b8cc5d04a71a4462f13480',
          },
        },
      },
    })
  })

  test('decodePaymentHeader normalises the spelling of addresses, nonces and signatures', () => {
    const upper = (hex: string) => `0x${hex.slice(2).toUpperCase()}`
    const { signature, authorization } = SPEC_PAYMENT.payload
    const loud = changed('payload', {
      signature: upper(signature),
      authorization: {
        ...authorization,
        nonce: upper(authorization.nonce),
        from: upper(authorization.from),
        to: authorization.to.toLowerCase(),
      },
    })
    expect(parsePaymentPayload(loud)).toEqual(decodePaymentHeader(SPEC_PAYMENT_HEADER))
  })

  test.each<[string, string]>([
    ['an empty header', ''],
    ['text that is not base64', '%%%'],
    ['a blank inside', `${SPEC_PAYMENT_HEADER.slice(0, 8)} ${SPEC_PAYMENT_HEADER.slice(8)}`],
    ['a line end', `${SPEC_PAYMENT_HEADER}\n`],
    ['base64 without padding', encode('{"a":1}').replace(/=+$/, '')],
    ['base64 with too much padding', `${encode('{}')}=`],
    ['base64 with bits after the end', 'e31='],
    [
      'base64 in the URL alphabet',
      encode({ a: '~~~???' }).replaceAll('+', '-').replaceAll('/', '_'),
    ],
    ['bytes that are not UTF-8', Buffer.from([0x22, 0xff, 0x22]).toString('base64')],
    ['text that is not JSON', encode('hello')],
    ['cut JSON', encode('{"x402Version":1')],
    ['deeply nested JSON', encode('['.repeat(6000))],
    ['null', encode('null')],
    ['an array', encode('[]')],
    ['a number', encode('1')],
    ['a string', encode('"x"')],
    ['an empty object', encode('{}')],
    ['a header that is too long', 'A'.repeat(PAYMENT_HEADER_CHARS_MAX + 4)],
    ['a header of 4 MB', 'A'.repeat(4_000_000)],
  ])('decodePaymentHeader refuses %s as invalid_payload', (_name, header) => {
    expect(decodePaymentHeader(header)).toMatchObject({ ok: false, reason: 'invalid_payload' })
  })

  test.each<[string, string, unknown, string]>([
    ['version 3', 'x402Version', 3, 'invalid_x402_version'],
    ['version 2 in the form of version 1', 'x402Version', 2, 'invalid_payload'],
    ['a version as text', 'x402Version', '1', 'invalid_payload'],
    ['the scheme upto', 'scheme', 'upto', 'unsupported_scheme'],
    ['no scheme', 'scheme', undefined, 'invalid_payload'],
    ['a scheme as object', 'scheme', {}, 'invalid_payload'],
    ['no network', 'network', undefined, 'invalid_payload'],
    ['no payload', 'payload', undefined, 'invalid_payload'],
    ['no signature', 'payload.signature', undefined, 'invalid_payload'],
    ['a signature with an odd number of digits', 'payload.signature', '0x123', 'invalid_payload'],
    ['an empty signature', 'payload.signature', '0x', 'invalid_payload'],
    [
      'a signature of 5,000 bytes',
      'payload.signature',
      `0x${'00'.repeat(5000)}`,
      'invalid_payload',
    ],
    ['a short address', 'payload.authorization.from', '0x12', 'invalid_payload'],
    ['a value as number', 'payload.authorization.value', 10000, 'invalid_payload'],
    ['a value with exponent', 'payload.authorization.value', '1e4', 'invalid_payload'],
    ['a value with a point', 'payload.authorization.value', '1.0', 'invalid_payload'],
    ['a negative value', 'payload.authorization.value', '-1', 'invalid_payload'],
    ['a value of 19 digits', 'payload.authorization.value', '1'.repeat(19), 'invalid_payload'],
    ['a value in hexadecimal digits', 'payload.authorization.value', '0x2710', 'invalid_payload'],
    [
      'a time above uint256',
      'payload.authorization.validBefore',
      '9'.repeat(78),
      'invalid_payload',
    ],
    ['NUL in a time', 'payload.authorization.validAfter', '1\u0000', 'invalid_payload'],
    [
      'a nonce of 31 bytes',
      'payload.authorization.nonce',
      `0x${'ab'.repeat(31)}`,
      'invalid_payload',
    ],
    ['an authorization as array', 'payload.authorization', [], 'invalid_payload'],
  ])('decodePaymentHeader refuses a payment with %s', (_name, path, value, reason) => {
    expect(decodePaymentHeader(encode(changed(path, value)))).toMatchObject({ ok: false, reason })
  })

  test('decodePaymentHeader reports an unsupported version or scheme, even if it cannot read the other members', () => {
    expect(parsePaymentPayload({ x402Version: 3, accepted: {} })).toMatchObject({
      reason: 'invalid_x402_version',
    })
    expect(parsePaymentPayload({ x402Version: 1, scheme: 'deferred', payload: 7 })).toMatchObject({
      reason: 'unsupported_scheme',
    })
  })

  test('decodePaymentHeader leaves out unknown members', () => {
    const more = { ...(changed('payload.extra', 1) as object), extra: 'x'.repeat(1000) }
    expect(parsePaymentPayload(more)).toEqual(decodePaymentHeader(SPEC_PAYMENT_HEADER))
  })

  test('decodePaymentHeader neither throws nor hangs on 2,000 randomly changed headers', () => {
    let seed = 1
    const random = (below: number) => {
      seed = (seed * 48271) % 2147483647
      return seed % below
    }
    for (let round = 0; round < 2000; round++) {
      const bytes = Buffer.from(SPEC_PAYMENT_HEADER, random(2) === 0 ? 'utf8' : 'base64')
      for (let flips = random(8); flips >= 0; flips--) bytes[random(bytes.length)] = random(256)
      const header = random(2) === 0 ? bytes.toString('base64') : bytes.toString('latin1')
      expect(typeof decodePaymentHeader(header).ok).toBe('boolean')
    }
  })
})

test('a payment header has at most 16,384 characters', () => {
  const ofLength = (length: number) => 'A'.repeat(length)
  expect(decodePaymentHeader(ofLength(16_384))).toMatchObject({
    ok: false,
    detail: 'header is not UTF-8 JSON',
  })
  expect(decodePaymentHeader(ofLength(16_388))).toMatchObject({
    ok: false,
    detail: 'header is longer than 16384 characters',
  })
})

describe('encodePaymentResponse writes the settlement header in base64', () => {
  const decode = (header: string) => JSON.parse(atob(header))

  test('encodePaymentResponse puts a successful payment’s receipt into the x402 extension offer-receipt', () => {
    const response = {
      success: true,
      transaction: `0x${'ab'.repeat(32)}`,
      network: 'base-sepolia',
      payer: SPEC_PAYMENT.payload.authorization.from,
    } as const
    expect(decode(encodePaymentResponse(response))).toEqual(response)
    expect(decode(encodePaymentResponse({ ...response, receiptJws: 'a.b.c' }))).toEqual({
      ...response,
      extensions: { 'offer-receipt': { info: { receipt: { format: 'jws', signature: 'a.b.c' } } } },
    })
  })

  test('encodePaymentResponse returns ASCII even if a member contains other characters, because clients decode the header with atob', () => {
    const header = encodePaymentResponse({
      success: false,
      errorReason: 'insufficient_funds',
      transaction: '',
      network: 'base',
      payer: 'zürich 😀',
    })
    expect(/^[A-Za-z0-9+/]+=*$/.test(header)).toBe(true)
    expect(decode(header).payer).toBe('zürich 😀')
  })
})
