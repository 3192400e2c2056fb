import { networksOf } from '../../../shared/http/networkSubject.ts'
import { countRequests, hasUsed } from '../../../sql/account/keys/rateWindows.ts'
import { stateOf } from '../requestState.ts'
import type { Services } from '../services.ts'

/**
 * Counts one request that a client's network makes for a purpose, such as sign-in. Returns `true` if the network
 * exceeds its limit for this purpose in the current minute.
 * @param limit.perMinuteWide limits a /48 network of IPv6, because one attacker often controls all 65,536 /64 networks
 * of a /48 network. If it is absent, the service limits only each /64 network.
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
  // The function first checks the limit of the /48 network, because each new /64 network adds a row to the database. It
  // counts the request for the /48 network only after the /64 network has passed its own limit. Otherwise the refused
  // requests of one /64 network would use up the limit of the others.
  if (await hasUsed(gatePool, subjectOf(wide), perMinuteWide)) return true
  return (await isOver(network!, perMinute)) || (await isOver(wide, perMinuteWide))
}
