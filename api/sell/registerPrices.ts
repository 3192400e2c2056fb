import { parseUsdc } from '../../shared/till/usdc.ts'
import type { Purser } from '../client/purser.ts'
import type { Prices } from './prices.ts'

/**
 * Limits the milliseconds of one call to the service. The limit is above one minute, because a file with many prices
 * can use up the rate limit of a minute. The next call then waits for the next minute.
 */
const CALL_MAX_MS = 150_000

/**
 * Registers each path that has a price as an endpoint. The function always registers the first path, because the
 * response names the network of the service. Endpoints that are verified with their present price on this network stay
 * unchanged. Therefore a restart does not use up the requests that the rate limit allows in a minute, and the service
 * need not check each path again.
 * @throws {PurserError} if a call fails.
 */
export async function registerPrices(
  purser: Purser,
  publicOrigin: string,
  prices: Prices,
): Promise<void> {
  const wanted = new Map(
    prices.all.map(({ registered, amount }) => [`${publicOrigin}${registered}`, amount]),
  )
  const networks = new Map<string, string>()
  for await (const endpoint of purser.sellers.all({}, { timeoutMs: CALL_MAX_MS })) {
    const amount = wanted.get(endpoint.urlPattern)
    const isSame =
      amount !== undefined &&
      endpoint.verification.status === 'verified' &&
      parseUsdc(amount) === parseUsdc(endpoint.priceUsdc)
    if (isSame) networks.set(endpoint.urlPattern, endpoint.network)
  }
  let network: string | null = null
  for (const [urlPattern, priceUsdc] of wanted) {
    if (network !== null && networks.get(urlPattern) === network) continue
    const registered = await purser.sellers.put(
      { urlPattern, priceUsdc },
      { timeoutMs: CALL_MAX_MS },
    )
    network = registered.network
  }
}
