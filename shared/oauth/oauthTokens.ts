/**
 * Makes the codes and tokens of OAuth, and checks the challenges of PKCE. All codes and tokens are opaque and random.
 * The database holds only the hashes of the codes and tokens.
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'

const PREFIXES = { access: 'loat-', refresh: 'lort-', code: 'locd-' } as const
type TokenKind = keyof typeof PREFIXES
const FORM = /^lo(?:at|rt|cd)-[0-9a-f]{64}$/
const CHALLENGE = /^[A-Za-z0-9_-]{43}$/
/** Matches a code verifier of PKCE (RFC 7636 §4.1). */
const VERIFIER = /^[A-Za-z0-9._~-]{43,128}$/

export const newToken = (kind: TokenKind): string =>
  PREFIXES[kind] + randomBytes(32).toString('hex')

/** Tells whether a text has the format of an OAuth token of the given kind. */
export const isToken = (text: string, kind: TokenKind): boolean =>
  FORM.test(text) && text.startsWith(PREFIXES[kind])

/** Tells whether a PKCE challenge has the format of S256 (RFC 7636 §4.2). */
export const isChallenge = (text: string): boolean => CHALLENGE.test(text)

/** Tells whether a PKCE code verifier belongs to a challenge that was made by the method S256. */
export function fitsChallenge(verifier: string, challenge: string): boolean {
  if (!VERIFIER.test(verifier)) return false
  const made = Buffer.from(createHash('sha256').update(verifier).digest('base64url'))
  const wanted = Buffer.from(challenge)
  return made.length === wanted.length && timingSafeEqual(made, wanted)
}
