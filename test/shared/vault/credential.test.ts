/** Tests which contents a credential may have, and how its TOTP secret and its backup codes are stored. */
import { describe, expect, test } from 'bun:test'
import {
  CREDENTIAL_TYPES,
  CredentialInputError,
  checkContent,
  checkName,
  describeShape,
  hasTotp,
  popBackupCode,
  shownData,
  TOTP_MARKER,
  totpKeyOf,
  unusedBackupCodes,
  withoutUsedCodes,
} from '../../../shared/vault/credential.ts'

const TOTP_SECRET = 'GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ'
const OTHER_SECRET = 'MFRGGZDFMZTWQ2LKMFRGGZDFMZTWQ2LK'

/** Returns the error text for a value, or null if the value is accepted. */
function faultOf(act: () => void): string | null {
  try {
    act()
  } catch (error) {
    if (error instanceof CredentialInputError) return error.message
    throw error
  }
  return null
}
const contentFault = (type: string, data: unknown, metadata: unknown = {}) =>
  faultOf(() => checkContent({ type, data, metadata }))
/** Returns an object with the given number of nested levels. */
const nested = (levels: number): unknown => (levels === 0 ? 'end' : { next: nested(levels - 1) })

describe('the name of a credential is refused if it is too long or has forbidden characters', () => {
  const nameFault = (name: string) => faultOf(() => checkName(name))
  const text = 'name must be 1 to 128 characters without control characters'

  test('the name of a credential has 1 to 128 Unicode code points of any script', () => {
    for (const name of ['a', 'Schlüssel 鍵', '🔑'.repeat(128)]) expect(nameFault(name)).toBeNull()
    for (const name of ['', 'a'.repeat(129)]) expect(nameFault(name)).toBe(text)
  })

  test('the name of a credential has neither control characters nor half a surrogate pair', () => {
    for (const name of ['a\n', '\0', 'a\u0085', 'a\ud83d']) expect(nameFault(name)).toBe(text)
  })
})

describe('the content of a credential is refused if its type, its form or its size is wrong', () => {
  test('a credential of an unknown type is refused', () => {
    for (const type of ['CUSTOM', 'LOGIN']) expect(contentFault(type, { a: 1 })).toBeNull()
    const text = `type must be one of ${CREDENTIAL_TYPES.join(', ')}`
    for (const type of ['', 'login', 'constructor']) expect(contentFault(type, { a: 1 })).toBe(text)
  })

  test('the data and the metadata of a credential must be objects', () => {
    for (const value of [null, undefined, 'x', 7, ['x']]) {
      expect(contentFault('CUSTOM', value)).toBe('data must be a JSON object')
      // The test makes no call with undefined, because the parameter would then have its default value.
      if (value !== undefined) {
        expect(contentFault('CUSTOM', { a: 1 }, value)).toBe('metadata must be a JSON object')
      }
    }
  })

  test('the data of a credential must have at least one field', () => {
    expect(contentFault('CUSTOM', {})).toBe('data must hold at least one field')
    expect(contentFault('CUSTOM', { a: null })).toBeNull()
  })

  test('the data and metadata of a credential may be nested at most 32 levels', () => {
    expect(contentFault('CUSTOM', nested(32))).toBeNull()
    expect(contentFault('CUSTOM', nested(33))).toBe('data must not nest deeper than 32 levels')
    expect(contentFault('CUSTOM', { a: 1 }, nested(33))).toBe(
      'metadata must not nest deeper than 32 levels',
    )
  })

  test('a number in a credential is refused if JSON cannot keep all its digits', () => {
    const fault = 'must hold numbers beyond 2^53 - 1 as text: JSON numbers lose their digits'
    for (const text of ['9007199254740993', '-12345678901234567890', '1e400']) {
      const given = JSON.parse(`{"a":[{"pin":${text}}]}`)
      expect(contentFault('CUSTOM', given)).toBe(`data ${fault}`)
      expect(contentFault('CUSTOM', { a: 1 }, given)).toBe(`metadata ${fault}`)
    }
    for (const a of [2 ** 53 - 1, -1.5, 1e-7, 0, '9007199254740993']) {
      expect(contentFault('CUSTOM', { a })).toBeNull()
    }
  })

  test('a credential has at most 65,536 bytes of data and 16,384 bytes of metadata', () => {
    // The braces, the name and the quotes add eight bytes to the JSON text, and the letter `ä` takes two bytes.
    const sized = (bytes: number) => ({ a: `ä${'x'.repeat(bytes - 10)}` })
    expect(contentFault('CUSTOM', sized(65_536))).toBeNull()
    expect(contentFault('CUSTOM', sized(65_537))).toBe('data must be at most 65536 bytes of JSON')
    expect(contentFault('CUSTOM', { a: 1 }, sized(16_384))).toBeNull()
    expect(contentFault('CUSTOM', { a: 1 }, sized(16_385))).toBe(
      'metadata must be at most 16384 bytes of JSON',
    )
  })
})

describe('a known field of a credential is refused if its value has the wrong type', () => {
  test('a known text field of a credential, such as a password, must be a string', () => {
    expect(contentFault('LOGIN', { password: 'soup' })).toBeNull()
    for (const value of [7, null, ['soup'], { a: 1 }]) {
      expect(contentFault('LOGIN', { password: value })).toBe('data.password must be a string')
      expect(contentFault('LOGIN', { a: 1 }, { uri: value })).toBe('metadata.uri must be a string')
    }
  })

  test('a number field of a credential, such as a port, must contain a number or a string', () => {
    for (const port of [5432, '5432']) {
      expect(contentFault('DATABASE', { password: 'soup' }, { port })).toBeNull()
    }
    for (const port of [true, null, [5432]]) {
      expect(contentFault('DATABASE', { password: 'soup' }, { port })).toBe(
        'metadata.port must be a number or a string',
      )
    }
    expect(contentFault('CARD', { expMonth: 7 })).toBeNull()
  })

  test('the field for backup codes must be an array of strings in every credential type', () => {
    for (const field of ['backupCodes', 'usedBackupCodes']) {
      for (const codes of [[], ['a', 'b']]) {
        expect(contentFault('CUSTOM', { [field]: codes })).toBeNull()
      }
      for (const codes of ['a', ['a', 7], { 0: 'a' }, null]) {
        expect(contentFault('CUSTOM', { [field]: codes })).toBe(
          `data.${field} must be an array of strings`,
        )
      }
    }
  })

  test('an unknown field of a credential, or a field of another credential type, may contain anything', () => {
    expect(contentFault('CUSTOM', { password: 7, toString: 1 }, { port: true })).toBeNull()
    expect(contentFault('LOGIN', { port: true }, { totp: 7 })).toBeNull()
  })

  test('describeShape lists the fields of a credential type for error messages', () => {
    expect(describeShape('LOGIN')).toBe(
      'data.username, data.password, metadata.uri, metadata.username',
    )
    expect(describeShape('CUSTOM')).toBe('')
  })
})

describe('the TOTP secret of a credential is checked, and hidden when the credential is shown', () => {
  test('only a credential of the type TOTP needs a TOTP secret, in the field secret or in the field totp', () => {
    expect(contentFault('TOTP', { note: 'x' })).toBe('data.secret must hold the TOTP secret')
    expect(contentFault('TOTP', { secret: TOTP_SECRET })).toBeNull()
    expect(contentFault('TOTP', { totp: TOTP_SECRET })).toBeNull()
    expect(contentFault('LOGIN', { note: 'x' })).toBeNull()
  })

  test('a malformed TOTP secret is refused in the field secret of the type TOTP, and in the field totp of every type', () => {
    expect(contentFault('TOTP', { secret: '1' })).toStartWith('data.secret must ')
    expect(contentFault('TOTP', { secret: TOTP_SECRET, totp: '1' })).toStartWith('data.totp must ')
    expect(contentFault('LOGIN', { totp: '1' })).toStartWith('data.totp must ')
    expect(contentFault('CUSTOM', { secret: '1' })).toBeNull()
    expect(contentFault('CUSTOM', { totp: 7 })).toBe('data.totp must be a string')
  })

  test('a TOTP secret is recognised in the field secret of the type TOTP, and in the field totp of every type', () => {
    expect(hasTotp('TOTP', { secret: TOTP_SECRET })).toBe(true)
    expect(hasTotp('LOGIN', { totp: TOTP_SECRET })).toBe(true)
    expect(hasTotp('CUSTOM', { secret: TOTP_SECRET })).toBe(false)
    expect(hasTotp('TOTP', { secret: 7, totp: null })).toBe(false)
  })

  test('the key for TOTP codes is read from the first field that contains a TOTP secret', () => {
    const key = totpKeyOf('LOGIN', { totp: TOTP_SECRET })
    expect(key).not.toBeNull()
    expect(totpKeyOf('TOTP', { secret: TOTP_SECRET, totp: OTHER_SECRET })).toEqual(key)
    expect(totpKeyOf('LOGIN', { secret: TOTP_SECRET, totp: OTHER_SECRET })).not.toEqual(key)
    expect(totpKeyOf('LOGIN', { password: 'soup' })).toBeNull()
    expect(() => totpKeyOf('LOGIN', { totp: '1' })).toThrow(CredentialInputError)
  })

  test('when a credential is shown, a marker replaces the TOTP secret', () => {
    const data = { secret: TOTP_SECRET, totp: TOTP_SECRET, note: 'x' }
    expect(shownData('TOTP', data)).toEqual({ secret: TOTP_MARKER, totp: TOTP_MARKER, note: 'x' })
    expect(shownData('CUSTOM', data)).toEqual({ ...data, totp: TOTP_MARKER })
    expect(data.totp).toBe(TOTP_SECRET)
  })
})

describe('each backup code of a credential is returned only once', () => {
  test('the service counts the backup codes of a credential that are still unused', () => {
    expect(unusedBackupCodes({ backupCodes: ['a', 'b'], usedBackupCodes: ['c'] })).toBe(2)
    expect(unusedBackupCodes({})).toBe(0)
  })

  test('backup codes are returned in their order, and each returned code counts as used', () => {
    const data = { backupCodes: ['a', 'b'], usedBackupCodes: ['c'], note: 'x' }
    expect(popBackupCode(data)).toEqual({
      code: 'a',
      remaining: 1,
      data: { backupCodes: ['b'], usedBackupCodes: ['c', 'a'], note: 'x' },
    })
    expect(popBackupCode({ backupCodes: ['a'] })).toEqual({
      code: 'a',
      remaining: 0,
      data: { backupCodes: [], usedBackupCodes: ['a'] },
    })
    expect(data.backupCodes).toEqual(['a', 'b'])
  })

  test('if all backup codes are used, a request for a backup code gets none', () => {
    expect(popBackupCode({ backupCodes: [] })).toBeNull()
    expect(popBackupCode({})).toBeNull()
  })

  test('if an old version of a credential is restored, backup codes that were used later stay used', () => {
    const old = { backupCodes: ['a', 'b', 'c'], usedBackupCodes: ['z', 'a'], note: 'x' }
    expect(withoutUsedCodes(old, { usedBackupCodes: ['a', 'c', 'y'] })).toEqual({
      backupCodes: ['b'],
      usedBackupCodes: ['z', 'a', 'c'],
      note: 'x',
    })
    expect(withoutUsedCodes({ backupCodes: ['a'] }, { usedBackupCodes: ['a'] })).toEqual({
      backupCodes: [],
      usedBackupCodes: ['a'],
    })
  })

  test('if none of its backup codes was used later, a restored version of a credential is not changed', () => {
    const old = { backupCodes: ['a'] }
    expect(withoutUsedCodes(old, { usedBackupCodes: ['b'] })).toBe(old)
    expect(withoutUsedCodes(old, {})).toBe(old)
    const bare = { note: 'x' }
    expect(withoutUsedCodes(bare, { usedBackupCodes: ['a'] })).toBe(bare)
  })
})
