/** Tests how addresses are written to and read from mailto URIs. */
import { expect, test } from 'bun:test'
import { addressOfMailto, mailtoOf } from '../../../../shared/mail/calendar/mailto.ts'

test('a mailto URI encodes the characters that RFC 6068 reserves, and is read back to the same address', () => {
  const written = [
    ['ada+cal@example.com', 'mailto:ada+cal@example.com'],
    ["o'neil@example.com", "mailto:o'neil@example.com"],
    ['what?now@example.com', 'mailto:what%3Fnow@example.com'],
    ['a%41b@example.com', 'mailto:a%2541b@example.com'],
    ['a&b#c@example.com', 'mailto:a%26b%23c@example.com'],
    ['jürgen@example.com', 'mailto:j%C3%BCrgen@example.com'],
  ] as const
  for (const [address, uri] of written) {
    expect([address, mailtoOf(address)]).toEqual([address, uri])
    expect(addressOfMailto(uri)).toBe(address)
  }
})

test('a mailto URI may hold encoded letters and header fields, and a malformed encoding is kept as it is', () => {
  expect(addressOfMailto('MAILTO:ada%2Bcal@example.com?subject=x')).toBe('ada+cal@example.com')
  for (const malformed of ['100%@example.com', 'a%zz@example.com', 'a%ff@example.com']) {
    expect(addressOfMailto(`mailto:${malformed}`)).toBe(malformed)
  }
  for (const other of ['', 'mailto:', 'mailto:?to=a@example.com', 'urn:uuid:1', 'a@example.com']) {
    expect(addressOfMailto(other)).toBeNull()
  }
  expect(mailtoOf('a\ud800@example.com')).toBe('mailto:a%EF%BF%BD@example.com')
})
