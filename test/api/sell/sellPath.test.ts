/** Tests the canonical form of a URL path, and the prices of path patterns (globs). */
import { expect, test } from 'bun:test'
import { onePrice, PriceError, readPrices } from '../../../api/sell/prices.ts'
import { normalPath, PathError } from '../../../api/sell/sellPath.ts'

test.each([
  ['/weather', '/weather'],
  ['/%77eather', '/weather'],
  ['/a%20b', '/a%20b'],
  ['/caf%c3%a9', '/caf%C3%A9'],
  ['/a.b/..c', '/a.b/..c'],
  ['/a;b=1/..c;d', '/a;b=1/..c;d'],
])(
  'the canonical form of the path %s is %s, and does not change if it is made canonical again',
  (given, wanted) => {
    expect(normalPath(given)).toBe(wanted)
    expect(normalPath(wanted)).toBe(wanted)
  },
)

test.each([
  '/a%2fb',
  '/a%5Cb',
  '/a\\b',
  '/%252e',
  '/a%00',
  '/a%7f',
  '/a%zz',
  '/a%4',
  '/../a',
  '/a/%2e%2e/b',
  '/a/.',
  '/a/..;/b',
  '/a/%2e%2E;x=1/b',
  '/a/..%3b/b',
  '/a/.;',
  '/a/;x/b',
  '//a',
  '/a/%EF%BC%8E%EF%BC%8E/b',
  '/a/%E2%80%A5/b',
  '/a/%c0%ae%c0%ae/b',
  '/a/..%20/b',
])('the paywall refuses a request for the path %s', (given) => {
  expect(() => normalPath(given)).toThrow(PathError)
})

test('the first glob (path pattern) that matches a path sets its price, and the fixed part of the glob is registered as an endpoint', () => {
  const { of, all } = readPrices(
    JSON.stringify({
      '/reports/free': '0.01',
      '/reports/*.pdf': { amount: '0.02', description: 'A report' },
      '/data/**': '1.5',
    }),
  )
  expect(all.map(({ registered }) => registered)).toEqual(['/reports/free', '/reports/', '/data/'])
  expect(of('/reports/free')?.amount).toBe('0.01')
  expect(of('/reports/a.pdf')).toMatchObject({ amount: '0.02', description: 'A report' })
  expect(of('/reports/a/b.pdf')).toBeNull()
  expect(of('/data/a/b')?.amount).toBe('1.5')
  expect(of('/other')).toBeNull()
  expect(onePrice('/a', '0.000001').of('/a')?.amount).toBe('0.000001')
})

test.each([
  ['no JSON', '{', /must be JSON/],
  ['a list', '[]', /the file/],
  ['a path without a slash', '{"a":"1"}', /"a"/],
  ['no money', '{"/a":"0.000000"}', /"\/a": must be decimal USDC/],
  ['seven places', '{"/a":"0.0000001"}', /must be decimal USDC/],
  ['an unknown field', '{"/a":{"amount":"1","prise":"2"}}', /"\/a"/],
  ['two amounts for one registered path', '{"/a/*.x":"1","/a/*.y":"2"}', /must have one amount/],
])('a price file with this fault is refused: "%s"', (_, json, message) => {
  expect(() => readPrices(json)).toThrow(PriceError)
  expect(() => readPrices(json)).toThrow(message)
})
