import type { Metadata } from '../../../shared/till/bazaar/metadata.ts'
import type { SeenMetadata } from '../../../shared/till/bazaar/seen.ts'
import type { NetworkName } from '../../../shared/till/usdc.ts'
import type { Queryable } from '../../db.ts'

type ResourceType = 'http' | 'mcp'

/** Describes a seller's endpoint in the public list of paid resources. */
export type DiscoveredEndpoint = {
  row: bigint
  url: string
  priceAtomic: bigint
  network: NetworkName
  payTo: string
  description: string | null
  /**
   * Holds the metadata of the endpoint from the seller, from the OpenAPI document, and from the endpoint's own 402
   * response. In a contradiction, the seller takes precedence over the OpenAPI document, and the document over the 402
   * response.
   */
  metadata: Metadata & SeenMetadata
  /** Lists the versions of x402 that the last check found in the endpoint's 402 response. */
  versions: number[]
  updatedAt: Date
}

/**
 * Selects the endpoints of a page of the public list of paid resources. A null filter field does not restrict the list.
 */
export type DiscoveryFilter = {
  payTo: string | null
  network: NetworkName | null
  /**
   * Holds the words for which the client searches, in lower case. Endpoints that match more words come first, and
   * endpoints that match none are left out. Null means that the list contains all endpoints, oldest first.
   */
  words: readonly string[] | null
  type: ResourceType | null
  /** Selects endpoints with the given tag. The comparison of tags ignores upper and lower case. */
  tag: string | null
  minAtomic: bigint | null
  maxAtomic: bigint | null
  /** Selects only endpoints with metadata that tells how a client calls the endpoint. */
  hasBazaar: boolean
  /** Holds the row number after which the public list of paid resources continues. */
  after: bigint | null
  limit: number
  offset: number
}

const METADATA = 'e.seen_metadata || e.open_api_metadata || e.metadata'

// Selects the endpoints of the public list: registered, verified and payable endpoints of sellers who opted in. The
// list does not depend on anything that a payer says. An endpoint is left out if its 402 response names only payTo
// addresses of other sellers, because it then belongs to another seller. This check does not apply to an MCP tool, or
// to an endpoint that an earlier version checked, because no payTo addresses are stored for them.
const LISTED = `
  from seller_endpoints e
  join projects p on p.id = e.project_id
  join chain_status c on c.network = e.network
  cross join lateral (select ${METADATA} as metadata) m
  cross join lateral (
    select count(*)::int as hits from unnest($3::text[]) w (word)
    where strpos(lower(concat_ws(' ', e.url_pattern, e.description, m.metadata->>'serviceName', m.metadata->>'tags')),
      w.word) > 0) s
  where e.discoverable and e.deleted_at is null and e.paused_at is null and e.verification_status = 'verified'
    and p.deleted_at is null and p.payments_enabled and p.pay_to is not null
    and (e.challenge_pay_to = '{}' or lower(p.pay_to) = any (e.challenge_pay_to))
    and ($1::text is null or lower(p.pay_to) = lower($1)) and ($2::text is null or e.network = $2)
    and ($3::text[] is null or s.hits > 0)
    and ($4::text is null or (e.url_pattern like 'mcp://%') = ($4 = 'mcp'))
    and ($5::text is null or exists (
      select from jsonb_array_elements_text(m.metadata->'tags') t (tag) where lower(t.tag) = lower($5)))
    and ($6::numeric is null or e.price_atomic >= $6) and ($7::numeric is null or e.price_atomic <= $7)
    and (not $8 or m.metadata ?| array['input', 'bazaar'])`

/**
 * Returns one page of the public list of endpoints, and the number of endpoints in the whole list. The function uses
 * one database connection at a time, because anybody may read the public list.
 */
export async function discoverEndpoints(
  db: Queryable,
  { payTo, network, words, type, tag, minAtomic, maxAtomic, hasBazaar, ...part }: DiscoveryFilter,
): Promise<{ endpoints: DiscoveredEndpoint[]; total: number }> {
  const filter = [payTo, network, words, type, tag, minAtomic, maxAtomic, hasBazaar]
  const page = await db.query<{
    row: string
    url_pattern: string
    price_atomic: string
    network: NetworkName
    pay_to: string
    description: string | null
    metadata: Metadata & SeenMetadata
    challenge_versions: number[]
    updated_at: Date
  }>({
    name: 'discover-endpoints',
    text: `select e.row, e.url_pattern, e.price_atomic, e.network, p.pay_to, e.description, m.metadata,
                  e.challenge_versions, greatest(e.verification_checked_at, e.created_at) as updated_at
           ${LISTED} and ($9::bigint is null or e.row > $9)
           order by s.hits desc, e.row limit $10 offset $11`,
    values: [...filter, part.after, part.limit, part.offset],
  })
  return {
    endpoints: page.rows.map((row) => ({
      row: BigInt(row.row),
      url: row.url_pattern,
      priceAtomic: BigInt(row.price_atomic),
      network: row.network,
      payTo: row.pay_to,
      description: row.description,
      metadata: row.metadata,
      versions: row.challenge_versions,
      updatedAt: row.updated_at,
    })),
    total: await countListed(db, filter),
  }
}

/**
 * Lists the URLs of the public list of endpoints, oldest first, and counts all endpoints of the list. For the tool of
 * an MCP server, the list shows the URL of the server.
 */
export async function listPaidUrls(
  db: Queryable,
  limit: number,
): Promise<{ urls: string[]; total: number }> {
  const all = [null, null, null, null, null, null, null, false]
  const { rows } = await db.query<{ url: string }>({
    name: 'list-paid-urls',
    text: `select case when e.url_pattern like 'mcp://%' then coalesce(m.metadata ->> 'mcpUrl', e.url_pattern)
                    else e.url_pattern end as url
           ${LISTED} order by e.row limit $9`,
    values: [...all, limit],
  })
  return { urls: rows.map(({ url }) => url), total: await countListed(db, all) }
}

async function countListed(db: Queryable, filter: readonly unknown[]): Promise<number> {
  const { rows } = await db.query<{ total: number }>({
    name: 'count-discoverable-endpoints',
    text: `select count(*)::int as total ${LISTED}`,
    values: [...filter],
  })
  return rows[0]!.total
}
