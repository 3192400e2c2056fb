/** Tests the signature and the envelope of mail that arrives over HTTP. */

import { describe, expect, test } from 'bun:test'
import { createHmac } from 'node:crypto'
import {
  domainSecret,
  type MailHeaders,
  mailSignature,
  proveHeaders,
  readEnvelope,
  requestId,
  SignedMailError,
} from '../../../../shared/mail/http/signedMail.ts'

const SECRET = Buffer.from('a secret of thirty-two characters')
const NOW_MS = 1_764_000_000_000

/** Returns the headers of a mail request, which are signed after the given changes. */
function signed(changes: Partial<MailHeaders> = {}, secret: Uint8Array = SECRET): MailHeaders {
  const headers = {
    ...{ envelope: 'e30', timestamp: String(NOW_MS / 1000), digest: 'ab'.repeat(32), key: 'key-1' },
    ...changes,
  }
  return { ...headers, signature: mailSignature(secret, headers) }
}
const prove = (headers: MailHeaders, secrets: Uint8Array[] = [SECRET], nowMs = NOW_MS) =>
  proveHeaders(headers, secrets, nowMs)

/** Returns the status and the message of the error that a function call throws. */
function faultOf(call: () => unknown): [number, string] | null {
  try {
    call()
    return null
  } catch (error) {
    if (error instanceof SignedMailError) return [error.status, error.message]
    throw error
  }
}

describe('a mail over HTTP is refused if its signature is wrong or too old', () => {
  test('the signature of a mail over HTTP is the HMAC-SHA256 of version, key, time, envelope and digest', () => {
    const { signature } = signed()
    const text = `v1\nkey-1\n${NOW_MS / 1000}\ne30\n${'ab'.repeat(32)}`
    expect(signature).toBe(`v1=${createHmac('sha256', SECRET).update(text).digest('hex')}`)
  })

  test('a mail over HTTP has a valid signature if one of the secrets of its key id made the signature', () => {
    const other = Buffer.from('another secret')
    expect(faultOf(() => prove(signed()))).toBeNull()
    expect(faultOf(() => prove(signed(), [other, SECRET]))).toBeNull()
    const wrong = [401, 'Purser-Signature: does not fit the key']
    expect(faultOf(() => prove(signed(), [other]))).toEqual(wrong as never)
    expect(faultOf(() => prove(signed(), []))).toEqual(wrong as never)
  })

  test('the signature of a mail over HTTP becomes invalid if one of the signed headers changes', () => {
    const headers = signed()
    for (const change of [
      { key: 'key-2' },
      { envelope: 'e31' },
      { digest: 'cd'.repeat(32) },
      { timestamp: String(NOW_MS / 1000 + 1) },
      { signature: '' },
      { signature: headers.signature.slice(3) },
      { signature: `${headers.signature}0` },
      { signature: headers.signature.toUpperCase() },
    ])
      expect([change, faultOf(() => prove({ ...headers, ...change }))]).toEqual([
        change,
        [401, 'Purser-Signature: does not fit the key'],
      ])
  })

  test('the signature of a mail over HTTP is valid for 300 seconds before and after the service’s time', () => {
    const headers = signed()
    for (const shiftS of [-300, 0, 300])
      expect(faultOf(() => prove(headers, [SECRET], NOW_MS + shiftS * 1000))).toBeNull()
    for (const shiftS of [-301, 301])
      expect(faultOf(() => prove(headers, [SECRET], NOW_MS + shiftS * 1000))).toEqual([
        401,
        'Purser-Timestamp: must be within 300 seconds of our clock',
      ])
  })

  test('the signed headers of a mail over HTTP must contain a time in seconds and a digest in hexadecimal digits', () => {
    for (const timestamp of ['', '1.5', '-1', '1e9', ' 1', '123456789012'])
      expect([timestamp, faultOf(() => prove(signed({ timestamp })))]).toEqual([
        timestamp,
        [400, 'Purser-Timestamp: must be the seconds since 1970'],
      ])
    for (const digest of ['', 'ab'.repeat(31), 'ab'.repeat(33), 'AB'.repeat(32), 'xy'.repeat(32)])
      expect([digest, faultOf(() => prove(signed({ digest })))]).toEqual([
        digest,
        [400, 'Purser-Digest: must be the SHA-256 of the body, in 64 hexadecimal digits'],
      ])
  })
})

describe('a mail over HTTP is refused if its envelope is malformed', () => {
  const read = (value: unknown) =>
    readEnvelope(Buffer.from(JSON.stringify(value)).toString('base64url'))
  const rule = (call: () => unknown) => {
    const [status, message] = faultOf(call) ?? [0, '']
    expect(status).toBe(400)
    return message.replace('Purser-Envelope: ', '')
  }
  const TO = ['agent@mail.example']

  test('the envelope of a mail over HTTP has a sender, which is empty for a bounce, and 1 to 100 recipients', () => {
    expect(read({ from: 'ada@example.com', to: TO })).toEqual({
      ...{ from: 'ada@example.com', to: TO, spf: null },
    })
    const many = Array.from({ length: 100 }, (_, n) => `a${n}@mail.example`)
    expect(read({ from: '', to: many })).toEqual({ from: '', to: many, spf: null })
    for (const to of [undefined, 'a@mail.example', [], [...many, ...TO]])
      expect(rule(() => read({ from: '', to }))).toBe('"to" must be a list of 1 to 100 addresses')
    for (const to of [['no address'], [7], [null], ['a@mail.example', '']])
      expect(rule(() => read({ from: '', to }))).toBe('"to" must hold addresses alone')
    for (const from of [undefined, null, 7, 'no address'])
      expect(rule(() => read({ from, to: TO }))).toBe('"from" must be an address, or empty')
  })

  test('the envelope of a mail over HTTP may contain an SPF result', () => {
    expect(read({ from: '', to: TO, spf: 'pass' }).spf).toBe('pass')
    for (const spf of ['PASS', 'yes', 7, ''])
      expect(rule(() => read({ from: '', to: TO, spf }))).toStartWith('"spf" must be one of ')
  })

  test('the envelope of a mail over HTTP is a JSON object in base64url, with at most 65,536 characters', () => {
    for (const value of [null, 7, 'text'])
      expect(rule(() => read(value))).toBe('must be base64url of a JSON object')
    expect(rule(() => readEnvelope('§'))).toBe('must be base64url of a JSON object')
    expect(rule(() => readEnvelope(''))).toBe('must be base64url of a JSON object')
    expect(rule(() => readEnvelope('A'.repeat(65_537)))).toBe('must have at most 65536 characters')
    expect(rule(() => readEnvelope('A'.repeat(65_536)))).toBe('must be base64url of a JSON object')
  })
})

test('the inbound secret of a domain depends on the domain, and the id of a mail request depends on its key and its signature', () => {
  const [one, other] = [domainSecret(SECRET, 'a.example'), domainSecret(SECRET, 'b.example')]
  expect(one).toHaveLength(32)
  expect(Buffer.from(one).equals(other)).toBe(false)
  expect(Buffer.from(one).equals(domainSecret(SECRET, 'a.example'))).toBe(true)
  const id = requestId('key-1', 'v1=ab')
  expect(id).toMatch(/^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/)
  expect(requestId('key-1', 'v1=ab')).toBe(id)
  expect(new Set([id, requestId('key-2', 'v1=ab'), requestId('key-1', 'v1=ac')]).size).toBe(3)
})
