import { expect, test } from 'bun:test'
import { createClientAddress } from '../../../../api/http/limits/clientAddress.ts'

const addressOf = createClientAddress(['10.0.0.0/8', '2001:db8:ffff::/48'])

test.each([
  ['203.0.113.7', '203.0.113.7'],
  // Azure Application Gateway and IIS append the port of the client to its IP address, so the service must remove the
  // port.
  ['203.0.113.7:51234', '203.0.113.7'],
  ['[2001:db8::7]:51234', '2001:db8::7'],
  ['[2001:db8::7]', '2001:db8::7'],
  ['198.51.100.9, 203.0.113.7:51234, 10.0.0.5:443', '203.0.113.7'],
  ['198.51.100.9, 203.0.113.7, [2001:db8:ffff::1]:443', '203.0.113.7'],
  ['203.0.113.7:x', '10.0.0.1'],
  ['unknown', '10.0.0.1'],
])(
  'with the header X-Forwarded-For %p, the service takes %p as the client’s address',
  (header, wanted) => {
    expect(addressOf('10.0.0.1', header)).toBe(wanted)
  },
)

test('if a client is not a trusted proxy, the service ignores its X-Forwarded-For header', () => {
  expect(addressOf('203.0.113.1', '198.51.100.9:1')).toBe('203.0.113.1')
})
