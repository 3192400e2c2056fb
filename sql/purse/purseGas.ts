/** Counts the gas of the calls (cancellations and transfers) that purses sign and gas wallets send. */
import type { Queryable } from '../db.ts'
import { TODAY } from '../till/settle/settlementBudgets.ts'

/**
 * Sets the gas for each signed call of a purse. A measured cancellation took 53,000 gas, and a measured transfer to a
 * new recipient took 73,800 gas.
 */
export const GAS_OF_CALL = 80_000n

/**
 * Holds the daily gas above which the service refuses a transfer out of a purse. A null limit means that the service
 * sets no limit. The word `exempt` marks a transfer of the operator, which no limit refuses.
 */
export type GasLimit = { dailyGas: number | null } | 'exempt'

/**
 * Adds the gas of purse calls to the gas count of their project for the present UTC day. The caller signs the calls in
 * the same database transaction, so that no crash leaves a call without its count.
 */
export async function countPurseGas(
  db: Queryable,
  projectId: string,
  calls: number,
): Promise<void> {
  if (calls === 0) return
  await db.query({
    name: 'count-purse-gas',
    text: `
      insert into purse_gas as g (project_id, day, gas) values ($1, ${TODAY}, $2)
      on conflict (project_id) do update set
        day = excluded.day, gas = excluded.gas + case when g.day = excluded.day then g.gas else 0 end`,
    values: [projectId, GAS_OF_CALL * BigInt(calls)],
  })
}

/**
 * Tells whether the calls of a purse have used up the daily gas of its project. The project's own limit replaces the
 * given limit. Null means no limit.
 */
export async function isPurseGasUsedUp(
  db: Queryable,
  projectId: string,
  dailyGas: number | null,
): Promise<boolean> {
  const { rows } = await db.query<{ used_up: boolean }>({
    name: 'is-purse-gas-used-up',
    text: `
      select coalesce(g.gas >= coalesce(l.daily_gas, $2::bigint), false) as used_up
      from purse_gas g left join project_limits l on l.project_id = g.project_id
      where g.project_id = $1 and g.day = ${TODAY}`,
    values: [projectId, dailyGas],
  })
  return rows[0]?.used_up ?? false
}
