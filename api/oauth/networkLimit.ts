import { isOverLimit } from '../http/limits/networkLimit.ts'
import type { Services } from '../http/services.ts'
import { OAuthError } from './oauthError.ts'

/**
 * Sets the maximum numbers of OAuth requests that one network may send in a minute. The numbers are high, because all
 * users of a chat host share a few IP addresses.
 */
const PER_MINUTE = { authorize: 120, document: 30, register: 60, token: 600 } as const

/**
 * Sets the maximum number of OAuth requests that one /48 network of IPv6 may send in a minute. It applies only to
 * requests that fill a table of limited size. Token requests fill no such table, because each OAuth grant has its own
 * limit of refreshes.
 */
const PER_MINUTE_WIDE: { [Use in keyof typeof PER_MINUTE]?: number } = {
  authorize: 240,
  document: 60,
  register: 120,
}

/**
 * Limits the OAuth requests of clients that are not signed in. @throws {OAuthError} 429 if the network exceeds its
 * limit.
 */
export async function limitNetwork(
  services: Services,
  request: Request,
  use: keyof typeof PER_MINUTE,
): Promise<void> {
  const limit = {
    use: `oauth:${use}`,
    perMinute: PER_MINUTE[use],
    perMinuteWide: PER_MINUTE_WIDE[use] ?? null,
  }
  if (!(await isOverLimit(services, request, limit))) return
  throw new OAuthError('temporarily_unavailable', 'too many requests: wait a minute', 429)
}
