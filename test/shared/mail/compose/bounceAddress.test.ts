/** Tests the envelope senders with which the service proves that a bounce belongs to a sent mail. */
import { describe, expect, test } from 'bun:test'
import { createSecretKey } from 'node:crypto'
import {
  bounceAddress,
  bounceKeys,
  isTagOf,
  readBounceTag,
} from '../../../../shared/mail/compose/bounceAddress.ts'
import { messageIdHash } from '../../../../shared/mail/threading.ts'

const key = (byte: number) =>
  bounceKeys([{ id: `k${byte}`, key: createSecretKey(Buffer.alloc(32, byte)) }])
const KEYS = key(1)
const COPY = { projectId: 'p1', messageId: '<m1@a.example>', recipient: 'Ada@b.example' }
const FROM = 'desk@a.example'
const ADDRESS = bounceAddress(KEYS, FROM, COPY)
const TAG = readBounceTag(ADDRESS)!

describe('the bounce address of a sent mail contains a tag that identifies the mail', () => {
  test('a bounce address has a tag of 25 characters after the inbox name', () => {
    expect(ADDRESS).toMatch(/^desk\+b[a-z2-7]{24}@a\.example$/)
  })

  test('a bounce address identifies the message by the first 40 bits of its hash', () => {
    for (let n = 0; n < 50; n++) {
      const messageId = `<m${n}@a.example>`
      const { hash } = readBounceTag(bounceAddress(KEYS, FROM, { ...COPY, messageId }))!
      expect(hash).toEqual(messageIdHash(messageId).subarray(0, 5))
    }
  })

  test('a bounce address has no tag if its local part would have more than 64 characters', () => {
    const from = (length: number) => `${'n'.repeat(length)}@a.example`
    expect(bounceAddress(KEYS, from(38), COPY).indexOf('@')).toBe(64)
    expect(bounceAddress(KEYS, from(39), COPY)).toBe(from(39))
  })

  test('a bounce address has no tag if it would have more than 254 characters', () => {
    const from = (length: number) => 'desk@a.'.padEnd(length, 'd')
    expect(bounceAddress(KEYS, from(228), COPY)).toHaveLength(254)
    expect(bounceAddress(KEYS, from(229), COPY)).toBe(from(229))
  })
})

describe('the service recognises a bounce address by its tag, and refuses a wrong tag', () => {
  test('the tag of a bounce address belongs to one copy of a mail, and does not depend on the letter case of the recipient', () => {
    expect(isTagOf(TAG, KEYS, COPY)).toBe(true)
    expect(isTagOf(TAG, KEYS, { ...COPY, recipient: 'ada@B.EXAMPLE' })).toBe(true)
    for (const other of [{ projectId: 'p2' }, { messageId: '<m2@a>' }, { recipient: 'c@d' }]) {
      expect(isTagOf(TAG, KEYS, { ...COPY, ...other })).toBe(false)
    }
  })

  test('the tag of a bounce address is made with the first configured key, and is recognised with any configured key', () => {
    expect(isTagOf(TAG, key(2), COPY)).toBe(false)
    expect(isTagOf(TAG, [...key(2), ...KEYS], COPY)).toBe(true)
    expect(isTagOf(TAG, [], COPY)).toBe(false)
    expect(bounceAddress([...key(2), ...KEYS], FROM, COPY)).toBe(bounceAddress(key(2), FROM, COPY))
  })

  test('the tag of a bounce address is read in upper or lower case', () => {
    expect(readBounceTag(ADDRESS.toUpperCase())).toEqual(TAG)
  })

  test.each([
    FROM,
    ADDRESS.replace('+b', '+c'),
    ADDRESS.replace('@', 'a@'),
    ADDRESS.replace(/.@/, '@'),
    ADDRESS.replace(/.@/, '1@'),
    ADDRESS.replace('+', '+x+'),
    '',
  ])('the address "%s" contains no bounce tag', (address) => {
    expect(readBounceTag(address)).toBeNull()
  })
})
