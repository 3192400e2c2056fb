/** Tests which paths a price file offers for sale. */
import { expect, test } from 'bun:test'
import { readPrices } from '../../../api/sell/prices.ts'
import { normalPath } from '../../../api/sell/sellPath.ts'

test('a path pattern in the price file matches every spelling of a path that has the same normalised form', () => {
  const { of, all } = readPrices(
    JSON.stringify({
      '/münchen/*': '0.01',
      '/a b': '0.02',
      '/%7euser/%c3%a4': '0.03',
      '/{köln,bonn}/wetter': '0.04',
    }),
  )
  const amountAt = (path: string) =>
    of(normalPath(new URL(path, 'https://api.example').pathname))?.amount
  expect(amountAt('/münchen/heute')).toBe('0.01')
  expect(amountAt('/m%c3%bcnchen/heute')).toBe('0.01')
  expect(amountAt('/a b')).toBe('0.02')
  expect(amountAt('/~user/ä')).toBe('0.03')
  expect([amountAt('/köln/wetter'), amountAt('/bonn/wetter')]).toEqual(['0.04', '0.04'])
  expect(amountAt('/m')).toBeUndefined()
  expect(all.map(({ registered }) => registered)).toEqual([
    '/m%C3%BCnchen/',
    '/a%20b',
    '/~user/%C3%A4',
    '/',
  ])
})

test('a misspelt path that resembles an expensive path is refused, so that it is not sold at the lower price of a later pattern', () => {
  const { of } = readPrices(
    JSON.stringify({ '/reports/**': '0.05', '/Weather': '0.03', '/tips/': '0.01', '/**': '0.01' }),
  )
  for (const path of [
    '/Reports/secret',
    '/REPORTS/2026/secret',
    '/reports;v=1/secret',
    '/weather',
    '/Weather/',
    '/Weather;v=1',
  ]) {
    expect(() => of(path), path).toThrow('the path must be spelt exactly')
  }
  for (const [path, amount] of [
    ['/reports/secret', '0.05'],
    ['/reports/Secret/', '0.05'],
    ['/Weather', '0.03'],
    ['/tips', '0.01'],
    ['/TIPS/', '0.01'],
    ['/', '0.01'],
    ['/Others/', '0.01'],
  ] as const) {
    expect([path, of(path)?.amount]).toEqual([path, amount])
  }
})

test('an encoded spelling of an expensive path is refused, because a server may decode the path', () => {
  const { of } = readPrices(
    JSON.stringify({
      '/@premium/**': '1.00',
      '/reports/q1+q2': '5',
      '/a:b,c': '2',
      '/stars/%2A': '3',
      '/plain/**': '4',
      '/with;v=1/**': '6',
      '/**': '0.01',
    }),
  )
  for (const path of [
    '/%40premium/report',
    '/%40PREMIUM/report',
    '/reports/q1%2Bq2',
    '/a%3Ab,c',
    '/a:b%2Cc',
    '/stars/*',
    '/plain%3Bv=1/x',
    '/with%3bv=1/x',
  ]) {
    expect(() => of(normalPath(path)), path).toThrow('the path must be spelt exactly')
  }
  for (const [path, amount] of [
    ['/@premium/report', '1.00'],
    ['/reports/q1+q2', '5'],
    ['/a:b,c', '2'],
    ['/stars/%2a', '3'],
    ['/stars/anything', '0.01'],
    ['/free%2Bmore', '0.01'],
  ] as const) {
    expect([path, of(normalPath(path))?.amount]).toEqual([path, amount])
  }
})

test('a price file has at most 1,000 prices', () => {
  const file = (count: number) =>
    JSON.stringify(
      Object.fromEntries(Array.from({ length: count }, (_, n) => [`/path${n}`, '0.01'])),
    )
  expect(readPrices(file(1_000)).all).toHaveLength(1_000)
  expect(() => readPrices(file(1_001))).toThrow()
})

test('if only the path /Weather is for sale, the path /weather is not for sale', () => {
  expect(readPrices('{"/Weather": "0.03"}').of('/weather')).toBeNull()
})
