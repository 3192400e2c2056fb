import type { Queryable } from './db.ts'

type EndpointRow = {
  id: string
  url_pattern: string
  price_atomic: string
  network: string
  webhook_url: string | null
}

/** The live endpoint of a project that a resource names, or null. */
export async function findEndpointByResource(
  db: Queryable,
  projectId: string,
  matchKey: string,
): Promise<{
  id: string
  urlPattern: string
  priceAtomic: bigint
  network: string
  webhookUrl: string | null
} | null> {
  const { rows } = await db.query<EndpointRow>({
    name: 'find-endpoint-by-resource',
    text: `select id, url_pattern, price_atomic, network, webhook_url from seller_endpoints
           where project_id = $1 and match_key = $2 and deleted_at is null`,
    values: [projectId, matchKey],
  })
  const row = rows[0]
  if (row === undefined) return null
  return {
    id: row.id,
    urlPattern: row.url_pattern,
    priceAtomic: BigInt(row.price_atomic),
    network: row.network,
    webhookUrl: row.webhook_url,
  }
}
