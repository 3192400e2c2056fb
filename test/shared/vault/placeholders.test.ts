/** Tests how the placeholders of a request are replaced by values of a credential. */
import { describe, expect, test } from 'bun:test'
import { OutOfBoundsError } from '../../../shared/vault/bounds/bounds.ts'
import { CredentialInputError } from '../../../shared/vault/credential.ts'
import {
  createFill,
  PLACEHOLDER,
  type UsedCredential,
  unsentSecrets,
} from '../../../shared/vault/placeholders.ts'

/** Holds a time for which the one-time code with eight digits is 94287082 (RFC 6238 appendix B). */
const NOW_MS = 59_000
const TOTP_SECRET = 'GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ'

const credential = (given: Partial<UsedCredential> = {}): UsedCredential => ({
  type: 'LOGIN',
  data: { password: 'tomato-soup', username: 'ada-l' },
  metadata: {},
  ...given,
})

/** Fills the placeholders of one text, and returns the filled text with the secrets that it contains. */
function filled(text: string, given: Partial<UsedCredential> = {}, placement = ['body']) {
  const sent = new Set<string>()
  const fill = createFill(credential(given), { placement, nowMs: NOW_MS, sent })
  return {
    text: fill(
      text,
      () => ['body'],
      (value) => `<${value}>`,
    ),
    sent: [...sent],
  }
}
const textOf = (...given: Parameters<typeof filled>) => filled(...given).text

describe('the service replaces a placeholder by the credential’s value, and refuses an unusable value', () => {
  test('a placeholder has a name of 1 to 64 characters that begins with a letter and may contain spaces', () => {
    const names = (text: string) => [...text.matchAll(PLACEHOLDER)].map(([, name]) => name)
    const longest = `a${'-'.repeat(63)}`
    expect(names(`{{a}} {{ b_1-2 }} {{${longest}}}`)).toEqual(['a', 'b_1-2', longest])
    expect(names(`{{1a}} {{-a}} {a} {{a b}} {{${longest}x}} {{}}`)).toEqual([])
  })

  test('a placeholder is replaced by the value of a data or metadata field, escaped for the surrounding text', () => {
    expect(textOf('p={{password}}&u={{ username }}')).toBe('p=<tomato-soup>&u=<ada-l>')
    expect(textOf('{{pin}}', { data: { pin: 482913 } })).toBe('<482913>')
    expect(textOf('{{site}}', { metadata: { site: 'https://a.example' } })).toBe(
      '<https://a.example>',
    )
    expect(
      textOf('{{site}}', { data: { site: 'from data' }, metadata: { site: 'from metadata' } }),
    ).toBe('<from data>')
  })

  test('a placeholder may refer to an API key as `apiKey` or as `key`', () => {
    expect(textOf('{{apiKey}}', { data: { key: 'abcdef-1' } })).toBe('<abcdef-1>')
    expect(textOf('{{apiKey}}', { data: { apiKey: 'abcdef-2', key: 'abcdef-1' } })).toBe(
      '<abcdef-2>',
    )
    expect(textOf('{{key}}', { data: { apiKey: 'abcdef-2', key: 'abcdef-1' } })).toBe('<abcdef-1>')
    expect(() => textOf('{{other}}', { data: { key: 'abcdef-1' } })).toThrow(
      '{{other}} has no value in this credential',
    )
  })

  test('the placeholder `basicAuth` joins user name and password, and both the result and the password count as secrets', () => {
    const pair = Buffer.from('ada-l:tomato-soup').toString('base64')
    expect(filled('{{basicAuth}}')).toEqual({ text: `<${pair}>`, sent: [pair, 'tomato-soup'] })
    const bare = Buffer.from(':tomato-soup').toString('base64')
    expect(textOf('{{basicAuth}}', { data: { password: 'tomato-soup' } })).toBe(`<${bare}>`)
    expect(
      textOf('{{basicAuth}}', {
        data: { password: 'tomato-soup' },
        metadata: { username: 'ada-l' },
      }),
    ).toBe(`<${pair}>`)
    expect(() => textOf('{{basicAuth}}', { data: { username: 'ada-l' } })).toThrow('has no value')
  })

  test('a credential may have its own field `basicAuth`, which needs no password', () => {
    const pair = Buffer.from('ada-l:tomato-soup').toString('base64')
    const own = { type: 'CUSTOM', data: { basicAuth: pair } }
    expect(filled('{{basicAuth}}', own)).toEqual({ text: `<${pair}>`, sent: [pair] })
  })

  test('the placeholder `totp` is replaced by the present one-time code, and never by the TOTP secret', () => {
    const seed = { type: 'TOTP', data: { secret: TOTP_SECRET, digits: 8 } }
    const { text, sent } = filled('{{totp}}', seed)
    expect(text).toMatch(/^<\d{6,8}>$/)
    expect(sent).toEqual([text.slice(1, -1)])
    expect(() => textOf('{{secret}}', seed)).toThrow('{{secret}} is a TOTP secret: use {{totp}}')
    expect(textOf('{{secret}}', { data: { secret: 'tomato-soup' } })).toBe('<tomato-soup>')
    expect(() => textOf('{{totp}}')).toThrow(
      '{{totp}} has no value: the credential has no TOTP secret',
    )
  })

  test('the value for a placeholder must be well-formed text of 3 to 8,192 characters', () => {
    const refused = (pin: unknown) => () => textOf('{{pin}}', { data: { pin } as never })
    for (const length of [3, 8_192])
      expect(textOf('{{pin}}', { data: { pin: 'x'.repeat(length) } })).toHaveLength(length + 2)
    for (const length of [0, 2, 8_193])
      expect(refused('x'.repeat(length))).toThrow('{{pin}} must stand for 3 to 8192 characters')
    expect(refused('abc\ud800')).toThrow('{{pin}} must stand for well-formed text')
    for (const value of [null, true, ['abcd'], { a: 'abcd' }])
      expect(refused(value)).toThrow(CredentialInputError)
  })

  test('a placeholder with the name of a built-in JavaScript property is refused', () => {
    for (const name of ['constructor', 'toString', 'valueOf'])
      expect(() => textOf(`{{${name}}}`)).toThrow(CredentialInputError)
  })

  test('a request may contain at most 100 placeholders', () => {
    expect(textOf('{{password}}'.repeat(100))).toBe('<tomato-soup>'.repeat(100))
    expect(() => textOf('{{password}}'.repeat(101))).toThrow(
      'request must hold at most 100 placeholders',
    )
  })
})

describe('a secret is refused in a request part that its placement (list of allowed parts) does not name', () => {
  test('a secret in a request part that its placement (list of allowed parts) lacks is refused, and the error names the part', () => {
    const refuse =
      (text: string, given: Partial<UsedCredential> = {}) =>
      () =>
        textOf(text, given, ['header:authorization'])
    expect(refuse('{{password}}')).toThrow(OutOfBoundsError)
    expect(refuse('{{password}}')).toThrow('must not have {{password}} at body: see its placement')
    expect(refuse('{{totp}}', { type: 'TOTP', data: { secret: TOTP_SECRET } })).toThrow(
      OutOfBoundsError,
    )
    expect(refuse('{{basicAuth}}')).toThrow(OutOfBoundsError)
  })

  test('a placement (list of allowed request parts) for `apiKey` or `key` applies to both names, unless the credential has both fields', () => {
    const key = { data: { key: 'abcdef-1' } }
    for (const text of ['{{key}}', '{{apiKey}}'])
      for (const placement of ['key@body', 'apiKey@body'])
        expect(textOf(text, key, [placement])).toBe('<abcdef-1>')
    const both = { data: { key: 'abcdef-1', apiKey: 'abcdef-2' } }
    expect(textOf('{{key}}', both, ['key@body'])).toBe('<abcdef-1>')
    expect(() => textOf('{{key}}', both, ['apiKey@body'])).toThrow(OutOfBoundsError)
    expect(() => textOf('{{apiKey}}', both, ['key@body'])).toThrow(OutOfBoundsError)
    expect(() => textOf('{{password}}', {}, ['key@body'])).toThrow(OutOfBoundsError)
  })

  test('a secret’s placement (list of allowed request parts) does not restrict metadata, because metadata are not secret', () => {
    const metadata = { site: 'https://a.example' }
    expect(filled('{{site}}', { metadata }, [])).toEqual({ text: '<https://a.example>', sent: [] })
    expect(() => filled('{{site}}', { data: { site: 'secret' }, metadata }, [])).toThrow(
      OutOfBoundsError,
    )
  })

  test('the error about a part of a request where a secret is not allowed shows at most 100 characters of this part’s name', () => {
    const fill = createFill(credential(), { placement: [], nowMs: 0, sent: new Set() })
    const call = () => fill('{{password}}', () => [`header:${'x'.repeat(200)}`], String)
    expect(call).toThrow(
      `must not have {{password}} at header:${'x'.repeat(93)}: see its placement`,
    )
  })

  test('for each placeholder, the check of a secret’s placement learns in which part of the request the placeholder is', () => {
    const places: number[] = []
    const fill = createFill(credential(), { placement: ['body'], nowMs: 0, sent: new Set() })
    const at = (index: number) => {
      places.push(index)
      return ['body']
    }
    fill('ab{{password}}{{ password }}', at, String)
    expect(places).toEqual([2, 14])
  })
})

describe('all secret values of a credential are masked in a response, even those that the request did not contain', () => {
  test('besides the secrets that a request contains, all texts and numbers of at least four characters in the credential’s data are masked, at any depth', () => {
    const data = { a: 'abcd', b: 'abc', c: { d: [12345, 'wxyz'], e: null, f: true } }
    expect(
      unsentSecrets(credential({ data: data as never, metadata: { site: 'public' } }), 0),
    ).toEqual(['abcd', '12345', 'wxyz'])
  })

  test('the list of secrets to mask has the TOTP codes of three periods, and the TOTP secret without spaces and dashes', () => {
    const spaced = 'GEZD GNBV GY3T QOJQ GEZD-GNBV-GY3T-QOJQ'
    const secrets = unsentSecrets(credential({ type: 'TOTP', data: { secret: spaced } }), NOW_MS)
    const codes = [-30_000, 0, 30_000].map((shift) => {
      const fill = createFill(credential({ type: 'TOTP', data: { secret: spaced } }), {
        ...{ placement: ['body'], nowMs: NOW_MS + shift, sent: new Set<string>() },
      })
      return fill('{{totp}}', () => ['body'], String)
    })
    expect(new Set(codes).size).toBe(3)
    expect(new Set(secrets)).toEqual(new Set([spaced, ...codes, TOTP_SECRET]))
  })

  test('the list of secrets to mask has the TOTP secret from an otpauth URI, and a TOTP secret without its padding', () => {
    const padded = 'JBSWY3DPEHPK3PXPAA======'
    for (const totp of [
      padded,
      `otpauth://totp/ACME:ada?secret=${encodeURIComponent(padded)}&issuer=ACME`,
      'otpauth://totp/ACME:ada?issuer=ACME&SECRET=jbsw-y3dp+ehpk-3pxp%20aa',
    ]) {
      const seeds = unsentSecrets(credential({ data: { totp } }), NOW_MS)
      expect([totp, seeds.map((one) => one.toUpperCase())]).toEqual([
        totp,
        expect.arrayContaining(['JBSWY3DPEHPK3PXPAA']),
      ])
    }
  })

  test('only a valid otpauth URI counts as a place of a TOTP secret, and no other text of the credential', () => {
    const data = {
      totp: 'JBSWY3DPEHPK3PXP',
      broken: 'otpauth://[',
      site: 'https://a.example/?secret=abcdefgh',
    }
    const secrets = unsentSecrets(credential({ data }), NOW_MS)
    expect(secrets).toContain('otpauth://[')
    expect(secrets).not.toContain('abcdefgh')
  })
})
