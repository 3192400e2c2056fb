/** Sums up the payments out of a purse for its owner. */
import type { Queryable } from '../db.ts'

const HOSTS_MAX = 20

export type Spending = {
  byDay: { day: string; amountAtomic: bigint; count: number }[]
  byHost: { host: string; amountAtomic: bigint; count: number; withoutContent: number }[]
}

/**
 * Returns the sums of the open and spent payments of the last days, grouped by host, and grouped by the UTC day of the
 * reservation.
 */
export async function readSpending(
  db: Queryable,
  projectId: string,
  days: number,
): Promise<Spending> {
  const since = `date_trunc('day', clock_timestamp(), 'UTC') - ($2 - 1) * interval '24 hours'`
  const paid = `select host, reserved_at, amount_atomic, money, ended_at, status from purchases
    where project_id = $1 and kind = 'payment' and money in ('open', 'spent') and reserved_at >= ${since}`
  const byDay = await db.query<{ day: string; amount: string; count: number }>({
    name: 'spending-by-day',
    text: `select to_char(reserved_at at time zone 'UTC', 'YYYY-MM-DD') as day, sum(amount_atomic) as amount,
             count(*)::int as count
           from (${paid}) p group by 1 order by 1`,
    values: [projectId, days],
  })
  const byHost = await db.query<{ host: string; amount: string; count: number; without: number }>({
    name: 'spending-by-host',
    text: `select host, sum(amount_atomic) as amount, count(*)::int as count,
             (count(*) filter (where money = 'spent' and ended_at is not null
               and not coalesce(status between 200 and 299, false)))::int as without
           from (${paid}) p group by 1 order by 2 desc, 1 limit ${HOSTS_MAX}`,
    values: [projectId, days],
  })
  return {
    byDay: byDay.rows.map(({ day, amount, count }) => ({
      day,
      amountAtomic: BigInt(amount),
      count,
    })),
    byHost: byHost.rows.map(({ host, amount, count, without }) => ({
      host,
      amountAtomic: BigInt(amount),
      count,
      withoutContent: without,
    })),
  }
}
