import { networkSubject } from '../../../shared/http/networkSubject.ts'
import { countRequests } from '../../../sql/account/keys/rateWindows.ts'
import { ApiError } from '../../http/errors.ts'
import { stateOf } from '../../http/requestState.ts'
import type { Services } from '../../http/services.ts'

/** Sign-ins that one network may begin in a minute. An office shares an address. */
const PER_MINUTE = 30

/** Bounds what strangers may begin: a mail, a challenge, a visit to the company's provider. @throws {ApiError} 429 */
export async function limitSignIns({ gatePool }: Services, request: Request): Promise<void> {
  const network = networkSubject(stateOf(request).clientAddress)
  const { used } = await countRequests(gatePool, `sign-in:${network}`, 1)
  if (used <= PER_MINUTE) return
  throw new ApiError(429, 'rate_limited', 'Too many sign-ins: wait a minute', {
    'retry-after': '60',
  })
}
