import { expect, test } from 'bun:test'
import {
  parseUnsubscribeUrl,
  UNSUBSCRIBE_URL_MAX_LENGTH,
  unsubscribeFields,
} from '../../../../shared/mail/compose/unsubscribe.ts'

test('an https URL for List-Unsubscribe is escaped for the header, and a URL with another scheme is refused', () => {
  expect(parseUnsubscribeUrl('https://example.com/u?id=1,2&x=<a>')).toBe(
    'https://example.com/u?id=1%2C2&x=%3Ca%3E',
  )
  expect(parseUnsubscribeUrl('https://exämple.com/ü')).toBe('https://xn--exmple-cua.com/%C3%BC')
  for (const text of [
    '',
    'http://example.com/',
    'mailto:a@example.com',
    'https://user:pass@example.com/',
    'example.com',
    `https://example.com/${'x'.repeat(900)}`,
  ]) {
    expect([text, parseUnsubscribeUrl(text)]).toEqual([text, null])
  }
  const folded = parseUnsubscribeUrl('https://example.com/a\r\nBcc: v@example.org')
  expect(folded ?? '').not.toMatch(/[\r\n\s]/)
})

test('the header List-Unsubscribe-Post is written only if List-Unsubscribe contains a URL', () => {
  const url = 'https://example.com/u'
  expect(unsubscribeFields({ url, mailto: 'leave@example.com' })).toBe(
    'List-Unsubscribe: <https://example.com/u>,\r\n <mailto:leave@example.com>\r\nList-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n',
  )
  expect(unsubscribeFields({ url: null, mailto: 'a?b&c%d@example.com' })).toBe(
    'List-Unsubscribe: <mailto:a%3Fb%26c%25d@example.com>\r\n',
  )
})

test('an unsubscribe URL may have only as many characters as a header line can hold', () => {
  const ofLength = (length: number) => 'https://example.com/'.padEnd(length, 'x')
  const most = UNSUBSCRIBE_URL_MAX_LENGTH
  expect(parseUnsubscribeUrl(ofLength(most))).toBe(ofLength(most))
  expect(parseUnsubscribeUrl(ofLength(most + 1))).toBeNull()
})

test('an unsubscribe URL has neither a user name nor a password', () => {
  expect(parseUnsubscribeUrl('https://user@example.com/')).toBeNull()
  expect(parseUnsubscribeUrl('https://:password@example.com/')).toBeNull()
})

test('a mail without an unsubscribe URL or address has no header field about unsubscribing', () => {
  expect(unsubscribeFields({ url: null, mailto: null })).toBe('')
})
