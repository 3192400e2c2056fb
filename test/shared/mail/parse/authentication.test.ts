/** Tests what the results of sender authentication say about the author of a mail. */
import { describe, expect, test } from 'bun:test'
import {
  type Authentication,
  authenticationWord,
  INTERNAL,
  isForged,
  isUnsure,
  UNCHECKED,
  UNREADABLE,
} from '../../../../shared/mail/parse/authentication.ts'

const CHECKED: Authentication = {
  spf: 'none',
  dkim: 'none',
  dmarc: 'none',
  arc: 'none',
  internal: false,
}

test('a result word is a word of RFC 8601, and otherwise none', () => {
  expect(authenticationWord('softfail')).toBe('softfail')
  expect(authenticationWord('PASS')).toBe('none')
  expect(authenticationWord('constructor')).toBe('none')
  expect(authenticationWord(undefined)).toBe('none')
})

test('mail of an inbox is internal, and mail that was not checked is not', () => {
  expect(INTERNAL).toEqual({ ...CHECKED, internal: true })
  expect(UNCHECKED).toMatchObject({ spf: 'temperror', arc: 'temperror', internal: false })
  expect(UNREADABLE).toMatchObject({ dkim: 'permerror', dmarc: 'permerror', internal: false })
})

test('a check is unsure if SPF, DKIM or DMARC got no answer', () => {
  for (const check of ['spf', 'dkim', 'dmarc']) {
    expect(isUnsure({ ...CHECKED, [check]: 'temperror' })).toBe(true)
  }
  expect(isUnsure({ ...CHECKED, arc: 'temperror' })).toBe(false)
  expect(isUnsure({ ...CHECKED, spf: 'permerror' })).toBe(false)
})

describe('the address in From', () => {
  const forged = (
    given: Partial<Authentication>,
    { isAligned = true, from = ['a.example'], own = ['mail.example'] } = {},
  ) =>
    isForged(
      { authentication: { ...CHECKED, ...given }, isAligned },
      { fromDomains: from, ownDomains: own },
    )
  const unproven = { isAligned: false }
  const ofOurs = { from: ['a.example', 'mail.example'] }

  test('is not forged if its domain is proven', () => {
    expect(forged({})).toBe(false)
  })

  test('may be forged if nothing proves its domain', () => {
    expect(forged({}, unproven)).toBe(true)
  })

  test('is not forged in internal mail, nor if DMARC passes', () => {
    expect(forged({ internal: true, dmarc: 'fail' }, { ...unproven, ...ofOurs })).toBe(false)
    expect(forged({ dmarc: 'pass' }, { ...unproven, ...ofOurs })).toBe(false)
  })

  test('may be forged if DMARC fails or does not apply', () => {
    expect(forged({ dmarc: 'fail' })).toBe(true)
    expect(forged({ dmarc: 'permerror' })).toBe(true)
    expect(forged({ dmarc: 'temperror' })).toBe(false)
  })

  test('may be forged if outside mail names a domain of this service', () => {
    expect(forged({}, ofOurs)).toBe(true)
  })

  test('is not forged if it is absent, unless DMARC fails', () => {
    expect(forged({}, { ...unproven, from: [] })).toBe(false)
    expect(forged({ dmarc: 'fail' }, { from: [] })).toBe(true)
  })
})
