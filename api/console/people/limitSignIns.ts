import { ApiError } from '../../http/errors.ts'
import { isOverLimit } from '../../http/limits/networkLimit.ts'
import type { Services } from '../../http/services.ts'

/**
 * Sets the maximum number of sign-ins that one network may begin in a minute. The number must not be too low, because
 * all people of an office share one public IP address.
 */
const PER_MINUTE = 30
/**
 * Sets the maximum number of sign-ins that one /48 network of IPv6 may begin in a minute. Without this limit, an
 * attacker with a whole /48 could begin sign-ins from its many /64 networks until the service accepts no further
 * sign-in.
 */
const PER_MINUTE_WIDE = 60

/**
 * Limits how often a network may begin a sign-in by a mail, by a passkey challenge, or by a visit to the company's
 * identity provider, because these requests need no authentication.
 * @throws {ApiError} 429 if the network exceeds the limit of sign-ins.
 */
export async function limitSignIns(services: Services, request: Request): Promise<void> {
  const limit = { use: 'sign-in', perMinute: PER_MINUTE, perMinuteWide: PER_MINUTE_WIDE }
  if (!(await isOverLimit(services, request, limit))) return
  throw new ApiError(429, 'rate_limited', 'Too many sign-ins: wait a minute', {
    'retry-after': '60',
  })
}
