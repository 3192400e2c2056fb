import { createHmac } from 'node:crypto'
import { deriveKey, type MasterKey } from '../vault/envelope.ts'

/**
 * Makes the token of a sign-in link: 256 bits in base64url. If the service repeats the mail for a sign-in request, the
 * mail holds the same token.
 */
export type SignInTokens = (requestId: string) => string

/** Makes sign-in tokens with a key that the function derives from the first master key. */
export function signInTokens([first]: readonly MasterKey[]): SignInTokens {
  const key = deriveKey(first!.key, 'purser/sign-in')
  return (requestId) => createHmac('sha256', key).update(requestId).digest('base64url')
}

/**
 * Returns the sign-in link for a token. The token stands in the fragment of the URL (after `#`), because a browser
 * never sends the fragment to a server.
 */
export const signInUrl = (baseUrl: string, token: string): string =>
  `${baseUrl.replace(/\/$/, '')}/console/login#${token}`
