/**
 * Checks whether a payment stays within the limits of a mandate (an owner's spending limits for a project). The
 * database checks the limits for sums of several payments (sql/purse/purchases/reserve.ts).
 */
import { normalUrl } from '../http/normalUrl.ts'
import { isAllowedHost } from '../vault/bounds/allowedHosts.ts'
import type { RefusalReason } from './refusal.ts'

/**
 * Holds the limits of a spending mandate for each single payment. The amounts of the limits are in atomic units of the
 * token.
 */
export type MandateBounds = {
  network: string
  hosts: readonly string[]
  resources: readonly string[]
  payees: readonly string[] | null
  perPaymentAtomic: bigint
  askAboveAtomic: bigint | null
}

/**
 * Describes the host, the resource and the chain of a payment. The field `url` is the URL of the paid resource without
 * query and fragment.
 */
export type PaymentPlace = { host: string; url: string; network: string }

/**
 * Tells whether a mandate (an owner's spending limits for a project) allows payments to a host or resource. A mandate
 * that names neither hosts nor resources allows no payment.
 */
export const covers = (
  { network, hosts, resources }: MandateBounds,
  place: PaymentPlace,
): boolean =>
  network === place.network &&
  (isAllowedHost(hosts, place.host) || namesResource(resources, place.url))

/** Compares the normal forms of both URLs, because an earlier version stored resources without normal form. */
function namesResource(resources: readonly string[], given: string): boolean {
  if (resources.length === 0) return false
  const { url, origin } = normalUrl(given)
  return resources.some((one) => one.startsWith(`${origin}/`) && normalUrl(one).url === url)
}

/**
 * Returns the reason why the mandate (the owner's spending limits) refuses a payment: the payee is not allowed, or the
 * amount exceeds a limit. @returns null if the payment is within all limits.
 */
export function brokenBound(
  { payees, perPaymentAtomic }: MandateBounds,
  { payTo, amountAtomic }: { payTo: string; amountAtomic: bigint },
): RefusalReason | null {
  if (payees !== null && !payees.includes(payTo.toLowerCase())) return 'payee_not_in_mandate'
  return amountAtomic > perPaymentAtomic ? 'mandate_exceeded' : null
}
