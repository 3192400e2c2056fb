/** The bounds of a mandate, and whether a payment fits. Sums over time are judged in the database (sql/purse/reserve.ts). */
import { isAllowedHost } from '../vault/allowedHosts.ts'
import type { RefusalReason } from './refusal.ts'

/** The bounds that need no sum. Amounts in atomic units. */
export type MandateBounds = {
  network: string
  hosts: readonly string[]
  resources: readonly string[]
  payees: readonly string[] | null
  perPaymentAtomic: bigint
  askAboveAtomic: bigint | null
}

/** Where a payment goes. `url`: without query and fragment. */
export type PaymentPlace = { host: string; url: string; network: string }

/** Whether a mandate covers requests to a place. A mandate without hosts and resources covers none. */
export const covers = (
  { network, hosts, resources }: MandateBounds,
  place: PaymentPlace,
): boolean =>
  network === place.network && (isAllowedHost(hosts, place.host) || resources.includes(place.url))

/** The first bound that a payment breaks; null: it keeps all of them. */
export function brokenBound(
  { payees, perPaymentAtomic }: MandateBounds,
  { payTo, amountAtomic }: { payTo: string; amountAtomic: bigint },
): RefusalReason | null {
  if (payees !== null && !payees.includes(payTo.toLowerCase())) return 'payee_not_in_mandate'
  return amountAtomic > perPaymentAtomic ? 'mandate_exceeded' : null
}
