/** Tests whether the results of sender authentication (SPF, DKIM, DMARC) prove the author of a mail. */
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

test('an authentication result is a word that RFC 8601 defines, and any other word counts as none', () => {
  expect(authenticationWord('softfail')).toBe('softfail')
  expect(authenticationWord('PASS')).toBe('none')
  expect(authenticationWord('constructor')).toBe('none')
  expect(authenticationWord(undefined)).toBe('none')
})

test('mail from an inbox of this service counts as internal, and mail without sender authentication does not', () => {
  expect(INTERNAL).toEqual({ ...CHECKED, internal: true })
  expect(UNCHECKED).toMatchObject({ spf: 'temperror', arc: 'temperror', internal: false })
  expect(UNREADABLE).toMatchObject({ dkim: 'permerror', dmarc: 'permerror', internal: false })
})

test('an authentication result counts as uncertain if SPF, DKIM or DMARC could not be checked because a DNS query got no answer', () => {
  for (const check of ['spf', 'dkim', 'dmarc']) {
    expect(isUnsure({ ...CHECKED, [check]: 'temperror' })).toBe(true)
  }
  expect(isUnsure({ ...CHECKED, arc: 'temperror' })).toBe(false)
  expect(isUnsure({ ...CHECKED, spf: 'permerror' })).toBe(false)
})

describe('if sender authentication does not prove the address in From, the address may be forged', () => {
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

  test('an address in From is not forged if authentication proves its domain', () => {
    expect(forged({})).toBe(false)
  })

  test('an address in From may be forged if no check proves the domain of the address', () => {
    expect(forged({}, unproven)).toBe(true)
  })

  test('an address in From does not count as forged in mail from an inbox of this service, or if DMARC passes', () => {
    expect(forged({ internal: true, dmarc: 'fail' }, { ...unproven, ...ofOurs })).toBe(false)
    expect(forged({ dmarc: 'pass' }, { ...unproven, ...ofOurs })).toBe(false)
  })

  test('an address in From may be forged if DMARC fails or cannot be evaluated', () => {
    expect(forged({ dmarc: 'fail' })).toBe(true)
    expect(forged({ dmarc: 'permerror' })).toBe(true)
    expect(forged({ dmarc: 'temperror' })).toBe(false)
  })

  test('an address in From may be forged if mail from outside names a domain of this service', () => {
    expect(forged({}, ofOurs)).toBe(true)
  })

  test('a missing address in From does not count as forged, unless DMARC fails', () => {
    expect(forged({}, { ...unproven, from: [] })).toBe(false)
    expect(forged({ dmarc: 'fail' }, { from: [] })).toBe(true)
  })
})
