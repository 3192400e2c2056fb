/**
 * Stores the last payment offers of the service, because a paywall needs an offer for the payer even while the service
 * refuses its calls.
 */
import type { Challenge } from '../calls/payments.ts'
import type { Purser } from '../purser.ts'

/** Sets the maximum number of payment offers that the paywalls of one client store. */
const OFFERS_MAX = 1_000
/**
 * Sets the maximum number of milliseconds for which a paywall sends a stored payment offer. After this time, the seller
 * may have another address, and the signature of the offer may have expired.
 */
const OFFER_MAX_MS = 60_000

type Stored = { challenge: Challenge; untilMs: number }

/** Holds the last payment offers of each API client. When there are too many, the oldest stored offer is dropped. */
const offers = new WeakMap<Purser, Map<string, Stored>>()

/**
 * Stores the service's payment offer for a resource and its price.
 * @param price is the body of the challenge call that returned the offer.
 */
export function storeOffer(purser: Purser, price: object, challenge: Challenge): void {
  const stored = offers.get(purser) ?? new Map<string, Stored>()
  offers.set(purser, stored)
  const key = JSON.stringify(price)
  const timeoutMs = (challenge.accepts[0]?.maxTimeoutSeconds ?? 0) * 1_000
  stored.delete(key)
  stored.set(key, { challenge, untilMs: Date.now() + Math.min(timeoutMs, OFFER_MAX_MS) })
  const [oldest] = stored.keys()
  if (stored.size > OFFERS_MAX && oldest !== undefined) stored.delete(oldest)
}

/**
 * Returns the last payment offer for a resource and its price. Returns `null` if no offer is stored, or if the stored
 * offer is too old.
 */
export function lastOffer(purser: Purser, price: object): Challenge | null {
  const stored = offers.get(purser)?.get(JSON.stringify(price))
  return stored !== undefined && Date.now() < stored.untilMs ? stored.challenge : null
}
