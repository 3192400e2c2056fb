import { expect, test } from 'bun:test'
import { readIdempotencyKey, requestHash } from '../../../../api/http/input/idempotencyKey.ts'

test('an idempotency key is absent, or has 1 to 255 visible ASCII characters', () => {
  for (const key of ['a', '!~', 'k'.repeat(255)]) expect(readIdempotencyKey(key)).toBe(key)
  for (const none of [null, undefined]) expect(readIdempotencyKey(none)).toBeNull()
  for (const key of ['', ' ', 'a b', 'ä', 'k'.repeat(256)]) {
    expect(() => readIdempotencyKey(key)).toThrow(
      expect.objectContaining({
        status: 400,
        message: 'Idempotency-Key must be 1 to 255 visible ASCII characters',
      }),
    )
  }
})

test('the request hash that is stored with an Idempotency-Key does not depend on the order of its fields', () => {
  const hash = requestHash({ a: 1, b: 2 })
  expect(requestHash({ b: 2, a: 1 })).toEqual(hash)
  expect(requestHash({ a: 1, b: 3 })).not.toEqual(hash)
})
