import { describe, expect, test } from 'bun:test'
import { createHmac } from 'node:crypto'
import { signWebhook, verifyWebhookSignature } from '../../../shared/events/webhookSignature.ts'

const SECRET = 'whsec_0123456789abcdef'
const BODY = '{"hello":"wörld"}'
/**
 * The signature in this test was made with OpenSSL: printf '{"hello":"wörld"}' | openssl dgst -sha256 -hmac
 * whsec_0123456789abcdef
 */
const VECTOR = 'sha256=24164eec9053a52ef7eb057684ba1bb285955ad5e6e29dfdfbd1483db39ef639'

describe('signWebhook makes the HMAC-SHA256 signature of a webhook’s body', () => {
  test('the webhook signature equals an example that was made with openssl', () => {
    expect(signWebhook({ secret: SECRET, body: BODY })).toBe(VECTOR)
    expect(signWebhook({ secret: SECRET, body: Buffer.from(BODY) })).toBe(VECTOR)
  })

  // In the test case of RFC 4231 §4.3, the key and the data are given as text.
  test('the webhook signature equals test case 2 of RFC 4231', () => {
    expect(signWebhook({ secret: 'Jefe', body: 'what do ya want for nothing?' })).toBe(
      'sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843',
    )
  })

  test('the webhook signature equals that of node:crypto for body lengths around a SHA-256 block', () => {
    for (const length of [0, 1, 55, 56, 63, 64, 65, 128, 5000]) {
      const body = Buffer.alloc(length, 0xa5)
      const secret = `whsec_${'k'.repeat(length + 1)}`
      const expected = createHmac('sha256', secret).update(body).digest('hex')
      expect(signWebhook({ secret, body })).toBe(`sha256=${expected}`)
    }
  })

  test('an empty webhook secret is refused with a RangeError', () => {
    expect(() => signWebhook({ secret: '', body: BODY })).toThrow(RangeError)
  })
})

describe('verifyWebhookSignature accepts a webhook only with the right signature', () => {
  test('a webhook signature is accepted only for exactly the same bytes and the same secret', () => {
    expect(verifyWebhookSignature({ secret: SECRET, body: BODY, header: VECTOR })).toBe(true)
    const attempts: [string, string, string | null][] = [
      [SECRET, `${BODY} `, VECTOR],
      // The prefix `whsec_` of a webhook secret is a part of the HMAC key, so a secret without the prefix gives another
      // signature.
      [SECRET.slice(6), BODY, VECTOR],
      [SECRET, BODY, VECTOR.slice(7)],
      [SECRET, BODY, VECTOR.toUpperCase()],
      [SECRET, BODY, `${VECTOR.slice(0, -1)}${VECTOR.endsWith('0') ? '1' : '0'}`],
      [SECRET, BODY, ''],
      [SECRET, BODY, null],
    ]
    for (const [secret, body, header] of attempts) {
      expect(verifyWebhookSignature({ secret, body, header })).toBe(false)
    }
  })
})
