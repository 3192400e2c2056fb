import { describe, expect, test } from 'bun:test'
import {
  InvalidReceiptError,
  InvalidWebhookError,
  verifyReceipt,
  verifyWebhook,
} from '../../../api/client/main.ts'
import { signWebhook } from '../../../shared/events/webhookSignature.ts'
import { signEd25519 } from '../../../shared/till/ed25519.ts'
import {
  type Receipt,
  type ReceiptBody,
  receiptText,
  signReceipt,
} from '../../../shared/till/receipt.ts'
import { receiptJwks, receiptKey } from '../../../shared/till/receiptKey.ts'

const did = 'did:web:till.example.com'
const key = (byte: number) => receiptKey({ seed: new Uint8Array(32).fill(byte), did })
const [signing, retired, stranger] = [key(1), key(2), key(3)] as const
const body: ReceiptBody = {
  version: 1,
  paymentId: 'pay_1',
  paymentInId: 'pay_1',
  endpointId: null,
  projectId: 'prj_1',
  identityId: 'prj_1',
  payerAddress: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8',
  recipientAddress: '0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC',
  amountUsdcRaw: '10000',
  network: 'base-sepolia',
  resource: 'https://api.example.com/ü"\\\n😀',
  txHash: `0x${'ab'.repeat(32)}`,
  timestamp: '2026-01-02T03:04:05.678Z',
}
const receipt = signReceipt({ body, key: signing })
const jwks = receiptJwks([signing, retired])

/** Returns the reason why a receipt is refused. */
const reasonOf = (changed: unknown, keys: Parameters<typeof verifyReceipt>[0]['keys'] = jwks) =>
  verifyReceipt({ receipt: changed, keys }).then(
    () => 'accepted',
    (error) => (error instanceof InvalidReceiptError ? error.reason : error),
  )

describe('verifyReceipt checks the signature and the content of a receipt', () => {
  test('a receipt is accepted if its key is in the JWKS, is the pinned key, or is one of several given keys', async () => {
    for (const keys of [jwks, signing.publicKeyHex, [retired.publicKeyHex, signing.publicKeyHex]]) {
      expect(await verifyReceipt({ receipt, keys })).toEqual(body as never)
    }
    const old = signReceipt({ body: { ...body, network: 'base' }, key: retired })
    expect(
      (await verifyReceipt({ receipt: JSON.parse(receiptText(old)), keys: jwks })).network,
    ).toBe('base')
  })

  test('a receipt signed with an untrusted key is refused', async () => {
    expect(await reasonOf(signReceipt({ body, key: stranger }))).toBe('unknown_key')
    for (const keys of [{ keys: [] }, [], '', retired.publicKeyHex] as const) {
      expect(await reasonOf(receipt, keys)).toBe('unknown_key')
    }
    const forged = { ...signReceipt({ body, key: stranger }), publicKeyHex: signing.publicKeyHex }
    expect(await reasonOf(forged)).toBe('bad_signature')
    const x = jwks.keys[0]!.x
    expect(await reasonOf(receipt, { keys: [{ kty: 'EC', crv: 'Ed25519', x }] })).toBe(
      'unknown_key',
    )
    expect(await reasonOf(receipt, { keys: [{ kty: 'OKP', crv: 'Ed25519', x: '!' }] })).toBe(
      'unknown_key',
    )
  })

  test('the receipt of a refund proves no sale, and proves only the refund of its own payment', async () => {
    const refund = signReceipt({
      body: { ...body, paymentId: 'rfd_1', paymentInId: 'rfd_1', refundOf: 'pay_1' },
      key: signing,
    })
    expect(await reasonOf(refund)).toBe('refund')
    const proof = (refundOf: string, given: Receipt = refund) =>
      verifyReceipt({ receipt: given, keys: jwks, refundOf }).then(
        ({ paymentId }) => paymentId,
        ({ reason }) => reason,
      )
    expect(await proof('pay_1')).toBe('rfd_1')
    expect(await proof('pay_2')).toBe('refund')
    expect(await proof('pay_1', receipt)).toBe('refund')
    expect(await proof('pay_1', { ...refund, jws: receipt.jws })).toBe('jws_mismatch')
  })

  test('the signature covers every member of the receipt body', async () => {
    for (const name of Object.keys(body)) {
      const changed = { ...receipt, body: { ...body, [name]: name === 'version' ? 2 : 'x' } }
      expect([name, await reasonOf(changed)]).toEqual([name, 'bad_signature'])
    }
    const { endpointId: _, ...less } = body
    expect(await reasonOf({ ...receipt, body: less })).toBe('bad_signature')
    expect(await reasonOf({ ...receipt, body: { ...body, more: 1 } })).toBe('bad_signature')
    const reversed = Object.fromEntries(Object.entries(body).reverse())
    expect(await reasonOf({ ...receipt, body: reversed })).toBe('accepted')
  })

  test('a receipt is refused if its JWS is malformed, is about a different payment, or has a different key or an algorithm other than EdDSA', async () => {
    const other = (changes: Partial<ReceiptBody>) =>
      signReceipt({ body: { ...body, ...changes }, key: signing }).jws
    const [header, payload, signature] = receipt.jws.split('.')
    const none = Buffer.from('{"alg":"none"}').toString('base64url')
    for (const jws of [
      '',
      'a.b.c',
      `${header}.${payload}.`,
      `${header}.${payload}.${signature}.x`,
      `${none}.${payload}.${signature}`,
      signReceipt({ body, key: retired }).jws,
      other({ txHash: `0x${'cd'.repeat(32)}` }),
      other({ paymentId: 'pay_2' }),
      other({ amountUsdcRaw: '1' }),
      other({ network: 'base' }),
      other({ resource: 'https://x.test/' }),
      other({ payerAddress: '0x0' }),
      other({ recipientAddress: '0x0' }),
      other({ timestamp: '2026-01-02T03:04:06.678Z' }),
    ]) {
      expect([jws, await reasonOf({ ...receipt, jws })]).toEqual([jws, 'jws_mismatch'])
    }
  })

  test('a receipt whose JWS header names another algorithm than EdDSA or Ed25519 is refused, even if the key signed this header', async () => {
    const payload = receipt.jws.split('.')[1]
    const withHeader = (header: unknown) => {
      const input = `${Buffer.from(JSON.stringify(header)).toString('base64url')}.${payload}`
      const signature = signEd25519(Buffer.from(input), signing.seed).toString('base64url')
      return reasonOf({ ...receipt, jws: `${input}.${signature}` })
    }
    for (const alg of ['EdDSA', 'Ed25519']) {
      expect([alg, await withHeader({ alg })]).toEqual([alg, 'accepted'])
    }
    for (const header of [{ alg: 'ES256' }, { alg: 'none' }, { alg: null }, {}, null, 'EdDSA']) {
      expect([header, await withHeader(header)]).toEqual([header, 'jws_mismatch'])
    }
  })

  test('a value that is not a receipt is refused as malformed', async () => {
    const values: unknown[] = [undefined, null, 1, 'x', [], {}, { ...receipt, body: null }]
    for (const name of ['body', 'signature', 'alg', 'publicKeyHex', 'jws'] as (keyof Receipt)[]) {
      values.push({ ...receipt, [name]: 7 })
    }
    values.push({ ...receipt, body: { ...body, extra: {} } }, { ...receipt, alg: 'none' })
    for (const value of values) expect([value, await reasonOf(value)]).toEqual([value, 'malformed'])
    for (const signature of ['', '!', 'AAAA']) {
      expect(await reasonOf({ ...receipt, signature })).toBe('bad_signature')
    }
  })
})

describe('verifyWebhook checks the signature of a webhook and reads its event', () => {
  const secret = `whsec_${'a'.repeat(64)}`
  const text = receiptText(receipt)
  const headers = {
    'x-service-signature': signWebhook({ secret, body: text }),
    'x-service-event': 'payment.received',
    'x-service-idempotency-key': 'whd_1',
  }
  const refused = (changes: object) =>
    verifyWebhook({ body: text, headers, secret, ...changes }).then(
      () => 'accepted',
      (error) => (error instanceof InvalidWebhookError ? error.message : error),
    )

  test('a signed webhook is read from a string, bytes, Headers and Node headers', async () => {
    const event = { event: 'payment.received', idempotencyKey: 'whd_1', receipt }
    const upper = Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [name.toUpperCase(), [value]]),
    )
    for (const given of [headers, new Headers(headers), upper]) {
      for (const raw of [text, new TextEncoder().encode(text), Buffer.from(text)]) {
        expect(await verifyWebhook({ body: raw, headers: given, secret })).toEqual(event as never)
      }
    }
    expect(await refused({ secret: ['whsec_new', secret] })).toBe('accepted')
  })

  test('an unsigned or altered webhook is refused', async () => {
    const mismatch = 'X-Service-Signature does not match'
    const malformed = 'X-Service-Signature is missing or malformed'
    expect(await refused({ body: `${text} ` })).toBe(mismatch)
    expect(await refused({ secret: 'whsec_other' })).toBe(mismatch)
    expect(await refused({ secret: [] })).toBe(mismatch)
    for (const value of [undefined, '', 'sha256=', `sha256=${'A'.repeat(64)}`, 'x'.repeat(71)]) {
      expect(await refused({ headers: { ...headers, 'x-service-signature': value } })).toBe(
        malformed,
      )
    }
    expect(await refused({ secret: '' })).toBeInstanceOf(TypeError)
  })
})
