/**
 * Tests how a buyer reads the offers in the 402 response of a seller, and which offer a purse (the wallet of the buyer)
 * accepts.
 */
import { describe, expect, test } from 'bun:test'
import { chooseOffer, readChallenge, type SellerChallenge } from '../../../shared/purse/offers.ts'
import { USDC_NETWORKS } from '../../../shared/till/usdc.ts'

const SEPOLIA = USDC_NETWORKS['base-sepolia']
const URL_PAID = 'https://seller.example/weather'
const PAYEE = `0x${'aB'.repeat(20)}`
const PAYER = `0x${'cD'.repeat(20)}`
const V2 = {
  scheme: 'exact',
  network: 'eip155:84532',
  amount: '10000',
  asset: SEPOLIA.usdcAddress as string,
  payTo: PAYEE,
  maxTimeoutSeconds: 60,
}
const { amount, ...SHARED } = V2
const V1 = { ...SHARED, network: 'base-sepolia', maxAmountRequired: amount }
const CHARS_MAX = 32 * 1024

const base64 = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64')
const readBody = (value: unknown) => readChallenge(null, JSON.stringify(value))
const v2 = (changes: object = {}) => ({ x402Version: 2, accepts: [V2], ...changes })
const v1 = (changes: object = {}) => ({ x402Version: 1, accepts: [V1], ...changes })

/** Returns an x402 challenge of version 2 with one offer for each of the given changes. */
const challengeOf = (entries: object[], more: object = {}): SellerChallenge =>
  readBody(v2({ accepts: entries.map((changes) => ({ ...V2, ...changes })), ...more }))!
const choose = (entries: object[], more: object = {}) =>
  chooseOffer(challengeOf(entries, more), { url: URL_PAID, network: SEPOLIA, payer: PAYER })

/**
 * Returns the reason why the purse (wallet) refuses an offer with the given changes, or null if it accepts the offer.
 */
function reasonOf(changes: object, more: object = {}) {
  const chosen = choose([changes], more)
  return chosen.ok ? null : chosen.reason
}

/**
 * Returns the offer that the purse (wallet) accepts from a challenge. Each given change is applied to a valid offer,
 * and makes one offer of the challenge.
 */
function offerOf(entries: object[], more: object = {}) {
  const chosen = choose(entries, more)
  if (!chosen.ok) throw new Error(`refused: ${chosen.reason}`)
  return chosen.offer
}

describe('a buyer reads the x402 challenge from the header or the body of a 402 response, and refuses a malformed challenge', () => {
  test('a buyer reads the challenge from the header of x402 version 2, and from the body only if this header is absent', () => {
    const body = JSON.stringify(v1())
    expect(readChallenge(base64(v2()), body)?.x402Version).toBe(2)
    expect(readChallenge(null, body)?.x402Version).toBe(1)
    for (const header of ['', 'no base64', base64(v1()), base64({})])
      expect([header, readChallenge(header, body)]).toEqual([header, null])
  })

  test('an x402 challenge in the body of a 402 response has version 1 or 2', () => {
    expect(readBody(v1())?.x402Version).toBe(1)
    expect(readBody(v2())?.x402Version).toBe(2)
    for (const value of [null, [], 'text', v1({ x402Version: 3 }), v1({ x402Version: '1' })])
      expect(readBody(value)).toBeNull()
    expect(readChallenge(null, '{')).toBeNull()
    expect(readChallenge(null, '')).toBeNull()
  })

  test('an x402 challenge in the body of a 402 response has at most 32,768 characters', () => {
    const body = JSON.stringify(v1())
    expect(readChallenge(null, body.padEnd(CHARS_MAX))).not.toBeNull()
    expect(readChallenge(null, body.padEnd(CHARS_MAX + 1))).toBeNull()
  })

  test('an x402 challenge in the header of a 402 response has at most 32,768 characters', () => {
    const header = base64(v2())
    expect(readChallenge(header.padEnd(CHARS_MAX, '='), '')).not.toBeNull()
    expect(readChallenge(header.padEnd(CHARS_MAX + 1, '='), '')).toBeNull()
  })

  test('a buyer refuses an x402 challenge with more than 32 offers', () => {
    for (const [make, entry] of [[v1, V1] as const, [v2, V2] as const]) {
      const many = Array.from({ length: 32 }, () => entry)
      expect(readBody(make({ accepts: many }))?.entries).toHaveLength(32)
      expect(readBody(make({ accepts: [...many, entry] }))).toBeNull()
      expect(readBody(make({ accepts: [] }))?.entries).toEqual([])
    }
  })

  test('an offer in an x402 challenge is ignored if it lacks a required member, or if one of its texts has more than 2,048 characters', () => {
    for (const [make, entry] of [[v1, V1] as const, [v2, V2] as const]) {
      for (const member of Object.keys(entry)) {
        const lacking = { ...entry, [member]: undefined }
        expect([member, readBody(make({ accepts: [lacking] }))]).toEqual([member, null])
      }
      expect(readBody(make({ accepts: [{ ...entry, scheme: 'x'.repeat(2_048) }] }))).not.toBeNull()
      expect(readBody(make({ accepts: [{ ...entry, scheme: 'x'.repeat(2_049) }] }))).toBeNull()
    }
  })

  test('if one offer in an x402 challenge cannot be read, the other offers are still read', () => {
    for (const [make, entry] of [[v1, V1] as const, [v2, V2] as const]) {
      const lacking = { ...entry, maxTimeoutSeconds: undefined }
      const read = readBody(make({ accepts: [lacking, null, entry, 'text'] }))
      expect(read?.entries.map(({ raw }) => raw)).toEqual([entry])
    }
  })

  test('the buyer reads the seller’s error message from an x402 challenge', () => {
    for (const make of [v1, v2]) {
      expect(readBody(make({ error: 'no funds' }))?.error).toBe('no funds')
      for (const error of [undefined, null, 7, 'x'.repeat(2_049)])
        expect(readBody(make({ error }))?.error).toBeNull()
    }
  })

  test('each offer in a challenge of x402 version 1 has its own resource and description', () => {
    const words = { resource: URL_PAID, description: 'Weather', extra: { name: 'USDC' } }
    const raw = { ...V1, ...words, outputSchema: null }
    const { entries, ...rest } = readBody(v1({ accepts: [V1, raw], resource: {}, extensions: {} }))!
    expect(rest).toEqual({ x402Version: 1, resource: null, extensions: null, error: null })
    const bare = { ...V2, network: 'base-sepolia' }
    expect(entries).toEqual([
      { ...bare, extra: {}, resource: null, description: null, raw: V1 },
      { ...bare, ...words, raw },
    ])
    const [wrong] = readBody(
      v1({ accepts: [{ ...V1, resource: 7, description: {}, extra: [] }] }),
    )!.entries
    expect(wrong).toMatchObject({ resource: null, description: null, extra: {} })
  })

  test('a challenge of x402 version 2 has one resource, and the payment repeats this resource unchanged', () => {
    const resource = { url: URL_PAID, description: 'Weather', mimeType: 'text/plain' }
    const extensions = { bazaar: { info: 1 } }
    const raw = { ...V2, extra: { name: 'USDC' }, unknown: 1 }
    const { entries, ...rest } = readBody(v2({ accepts: [V2, raw], resource, extensions }))!
    expect(rest).toEqual({ x402Version: 2, resource, extensions, error: null })
    const words = { resource: URL_PAID, description: 'Weather' }
    expect(entries).toEqual([
      { ...V2, extra: {}, ...words, raw: V2 },
      { ...V2, extra: { name: 'USDC' }, ...words, raw },
    ])
  })

  test('a challenge of x402 version 2 is valid without a resource', () => {
    for (const resource of [undefined, null, {}, { url: 7, description: [] }]) {
      const read = readBody(v2({ resource }))!
      expect(read.entries[0]).toMatchObject({ resource: null, description: null })
      expect([read.resource, read.extensions]).toEqual([resource ?? null, null])
    }
    expect(readBody(v2({ resource: 'text' }))?.resource).toBe('text' as never)
  })
})

describe('a purse (wallet) chooses the cheapest offer that it can pay', () => {
  test('the offer that a purse (wallet) chooses has the seller’s terms, with the payee in lower case', () => {
    const extra = { name: 'USDC', version: '2' }
    const resource = { url: URL_PAID, description: 'Weather' }
    const challenge = challengeOf([{ extra }], { resource })
    expect(chooseOffer(challenge, { url: URL_PAID, network: SEPOLIA, payer: PAYER })).toEqual({
      ok: true,
      offer: {
        challenge,
        raw: { ...V2, extra },
        network: SEPOLIA,
        amountAtomic: 10_000n,
        payTo: PAYEE.toLowerCase(),
        windowS: 60,
        resource: URL_PAID,
        description: 'Weather',
      },
    })
  })

  test('a purse (wallet) chooses the cheapest offer, and the first of several equally cheap offers', () => {
    const extra = { n: 1 }
    const offer = offerOf([{ amount: '300' }, { amount: '20', extra }, { amount: '20' }])
    expect(offer.amountAtomic).toBe(20n)
    expect(offer.raw).toMatchObject({ extra })
  })

  test('a purse (wallet) does not choose a cheaper offer on another chain, in another token or with a fault', () => {
    const offer = offerOf([
      ...[
        { amount: '1', network: 'eip155:8453' },
        { amount: '1', asset: PAYEE },
      ],
      ...[{ amount: '1', payTo: PAYER }, { amount: '30' }],
    ])
    expect(offer.amountAtomic).toBe(30n)
  })

  test.each([
    { scheme: 'upto' },
    { network: 'base' },
    { network: 'eip155:1' },
    { asset: PAYEE },
    { extra: { assetTransferMethod: 'permit2' } },
    { extra: { paymentFlow: 'escrow' } },
  ])(
    'a purse does not choose an offer with another scheme, chain, token or payment flow, such as %p',
    (changes) => {
      expect(reasonOf(changes)).toBe('no_offer')
    },
  )

  test.each([
    { network: 'base-sepolia' },
    { asset: V2.asset.toLowerCase() },
    { extra: { assetTransferMethod: 'eip3009' } },
    { extra: { assetTransferMethod: null, paymentFlow: null } },
    { extra: { paymentFlow: 'authorization' } },
    { extra: { paymentFlow: 'upfront' } },
    { extra: { name: null, version: null } },
  ])('a purse accepts an offer with %p', (changes) => {
    expect(reasonOf(changes)).toBeNull()
  })

  test('a purse (wallet) chooses no offer from an x402 challenge without offers', () => {
    expect(choose([])).toEqual({ ok: false, reason: 'no_offer' })
  })
})

describe('a purse (wallet) refuses an offer with a fault, and states the reason', () => {
  test('a purse (wallet) refuses an offer if its `extra.name` or `extra.version` names another token', () => {
    for (const extra of [{ name: 'USD Coin' }, { version: '1' }, { version: 2 }])
      expect(reasonOf({ extra })).toBe('token_mismatch')
  })

  test('a purse (wallet) refuses an offer unless its amount is a whole number above 0 with 1 to 18 digits', () => {
    for (const right of ['1', '9'.repeat(18)]) expect(reasonOf({ amount: right })).toBeNull()
    for (const wrong of ['', '0', '01', '-1', '1.5', '0x10', '1e3', '1'.repeat(19), '1\n'])
      expect([wrong, reasonOf({ amount: wrong })]).toEqual([wrong, 'malformed_challenge'])
  })

  test('a purse (wallet) refuses an offer whose payee is no address', () => {
    for (const payTo of ['', PAYEE.slice(0, -1), `${PAYEE}0`, PAYEE.replace('aB', 'xy')])
      expect([payTo, reasonOf({ payTo })]).toEqual([payTo, 'malformed_challenge'])
  })

  test('a purse (wallet) refuses an offer whose payee is the zero address, the token or the purse itself', () => {
    for (const payTo of [`0x${'0'.repeat(40)}`, SEPOLIA.usdcAddress, PAYER, PAYER.toLowerCase()])
      expect([payTo, reasonOf({ payTo })]).toEqual([payTo, 'bad_payee'])
    expect(reasonOf({ payTo: `0x${'0'.repeat(39)}1` })).toBeNull()
  })

  test('a purse (wallet) refuses an offer that gives less than 15 seconds for the payment, or not a whole number of seconds', () => {
    for (const maxTimeoutSeconds of [14, 0, -60, 15.5, 2 ** 53])
      expect(reasonOf({ maxTimeoutSeconds })).toBe('bad_window')
    const windows = [15, 119, 120, 121, 2 ** 53 - 1].map(
      (maxTimeoutSeconds) => offerOf([{ maxTimeoutSeconds }]).windowS,
    )
    expect(windows).toEqual([15, 119, 120, 120, 120])
  })

  test('a purse (wallet) refuses an offer whose resource is at another host', () => {
    const withUrl = (url: unknown) => reasonOf({}, { resource: { url } })
    for (const url of [
      ...['http://other.example/weather', 'https://seller.example:8443/', 'HTTPS://other.example/'],
      'https://seller.example@other.example/',
    ])
      expect([url, withUrl(url)]).toEqual([url, 'resource_of_another_host'])
    for (const url of [
      ...[URL_PAID, 'http://SELLER.example/other', '/weather', 'mcp://tool/weather', 'https://'],
      ...['weather', null],
    ])
      expect([url, withUrl(url)]).toEqual([url, null])
  })

  test('if every offer has a fault, the purse (wallet) gives the reason for refusing the first offer', () => {
    expect(choose([{ amount: '0' }, { maxTimeoutSeconds: 1 }, { scheme: 'upto' }])).toEqual({
      ok: false,
      reason: 'malformed_challenge',
    })
  })
})
