/** Counts the gas of the calls (cancellations and transfers) that the service sends for the purses of projects. */
import type { Queryable } from '../db.ts'
import { TODAY } from '../till/settle/settlementBudgets.ts'

/**
 * Adds the gas of the first sending of calls to the counts of their projects for the present UTC day. A deleted project
 * has no count.
 * @param calls names the project of each call
 */
export async function countPurseGas(
  db: Queryable,
  calls: readonly { projectId: string }[],
  gasOfCall: bigint,
): Promise<void> {
  if (calls.length === 0) return
  await db.query({
    name: 'count-purse-gas',
    text: `
      insert into purse_gas as g (project_id, day, gas)
      select c.project_id, ${TODAY}, count(*) * $2::bigint from unnest($1::text[]) c (project_id)
      join projects p on p.id = c.project_id and p.deleted_at is null
      group by c.project_id order by c.project_id
      on conflict (project_id) do update set
        day = excluded.day, gas = excluded.gas + case when g.day = excluded.day then g.gas else 0 end`,
    values: [calls.map(({ projectId }) => projectId), gasOfCall],
  })
}

/**
 * Tells whether the calls of a purse have used up the daily gas of its project. A project's own limit replaces the
 * given limit. A null limit means no limit.
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
