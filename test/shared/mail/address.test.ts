import { expect, test } from 'bun:test'
import {
  addressKey,
  domainOf,
  isEnvelopeAddress,
  parseAddress,
  parseMailbox,
  recipientKeys,
  restoreQuotes,
} from '../../../shared/mail/address.ts'

test('the parser reads one plain email address, and converts its domain to lower-case ASCII', () => {
  expect(parseAddress('Ada.Lovelace+tag@Example.COM')).toBe('Ada.Lovelace+tag@example.com')
  expect(parseAddress("o'neil!#$%&*/?=^_`{|}~-@x.test")).toBe("o'neil!#$%&*/?=^_`{|}~-@x.test")
  expect(parseAddress('a@localhost')).toBe('a@localhost')
  expect(parseAddress('a@bücher.example')).toBe('a@xn--bcher-kva.example')
  expect(parseAddress(`${'x'.repeat(64)}@x.test`)).not.toBeNull()
})

test('an email address has at most 254 characters, even after the conversion of its domain to ASCII', () => {
  const label = 'd'.repeat(63)
  const ofLength = (length: number) =>
    `${'x'.repeat(64)}@${label}.${label}.${'d'.repeat(length - 193)}`
  expect(parseAddress(ofLength(254))).toBe(ofLength(254))
  expect(parseAddress(ofLength(255))).toBeNull()
  const domain = `${'bücher.'.repeat(14)}${'d'.repeat(35)}.test`
  const local = 254 - 1 - 14 * 14 - 40
  expect(parseAddress(`${'x'.repeat(local)}@${domain}`)).toHaveLength(254)
  expect(parseAddress(`${'x'.repeat(local + 1)}@${domain}`)).toBeNull()
})

test('a display name has at most 200 characters and no control character', () => {
  const name = 'N'.repeat(200)
  const address = `${'x'.repeat(64)}@${`${'d'.repeat(63)}.`.repeat(2)}${'d'.repeat(61)}`
  expect(parseMailbox(`${name}  <${address}>`)).toEqual({ address, name })
  expect(parseMailbox(`${name}   <${address}>`)).toBeNull()
  expect(parseMailbox(`${name}N <a@b.test>`)).toBeNull()
  for (const text of [
    'A\u0007 <a@b.test>',
    '"A\u200e" <a@b.test>',
    'A <a@b>c>',
    'A <a b@c.test>',
  ]) {
    expect([text, parseMailbox(text)]).toEqual([text, null])
  }
  expect(parseMailbox('<a@b.test>')).toEqual({ address: 'a@b.test', name: null })
  expect(parseMailbox('"Doe, J\\"" <a@b.test>')).toEqual({ address: 'a@b.test', name: 'Doe, J"' })
})

test('a quoted local part of atoms, dots and spaces is accepted, and unnecessary quotes are removed', () => {
  expect(parseAddress('"john doe"@Example.com')).toBe('"john doe"@example.com')
  expect(parseAddress('"a..b"@x.test')).toBe('"a..b"@x.test')
  expect(parseAddress('"ann.lee"@x.test')).toBe('ann.lee@x.test')
  expect(restoreQuotes('john doe@x.test')).toBe('"john doe"@x.test')
  expect(restoreQuotes('a@b@x.test')).toBe('"a@b"@x.test')
  expect(restoreQuotes(' @x.test')).toBe('" "@x.test')
  for (const text of ['ann@x.test', '"john doe"@x.test', 'ü@x.test', 'x', '@x.test'])
    expect(restoreQuotes(text)).toBe(text)
})

test('an envelope address may have a long local part or an IP address as its domain, but must be one address without angle brackets', () => {
  const long = `ada+caf_=${'x'.repeat(60)}=mail.example@gmail.com`
  for (const text of [
    long,
    `${'x'.repeat(247)}@x.test`,
    'a@x.test',
    'a@bücher.example',
    'r@[192.0.2.1]',
    'r@[IPv6:2001:db8::1]',
  ])
    expect([text, isEnvelopeAddress(text)]).toEqual([text, true])
  for (const text of [
    ...['', 'a', '@x.test', 'a@', 'a@x.test, b@x.test', 'a b@x.test', '<a@x.test>', 'ü@x.test'],
    ...['a@b@x.test', 'a@x.test\r\n', 'a@[x.test]', 'a@-x.test', `${'x'.repeat(248)}@x.test`],
  ])
    expect([text, isEnvelopeAddress(text)]).toEqual([text, false])
})

test('a text that is not exactly one plain email address is refused', () => {
  const bad = [
    '',
    '@',
    'a',
    'a@',
    '@b.test',
    'a@b.test, c@d.test',
    'a@b.test;c@d.test',
    '<a@b.test>',
    'Ada <a@b.test>',
    'a@b.test\r\nBcc: c@d.test',
    'a@b.test\n',
    ' a@b.test',
    'a b@c.test',
    '"a@b"@c.test',
    '"a,b"@c.test',
    '"a\\"b"@c.test',
    '"a\r\nb"@c.test',
    '""@c.test',
    '"a"b@c.test',
    'a(comment)@b.test',
    'a@b.test(comment)',
    'a@@b.test',
    'a..b@c.test',
    '.a@c.test',
    'a.@c.test',
    'a@-b.test',
    'a@b..test',
    'a@b_c.test',
    'a@[127.0.0.1]',
    'a@b.test\0',
    'ä@b.test',
    'a@b/c.test',
    'a@b%c.test',
    `${'x'.repeat(65)}@x.test`,
    `a@${'x'.repeat(64)}.test`,
    `a@${'x.'.repeat(130)}test`,
  ]
  for (const text of bad) expect([text, parseAddress(text)]).toEqual([text, null])
})

test('the service looks up a recipient by the full address, and then by the address without the +tag', () => {
  expect(recipientKeys('Agent+Orders@Mail.Test')).toEqual([
    'agent+orders@mail.test',
    'agent@mail.test',
  ])
  expect(recipientKeys('agent@mail.test')).toEqual(['agent@mail.test'])
  expect(recipientKeys('+x@mail.test')).toEqual(['+x@mail.test'])
  expect(recipientKeys('x@mail+tag.test')).toEqual(['x@mail+tag.test'])
  expect(recipientKeys('no+domain')).toEqual(['no+domain'])
  expect(domainOf('a@B.Test')).toBe('b.test')
})

test('the Unicode form and the ASCII form of an email address count as the same address', () => {
  for (const text of ['Ada@bücher.example', 'ada@BÜCHER.example', 'ADA@XN--BCHER-KVA.example']) {
    expect(addressKey(text)).toBe('ada@xn--bcher-kva.example')
    expect(domainOf(text)).toBe('xn--bcher-kva.example')
  }
  expect(recipientKeys('ada+x@bücher.example')).toEqual([
    'ada+x@xn--bcher-kva.example',
    'ada@xn--bcher-kva.example',
  ])
  expect(addressKey('Nobody')).toBe('nobody')
})
