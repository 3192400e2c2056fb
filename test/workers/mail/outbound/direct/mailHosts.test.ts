/** Tests that the mail hosts of a domain are public, in order of preference, and limited in number. */
import { expect, test } from 'bun:test'
import { findMailHosts } from '../../../../../workers/mail/outbound/direct/mailHosts.ts'
import { fakeDns, type Zone } from '../../../../support/mail/fakeDns.ts'

const find = (zone: Zone, options: { allowPrivate?: boolean } = {}) =>
  findMailHosts('a.test', {
    dns: fakeDns(zone),
    ownName: 'mx.own.test',
    allowPrivate: false,
    ...options,
  })
const addressesOf = async (...order: Parameters<typeof find>) => {
  const found = await find(...order)
  return found.kind === 'hosts' ? found.hosts.map(({ address }) => address) : [found.error]
}
const faultOf = async (...order: Parameters<typeof find>) => {
  const found = await find(...order)
  return found.kind === 'hosts' ? 'no fault' : `${found.kind}: ${found.error}`
}

test('the sender tries at most three addresses of one mail host and six addresses of one domain', async () => {
  const many = (net: number) => Array.from({ length: 4 }, (_, n) => `8.8.${net}.${n + 1}`)
  const a = { 'x.test': many(1), 'y.test': many(2), 'z.test': many(3) }
  const mx: Zone['mx'] = {
    'a.test': [
      [1, 'x.test'],
      [2, 'y.test'],
      [3, 'z.test'],
    ],
  }
  expect(await addressesOf({ mx, a })).toEqual([...many(1).slice(0, 3), ...many(2).slice(0, 3)])
})

test('the sender looks up the addresses of only the ten most preferred mail exchangers of a domain', async () => {
  const exchangers = Array.from({ length: 11 }, (_, n): [number, string] => [n, `x${n}.test`])
  const mx = { 'a.test': exchangers.toReversed() }
  expect(await faultOf({ mx, a: { 'x10.test': ['8.8.8.1'] } })).toMatch(/^none: 550 5.4.4/)
  expect(await addressesOf({ mx, a: { 'x9.test': ['8.8.8.1'] } })).toEqual(['8.8.8.1'])
})

test('the sender uses only public addresses of a mail host, unless private addresses are allowed', async () => {
  const zone: Zone = {
    mx: {
      'a.test': [
        [1, 'x.test'],
        [2, '10.0.0.1'],
      ],
    },
    a: { 'x.test': ['127.0.0.1', '8.8.8.1'] },
  }
  expect(await addressesOf(zone)).toEqual(['8.8.8.1'])
  expect(await addressesOf(zone, { allowPrivate: true })).toEqual([
    '127.0.0.1',
    '8.8.8.1',
    '10.0.0.1',
  ])
  const hidden = {
    mx: { 'a.test': [[1, 'x.test']] as [number, string][] },
    a: { 'x.test': ['10.0.0.1'] },
  }
  expect(await faultOf(hidden)).toContain('no public address')
})

test('if the service is a mail exchanger of the domain, the sender tries only mail exchangers with a better preference than the service', async () => {
  const a = { 'x.test': ['8.8.8.1'], 'y.test': ['8.8.8.2'], 'z.test': ['8.8.8.3'] }
  const with_ = (own: [number, string]): Zone => ({
    mx: { 'a.test': [[10, 'x.test'], [20, 'y.test'], [30, 'z.test'], own] },
    a,
  })
  expect(await addressesOf(with_([20, 'MX.own.test.']))).toEqual(['8.8.8.1'])
  expect(await faultOf(with_([10, 'mx.own.test']))).toContain('lead back here')
})

test('a null MX record takes effect only if the domain has no other MX record', async () => {
  const a = { 'x.test': ['8.8.8.1'], 'a.test': ['8.8.8.2'] }
  expect(await faultOf({ mx: { 'a.test': [[0, '.']] }, a })).toContain('null MX')
  const beside: Zone['mx'] = {
    'a.test': [
      [0, '.'],
      [10, 'x.test'],
    ],
  }
  expect(await addressesOf({ mx: beside, a })).toEqual(['8.8.8.1'])
  expect(await addressesOf({ a })).toEqual(['8.8.8.2'])
})

test('the sender never looks up the addresses of the DNS root (an empty host name)', async () => {
  const mx: Zone['mx'] = {
    'a.test': [
      [0, '.'],
      [10, 'x.test'],
    ],
  }
  expect(await faultOf({ mx, failing: [''] })).toStartWith('none: 550 5.4.4')
})

test('a failed DNS lookup of a mail domain is reported as the fault `unknown`, unless another mail exchanger has a usable address', async () => {
  expect(await faultOf({ failing: ['a.test'] })).toStartWith('unknown: 450 4.4.3')
  const mx: Zone['mx'] = {
    'a.test': [
      [1, 'x.test'],
      [2, 'y.test'],
    ],
  }
  expect(await faultOf({ mx, failing: ['y.test'] })).toStartWith('unknown: 450 4.4.3')
  expect(await faultOf({ mx, failing: ['y.test'], a: { 'x.test': ['10.0.0.1'] } })).toStartWith(
    'unknown: 450 4.4.3',
  )
  expect(await addressesOf({ mx, failing: ['y.test'], a: { 'x.test': ['8.8.8.1'] } })).toEqual([
    '8.8.8.1',
  ])
})

test('the error for a mail domain tells whether its mail exchangers have no address at all or no public address', async () => {
  const mx: Zone['mx'] = { 'a.test': [[1, 'x.test']] }
  expect(await faultOf({ mx, a: {} })).toBe(
    'none: 550 5.4.4 The mail exchangers of the domain have no address',
  )
  expect(await faultOf({ mx, a: { 'x.test': ['10.0.0.1'] } })).toBe(
    'none: 550 5.4.4 The mail exchangers of the domain have no public address',
  )
  expect(await faultOf({})).toStartWith('none: 550 5.1.2 The domain does not exist')
})
