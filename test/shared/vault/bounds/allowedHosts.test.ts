/**
 * Tests the forms of allowed hosts, and compares generated lists of allowed hosts with a naive model. A narrower list of
 * hosts must not allow a host that the wider list forbids.
 */
import { describe, expect, test } from 'bun:test'
import {
  effectiveHosts,
  isAllowedHost,
  meetHosts,
  parseAllowedHost,
} from '../../../../shared/vault/bounds/allowedHosts.ts'
import { common, isWithin } from '../../../../shared/vault/bounds/narrowing.ts'
import { createRandom } from '../../../chaos/random.ts'

const { pick, int, chance } = createRandom(20_261_122, 'hosts')
const LABELS = ['a', 'b', 'aa', 'example', 'com', 's3', 'amazonaws']
const name = (most: number) => Array.from({ length: int(2, most) }, () => pick(LABELS)).join('.')
const port = () => (chance(0.3) ? `:${pick(['8443', '443', '84'])}` : '')
const host = (most = 5) => parseAllowedHost(`${name(most)}${port()}`)!
const entry = () => parseAllowedHost(`${chance(0.5) ? '*.' : ''}${name(4)}${port()}`)!
const entries = () => Array.from({ length: int(0, 4) }, entry)

/** Compares a host with the allowed hosts, one DNS label after another. */
function passes(list: readonly string[], wanted: string): boolean {
  const labelsOf = (text: string) => text.split(':')[0]!.split('.').toReversed()
  return list.some((one) => {
    if ((one.split(':')[1] ?? '') !== (wanted.split(':')[1] ?? '')) return false
    const [of, to] = [labelsOf(one), labelsOf(wanted)]
    if (of.at(-1) !== '*') return of.join('.') === to.join('.')
    return to.length >= of.length && of.slice(0, -1).every((label, n) => label === to[n])
  })
}

/** Returns hosts that just match or just miss the entries of a list of allowed hosts, and random hosts. */
const hostsNear = (list: readonly string[]) => [
  ...list.flatMap((one) => {
    const base = one.replace(/^\*\./, '')
    return [
      base,
      `a.${base}`,
      `b.a.${base}`,
      `a${base}`,
      base.replace(/:.*/, ''),
      `${base.replace(/:.*/, '')}:8443`,
    ]
  }),
  ...Array.from({ length: 10 }, () => host()),
]

test('in a list of allowed hosts, a wildcard does not count as narrower than an exact host name', () => {
  expect(isWithin(meetHosts, ['*.s3.amazonaws.com'], ['s3.amazonaws.com'])).toBe(false)
  expect(isWithin(meetHosts, ['s3.amazonaws.com'], ['*.s3.amazonaws.com'])).toBe(false)
  expect(isWithin(meetHosts, ['*.a.example.com', 'b.example.com'], ['*.example.com'])).toBe(true)
  expect(isWithin(meetHosts, ['*.example.com:8443'], ['*.example.com'])).toBe(false)
  expect(isWithin(meetHosts, [], [])).toBe(true)
  expect(isWithin(meetHosts, ['a.test'], [])).toBe(false)
})

test('for 5,000 random pairs of host lists, the list that counts as narrower allows no host that the wider list refuses', () => {
  const wrong: unknown[] = []
  let narrower = 0
  for (let n = 0; n < 5_000; n++) {
    const present = entries()
    const wanted = chance(0.5) ? entries() : present.filter(() => chance(0.5))
    const hosts = hostsNear([...present, ...wanted])
    for (const one of hosts) {
      if (isAllowedHost(present, one) !== passes(present, one)) wrong.push({ present, one })
    }
    const both = common(meetHosts, wanted, present)
    for (const one of hosts) {
      const inBoth = passes(wanted, one) && passes(present, one)
      if (passes(both, one) !== inBoth) wrong.push({ wanted, present, both, one })
    }
    if (!isWithin(meetHosts, both, present) || !isWithin(meetHosts, both, wanted))
      wrong.push({ both })
    const isSubset = hosts.every((one) => !passes(wanted, one) || passes(present, one))
    const judged = isWithin(meetHosts, wanted, present)
    if (judged) narrower++
    if (judged && !isSubset) wrong.push({ wanted, present })
  }
  expect(wrong.slice(0, 3)).toEqual([])
  expect(narrower).toBeGreaterThan(1_000)
})

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
  ])('the allowed host %s is stored as %s', (text, host) =>
    expect(parseAllowedHost(text)).toBe(host),
  )

  test('an allowed host has at most 260 characters', () => {
    const label = 'a'.repeat(63)
    const name = (length: number) => `${[label, label, label, label].join('.')}:8443`.slice(-length)
    expect(parseAllowedHost(name(260))).not.toBeNull()
    expect(parseAllowedHost(`a${name(260)}`)).toBeNull()
  })
})

describe('a text that is not only a host name with an optional port does not count as an allowed host', () => {
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
  ])('a credential cannot have an allowed host %s', (_name, text) =>
    expect(parseAllowedHost(text)).toBeNull(),
  )
})

describe('a credential may reach the hosts in its list, or without a list the host of its own web address', () => {
  test('a credential may reach only the hosts in its list, even if the list is empty and the credential has an address', () => {
    expect(effectiveHosts(['a.example'], { uri: 'https://b.example/' })).toEqual(['a.example'])
    expect(effectiveHosts([], { uri: 'https://b.example/' })).toEqual([])
  })

  test('a credential without a list of hosts may reach the host of its https address', () => {
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
  ])('a credential without a list of hosts may reach no host if its address is %p', (uri) =>
    expect(effectiveHosts(null, { uri })).toEqual([]),
  )
})
