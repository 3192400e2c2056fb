/** Tests how a buyer judges the offers and receipts that a seller signs. */
import { describe, expect, test } from 'bun:test'
import { CompactSign, exportJWK, generateKeyPair, type JWK } from 'jose'
import { privateKeyToAccount } from 'viem/accounts'
import {
  type FindKey,
  judgeProof,
  keptOffer,
  keptProof,
  type ProofSubject,
  type ProofVerdict,
} from '../../../shared/purse/offerReceipt.ts'

const CAIP2 = 'eip155:84532'
const ASSET = '0x036CbD53842c5426634e7929541eC2318f3dCF7e'
const URL_PAID = 'https://seller.example/weather'
const KID = 'did:web:seller.example#1'
const payee = privateKeyToAccount(`0x${'5e'.repeat(32)}`)
const stranger = privateKeyToAccount(`0x${'6f'.repeat(32)}`)
const keys = await generateKeyPair('EdDSA', { crv: 'Ed25519', extractable: true })
const publicJwk = await exportJWK(keys.publicKey)

const TX = `0x${'aB'.repeat(32)}`
const SUBJECT: ProofSubject = {
  caip2: CAIP2,
  payer: `0x${'aB'.repeat(20)}`,
  payTo: payee.address,
  asset: ASSET,
  amountAtomic: 10_000n,
  signedAt: new Date(1_800_000_000_000),
  transaction: TX,
  resources: ['/weather', URL_PAID],
}
const OFFER = {
  version: 1,
  resourceUrl: URL_PAID,
  scheme: 'exact',
  network: CAIP2,
  asset: ASSET,
  payTo: payee.address,
  amount: '10000',
  validUntil: 1_900_000_000,
}
const RECEIPT = {
  version: 1,
  network: CAIP2,
  resourceUrl: URL_PAID,
  payer: SUBJECT.payer,
  issuedAt: 1_800_000_000,
  transaction: '',
}
const ofHost: FindKey = async () => ({ jwk: publicJwk, isOfHost: true })

/** Signs a payload and returns the signed payload as a compact JWS. */
function jwsOf(payload: unknown, header: object = {}): Promise<string> {
  const bytes = new TextEncoder().encode(
    typeof payload === 'string' ? payload : JSON.stringify(payload),
  )
  return new CompactSign(bytes)
    .setProtectedHeader({ alg: 'EdDSA', kid: KID, ...header })
    .sign(keys.privateKey)
}

const types = (text: string) =>
  text.split(' ').map((name) => ({
    name,
    type: ['version', 'validUntil', 'issuedAt'].includes(name) ? 'uint256' : 'string',
  }))
const TYPES = {
  offer: types('version resourceUrl scheme network asset payTo amount validUntil'),
  receipt: types('version network resourceUrl payer issuedAt transaction'),
}

/** Signs a payload by EIP-712, and returns the proof in its stored form. */
async function typedOf(
  kind: 'offer' | 'receipt',
  message: Record<string, unknown>,
  signer = payee,
): Promise<string> {
  const primaryType = kind === 'offer' ? 'Offer' : 'Receipt'
  const signature = await signer.signTypedData({
    domain: { name: `x402 ${kind}`, version: '1', chainId: 1 },
    types: { [primaryType]: TYPES[kind] },
    primaryType,
    message,
  })
  return keptProof({ format: 'eip712', payload: message, signature })!
}

const judge = (kind: 'offer' | 'receipt', kept: string, findKey = ofHost, subject = SUBJECT) =>
  judgeProof(kind, kept, { subject, findKey })

/** Makes the same changes to a JWS payload and to an EIP-712 payload, and returns the verdicts on both proofs. */
const judgeBoth = async (kind: 'offer' | 'receipt', changes: object, subject = SUBJECT) => {
  const payload = { ...(kind === 'offer' ? OFFER : RECEIPT), ...changes }
  return [
    await judge(kind, await jwsOf(payload), ofHost, subject),
    await judge(kind, await typedOf(kind, payload), ofHost, subject),
  ]
}
const BOTH_VALID: ProofVerdict[] = ['valid', 'valid']
const BOTH_MISMATCH: ProofVerdict[] = ['mismatch', 'mismatch']

describe('the service stores a signed offer or receipt of a seller only if it is short, and stores null in place of anything else', () => {
  test('a signed proof in JWS form is stored as its text, with at most 8,192 characters', () => {
    expect(keptProof({ format: 'jws', signature: 'a.b.c' })).toBe('a.b.c')
    expect(keptProof({ signature: 'a.b.c', more: 1 })).toBe('a.b.c')
    expect(keptProof({ signature: 'x'.repeat(8_192) })).toHaveLength(8_192)
    expect(keptProof({ signature: 'x'.repeat(8_193) })).toBeNull()
  })

  test('a signed proof in EIP-712 form is stored as JSON, with at most 8,192 characters', () => {
    const signature = `0x${'aF'.repeat(65)}`
    const proof = { format: 'eip712', signature, payload: { a: '' } }
    expect(keptProof({ ...proof, more: 1 })).toBe(JSON.stringify(proof))
    const rest = 8_192 - JSON.stringify(proof).length
    expect(keptProof({ ...proof, payload: { a: 'x'.repeat(rest) } })).toHaveLength(8_192)
    expect(keptProof({ ...proof, payload: { a: 'x'.repeat(rest + 1) } })).toBeNull()
  })

  test('a value that is no signed offer or receipt is stored as null', () => {
    const signature = `0x${'aF'.repeat(65)}`
    for (const value of [
      ...[null, undefined, 'a.b.c', {}, { signature: 7 }, { format: 'other', signature: 'a.b.c' }],
      { format: 'eip712', signature },
      { format: 'eip712', signature, payload: null },
      { format: 'eip712', signature: `${signature}0`, payload: {} },
      { format: 'eip712', signature: signature.slice(0, -1), payload: {} },
    ])
      expect([value, keptProof(value)]).toEqual([value, null])
  })
})

describe('the service calls a signed receipt valid only if it matches the payment', () => {
  test('a signed receipt is valid for its chain, resource and payer, even if the letter case of the payer’s address differs', async () => {
    expect(await judgeBoth('receipt', {})).toEqual(BOTH_VALID)
    expect(await judgeBoth('receipt', { payer: SUBJECT.payer.toLowerCase() })).toEqual(BOTH_VALID)
    expect(await judgeBoth('receipt', { resourceUrl: '/weather' })).toEqual(BOTH_VALID)
  })

  test.each([
    { network: 'eip155:8453' },
    { resourceUrl: `${URL_PAID}/x` },
    { payer: payee.address },
  ])('a signed receipt is a mismatch if the payment differs in %p', async (changes) => {
    expect(await judgeBoth('receipt', changes)).toEqual(BOTH_MISMATCH)
  })

  test('a signed receipt is valid if it names the transaction of the settlement, and was signed after the payment', async () => {
    expect(await judgeBoth('receipt', { transaction: TX.toLowerCase() })).toEqual(BOTH_VALID)
    expect(await judgeBoth('receipt', { issuedAt: 1_799_999_940 })).toEqual(BOTH_VALID)
    expect(await judgeBoth('receipt', { issuedAt: 1_900_000_000 })).toEqual(BOTH_VALID)
  })

  test.each([
    { transaction: `0x${'cd'.repeat(32)}` },
    { issuedAt: 1_799_999_939 },
    { issuedAt: 0 },
  ])('a receipt from before the payment gets the verdict mismatch: %p', async (changes) => {
    expect(await judgeBoth('receipt', changes)).toEqual(BOTH_MISMATCH)
  })

  test('a receipt gets the verdict mismatch if it names a transaction, but the settlement names no transaction', async () => {
    const subject = { ...SUBJECT, transaction: null }
    expect(await judgeBoth('receipt', {}, subject)).toEqual(BOTH_VALID)
    expect(await judgeBoth('receipt', { transaction: TX }, subject)).toEqual(BOTH_MISMATCH)
  })

  test.each<[ProofVerdict, object]>([
    ['valid', { amount: '10000', payTo: payee.address.toLowerCase(), asset: ASSET.toLowerCase() }],
    ['mismatch', { amount: '9999' }],
    ['mismatch', { amount: 10_000 }],
    ['mismatch', { payTo: stranger.address }],
    ['mismatch', { asset: stranger.address }],
    ['mismatch', { issuedAt: undefined }],
    ['mismatch', { issuedAt: '1800000000' }],
  ])('a receipt in JWS form is %s with the members %p', async (verdict, changes) => {
    expect(await judge('receipt', await jwsOf({ ...RECEIPT, ...changes }))).toBe(verdict)
  })

  test('a signed receipt does not count as an offer, and a signed offer does not count as a receipt', async () => {
    expect(await judge('offer', await jwsOf(RECEIPT))).toBe('mismatch')
    expect(await judge('receipt', await jwsOf(OFFER))).toBe('mismatch')
    expect(await judge('offer', await typedOf('receipt', RECEIPT))).toBe('invalid')
    expect(await judge('receipt', await typedOf('offer', OFFER))).toBe('invalid')
  })
})

describe('the service calls a signed offer valid only if it matches the payment', () => {
  test('a signed offer is valid for its chain, resource, token, payee and price, even if the letter case of an address differs', async () => {
    expect(await judgeBoth('offer', {})).toEqual(BOTH_VALID)
    const lower = { asset: ASSET.toLowerCase(), payTo: payee.address.toLowerCase() }
    expect(await judgeBoth('offer', lower)).toEqual(BOTH_VALID)
  })

  test.each([
    { network: 'eip155:8453' },
    { resourceUrl: 'https://other.example/weather' },
    { scheme: 'upto' },
    { asset: stranger.address },
    { payTo: stranger.address },
    { amount: '10001' },
    { amount: '010000' },
  ])('a signed offer is a mismatch if the payment differs in %p', async (changes) => {
    expect(await judgeBoth('offer', changes)).toEqual(BOTH_MISMATCH)
  })
})

describe('the service calls a signed offer a mismatch if the offer had expired at the time of the payment', () => {
  test.each([1_800_000_000, 0])(
    'an offer is still valid in the second of its validUntil: %p',
    async (validUntil) => {
      expect(await judgeBoth('offer', { validUntil })).toEqual(BOTH_VALID)
    },
  )

  test.each([1_799_999_999, 1])(
    'an offer that had expired before the payment gets the verdict mismatch: %p',
    async (validUntil) => {
      expect(await judgeBoth('offer', { validUntil })).toEqual(BOTH_MISMATCH)
    },
  )

  test.each<[ProofVerdict, object]>([
    ['valid', { validUntil: undefined }],
    ['valid', { issuedAt: 1_799_999_940, maxTimeoutSeconds: 60 }],
    ['valid', { issuedAt: 1_700_000_000, maxTimeoutSeconds: 0 }],
    ['valid', { issuedAt: 0, maxTimeoutSeconds: 60 }],
    ['mismatch', { issuedAt: 1_799_999_939, maxTimeoutSeconds: 60 }],
    ['mismatch', { validUntil: '1900000000' }],
  ])('an offer in JWS form is %s with the members %p', async (verdict, changes) => {
    expect(await judge('offer', await jwsOf({ ...OFFER, ...changes }))).toBe(verdict)
  })
})

describe('the service calls an EIP-712 proof valid only if the payee signed exactly this payload', () => {
  test('a text that only begins like an EIP-712 proof is judged as invalid without an error, because the payment is already made', async () => {
    for (const signature of ['{', '{}', '{"payload":7}', '{"signature":"0x"}'])
      expect([signature, await judge('receipt', keptProof({ signature })!)]).toEqual([
        signature,
        'invalid',
      ])
  })

  test('an EIP-712 proof is valid only if the payee signed it', async () => {
    expect(await judge('receipt', await typedOf('receipt', RECEIPT, stranger))).toBe('other_signer')
    const subject = { ...SUBJECT, payTo: payee.address.toLowerCase() }
    expect(await judge('offer', await typedOf('offer', OFFER), ofHost, subject)).toBe('valid')
  })

  test('the signature of an EIP-712 proof covers every member of the payload', async () => {
    for (const kind of ['offer', 'receipt'] as const) {
      const proof = JSON.parse(await typedOf(kind, kind === 'offer' ? OFFER : RECEIPT))
      const changed = { ...proof, payload: { ...proof.payload, version: 2 } }
      expect(await judge(kind, keptProof(changed)!)).toBe('other_signer')
    }
  })

  test('an EIP-712 proof is invalid if its payload has a wrong member or its signature is all zeros', async () => {
    const proof = JSON.parse(await typedOf('receipt', RECEIPT))
    const judged = (changes: object) => judge('receipt', JSON.stringify({ ...proof, ...changes }))
    for (const change of [
      ...[{ transaction: undefined }, { version: -1 }, { version: 1.5 }, { issuedAt: -1 }],
      ...[{ issuedAt: '7' }, { payer: 'x'.repeat(2_049) }],
    ])
      expect(await judged({ payload: { ...RECEIPT, ...change } })).toBe('invalid')
    expect(await judged({ payload: { ...RECEIPT, version: 0 } })).toBe('other_signer')
    expect(await judged({ payload: { ...RECEIPT, issuedAt: 0 } })).toBe('mismatch')
    expect(await judged({ signature: `0x${'00'.repeat(65)}` })).toBe('invalid')
    const offer = JSON.parse(await typedOf('offer', OFFER))
    for (const change of [{ validUntil: -1 }, { version: -1 }, { amount: 10_000 }]) {
      const changed = JSON.stringify({ ...offer, payload: { ...OFFER, ...change } })
      expect(await judge('offer', changed)).toBe('invalid')
    }
  })
})

describe('the service calls a JWS valid only if a key of the resource’s host signed it', () => {
  test('the key that signed a JWS is found by the `kid` in its header', async () => {
    const asked: string[] = []
    const findKey: FindKey = async (kid) => {
      asked.push(kid)
      return ofHost(kid)
    }
    expect(await judge('receipt', await jwsOf(RECEIPT), findKey)).toBe('valid')
    const longest = 'k'.repeat(2_048)
    expect(await judge('receipt', await jwsOf(RECEIPT, { kid: longest }), findKey)).toBe('valid')
    expect(asked).toEqual([KID, longest])
  })

  test('a JWS must be signed with a key that belongs to the host of the resource', async () => {
    const findKey: FindKey = async () => ({ jwk: publicJwk, isOfHost: false })
    expect(await judge('receipt', await jwsOf(RECEIPT), findKey)).toBe('other_signer')
    const other = await jwsOf({ ...RECEIPT, payer: payee.address })
    expect(await judge('receipt', other, findKey)).toBe('mismatch')
  })

  test('the key of a JWS is looked up only if the header has an `alg` and a `kid` of at most 2,048 characters', async () => {
    const findKey: FindKey = () => Promise.reject(new Error('a key was looked for'))
    const [, payload, signature] = (await jwsOf(RECEIPT)).split('.')
    const withHeader = (header: object) =>
      `${Buffer.from(JSON.stringify(header)).toString('base64url')}.${payload}.${signature}`
    for (const kept of [
      await jwsOf(RECEIPT, { kid: undefined }),
      await jwsOf(RECEIPT, { kid: 'k'.repeat(2_049) }),
      withHeader({ kid: KID }),
      ...['no jws', ''],
    ])
      expect([kept, await judge('receipt', kept, findKey)]).toEqual([kept, 'invalid'])
  })

  test('a JWS stays unchecked if its key is not found or does not match the algorithm', async () => {
    const kept = await jwsOf(RECEIPT)
    expect(await judge('receipt', kept, async () => null)).toBe('unchecked')
    const broken: FindKey = async () => ({ jwk: { kty: 'OKP' } as JWK, isOfHost: true })
    expect(await judge('receipt', kept, broken)).toBe('unchecked')
  })

  test('a JWS that is signed with a symmetric key is invalid', async () => {
    const secret = new Uint8Array(32).fill(7)
    const kept = await new CompactSign(new TextEncoder().encode(JSON.stringify(RECEIPT)))
      .setProtectedHeader({ alg: 'HS256', kid: KID })
      .sign(secret)
    const jwk = { kty: 'oct', k: Buffer.from(secret).toString('base64url') }
    const findKey: FindKey = async () => ({ jwk, isOfHost: true })
    expect(await judge('receipt', kept, findKey)).toBe('invalid')
  })

  test('the signature of a JWS covers the exact bytes of the payload, which must be JSON', async () => {
    const [header, , signature] = (await jwsOf(RECEIPT)).split('.')
    const [, payload] = (await jwsOf({ ...RECEIPT, transaction: '0x1' })).split('.')
    expect(await judge('receipt', `${header}.${payload}.${signature}`)).toBe('invalid')
    expect(await judge('receipt', await jwsOf('{"network"'))).toBe('invalid')
    expect(await judge('receipt', await jwsOf('null'))).toBe('mismatch')
  })
})

describe('of several signed offers in a 402 response, the service stores one that matches the payment', () => {
  const PRICE = {
    payTo: payee.address.toLowerCase(),
    amountAtomic: 10_000n,
    network: { caip2: 'eip155:84532', usdcAddress: ASSET },
  } as const
  const extensions = (offers: unknown) => ({ 'offer-receipt': { info: { offers } } })
  const kept = (offers: unknown) => keptOffer(extensions(offers), PRICE)
  const asJws = (payload: unknown) =>
    `e30.${Buffer.from(JSON.stringify(payload)).toString('base64url')}.AA`

  test('of several signed offers, the service stores the first offer with the right price, payee, chain and token', async () => {
    const [first, ...others] = [
      { ...OFFER, validUntil: 7 },
      { ...OFFER, amount: '10001' },
      { ...OFFER, payTo: stranger.address },
      { ...OFFER, network: 'eip155:8453' },
      { ...OFFER, asset: stranger.address },
    ].map((payload) => ({ signature: asJws(payload) }))
    const typed = await typedOf('offer', OFFER)
    expect(kept([...others, first, JSON.parse(typed)])).toBe(first!.signature)
    expect(kept([...others, JSON.parse(typed), first])).toBe(typed)
  })

  test('if no signed offer has the right price, the service stores the first of the signed offers', () => {
    const dear = { signature: asJws({ ...OFFER, amount: '10001' }) }
    const other = { signature: asJws({ ...OFFER, payTo: stranger.address }) }
    expect(kept([dear, other])).toBe(dear.signature)
    expect(kept([{}, { signature: 'no jws' }, other])).toBe('no jws')
  })

  test('the service stores no signed offer if the 402 response has no signed offer, or more than 32 of them', () => {
    expect(kept([])).toBeNull()
    expect(kept([null, {}])).toBeNull()
    expect(kept(undefined)).toBeNull()
    for (const value of [null, undefined, {}, { 'offer-receipt': {} }, { 'offer-receipt': null }])
      expect(keptOffer(value, PRICE)).toBeNull()
    const many = Array.from({ length: 32 }, () => ({ signature: asJws(OFFER) }))
    expect(kept(many)).toBe(asJws(OFFER))
    expect(kept([...many, {}])).toBeNull()
  })
})
