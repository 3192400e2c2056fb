import { expect, test } from 'bun:test'
import { createClientAddress } from '../../../api/http/limits/clientAddress.ts'

const addressOf = createClientAddress(['10.0.0.0/8', '2001:db8:ffff::/48'])

test.each([
  ['203.0.113.7', '203.0.113.7'],
  // Azure Application Gateway and IIS append the port of the client.
  ['203.0.113.7:51234', '203.0.113.7'],
  ['[2001:db8::7]:51234', '2001:db8::7'],
  ['[2001:db8::7]', '2001:db8::7'],
  ['198.51.100.9, 203.0.113.7:51234, 10.0.0.5:443', '203.0.113.7'],
  ['198.51.100.9, 203.0.113.7, [2001:db8:ffff::1]:443', '203.0.113.7'],
  ['203.0.113.7:x', '10.0.0.1'],
  ['unknown', '10.0.0.1'],
])('the client of X-Forwarded-For %p has the address %p', (header, wanted) => {
  expect(addressOf('10.0.0.1', header)).toBe(wanted)
})

test('a caller that is no trusted proxy cannot name another address', () => {
  expect(addressOf('203.0.113.1', '198.51.100.9:1')).toBe('203.0.113.1')
})
