import { ApiError } from '../../http/errors.ts'
import { isOverLimit } from '../../http/limits/networkLimit.ts'
import type { Services } from '../../http/services.ts'

/** Sign-ins that one network may begin in a minute. An office shares an address. */
const PER_MINUTE = 30

/** Bounds what strangers may begin: a mail, a challenge, a visit to the company's provider. @throws {ApiError} 429 */
export async function limitSignIns(services: Services, request: Request): Promise<void> {
  if (!(await isOverLimit(services, request, { use: 'sign-in', perMinute: PER_MINUTE }))) return
  throw new ApiError(429, 'rate_limited', 'Too many sign-ins: wait a minute', {
    'retry-after': '60',
  })
}
