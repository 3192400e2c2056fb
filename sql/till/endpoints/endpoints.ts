import type { Cursor } from '../../../shared/cursor.ts'
import type { Metadata } from '../../../shared/till/bazaar/metadata.ts'
import type { SeenMetadata } from '../../../shared/till/bazaar/seen.ts'
import { conditions, holds } from '../../conditions.ts'
import type { Queryable } from '../../db.ts'
import { type Order, pageOrder } from '../../pageStart.ts'

export type VerificationStatus = 'pending' | 'verified' | 'failed' | 'unreachable'

/**
 * Describes the OpenAPI document of an endpoint, with the metadata that a worker process has read from the document.
 */
type OpenApi = {
  url: string
  status: 'pending' | 'read' | 'failed'
  detail: string | null
  metadata: Metadata
}

/** Describes a seller's endpoint, which is a resource for sale with its price. */
export type Endpoint = {
  id: string
  urlPattern: string
  /** Holds the price in atomic USDC (10^-6). */
  priceAtomic: bigint
  network: string
  description: string | null
  webhookUrl: string | null
  /** Tells whether the endpoint is in the public list of paid resources. */
  discoverable: boolean
  /** Tells whether the seller has paused the endpoint. A paused endpoint gets no new x402 challenges. */
  isPaused: boolean
  /** Holds the endpoint's metadata that the seller gave. */
  metadata: Metadata
  /** Holds the seller's OpenAPI document. Null means that the seller names no OpenAPI document. */
  openApi: OpenApi | null
  /** Holds the metadata that the last check found in the endpoint's own 402 response. */
  seen: SeenMetadata
  verification: { status: VerificationStatus; checkedAt: Date | null; detail: string | null }
  createdAt: Date
  row: bigint
}

/** Holds the number of an endpoint's settled payments, and the sum of these payments in atomic USDC. */
export type EndpointTotals = { callCount: number; revenueAtomic: bigint }

/** Holds one row of the table seller_endpoints with the columns ENDPOINT_COLUMNS. */
export type EndpointRow = {
  id: string
  url_pattern: string
  price_atomic: string
  network: string
  description: string | null
  webhook_url: string | null
  discoverable: boolean
  is_paused: boolean
  metadata: Metadata
  open_api_url: string | null
  open_api_status: OpenApi['status'] | null
  open_api_detail: string | null
  open_api_metadata: Metadata
  seen_metadata: SeenMetadata
  verification_status: VerificationStatus
  verification_detail: string | null
  verification_checked_at: Date | null
  created_at: Date
  row: string
}

export const ENDPOINT_COLUMNS = `id, url_pattern, price_atomic, network, description, webhook_url, discoverable, metadata,
  paused_at is not null as is_paused,
  open_api_url, open_api_status, open_api_detail, open_api_metadata, seen_metadata, verification_status,
  verification_detail, verification_checked_at, created_at, row`

export const toEndpoint = (row: EndpointRow): Endpoint => ({
  id: row.id,
  urlPattern: row.url_pattern,
  priceAtomic: BigInt(row.price_atomic),
  network: row.network,
  description: row.description,
  webhookUrl: row.webhook_url,
  discoverable: row.discoverable,
  isPaused: row.is_paused,
  metadata: row.metadata,
  openApi:
    row.open_api_url === null
      ? null
      : {
          url: row.open_api_url,
          status: row.open_api_status ?? 'pending',
          detail: row.open_api_detail,
          metadata: row.open_api_metadata,
        },
  seen: row.seen_metadata,
  verification: {
    status: row.verification_status,
    checkedAt: row.verification_checked_at,
    detail: row.verification_detail,
  },
  createdAt: row.created_at,
  row: BigInt(row.row),
})

/** Finds one endpoint of a project that is not deleted. @returns null if the project has no such endpoint. */
export async function findEndpoint(
  db: Queryable,
  { projectId, id }: { projectId: string; id: string },
): Promise<Endpoint | null> {
  const { rows } = await db.query<EndpointRow>({
    name: 'find-endpoint',
    text: `select ${ENDPOINT_COLUMNS} from seller_endpoints
           where project_id = $1 and id = $2 and deleted_at is null`,
    values: [projectId, id],
  })
  return rows[0] === undefined ? null : toEndpoint(rows[0])
}

export type EndpointFilter = {
  projectId: string
  /** Selects endpoints that have the given text in their URL or description. */
  text?: string
  verification?: VerificationStatus
  active?: boolean
}

/** Lists endpoints that are not deleted in the given order, with at most `limit` endpoints after the cursor. */
export async function listEndpoints(
  db: Queryable,
  filter: EndpointFilter & { limit: number; cursor: Cursor | null; order?: Order },
): Promise<Endpoint[]> {
  const { before, direction, start } = pageOrder(filter.order ?? 'newest', filter.cursor)
  const values: unknown[] = [filter.projectId, ...start, filter.limit]
  const tests = conditions(values, [
    [holds(`concat_ws(E'\\n', url_pattern, description)`), filter.text],
    ['verification_status = ?', filter.verification],
    ['(paused_at is null) = ?', filter.active],
  ])
  const { rows } = await db.query<EndpointRow>(
    `select ${ENDPOINT_COLUMNS} from seller_endpoints
     where project_id = $1 and deleted_at is null
       and (created_at, row) ${before} ($2::timestamptz, $3::bigint) ${tests}
     order by created_at ${direction}, row ${direction} limit $4`,
    values,
  )
  return rows.map(toEndpoint)
}

/** Finds the endpoint of a project for a resource. The parameter `matchKey` comes from `parseResourceUrl`. */
export async function findEndpointByResource(
  db: Queryable,
  projectId: string,
  matchKey: string,
): Promise<Endpoint | null> {
  const { rows } = await db.query<EndpointRow>({
    name: 'find-endpoint-by-resource',
    text: `select ${ENDPOINT_COLUMNS} from seller_endpoints
           where project_id = $1 and match_key = $2 and deleted_at is null`,
    values: [projectId, matchKey],
  })
  return rows[0] === undefined ? null : toEndpoint(rows[0])
}

/** Returns the number and the sum of the settled payments of endpoints. */
export async function endpointTotals(
  db: Queryable,
  ids: string[],
): Promise<Map<string, EndpointTotals>> {
  const { rows } = await db.query<{ endpoint_id: string; calls: number; revenue: string }>({
    name: 'endpoint-totals',
    text: `select endpoint_id, count(*)::int as calls, sum(amount_atomic) as revenue from payments
           where endpoint_id = any ($1) and state = 'settled' group by endpoint_id`,
    values: [ids],
  })
  const earned = new Map(rows.map((row) => [row.endpoint_id, row]))
  return new Map(
    ids.map((id) => {
      const row = earned.get(id)
      return [id, { callCount: row?.calls ?? 0, revenueAtomic: BigInt(row?.revenue ?? 0) }]
    }),
  )
}

export type UrlToVerify = {
  url: string
  projectId: string
  /** Holds the payTo address of the project in lower case. Null means that the project has no payTo address. */
  payTo: string | null
  metadata: Metadata
  openApiUrl: string | null
}

/**
 * Returns the URL of an endpoint, so that a worker process can verify the endpoint. @returns null if the endpoint is
 * deleted.
 */
export async function findUrlToVerify(db: Queryable, id: string): Promise<UrlToVerify | null> {
  const { rows } = await db.query<UrlToVerify>({
    name: 'find-url-to-verify',
    text: `select e.url_pattern as url, e.project_id as "projectId", lower(p.pay_to) as "payTo", e.metadata,
                  e.open_api_url as "openApiUrl"
           from seller_endpoints e join projects p on p.id = e.project_id
           where e.id = $1 and e.deleted_at is null`,
    values: [id],
  })
  return rows[0] ?? null
}

/**
 * Records the result of an endpoint's verification. It records nothing if the URL of the endpoint has changed in the
 * meantime, or a later check has begun.
 * @returns the time of the record, or null if nothing was recorded.
 */
export async function recordVerification(
  db: Queryable,
  verdict: {
    id: string
    url: string
    /**
     * Holds the time at which the check of the endpoint began. If it is absent, no check ran, and the function always
     * records the result.
     */
    startedAt?: Date
    status: VerificationStatus
    detail: string
    /** Lists the versions of x402 that the check found in the endpoint's challenge. */
    versions: readonly (1 | 2)[]
    /** Lists the payTo addresses of the endpoint's challenge, in lower case. */
    payees: readonly string[]
    /** Holds the metadata that the endpoint's challenge declares. */
    seen: SeenMetadata
  },
): Promise<Date | null> {
  const { rows } = await db.query<{ checked_at: Date }>(
    `update seller_endpoints set
       verification_status = $3, verification_detail = $4, verification_checked_at = clock_timestamp(),
       -- A check that the seller has requested after the beginning of this check stays queued.
       check_queued_at = case when check_queued_at > $8 then check_queued_at end, check_started_at = null,
       challenge_versions = $5, challenge_pay_to = $6, seen_metadata = $7
     where id = $1 and url_pattern = $2 and ($8::timestamptz is null or check_started_at = $8)
     returning verification_checked_at as checked_at`,
    [
      ...[verdict.id, verdict.url, verdict.status, verdict.detail, verdict.versions],
      ...[verdict.payees, verdict.seen, verdict.startedAt ?? null],
    ],
  )
  return rows[0]?.checked_at ?? null
}

/**
 * Records the metadata that a worker process read from an endpoint's OpenAPI document. It records nothing if the
 * endpoint now names another document, or if a later check has recorded its verification.
 * @param checkedAt is the time at which the check recorded its verification.
 */
export async function recordOpenApi(
  db: Queryable,
  {
    id,
    url,
    fault,
    metadata,
    checkedAt,
  }: { id: string; url: string; fault: string | null; metadata: Metadata; checkedAt: Date },
): Promise<void> {
  await db.query(
    `update seller_endpoints set open_api_status = $3, open_api_detail = $4, open_api_metadata = $5
     where id = $1 and open_api_url = $2 and verification_checked_at = $6`,
    [id, url, fault === null ? 'read' : 'failed', fault, metadata, checkedAt],
  )
}
