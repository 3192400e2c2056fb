/** Tests which paths a request with a secret may have if its credential lists allowed paths. */
import { describe, expect, test } from 'bun:test'
import {
  isAllowedPath,
  meetPaths,
  parseAllowedPath,
} from '../../../../shared/vault/bounds/allowedPaths.ts'

describe('an allowed path of a credential is read in its normal form, and a malformed path is refused', () => {
  test.each([
    ['/', '/'],
    ['/v1', '/v1'],
    ['/v1/', '/v1'],
    ['/bücher/', '/b%C3%BCcher'],
    ['/.well-known/x', '/.well-known/x'],
    ['/a;b=1/c', '/a;b=1/c'],
    ['/a.b/x%20', '/a.b/x%20'],
  ])('the text %s is read as the allowed path %s', (text, path) => {
    expect(parseAllowedPath(text)).toBe(path)
  })

  test.each([
    ...['', 'v1', '//', '/a//b', '/a//', '/a?b', '/a#b', '/a{b', '/a}b', '/a\\b', '/a b', '/a\n'],
    ...['/.', '/..', '/a/../b', '/a/...', '/%2e%2e/a', '/%2E/a', '/..;x/a', '/;x/a', '/a/ /b'],
    ...['/a%2fb', '/a%5Cb', '/a%252e', '/a%', '/a%zz', '/a%ff', '/a%00', '/a%0a', '/%20/a'],
    ...['/a／b/..', '/．．/a', '/a／／b'],
  ])('the text "%s" is not an allowed path', (text) => {
    expect(parseAllowedPath(text)).toBeNull()
  })

  test('an allowed path has at most 1024 characters', () => {
    const path = (length: number) => '/'.padEnd(length, 'a')
    expect(parseAllowedPath(path(1_024))).toBe(path(1_024))
    expect(parseAllowedPath(path(1_025))).toBeNull()
  })
})

describe('if two lists allow different paths, the common part allows only what both allow', () => {
  test('the common part of two allowed paths is the narrower path', () => {
    expect(meetPaths('/v1', '/v1/charges')).toBe('/v1/charges')
    expect(meetPaths('/v1/charges', '/v1')).toBe('/v1/charges')
    expect(meetPaths('/', '/v1')).toBe('/v1')
    expect(meetPaths('/v1', '/')).toBe('/v1')
    expect(meetPaths('/v1', '/v1')).toBe('/v1')
  })

  test('if neither of two allowed paths is inside the other, no path is allowed by both', () => {
    expect(meetPaths('/v1', '/v2')).toBeNull()
    expect(meetPaths('/v1', '/v10')).toBeNull()
  })
})

describe('a request’s path is allowed only if it lies within an allowed path', () => {
  const allowed = (path: string, entries = ['/v1', '/v2/x']) => isAllowedPath(entries, path)

  test('a request’s path is allowed if its first segments equal an allowed path', () => {
    for (const path of ['/v1', '/v1/', '/v1/a', '/v2/x', '/v2/x/y'])
      expect(allowed(path)).toBe(true)
    for (const path of ['/', '/v', '/v10', '/v2', '/v2/y', '/V1', '/x/v1']) {
      expect(allowed(path)).toBe(false)
    }
    expect(allowed('/v1', [])).toBe(false)
  })

  test.each([
    ...['/v1/..', '/v1/../v2', '/v1//a', '/v1/%2e%2e/a', '/v1/a%2f..%2fb', '/v1/..%5ca'],
    ...[
      '/v1/a\\..\\b',
      '/v1/..;a/b',
      '/v1/%252e%252e',
      '/v1/%00',
      '/v1/%',
      '/v1/%EF%BC%8E%EF%BC%8E',
    ],
  ])('the request path %s is refused because it could lead out of the allowed path', (path) => {
    expect(allowed(path)).toBe(false)
  })

  test('a request’s path may contain encoded letters, dots inside names, and encoded slashes between names', () => {
    for (const path of ['/v1/%41', '/v1/a..b', '/v1/a%2fb', '/v1/a;x/b']) {
      expect(allowed(path)).toBe(true)
    }
  })

  test('the percent-encoding in a request’s path may have small or capital letters', () => {
    expect(allowed('/b%c3%bc/x', ['/b%C3%BC'])).toBe(true)
    expect(allowed('/b%C3%BC', ['/b%c3%bc'])).toBe(true)
    expect(allowed('/b%c3%bd', ['/b%C3%BC'])).toBe(false)
    expect(allowed('/AB', ['/ab'])).toBe(false)
  })

  test('a request’s path may be percent-encoded up to four times', () => {
    const encoded = (times: number) => `/v1/%${'25'.repeat(times - 1)}41`
    expect(allowed(encoded(4))).toBe(true)
    expect(allowed(encoded(5))).toBe(false)
  })

  test('if the list of allowed paths contains `/`, every request path is allowed', () => {
    for (const path of ['/', '/v1/../x', '/%', '//']) expect(allowed(path, ['/v1', '/'])).toBe(true)
  })
})
