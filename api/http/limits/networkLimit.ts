import { networksOf } from '../../../shared/http/networkSubject.ts'
import { countRequests, hasUsed } from '../../../sql/account/keys/rateWindows.ts'
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
  const subjectOf = (name: string) => `${use}:${name}`
  const isOver = async (name: string, most: number) =>
    (await countRequests(gatePool, subjectOf(name), 1)).used > most
  if (wide === undefined || perMinuteWide === null) return await isOver(network!, perMinute)
  // Each count of a new /64 network adds a row to the database. Therefore the function first refuses a /48 network that
  // has reached its limit. The count of the /48 network comes last. Otherwise refused requests of one /64 network would
  // use up the limit of the other networks.
  if (await hasUsed(gatePool, subjectOf(wide), perMinuteWide)) return true
  return (await isOver(network!, perMinute)) || (await isOver(wide, perMinuteWide))
}
