/** Tests the short texts that the metadata of an endpoint may contain. */
import { describe, expect, test } from 'bun:test'
import {
  distinctTags,
  iconUrlFault,
  isRouteTemplate,
  isWord,
} from '../../../../shared/till/bazaar/words.ts'

describe('a name or tag in an endpoint’s metadata is refused unless it is a short ASCII text', () => {
  test('a name or tag in an endpoint’s metadata has 1 to 32 characters of printable ASCII', () => {
    for (const word of ['a', ' ', '~', 'Weather: rain & sun', 'x'.repeat(32)])
      expect([word, isWord(word)]).toEqual([word, true])
    for (const word of ['', 'x'.repeat(33), 'é', '\x1f', '\x7f', 'a\n', '🦉', 'é'.repeat(33)])
      expect([word, isWord(word)]).toEqual([word, false])
  })

  test('a name or tag in an endpoint’s metadata must be a text', () => {
    for (const value of [undefined, null, 7, true, ['a'], {}])
      expect([value, isWord(value)]).toEqual([value, false])
  })
})

describe('the service keeps at most five different tags of an endpoint', () => {
  test('an endpoint’s tags keep their order, and of tags that differ only in letter case the first is kept', () => {
    expect(distinctTags(['Rain', 'RAIN', 'rain', 'sun'])).toEqual(['Rain', 'sun'])
    expect(distinctTags(['Rain', 'sun', 'RAIN', 'wind', 'rain'])).toEqual(['Rain', 'sun', 'wind'])
    expect(distinctTags([])).toEqual([])
  })

  test('only the first five tags of an endpoint are kept', () => {
    expect(distinctTags(['a', 'b', 'c', 'd', 'e', 'f'])).toEqual(['a', 'b', 'c', 'd', 'e'])
    expect(distinctTags(['a', 'A', 'b', 'c', 'd', 'e'])).toEqual(['a', 'b', 'c', 'd', 'e'])
  })

  test('the function that reads the tags of an endpoint does not change the list of its caller', () => {
    const given = ['b', 'a']
    distinctTags(given)
    expect(given).toEqual(['b', 'a'])
  })
})

describe('the icon of an endpoint is refused unless its URL is short and public', () => {
  const NO_URL = 'be an http or https URL of ASCII characters'
  const NO_HOST = 'name a host, and no IP address'

  test.each([
    'https://seller.example/icon.png',
    'http://seller.example',
    'HTTPS://SELLER.EXAMPLE:8443/i?x=1#y',
    'https://1.2.3.4.example/',
    'https://xlocalhost/',
    'https://localhost.example/',
    'https://seller.example/[x]',
  ])('the icon URL of an endpoint may be %s', (url) => {
    expect(iconUrlFault(url)).toBeNull()
  })

  test('the icon URL of an endpoint has at most 2,048 characters', () => {
    const longest = 'https://seller.example/'.padEnd(2_048, 'x')
    expect(iconUrlFault(longest)).toBeNull()
    expect(iconUrlFault(`${longest}x`)).toBe('be at most 2048 characters')
  })

  test.each([
    ['', NO_URL],
    ['/icon.png', NO_URL],
    ['ftp://seller.example/icon.png', NO_URL],
    ['data:image/png;base64,AA', NO_URL],
    ['https:seller.example/icon.png', NO_URL],
    ['https://seller.example/a b', NO_URL],
    ['https://seller.example/é', NO_URL],
    ['https://seller.example/\n', NO_URL],
    ['https://', NO_URL],
    ['https://seller.example:99999/', NO_URL],
    ['https://ada@seller.example/', 'hold no user name or password'],
    ['https://:secret@seller.example/', 'hold no user name or password'],
    ['https://127.0.0.1/', NO_HOST],
    ['https://2130706433/', NO_HOST],
    ['https://0x7f.1/', NO_HOST],
    ['https://[::1]/', NO_HOST],
    ['https://localhost/', NO_HOST],
    ['https://LOCALHOST./', NO_HOST],
    ['https://localhost.localdomain/', NO_HOST],
    ['https://ip6-localhost/', NO_HOST],
    ['https://ip6-loopback/', NO_HOST],
  ])('the icon URL %p is refused, because it must %s', (url, fault) => {
    expect(iconUrlFault(url)).toBe(fault)
  })
})

describe('a path template of an endpoint is refused unless it is short and cannot lead to another path or host', () => {
  /** Percent-encodes the percent signs of a text again, the given number of times. */
  const encoded = (text: string, times: number) => text.replaceAll('%', `%${'25'.repeat(times)}`)

  test.each(['/weather/:city', '/v1.2/a_b-c~d/:x', '/a%20b', '/a%2Fb', '/.', '/a:/b'])(
    'the path template of an endpoint may be %s',
    (text) => {
      expect(isRouteTemplate(text)).toBe(true)
    },
  )

  test.each([
    '',
    '/',
    'weather/:city',
    'https://seller.example/weather',
    '/weather/{city}',
    '/a b',
    '/é',
    '/a?b=1',
    '/a\n',
    '/a/../b',
    '/a..b',
    '/a/%2e%2E/b',
    '/a/https://other.example',
    '/a/https%3A//other.example',
    '/a%',
    '/a%ff',
    '/a%25ff',
  ])('the path template of an endpoint must not be %p', (text) => {
    expect(isRouteTemplate(text)).toBe(false)
  })

  test('the path template of an endpoint has at most 512 characters', () => {
    expect(isRouteTemplate('/'.padEnd(512, 'x'))).toBe(true)
    expect(isRouteTemplate('/'.padEnd(513, 'x'))).toBe(false)
  })

  test('a path template may be percent-encoded at most four times, and no decoded form may contain `..` or `://`', () => {
    for (let times = 0; times < 4; times++) {
      expect([times, isRouteTemplate(encoded('/a%20b', times))]).toEqual([times, true])
      expect([times, isRouteTemplate(encoded('/%2e%2e', times))]).toEqual([times, false])
      expect([times, isRouteTemplate(encoded('/a%3a//b', times))]).toEqual([times, false])
    }
    expect(isRouteTemplate(encoded('/a%20b', 4))).toBe(false)
  })
})
