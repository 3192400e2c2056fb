import { isOverLimit } from '../http/limits/networkLimit.ts'
import type { Services } from '../http/services.ts'
import { OAuthError } from './oauthError.ts'

/**
 * Limits the OAuth requests of one network in a minute. The limits are generous, because all users of a chat host share
 * a few addresses.
 */
const PER_MINUTE = { authorize: 120, document: 30, register: 60, token: 600 } as const

/** Limits the OAuth requests of strangers. @throws {OAuthError} 429 */
export async function limitNetwork(
  services: Services,
  request: Request,
  use: keyof typeof PER_MINUTE,
): Promise<void> {
  const limit = { use: `oauth:${use}`, perMinute: PER_MINUTE[use] }
  if (!(await isOverLimit(services, request, limit))) return
  throw new OAuthError('temporarily_unavailable', 'too many requests: wait a minute', 429)
}
