import type { NetworkName } from '../../../shared/till/usdc.ts'
import type { Queryable } from '../../db.ts'

/** An endpoint in the public list. */
export type DiscoveredEndpoint = {
  url: string
  priceAtomic: bigint
  network: NetworkName
  payTo: string
  description: string | null
  /** The versions of x402 in its challenge, as last seen. */
  versions: number[]
  updatedAt: Date
}

/** What to list. Null: any. */
export type DiscoveryFilter = {
  payTo: string | null
  network: NetworkName | null
  /** Lower case; the endpoints with most of them come first, those without any are left out. Null: all, oldest first. */
  words: readonly string[] | null
  limit: number
  offset: number
}

// Registered, verified and payable endpoints of sellers who opted in: never the word of a payer.
const LISTED = `
  from seller_endpoints e
  join projects p on p.id = e.project_id
  join chain_status c on c.network = e.network
  cross join lateral (
    select count(*)::int as hits from unnest($3::text[]) w (word)
    where strpos(lower(e.url_pattern || ' ' || coalesce(e.description, '')), w.word) > 0) s
  where e.discoverable and e.deleted_at is null and e.paused_at is null and e.verification_status = 'verified'
    and p.deleted_at is null and p.payments_enabled and p.pay_to is not null
    and ($1::text is null or lower(p.pay_to) = lower($1)) and ($2::text is null or e.network = $2)
    and ($3::text[] is null or s.hits > 0)`

/** One part of the public list, and the size of the whole. */
export async function discoverEndpoints(
  db: Queryable,
  { payTo, network, words, limit, offset }: DiscoveryFilter,
): Promise<{ endpoints: DiscoveredEndpoint[]; total: number }> {
  const filter = [payTo, network, words]
  const [page, all] = await Promise.all([
    db.query<{
      url_pattern: string
      price_atomic: string
      network: NetworkName
      pay_to: string
      description: string | null
      challenge_versions: number[]
      updated_at: Date
    }>({
      name: 'discover-endpoints',
      text: `select e.url_pattern, e.price_atomic, e.network, p.pay_to, e.description, e.challenge_versions,
                    greatest(e.verification_checked_at, e.created_at) as updated_at
             ${LISTED} order by s.hits desc, e.row limit $4 offset $5`,
      values: [...filter, limit, offset],
    }),
    db.query<{ total: number }>({
      name: 'count-discoverable-endpoints',
      text: `select count(*)::int as total ${LISTED}`,
      values: filter,
    }),
  ])
  return {
    endpoints: page.rows.map((row) => ({
      url: row.url_pattern,
      priceAtomic: BigInt(row.price_atomic),
      network: row.network,
      payTo: row.pay_to,
      description: row.description,
      versions: row.challenge_versions,
      updatedAt: row.updated_at,
    })),
    total: all.rows[0]!.total,
  }
}
