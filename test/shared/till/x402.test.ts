import { describe, expect, test } from 'bun:test'
import {
  buildChallenge,
  challengeSchema,
  decodePaymentHeader,
  encodePaymentResponse,
  PAYMENT_HEADER_CHARS_MAX,
  parsePaymentPayload,
} from '../../../shared/till/x402.ts'
import { SPEC_PAYMENT, SPEC_PAYMENT_HEADER } from '../../support/till/specPayment.ts'

const encode = (value: unknown) =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64')

/** The example payment of the x402 specification with one member set, or deleted by `undefined`. */
function changed(path: string, value: unknown): unknown {
  const payment = structuredClone(SPEC_PAYMENT)
  const names = path.split('.')
  const last = names.pop() ?? ''
  let parent = payment as Record<string, unknown>
  for (const name of names) parent = parent[name] as Record<string, unknown>
  parent[last] = value
  return payment
}

describe('buildChallenge', () => {
  const parameters = {
    network: 'base-sepolia',
    amountAtomic: 10_000n,
    resource: 'https://api.example.com/premium-data',
    payTo: '0x209693bc6afc0c5328ba36faf03c514ef312287c',
  } as const

  test('is the body of the x402 specification', () => {
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

  test('has every member that v1 clients require, and no null', () => {
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

describe('decodePaymentHeader', () => {
  test('reads the example header of the x402 specification', () => {
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

  test('addresses, nonce and signature are normalised to one spelling', () => {
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
    ['empty', ''],
    ['not base64', '%%%'],
    ['blank inside', `${SPEC_PAYMENT_HEADER.slice(0, 8)} ${SPEC_PAYMENT_HEADER.slice(8)}`],
    ['line end', `${SPEC_PAYMENT_HEADER}\n`],
    ['no padding', encode('{"a":1}').replace(/=+$/, '')],
    ['too much padding', `${encode('{}')}=`],
    ['bits after the end', 'e31='],
    ['URL alphabet', encode({ a: '~~~???' }).replaceAll('+', '-').replaceAll('/', '_')],
    ['not UTF-8', Buffer.from([0x22, 0xff, 0x22]).toString('base64')],
    ['not JSON', encode('hello')],
    ['cut JSON', encode('{"x402Version":1')],
    ['nested deep', encode('['.repeat(6000))],
    ['null', encode('null')],
    ['array', encode('[]')],
    ['number', encode('1')],
    ['string', encode('"x"')],
    ['empty object', encode('{}')],
    ['too long', 'A'.repeat(PAYMENT_HEADER_CHARS_MAX + 4)],
    ['far too long', 'A'.repeat(4_000_000)],
  ])('invalid_payload: %s', (_name, header) => {
    expect(decodePaymentHeader(header)).toMatchObject({ ok: false, reason: 'invalid_payload' })
  })

  test.each<[string, string, unknown, string]>([
    ['version 3', 'x402Version', 3, 'invalid_x402_version'],
    ['version 2 in the form of version 1', 'x402Version', 2, 'invalid_payload'],
    ['version as text', 'x402Version', '1', 'invalid_payload'],
    ['scheme upto', 'scheme', 'upto', 'unsupported_scheme'],
    ['no scheme', 'scheme', undefined, 'invalid_payload'],
    ['scheme as object', 'scheme', {}, 'invalid_payload'],
    ['no network', 'network', undefined, 'invalid_payload'],
    ['no payload', 'payload', undefined, 'invalid_payload'],
    ['no signature', 'payload.signature', undefined, 'invalid_payload'],
    ['odd signature', 'payload.signature', '0x123', 'invalid_payload'],
    ['empty signature', 'payload.signature', '0x', 'invalid_payload'],
    ['huge signature', 'payload.signature', `0x${'00'.repeat(5000)}`, 'invalid_payload'],
    ['short address', 'payload.authorization.from', '0x12', 'invalid_payload'],
    ['value as number', 'payload.authorization.value', 10000, 'invalid_payload'],
    ['value with exponent', 'payload.authorization.value', '1e4', 'invalid_payload'],
    ['value with point', 'payload.authorization.value', '1.0', 'invalid_payload'],
    ['negative value', 'payload.authorization.value', '-1', 'invalid_payload'],
    ['value of 19 digits', 'payload.authorization.value', '1'.repeat(19), 'invalid_payload'],
    ['value in hex', 'payload.authorization.value', '0x2710', 'invalid_payload'],
    ['time above uint256', 'payload.authorization.validBefore', '9'.repeat(78), 'invalid_payload'],
    ['NUL in time', 'payload.authorization.validAfter', '1\u0000', 'invalid_payload'],
    ['nonce of 31 bytes', 'payload.authorization.nonce', `0x${'ab'.repeat(31)}`, 'invalid_payload'],
    ['authorization as array', 'payload.authorization', [], 'invalid_payload'],
  ])('%s', (_name, path, value, reason) => {
    expect(decodePaymentHeader(encode(changed(path, value)))).toMatchObject({ ok: false, reason })
  })

  test('another version or scheme is named even if its inner shape is unknown', () => {
    expect(parsePaymentPayload({ x402Version: 3, accepted: {} })).toMatchObject({
      reason: 'invalid_x402_version',
    })
    expect(parsePaymentPayload({ x402Version: 1, scheme: 'deferred', payload: 7 })).toMatchObject({
      reason: 'unsupported_scheme',
    })
  })

  test('unknown members are dropped', () => {
    const more = { ...(changed('payload.extra', 1) as object), extra: 'x'.repeat(1000) }
    expect(parsePaymentPayload(more)).toEqual(decodePaymentHeader(SPEC_PAYMENT_HEADER))
  })

  test('2,000 mutated headers neither throw nor hang', () => {
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

describe('encodePaymentResponse', () => {
  const decode = (header: string) => JSON.parse(atob(header))

  test('success holds the receipt where offer-receipt expects it', () => {
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

  test('is ASCII for any members: clients decode with atob', () => {
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
