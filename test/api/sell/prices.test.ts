/** Tests which paths a price file puts up for sale. */
import { expect, test } from 'bun:test'
import { readPrices } from '../../../api/sell/prices.ts'
import { normalPath } from '../../../api/sell/sellPath.ts'

test('a pattern matches the normal form of the path that it names', () => {
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
