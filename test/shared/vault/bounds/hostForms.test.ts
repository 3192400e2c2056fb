/** Tests which texts are allowed hosts of a credential, and which hosts a credential without a list has. */
import { describe, expect, test } from 'bun:test'
import { effectiveHosts, parseAllowedHost } from '../../../../shared/vault/bounds/allowedHosts.ts'

describe('an allowed host has one canonical form', () => {
  test.each([
    ['api.example.com', 'api.example.com'],
    ['API.Example.com', 'api.example.com'],
    ['api.example.com:443', 'api.example.com'],
    ['api.example.com:8443', 'api.example.com:8443'],
    ['*.example.com', '*.example.com'],
    ['*.Example.com:8443', '*.example.com:8443'],
    ['*.co.uk', '*.co.uk'],
    ['bücher.example', 'xn--bcher-kva.example'],
    ['127.0.0.1', '127.0.0.1'],
    ['2130706433', '127.0.0.1'],
    ['[::1]:8443', '[::1]:8443'],
    ['localhost', 'localhost'],
  ])('%s is stored as %s', (text, host) => expect(parseAllowedHost(text)).toBe(host))

  test('a host has at most 260 characters', () => {
    const label = 'a'.repeat(63)
    const name = (length: number) => `${[label, label, label, label].join('.')}:8443`.slice(-length)
    expect(parseAllowedHost(name(260))).not.toBeNull()
    expect(parseAllowedHost(`a${name(260)}`)).toBeNull()
  })
})

describe('a text is no allowed host', () => {
  test.each([
    ['that is empty', ''],
    ['with a scheme', 'https://api.example.com'],
    ['with a path', 'api.example.com/v1'],
    ['with a query', 'api.example.com?x=1'],
    ['with a fragment', 'api.example.com#x'],
    ['with a user name', 'user@api.example.com'],
    ['with a backslash', 'api.example.com\\v1'],
    ['with a blank', 'api.example.com other.example'],
    ['with a line break', 'api.example.com\n'],
    ['with a percent sign', 'api%2eexample.com'],
    ['with a dot at its end', 'api.example.com.'],
    ['with a wrong port', 'api.example.com:99999'],
    ['with a malformed IPv6 address', '[::1'],
    ['with a wildcard alone', '*'],
    ['with a wildcard and no name', '*.'],
    ['with a wildcard before a top-level domain', '*.com'],
    ['with a wildcard in the middle', 'api.*.example.com'],
    ['with two wildcards', '*.*.example.com'],
    ['with a wildcard in a label', 'api*.example.com'],
    ['with a wildcard before an IPv4 address', '*.10.0.0.1'],
    ['with a wildcard before an IPv4 address and a port', '*.10.0.0.1:8443'],
    ['with a wildcard before the first number of an IPv4 address', '*.127.1'],
    ['with a wildcard before an IPv6 address', '*.[::1].a'],
  ])('%s', (_name, text) => expect(parseAllowedHost(text)).toBeNull())
})

describe('a credential may reach', () => {
  test('the hosts of its list, even if the list is empty and the credential has an address', () => {
    expect(effectiveHosts(['a.example'], { uri: 'https://b.example/' })).toEqual(['a.example'])
    expect(effectiveHosts([], { uri: 'https://b.example/' })).toEqual([])
  })

  test('the host of its https address if it has no list', () => {
    expect(effectiveHosts(null, { uri: 'https://B.example:8443/path' })).toEqual(['b.example:8443'])
  })

  test.each([
    undefined,
    null,
    7,
    [['https://b.example/']],
    '',
    'b.example',
    'http://b.example/',
    'https://',
  ])('no host if it has no list and its address is %p', (uri) =>
    expect(effectiveHosts(null, { uri })).toEqual([]),
  )
})
