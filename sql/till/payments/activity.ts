import type { Queryable } from '../../db.ts'

/** Settled payments: their number, and their sum in atomic USDC. */
export type Income = { count: number; amountAtomic: bigint }

/** The income of a project: whole, by day (UTC) and by endpoint. */
export type Activity = {
  total: Income
  /** Newest first; days without a payment are left out. */
  days: (Income & { day: string })[]
  /** The largest sum first; null: no registered endpoint. */
  endpoints: (Income & { endpointId: string | null; urlPattern: string | null })[]
}

/** The payments of a project that have settled since a time. */
export async function readActivity(
  db: Queryable,
  { projectId, since }: { projectId: string; since: Date },
): Promise<Activity> {
  const { rows } = await db.query<{
    part: 'total' | 'day' | 'endpoint'
    day: string | null
    endpoint_id: string | null
    url_pattern: string | null
    count: number
    amount: string
  }>({
    name: 'read-activity',
    text: `with settled as (
             select to_char(settled_at at time zone 'UTC', 'YYYY-MM-DD') as day, endpoint_id, amount_atomic
             from payments where project_id = $1 and state = 'settled' and settled_at >= $2),
           sums as (
             select case when grouping(day) = 0 then 'day' when grouping(endpoint_id) = 0 then 'endpoint' else 'total' end as part,
                    day, endpoint_id, count(*)::int as count, coalesce(sum(amount_atomic), 0)::text as amount
             from settled group by grouping sets ((), (day), (endpoint_id)))
           select s.*, e.url_pattern from sums s left join seller_endpoints e on e.id = s.endpoint_id
           order by s.day desc, s.amount::numeric desc, s.endpoint_id`,
    values: [projectId, since],
  })
  const of = (part: string) =>
    rows
      .filter((row) => row.part === part)
      .map(({ count, amount, ...row }) => ({ ...row, count, amountAtomic: BigInt(amount) }))
  return {
    total: of('total')[0] ?? { count: 0, amountAtomic: 0n },
    days: of('day').map(({ day, count, amountAtomic }) => ({ day: day!, count, amountAtomic })),
    endpoints: of('endpoint').map(({ endpoint_id, url_pattern, count, amountAtomic }) => ({
      endpointId: endpoint_id,
      urlPattern: url_pattern,
      count,
      amountAtomic,
    })),
  }
}
