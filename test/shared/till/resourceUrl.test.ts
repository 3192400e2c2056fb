import { describe, expect, test } from 'bun:test'
import {
  isMcpTool,
  parsePaidResource,
  parseResourceUrl,
  ResourceUrlError,
} from '../../../shared/till/resourceUrl.ts'

const key = (text: string) => parseResourceUrl(text).matchKey

describe('parseResourceUrl returns the same normal form for all spellings of one URL', () => {
  test.each([
    ['https://api.example.com/a', 'https://api.example.com/a'],
    ['HTTPS://API.Example.COM/a', 'https://api.example.com/a'],
    ['https://api.example.com:443/a', 'https://api.example.com/a'],
    ['http://api.example.com:80/a', 'http://api.example.com/a'],
    ['http://api.example.com:443/a', 'http://api.example.com:443/a'],
    ['https://api.example.com:8443/a', 'https://api.example.com:8443/a'],
    ['https://api.example.com/a?x=1&y=2', 'https://api.example.com/a'],
    ['https://api.example.com/a#part', 'https://api.example.com/a'],
    ['https://api.example.com', 'https://api.example.com/'],
    ['https://api.example.com?x', 'https://api.example.com/'],
    ['https://api.example.com/a/', 'https://api.example.com/a/'],
    ['https://api.example.com/A%2fb', 'https://api.example.com/A%2Fb'],
    ['https://api.example.com/%78%7e%3a', 'https://api.example.com/x~%3A'],
    ['https://api.example.com/100%', 'https://api.example.com/100%'],
    ['https://bücher.example/a', 'https://xn--bcher-kva.example/a'],
    ['https://api.example.com/é', 'https://api.example.com/%C3%A9'],
    ['http://127.1/a', 'http://127.0.0.1/a'],
    ['http://[::0001]:3000/a', 'http://[::1]:3000/a'],
    ['http://localhost:4021/weather', 'http://localhost:4021/weather'],
  ])('the resource URL %s is read as %s', (text, url) => {
    expect(parseResourceUrl(text).url).toBe(url)
  })

  test('parseResourceUrl finds the registered URL even if query, letter case, default port, scheme or encoding of the requested URL differ', () => {
    const registered = key('https://api.example.com/v1/joke')
    for (const sent of [
      'https://api.example.com/v1/joke?lang=en',
      'https://API.example.com/v1/joke',
      'https://api.example.com:443/v1/joke#x',
      // Behind a TLS proxy, req.protocol is `http` even if the client used https, so a wrong scheme must not matter.
      'http://api.example.com/v1/joke',
      'https://api.example.com/v1/jok%65',
      'https://api.example.com/./v1/%6A%6fke',
    ]) {
      expect(key(sent)).toBe(registered)
    }
  })

  test('parseResourceUrl treats URLs with a different host, port or path as different', () => {
    const keys = [
      'https://api.example.com/v1/joke',
      'https://api.example.com/v1/joke/',
      'https://api.example.com/v1/Joke',
      'https://api.example.com/v1/joke%2F',
      'https://api.example.com/v1//joke',
      'https://api.example.com/v1',
      'https://api.example.com:8443/v1/joke',
      'https://api.example.com:80/v1/joke',
      'https://api.example.com.evil.test/v1/joke',
      'https://example.com/v1/joke',
    ].map(key)
    expect(new Set(keys).size).toBe(keys.length)
  })

  test.each([
    ['', /absolute/],
    ['/a', /absolute/],
    ['api.example.com/a', /absolute/],
    ['//api.example.com/a', /absolute/],
    ['https:api.example.com/a', /absolute/],
    ['ftp://api.example.com/a', /absolute/],
    ['mcp://tool/joke', /absolute/],
    ['javascript:alert(1)', /absolute/],
    ['file:///etc/passwd', /absolute/],
    ['https://', /valid/],
    ['https://:80/', /valid/],
    ['https://[::1/a', /valid/],
    ['https://a.b:99999/', /valid/],
    ['https://a%00b/', /valid/],
    ['https://user@api.example.com/a', /user/],
    ['https://:secret@api.example.com/a', /user/],
    [' https://api.example.com/a', /blanks/],
    ['https://api.example.com/a b', /blanks/],
    ['https://api.example.com/a\n', /blanks/],
    ['https://api.ex\tample.com/a', /blanks/],
    ['https://api.example.com\\a', /backslash/],
    [`https://api.example.com/${'a'.repeat(2048)}`, /2048/],
    [`https://api.example.com/${'é'.repeat(1000)}`, /2048/],
  ])('parseResourceUrl refuses the text %p', (text, message) => {
    expect(() => parseResourceUrl(text)).toThrow(message)
    expect(() => parseResourceUrl(text)).toThrow(ResourceUrlError)
  })
})

describe('a resource URL that is too long is refused', () => {
  const ofLength = (length: number) => 'https://api.example.com/'.padEnd(length, 'a')

  test('a URL may have at most 2,048 characters, including parts such as the query that its normal form omits', () => {
    expect(parseResourceUrl(ofLength(2048)).url).toBe(ofLength(2048))
    expect(() => parseResourceUrl(ofLength(2049))).toThrow('must be at most 2048 characters')
    const withQuery = `${ofLength(2040)}?`
    expect(() => parseResourceUrl(withQuery.padEnd(2049, 'q'))).toThrow('2048')
    expect(parseResourceUrl(withQuery.padEnd(2048, 'q')).url).toBe(ofLength(2040))
  })

  test('a URL may be 2,048 characters long after percent-encoding', () => {
    const encoded = (rest: number) =>
      `https://api.example.com/${'é'.repeat(300)}${'a'.repeat(rest)}`
    const most = 2048 - 'https://api.example.com/'.length - 300 * 6
    expect(parseResourceUrl(encoded(most)).url).toHaveLength(2048)
    expect(() => parseResourceUrl(encoded(most + 1))).toThrow('2048')
  })
})

describe('the service accepts as a paid resource only an http URL or the URI of an MCP tool', () => {
  test('a paid resource is the unchanged URI of an MCP tool, or an http URL in its normal form', () => {
    const tool = `mcp://tool/${'a'.repeat(128)}`
    expect(parsePaidResource(tool)).toEqual({ url: tool, matchKey: tool })
    expect(parsePaidResource('HTTPS://API.example.com/a?x')).toEqual({
      url: 'https://api.example.com/a',
      matchKey: 'api.example.com/a',
    })
    expect([isMcpTool(tool), isMcpTool('https://api.example.com/a')]).toEqual([true, false])
  })

  test.each([
    'mcp://tool/',
    `mcp://tool/${'a'.repeat(129)}`,
    'mcp://tool/a b',
    'mcp://tools/a',
    'MCP://tool/a',
    'mcp:tool/a',
  ])('the resource %p is refused, and the error shows the form of an MCP tool', (text) => {
    expect(() => parsePaidResource(text)).toThrow(/^must be mcp:\/\/tool\/NAME/)
  })

  test('a paid resource with a URL scheme other than http, https or mcp is refused', () => {
    expect(() => parsePaidResource('ftp://api.example.com/a')).toThrow('absolute')
  })
})
