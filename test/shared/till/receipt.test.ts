import { describe, expect, test } from 'bun:test'
import { createPublicKey, verify as nodeVerify } from 'node:crypto'
import { sign } from '@noble/ed25519'
import { compactVerify, createLocalJWKSet } from 'jose'
import { canonicalJson } from '../../../shared/canonicalJson.ts'
import {
  type ReceiptBody,
  receiptSchema,
  receiptText,
  signReceipt,
  verifyReceipt,
} from '../../../shared/till/receipt.ts'
import {
  didWeb,
  receiptDidDocument,
  receiptJwks,
  receiptKey,
} from '../../../shared/till/receiptKey.ts'

const DID = 'did:web:till.example.com'
const seed = (byte: number) => new Uint8Array(32).fill(byte)
const signing = receiptKey({ seed: seed(1), did: DID })
const retired = receiptKey({ seed: seed(2), did: DID })
const stranger = receiptKey({ seed: seed(3), did: DID })
const trustedKeys = [signing, retired]

const body: ReceiptBody = {
  version: 1,
  paymentId: 'pay_1',
  paymentInId: 'pay_1',
  endpointId: 'se_1',
  projectId: 'prj_1',
  identityId: 'prj_1',
  payerAddress: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8',
  recipientAddress: '0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC',
  amountUsdcRaw: '10000',
  network: 'base-sepolia',
  resource: 'https://api.example.com/ü',
  txHash: `0x${'ab'.repeat(32)}`,
  timestamp: '2026-01-02T03:04:05.678Z',
}
const receipt = signReceipt({ body, key: signing })

test('signReceipt makes the same signatures as the library @noble/ed25519', () => {
  for (let n = 0; n < 50; n++) {
    const key = receiptKey({ seed: crypto.getRandomValues(new Uint8Array(32)), did: DID })
    const own = { ...body, paymentId: `pay_${n}`, endpointId: n % 2 === 0 ? null : `se_${n}` }
    const { signature, jws } = signReceipt({ body: own, key })
    const bySecond = (text: string) => Buffer.from(sign(Buffer.from(text), key.seed))
    expect(signature).toBe(bySecond(canonicalJson(own)).toString('base64'))
    const [header, payload, signed] = jws.split('.')
    expect(signed).toBe(bySecond(`${header}.${payload}`).toString('base64url'))
  }
})

describe('receiptKey makes the private key that signs receipts, and the public key in each published format', () => {
  test('a receipt key has the public key and the thumbprint of the example in RFC 8037 appendix A', () => {
    const key = receiptKey({
      seed: Buffer.from('nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A', 'base64url'),
      did: DID,
    })
    expect(key.jwk.x).toBe('11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo')
    expect(key.kid).toBe(`${DID}#kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k`)
  })

  test('the multibase form of a receipt key equals the W3C did:key test vectors for Ed25519', () => {
    const key = receiptKey({ seed: new Uint8Array(32), did: DID })
    expect(key.publicKeyMultibase).toBe('z6MkiTBz1ymuepAQ4HEHYSF1H8quG5GLVVQR3djdX3mDooWp')
  })

  test.each([0, 31, 33, 64])('a seed of %p bytes is refused as a receipt key', (length) => {
    expect(() => receiptKey({ seed: new Uint8Array(length), did: DID })).toThrow(RangeError)
  })

  test.each([
    ['https://till.example.com', 'did:web:till.example.com'],
    ['https://till.example.com/', 'did:web:till.example.com'],
    ['https://till.example.com:8443', 'did:web:till.example.com%3A8443'],
    ['http://127.0.0.1:3000', 'did:web:127.0.0.1%3A3000'],
    ['https://example.com/a/b/', 'did:web:example.com:a:b'],
  ])('the base URL %s becomes the DID %s', (baseUrl, did) => {
    expect(didWeb(baseUrl)).toBe(did)
  })
})

describe('the key documents that the service publishes contain every key that verifies its receipts', () => {
  test('the published key documents contain every public receipt key, with the present signing key first, and no secret key', () => {
    const keys = [signing, retired]
    const jwks = receiptJwks(keys)
    expect(jwks.keys.map(({ kid }) => kid)).toEqual([signing.kid, retired.kid])
    expect(jwks.keys[0]).toEqual({ ...signing.jwk, kid: signing.kid, use: 'sig', alg: 'EdDSA' })
    const document = receiptDidDocument(keys)
    expect(document.id).toBe(DID)
    const multikeys = keys.map((key) => `${DID}#${key.publicKeyMultibase}`)
    expect(document.assertionMethod).toEqual([signing.kid, retired.kid, ...multikeys])
    expect(document.verificationMethod[1] as object).toEqual({
      id: retired.kid,
      type: 'JsonWebKey2020',
      controller: DID,
      publicKeyJwk: { ...retired.jwk, alg: 'EdDSA' },
      publicKeyMultibase: retired.publicKeyMultibase,
    })
    expect(document.verificationMethod[2]).toEqual({
      id: `${DID}#${signing.publicKeyMultibase}`,
      type: 'Multikey',
      controller: DID,
      publicKeyMultibase: signing.publicKeyMultibase,
    })
    const text = JSON.stringify([jwks, document])
    for (const key of keys) {
      expect(text).not.toContain(Buffer.from(key.seed).toString('base64url'))
      expect(text).not.toContain('"d"')
    }
  })

  test('an attempt to publish no receipt key at all throws a RangeError', () => {
    expect(() => receiptDidDocument([])).toThrow(RangeError)
  })
})

describe('signReceipt signs the receipt of a payment, so that other libraries can verify it', () => {
  test('a signed receipt has the members that docs/contract.md §6 lists', () => {
    expect(receipt).toEqual({
      body,
      signature: expect.any(String),
      alg: 'Ed25519',
      publicKeyHex: signing.publicKeyHex,
      publicKey: signing.publicKeyMultibase,
      did: DID,
      jws: expect.any(String),
    })
    expect(receiptSchema.parse(JSON.parse(receiptText(receipt)))).toEqual(receipt)
  })

  test('node:crypto accepts the signature over the canonical JSON of a receipt', () => {
    const key = createPublicKey({ key: signing.jwk, format: 'jwk' })
    const signature = Buffer.from(receipt.signature, 'base64')
    expect(nodeVerify(null, Buffer.from(canonicalJson(body)), key, signature)).toBe(true)
  })

  test('the library jose accepts a receipt’s JWS with the published key set, and its payload is an x402 offer-receipt', async () => {
    const keySet = createLocalJWKSet(receiptJwks([retired, signing]))
    const { payload, protectedHeader } = await compactVerify(receipt.jws, keySet)
    expect(protectedHeader).toEqual({ alg: 'EdDSA', kid: signing.kid })
    expect(JSON.parse(new TextDecoder().decode(payload))).toEqual({
      version: 1,
      type: 'payment',
      network: 'eip155:84532',
      resourceUrl: body.resource,
      payer: body.payerAddress,
      issuedAt: 1767323045,
      transaction: body.txHash,
      paymentId: 'pay_1',
      projectId: 'prj_1',
      endpointId: 'se_1',
      payTo: body.recipientAddress,
      amount: '10000',
      asset: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
    })
  })

  test('if the receipt for a payment is signed again, it has exactly the same bytes', () => {
    const shuffled = Object.fromEntries(Object.entries(body).toReversed()) as ReceiptBody
    expect(receiptText(signReceipt({ body: shuffled, key: signing }))).toBe(receiptText(receipt))
  })

  test.each<[string, object]>([
    ['an amount with a point', { amountUsdcRaw: '0.01' }],
    ['a time without milliseconds', { timestamp: '2026-01-02T03:04:05Z' }],
    ['another member', { note: 'x' }],
    ['an unknown network', { network: 'sei' }],
  ])('signReceipt throws an error for a receipt with %s', (_name, changes) => {
    expect(() => signReceipt({ body: { ...body, ...changes }, key: signing })).toThrow()
  })
})

describe('verifyReceipt accepts a receipt only if a published key signed it', () => {
  test('verifyReceipt accepts receipts that were signed with any published key, even a retired key', () => {
    const old = signReceipt({ body: { ...body, endpointId: null }, key: retired })
    expect(verifyReceipt({ receipt: old, trustedKeys })).toEqual({ ok: true, body: old.body })
    expect(verifyReceipt({ receipt: JSON.parse(receiptText(receipt)), trustedKeys })).toEqual({
      ok: true,
      body,
    })
  })

  test('verifyReceipt accepts an older receipt whose JWS names neither the project nor the endpoint', () => {
    const [header, payload = ''] = receipt.jws.split('.')
    const claims = JSON.parse(Buffer.from(payload, 'base64url').toString('utf8'))
    const { projectId: _, endpointId: __, ...earlier } = claims
    const base64url = (bytes: string | Uint8Array) => Buffer.from(bytes).toString('base64url')
    const input = `${header}.${base64url(canonicalJson(earlier))}`
    const jws = `${input}.${base64url(sign(Buffer.from(input), signing.seed))}`
    const verdict = verifyReceipt({ receipt: { ...receipt, jws }, trustedKeys })
    expect(verdict).toEqual({ ok: true, body })
  })

  const other = signReceipt({ body: { ...body, paymentId: 'pay_2' }, key: signing })
  const forged = signReceipt({ body, key: stranger })
  test.each<[string, unknown, string]>([
    ['null', null, 'malformed'],
    ['a list', [], 'malformed'],
    ['another member in the body', { ...receipt, body: { ...body, x: 1 } }, 'malformed'],
    ['another algorithm', { ...receipt, alg: 'none' }, 'malformed'],
    ['a key that is not trusted', forged, 'unknown_key'],
    [
      'a foreign signature under our key',
      { ...forged, publicKeyHex: signing.publicKeyHex },
      'bad_signature',
    ],
    ['another amount', { ...receipt, body: { ...body, amountUsdcRaw: '1' } }, 'bad_signature'],
    [
      'the signature of another payment',
      { ...receipt, signature: other.signature },
      'bad_signature',
    ],
    ['no signature', { ...receipt, signature: '' }, 'bad_signature'],
    ['the JWS of another payment', { ...receipt, jws: other.jws }, 'jws_mismatch'],
    ['the JWS of a stranger', { ...receipt, jws: forged.jws }, 'jws_mismatch'],
    ['a cut JWS', { ...receipt, jws: receipt.jws.slice(0, -4) }, 'jws_mismatch'],
    ['an empty JWS', { ...receipt, jws: '' }, 'jws_mismatch'],
    ['a JWS of four parts', { ...receipt, jws: `${receipt.jws}.x` }, 'jws_mismatch'],
  ])('verifyReceipt refuses %s', (_name, value, reason) => {
    expect(verifyReceipt({ receipt: value, trustedKeys })).toEqual({
      ok: false,
      reason: reason as never,
    })
  })
})
