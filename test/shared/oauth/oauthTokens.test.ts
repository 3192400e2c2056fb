import { describe, expect, test } from 'bun:test'
import { fitsChallenge, isChallenge, isToken, newToken } from '../../../shared/oauth/oauthTokens.ts'

describe('a new OAuth token is a random text with the prefix of its type', () => {
  test.each(['access', 'refresh', 'code'] as const)(
    'a new OAuth token of the kind %s is recognised as this kind only',
    (kind) => {
      const token = newToken(kind)
      const kinds = (['access', 'refresh', 'code'] as const).filter((one) => isToken(token, one))
      expect(kinds).toEqual([kind])
      expect(newToken(kind)).not.toBe(token)
    },
  )

  test.each([
    ['in capitals', (token: string) => token.toUpperCase()],
    ['with a character more', (token: string) => `${token}0`],
    ['with a character less', (token: string) => token.slice(0, -1)],
    ['with a line break', (token: string) => `${token}\n`],
    ['with its prefix alone', (token: string) => token.slice(0, 5)],
    ['without its prefix', (token: string) => token.slice(5)],
  ])('a changed OAuth token is not recognised %s', (_name, change) => {
    expect(isToken(change(newToken('access')), 'access')).toBe(false)
  })
})

describe('a PKCE code verifier is accepted only if it matches the challenge', () => {
  // The code verifier and the code challenge are the example in RFC 7636, appendix B.
  const VERIFIER = 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk'
  const CHALLENGE = 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM'

  test('a PKCE code verifier matches the challenge that was made from it, and no other challenge', () => {
    expect(fitsChallenge(VERIFIER, CHALLENGE)).toBe(true)
    expect(fitsChallenge(VERIFIER, `${CHALLENGE.slice(0, -1)}N`)).toBe(false)
    expect(fitsChallenge(`${VERIFIER.slice(0, -1)}l`, CHALLENGE)).toBe(false)
  })

  test.each(['', CHALLENGE.slice(0, -1), `${CHALLENGE}a`, `${CHALLENGE}=`])(
    'a PKCE code verifier does not match the challenge %p, whose length is wrong',
    (challenge) => expect(fitsChallenge(VERIFIER, challenge)).toBe(false),
  )

  test('a PKCE code verifier has 43 to 128 unreserved characters', async () => {
    const fits = (verifier: string) => {
      const digest = new Bun.CryptoHasher('sha256').update(verifier).digest('base64url')
      return fitsChallenge(verifier, digest)
    }
    expect([42, 43, 128, 129].map((length) => fits('a'.repeat(length)))).toEqual([
      false,
      true,
      true,
      false,
    ])
    expect(fits(`${'a'.repeat(42)}~`)).toBe(true)
    expect(fits(`${'a'.repeat(42)}/`)).toBe(false)
  })

  test('a PKCE code challenge has 43 characters of base64url', () => {
    expect(isChallenge(CHALLENGE)).toBe(true)
    for (const text of ['', CHALLENGE.slice(1), `${CHALLENGE}a`, `${CHALLENGE.slice(1)}+`]) {
      expect(isChallenge(text)).toBe(false)
    }
  })
})
