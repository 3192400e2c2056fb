import type { Config } from '../../../shared/config/config.ts'
import { formatUsdc } from '../../../shared/till/usdc.ts'
import type { X402Reason } from '../../../shared/till/x402.ts'
import { isBudgetUsedUp } from '../../../sql/till/settle/settlementBudgets.ts'
import { badRequest } from '../../http/errors.ts'
import type { Services } from '../../http/services.ts'

/**
 * Returns the reason of a refusal if the project has reached its daily limit on settlements or on gas, and counts this
 * refusal. Returns `null` if the project may accept another payment.
 */
export async function limitReached(
  { pool, config, metrics }: Services,
  projectId: string,
): Promise<X402Reason | null> {
  if (!(await isBudgetUsedUp(pool, projectId, config.limits))) return null
  metrics.settlementRefused()
  return 'settlement_limit_reached'
}

/**
 * Refuses a price that is not worth the gas of its settlement. @returns the price otherwise.
 * @throws {ApiError} 400 for a price that is too low.
 */
export function refuseDust(
  field: string,
  amountAtomic: bigint,
  { minPriceAtomic }: Pick<Config, 'minPriceAtomic'>,
): bigint {
  if (amountAtomic >= BigInt(minPriceAtomic)) return amountAtomic
  throw badRequest(
    `${field} must be at least ${formatUsdc(BigInt(minPriceAtomic))} USDC on this service`,
  )
}
