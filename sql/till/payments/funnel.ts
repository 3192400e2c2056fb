/** Counts the steps (the funnel) from an x402 challenge to a settled payment, by endpoint and UTC day. */
import type { Queryable } from '../../db.ts'

/** Counts the payment challenges and the refused payments of an endpoint in a day. */
export type OfferCount = {
  projectId: string
  endpointId: string
  /** Holds the UTC day of the counts, such as `2026-01-05`. */
  day: string
  challenges: number
  refusals: number
}

/**
 * Adds counts of payment challenges and refused payments from a process's memory to the database. The SQL inserts the
 * rows in a fixed order, so that two processes never deadlock.
 */
export async function addOfferCounts(db: Queryable, counts: readonly OfferCount[]): Promise<void> {
  if (counts.length === 0) return
  await db.query({
    name: 'add-offer-counts',
    text: `insert into offer_counts as c (project_id, endpoint_id, day, challenges, refusals)
           select n.project_id, n.endpoint_id, n.day, n.challenges, n.refusals
           from unnest($1::text[], $2::text[], $3::date[], $4::bigint[], $5::bigint[])
             n (project_id, endpoint_id, day, challenges, refusals)
           join projects p on p.id = n.project_id and p.deleted_at is null
           order by n.project_id, n.day, n.endpoint_id
           on conflict (project_id, day, endpoint_id) do update set
             challenges = c.challenges + excluded.challenges, refusals = c.refusals + excluded.refusals`,
    values: [
      counts.map(({ projectId }) => projectId),
      counts.map(({ endpointId }) => endpointId),
      counts.map(({ day }) => day),
      counts.map(({ challenges }) => challenges),
      counts.map(({ refusals }) => refusals),
    ],
  })
}

/**
 * Holds the time for which the service keeps the counts of challenges. The activity page shows the counts of the last
 * 90 days.
 */
const RETENTION = '400 days'

export async function deleteStaleOfferCounts(db: Queryable): Promise<void> {
  await db.query(`delete from offer_counts where day < current_date - interval '${RETENTION}'`)
}

/**
 * Holds one row of the statistics: the counts of the steps from x402 challenges to settled payments. A payment counts
 * on the day on which the service stored it.
 */
export type FunnelSums = {
  challenges: number
  /** Counts the payment attempts that the service refused before it stored a payment. */
  refused: number
  /**
   * Counts the payments that the service stored for settlement. It stores a payment only if the signature is valid and
   * the payer's balance is sufficient.
   */
  claimed: number
  settled: number
  failed: number
  settledAtomic: bigint
}

export type Funnel = {
  total: FunnelSums
  /**
   * Holds the counts of each day, from challenges to settled payments, the newest day first. The list leaves out days
   * without any counts.
   */
  days: (FunnelSums & { day: string })[]
  /**
   * Holds the counts of each endpoint, the endpoint with the most challenges first, for at most {@link
   * ENDPOINTS_SHOWN_MAX} endpoints. A null `endpointId` stands for requests without a registered endpoint.
   */
  endpoints: (FunnelSums & { endpointId: string | null; urlPattern: string | null })[]
}

export const ENDPOINTS_SHOWN_MAX = 100

const SUMS = `
  coalesce(sum(challenges), 0)::float8 as challenges, coalesce(sum(refused), 0)::float8 as refused,
  coalesce(sum(claimed), 0)::float8 as claimed, coalesce(sum(settled), 0)::float8 as settled,
  coalesce(sum(failed), 0)::float8 as failed, coalesce(sum(atomic), 0)::text as atomic`

/**
 * Counts the steps from x402 challenges to settled payments since a given day, for one endpoint or for all endpoints of
 * a project.
 */
export async function readFunnel(
  db: Queryable,
  { projectId, since, endpointId }: { projectId: string; since: Date; endpointId: string | null },
): Promise<Funnel> {
  const { rows } = await db.query<
    Omit<FunnelSums, 'settledAtomic'> & {
      part: 'total' | 'day' | 'endpoint'
      day: string | null
      endpoint_id: string | null
      url_pattern: string | null
      atomic: string
    }
  >({
    name: 'read-funnel',
    text: `with parts as (
             select day, endpoint_id, challenges, refusals as refused, 0 as claimed, 0 as settled, 0 as failed, 0 as atomic
             from offer_counts
             where project_id = $1 and day >= ($2::timestamptz at time zone 'UTC')::date
               and ($3::text is null or endpoint_id = $3)
             union all
             select (created_at at time zone 'UTC')::date, endpoint_id, 0, 0, 1, (state = 'settled')::int,
                    (state = 'failed')::int, case when state = 'settled' then amount_atomic else 0 end
             from payments
             where project_id = $1 and created_at >= $2 and ($3::text is null or endpoint_id = $3)),
           sums as (
             select case when grouping(day) = 0 then 'day' when grouping(endpoint_id) = 0 then 'endpoint' else 'total' end as part,
                    day, endpoint_id, ${SUMS}
             from parts group by grouping sets ((), (day), (endpoint_id))),
           ranked as (
             select *, row_number() over (partition by part order by challenges desc, claimed desc, endpoint_id) as place
             from sums)
           select s.*, to_char(s.day, 'YYYY-MM-DD') as day, e.url_pattern
           from ranked s left join seller_endpoints e on e.id = s.endpoint_id
           where s.part <> 'endpoint' or s.place <= ${ENDPOINTS_SHOWN_MAX}
           order by s.day desc, s.place`,
    values: [projectId, since, endpointId],
  })
  const of = (part: string) =>
    rows
      .filter((row) => row.part === part)
      .map(({ challenges, refused, claimed, settled, failed, atomic, ...row }) => ({
        ...row,
        sums: { challenges, refused, claimed, settled, failed, settledAtomic: BigInt(atomic) },
      }))
  return {
    total: of('total')[0]!.sums,
    days: of('day').map(({ day, sums }) => ({ day: day!, ...sums })),
    endpoints: of('endpoint').map(({ endpoint_id, url_pattern, sums }) => ({
      endpointId: endpoint_id,
      urlPattern: url_pattern,
      ...sums,
    })),
  }
}
