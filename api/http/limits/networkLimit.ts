import { networksOf } from '../../../shared/http/networkSubject.ts'
import { countRequests } from '../../../sql/account/keys/rateWindows.ts'
import { stateOf } from '../requestState.ts'
import type { Services } from '../services.ts'

/**
 * Counts one request that a client network makes for a purpose, such as sign-in. Returns `true` if the network exceeds
 * its limit for this purpose in the current minute.
 * @param limit.perMinuteWide limits a /48 network of IPv6, because one stranger often has 65,536 networks of /64.
 * Without `perMinuteWide`, the service does not limit a /48 network as a whole.
 */
export async function isOverLimit(
  { gatePool }: Services,
  request: Request,
  {
    use,
    perMinute,
    perMinuteWide = null,
  }: { use: string; perMinute: number; perMinuteWide?: number | null },
): Promise<boolean> {
  const [network, wide] = networksOf(stateOf(request).clientAddress)
  const isOver = async (subject: string, most: number) =>
    (await countRequests(gatePool, `${use}:${subject}`, 1)).used > most
  if (await isOver(network!, perMinute)) return true
  return wide !== undefined && perMinuteWide !== null && (await isOver(wide, perMinuteWide))
}
