/**
 * Reads TOTP secrets (time-based one-time passwords) in the usual forms, and computes the one-time codes.
 *
 * Standards: RFC 6238 (TOTP), RFC 4648 §6 (Base32), the key URI format of authenticator apps (`otpauth://totp/…`).
 */
import { Secret, TOTP } from 'otpauth'

type Algorithm = 'SHA1' | 'SHA256' | 'SHA512'

/** Holds a TOTP key and the parameters of its one-time codes. */
export type TotpKey = { secret: Secret; algorithm: Algorithm; digits: number; periodS: number }

/**
 * Reports that a text is no TOTP secret. The error's `message` states the rule for TOTP secrets and does not quote the
 * secret.
 */
export class TotpSecretError extends Error {}

const TEXT_MAX_LENGTH = 4_096
const PERIOD_MAX_S = 3_600
const ALGORITHMS: Record<string, Algorithm> = {
  SHA1: 'SHA1',
  'SHA-1': 'SHA1',
  SHA256: 'SHA256',
  'SHA-256': 'SHA256',
  SHA512: 'SHA512',
  'SHA-512': 'SHA512',
}

/**
 * Reads a TOTP secret.
 *
 * @param text is a Base32 secret (SHA-1, 6 digits, 30 s) or an `otpauth://totp/` URI. The function ignores blanks,
 * hyphens, letter case and padding in a Base32 secret.
 * @throws {TotpSecretError} if the text is no TOTP secret.
 *
 * @example
 * parseTotpSecret('jbsw y3dp ehpk 3pxp')
 * parseTotpSecret('otpauth://totp/ACME:ada?secret=JBSWY3DPEHPK3PXP&digits=8&period=60&algorithm=SHA256')
 */
export function parseTotpSecret(text: string): TotpKey {
  if (text.length > TEXT_MAX_LENGTH) {
    throw new TotpSecretError(`be at most ${TEXT_MAX_LENGTH} characters`)
  }
  if (!/^\s*otpauth:/i.test(text)) {
    return { secret: parseBase32(text), algorithm: 'SHA1', digits: 6, periodS: 30 }
  }
  const url = URL.canParse(text) ? new URL(text) : null
  if (url === null || url.hostname.toLowerCase() !== 'totp') {
    throw new TotpSecretError('be an otpauth://totp/ URI')
  }
  const read = (name: string) => {
    for (const [key, value] of url.searchParams) if (key.toLowerCase() === name) return value
    return undefined
  }
  const algorithm = ALGORITHMS[(read('algorithm') ?? 'SHA1').toUpperCase()]
  if (algorithm === undefined) {
    throw new TotpSecretError('name SHA1, SHA256 or SHA512 as the algorithm of its URI')
  }
  return {
    secret: parseBase32(read('secret') ?? ''),
    algorithm,
    digits: wholeNumber(read('digits') ?? '6', 6, 8, 'digits'),
    periodS: wholeNumber(read('period') ?? '30', 1, PERIOD_MAX_S, 'period'),
  }
}

/**
 * Returns the one-time code for a given time. The field `remainingS` is the number of seconds for which the code stays
 * valid, at least 1.
 */
export function totpCode(key: TotpKey, nowMs: number): { code: string; remainingS: number } {
  const { secret, algorithm, digits, periodS } = key
  return {
    code: TOTP.generate({ secret, algorithm, digits, period: periodS, timestamp: nowMs }),
    remainingS: periodS - (Math.floor(nowMs / 1000) % periodS),
  }
}

/**
 * Reads a TOTP secret in Base32. The function does not pass on the error of the library otpauth, because this error
 * would quote a character of the secret.
 */
function parseBase32(text: string): Secret {
  const compact = text.replace(/[\s-]/g, '')
  if (!/^[a-z2-7]+=*$/i.test(compact)) throw notBase32()
  const secret = Secret.fromBase32(compact)
  if (secret.bytes.length === 0) throw notBase32()
  return secret
}

const notBase32 = () => new TotpSecretError('be a TOTP secret in Base32 or an otpauth://totp/ URI')

function wholeNumber(text: string, low: number, high: number, name: string): number {
  const value = /^\d{1,4}$/.test(text) ? Number(text) : Number.NaN
  if (value >= low && value <= high) return value
  throw new TotpSecretError(`have ${low} to ${high} as the ${name} of its URI`)
}
