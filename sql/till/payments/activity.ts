import type { Queryable } from '../../db.ts'

/** Holds the number of settled payments, and the sum of their amounts in atomic USDC. */
export type Income = { count: number; amountAtomic: bigint }

/**
 * Describes the income of a project in total, by UTC day, by endpoint and by payer. Payments from the project's own
 * addresses do not count as income.
 */
export type Activity = {
  total: Income
  /** Holds the income of each day, the newest day first. The list leaves out days without a payment. */
  days: (Income & { day: string })[]
  /**
   * Holds the income of each endpoint, the largest sum first. A null `endpointId` stands for payments without a
   * registered endpoint.
   */
  endpoints: (Income & { endpointId: string | null; urlPattern: string | null })[]
  /** Holds the income from each payer, the largest sum first. The list has at most {@link PAYERS_MAX} payers. */
  payers: (Income & { payerAddress: string })[]
  /** Sums up the payments from addresses of the project itself. */
  own: Income
  /**
   * Sums up the refunds in the time range, even of older payments. The sums of the payments do not subtract these
   * refunds.
   */
  refunded: Income
}

const PAYERS_MAX = 100

/** Reads the income of a project from payments that have settled since a given time. */
export async function readActivity(
  db: Queryable,
  { projectId, since }: { projectId: string; since: Date },
): Promise<Activity> {
  const { rows } = await db.query<{
    part: 'total' | 'day' | 'endpoint' | 'payer' | 'own' | 'refunded'
    day: string | null
    payer: string | null
    endpoint_id: string | null
    url_pattern: string | null
    count: number
    amount: string
  }>({
    name: 'read-activity',
    text: `with settled as (
             select to_char(p.settled_at at time zone 'UTC', 'YYYY-MM-DD') as day, p.endpoint_id, p.amount_atomic,
                    lower(p.payer) as payer, lower(p.payer) = any (j.own_addresses) as is_own
             from payments p join projects j on j.id = p.project_id
             where p.project_id = $1 and p.state = 'settled' and p.settled_at >= $2),
           sums as (
             select case when grouping(day) = 0 then 'day' when grouping(endpoint_id) = 0 then 'endpoint'
                         when grouping(payer) = 0 then 'payer' else 'total' end as part,
                    day, endpoint_id, payer, count(*)::int as count, coalesce(sum(amount_atomic), 0) as amount
             from settled where not is_own group by grouping sets ((), (day), (endpoint_id), (payer))
             union all
             select 'own', null, null, null, count(*)::int, coalesce(sum(amount_atomic), 0) from settled where is_own
             union all
             select 'refunded', null, null, null, count(*)::int, coalesce(sum(amount_atomic), 0) from (
               select amount_atomic from purchases
               where project_id = $1 and money = 'spent' and kind = 'refund' and spent_at >= $2
               union all
               select amount_atomic from hand_refunds where project_id = $1 and state = 'spent' and spent_at >= $2) r),
           ranked as (
             select *, row_number() over (partition by part order by amount desc, payer) as place from sums)
           select s.part, s.day, s.endpoint_id, s.payer, s.count, s.amount::text as amount, e.url_pattern
           from ranked s left join seller_endpoints e on e.id = s.endpoint_id
           where s.part <> 'payer' or s.place <= ${PAYERS_MAX}
           order by s.day desc, s.amount desc, s.endpoint_id, s.payer`,
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
    payers: of('payer').map(({ payer, count, amountAtomic }) => ({
      payerAddress: payer!,
      count,
      amountAtomic,
    })),
    own: of('own')[0] ?? { count: 0, amountAtomic: 0n },
    refunded: of('refunded')[0] ?? { count: 0, amountAtomic: 0n },
  }
}
