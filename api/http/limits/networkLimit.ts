import { networkSubject } from '../../../shared/http/networkSubject.ts'
import { countRequests } from '../../../sql/account/keys/rateWindows.ts'
import { stateOf } from '../requestState.ts'
import type { Services } from '../services.ts'

/**
 * Counts one request of a client network for a purpose, such as sign-in. Returns `true` if the network exceeds its
 * limit for this purpose in the current minute.
 */
export async function isOverLimit(
  { gatePool }: Services,
  request: Request,
  { use, perMinute }: { use: string; perMinute: number },
): Promise<boolean> {
  const network = networkSubject(stateOf(request).clientAddress)
  const { used } = await countRequests(gatePool, `${use}:${network}`, 1)
  return used > perMinute
}
