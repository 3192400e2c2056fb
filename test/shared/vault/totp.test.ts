import { expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { Secret } from 'otpauth'
import { parseTotpSecret, TotpSecretError, totpCode } from '../../../shared/vault/totp.ts'
import { totpByTheBook } from '../../support/vault/hotp.ts'

const base32 = (bytes: Uint8Array) =>
  new Secret({ buffer: Uint8Array.from(bytes).buffer as ArrayBuffer }).base32
const uri = (secret: string, parameters = '') =>
  `otpauth://totp/ACME%20Co:ada@example.com?secret=${secret}&issuer=ACME%20Co${parameters}`
const codeOf = (text: string, nowS: number) => totpCode(parseTotpSecret(text), nowS * 1000).code

/**
 * The TOTP seeds come from erratum 2866 to RFC 6238 appendix B. Each TOTP seed has the length of the hash with which it
 * is used.
 */
const SEED = '1234567890'.repeat(7)
const KEYS = { SHA1: SEED.slice(0, 20), SHA256: SEED.slice(0, 32), SHA512: SEED.slice(0, 64) }
const VECTORS: [number, string, string, string][] = [
  [59, '94287082', '46119246', '90693936'],
  [1111111109, '07081804', '68084774', '25091201'],
  [1111111111, '14050471', '67062674', '99943326'],
  [1234567890, '89005924', '91819424', '93441116'],
  [2000000000, '69279037', '90698825', '38618901'],
  [20000000000, '65353130', '77737706', '47863826'],
]

test('TOTP codes equal the vectors of RFC 6238 with 6 to 8 digits and a period of 30 or 60 seconds', () => {
  for (const [nowS, ...codes] of VECTORS) {
    for (const [n, [algorithm, seed]] of Object.entries(KEYS).entries()) {
      const secret = base32(Buffer.from(seed))
      for (const [digits, code] of [
        [8, codes[n]!],
        // A TOTP code with fewer digits is the end of the code with more digits (RFC 4226 §5.3).
        [6, codes[n]!.slice(-6)],
        [7, codes[n]!.slice(-7)],
      ] as const) {
        const text = uri(secret, `&algorithm=${algorithm}&digits=${digits}`)
        expect([algorithm, nowS, codeOf(text, nowS)]).toEqual([algorithm, nowS, code])
        // At twice the time, a code with a period of 60 seconds has the same time step as a code with a period of 30
        // seconds, so both codes are equal.
        expect(codeOf(`${text}&period=60`, nowS * 2)).toBe(code)
      }
    }
  }
})

test('TOTP codes match a direct implementation of RFC 6238 on random input', () => {
  for (let n = 0; n < 500; n++) {
    const key = randomBytes(1 + (n % 70))
    const nowMs = Math.floor(Math.random() * 2 ** 41)
    const algorithm = ['SHA1', 'SHA256', 'SHA512'][n % 3]!
    const digits = 6 + (n % 3)
    const periodS = [30, 60, 1, 45][n % 4]!
    const text = uri(base32(key), `&algorithm=${algorithm}&digits=${digits}&period=${periodS}`)
    expect(totpCode(parseTotpSecret(text), nowMs).code).toBe(
      totpByTheBook(key, nowMs, { algorithm: algorithm.toLowerCase(), digits, periodS }),
    )
  }
})

test('the remaining seconds of a TOTP code count down to 1 and never reach 0', () => {
  const key = parseTotpSecret('JBSWY3DPEHPK3PXP')
  const remaining = [0, 999, 1_000, 28_999, 29_000, 29_999, 30_000].map(
    (nowMs) => totpCode(key, nowMs).remainingS,
  )
  expect(remaining).toEqual([30, 30, 29, 2, 1, 1, 30])
})

test('all usual ways to write a TOTP secret give the same secret', () => {
  const expected = codeOf('JBSWY3DPEHPK3PXP', 59)
  for (const text of [
    'jbswy3dpehpk3pxp',
    ' JBSW Y3DP ehpk 3pxp ',
    'JBSW-Y3DP-EHPK-3PXP',
    'JBSWY3DPEHPK3PXP======',
    'JBSWY3DP\nEHPK3PXP',
    uri('JBSWY3DPEHPK3PXP'),
    uri('jbsw%20y3dp%20ehpk%203pxp'),
    uri('JBSW+Y3DP+EHPK+3PXP'),
    'OTPAUTH://TOTP/x?SECRET=JBSWY3DPEHPK3PXP&Digits=6&ALGORITHM=sha1',
    'otpauth://totp/?secret=JBSWY3DPEHPK3PXP',
    uri('JBSWY3DPEHPK3PXP', `&image=${'x'.repeat(4096 - uri('JBSWY3DPEHPK3PXP').length - 7)}`),
    uri('JBSWY3DPEHPK3PXP', '&image=https%3A%2F%2Fx%2Fy.png&algorithm=SHA-1'),
  ]) {
    expect([text, codeOf(text, 59)]).toEqual([text, expected])
  }
})

test('a malformed TOTP secret is refused, and the error does not quote the secret', () => {
  for (const text of [
    '',
    '   ',
    '====',
    'A',
    'JBSWY3DPEHPK3PX1',
    'JBSWY3DPEHPK3PX0!',
    'JBSW=Y3DP',
    'п',
    'A'.repeat(5_000),
    'otpauth://',
    'otpauth://totp/x',
    'otpauth://hotp/x?secret=JBSWY3DPEHPK3PXP&counter=1',
    'https://totp/x?secret=JBSWY3DPEHPK3PXP',
    uri('JBSWY3DP0'),
    uri('JBSWY3DPEHPK3PXP', `&image=${'x'.repeat(4096 - uri('JBSWY3DPEHPK3PXP').length - 6)}`),
    ...['digits=5', 'digits=9', 'digits=six', 'digits=-6', 'digits=6.0', 'digits='].map((p) =>
      uri('JBSWY3DPEHPK3PXP', `&${p}`),
    ),
    ...['period=0', 'period=3601', 'period=-30', 'period=1e2'].map((p) =>
      uri('JBSWY3DPEHPK3PXP', `&${p}`),
    ),
    ...['algorithm=MD5', 'algorithm=', 'algorithm=__proto__', 'algorithm=SHA3-256'].map((p) =>
      uri('JBSWY3DPEHPK3PXP', `&${p}`),
    ),
  ]) {
    let message = ''
    try {
      parseTotpSecret(text)
    } catch (error) {
      expect(error).toBeInstanceOf(TotpSecretError)
      message = (error as Error).message
    }
    expect([text, message]).toEqual([text, expect.stringMatching(/^(be|name|have) /)])
    expect(message).not.toContain('JBSW')
  }
})
