import { createBatcher } from '../../../shared/process/batcher.ts'
import type { Pool } from '../../../sql/db.ts'
import { findSales, type WantedSale } from '../../../sql/till/endpoints/seller.ts'
import { findPayments } from '../../../sql/till/payments/payments.ts'
import {
  claimPayments,
  type NewClaim,
  takeGrants,
  type WantedGrant,
} from '../../../sql/till/settle/claims.ts'
import type { SettlementLimits } from '../../../sql/till/settle/settlementBudgets.ts'
import type { Services } from '../../http/services.ts'

const BATCHING = { batchMax: 100, parallel: 2 }

/**
 * Batches the SQL statements of the till (the payment part of the service), because hundreds of redeem requests can
 * need the database at the same moment. Without batches, each of them would wait longer for a database connection than
 * for the chain.
 */
export function createTillBatchers(
  pool: Pool,
  limits: SettlementLimits,
): Pick<Services, 'sales' | 'claims' | 'payments' | 'grants'> {
  return {
    sales: createBatcher({
      ...BATCHING,
      run: (wanted: WantedSale[]) => findSales(pool, wanted),
    }),
    claims: createBatcher({
      ...BATCHING,
      run: (wanted: NewClaim[]) => claimPayments(pool, wanted, limits),
    }),
    payments: createBatcher({
      ...BATCHING,
      run: async (ids: string[]) => {
        const found = await findPayments(pool, ids)
        const byId = new Map(found.map((payment) => [payment.id, payment]))
        return ids.map((id) => byId.get(id) ?? null)
      },
    }),
    grants: createBatcher({
      ...BATCHING,
      run: (wanted: WantedGrant[]) => takeGrants(pool, wanted),
    }),
  }
}
