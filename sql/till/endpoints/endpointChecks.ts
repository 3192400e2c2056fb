import { isMcpTool } from '../../../shared/till/resourceUrl.ts'
import { type Pool, type Queryable, transaction } from '../../db.ts'
import { addJob, addJobsFrom } from '../../queue/jobs.ts'
import { recordVerification, type VerificationStatus } from './endpoints.ts'

/** Describes the verification of a seller's endpoint: the last verdict, and the state of a further check. */
export type EndpointCheck = {
  status: VerificationStatus
  detail: string | null
  checkedAt: Date | null
  /**
   * Holds the number of milliseconds since a check of the endpoint was queued. Null means that no check of the endpoint
   * is queued.
   */
  queuedMs: number | null
  /** Tells whether a worker process is requesting the endpoint's URL at this moment. */
  isRunning: boolean
}

/** Returns the verification of an endpoint. @returns null if the endpoint does not exist or is deleted. */
export async function findEndpointCheck(db: Queryable, id: string): Promise<EndpointCheck | null> {
  const { rows } = await db.query<{
    status: VerificationStatus
    detail: string | null
    checked_at: Date | null
    queued_ms: string | null
    running: boolean
  }>({
    name: 'find-endpoint-check',
    text: `select verification_status as status, verification_detail as detail,
                  verification_checked_at as checked_at,
                  floor(extract(epoch from clock_timestamp() - check_queued_at) * 1000) as queued_ms,
                  -- A check of an endpoint that began over 25 s ago counts as ended, because such a check takes at most
                  -- 20 s. A crashed worker process never records the end of its check.
                  coalesce(check_started_at > clock_timestamp() - interval '25 seconds', false) as running
           from seller_endpoints where id = $1 and deleted_at is null`,
    values: [id],
  })
  const row = rows[0]
  if (row === undefined) return null
  return {
    status: row.status,
    detail: row.detail,
    checkedAt: row.checked_at,
    queuedMs: row.queued_ms === null ? null : Number(row.queued_ms),
    isRunning: row.running,
  }
}

/**
 * Marks an endpoint of an MCP tool as verified at once, because it has no URL to check. For an endpoint with a URL, the
 * function queues a check in the caller's transaction.
 */
export async function checkEndpoint(
  db: Queryable,
  { id, urlPattern: url }: { id: string; urlPattern: string },
): Promise<void> {
  if (!isMcpTool(url)) return queueEndpointCheck(db, id)
  const detail = 'by the word of the project: an MCP tool has no URL to fetch'
  await recordVerification(db, {
    id,
    url,
    status: 'verified',
    detail,
    versions: [],
    payees: [],
    seen: {},
  })
}

/** Queues the check of an endpoint, in the caller's transaction. */
export async function queueEndpointCheck(db: Queryable, endpointId: string): Promise<void> {
  await db.query('update seller_endpoints set check_queued_at = clock_timestamp() where id = $1', [
    endpointId,
  ])
  await addJob(db, {
    task: 'verify_endpoint',
    payload: { endpointId },
    key: `verify_endpoint:${endpointId}`,
  })
}

/**
 * Queues a check of each endpoint of a project, because the project has a new payTo address, and the last checks
 * compared the 402 responses with the former address. The function also deletes the payTo addresses that the last
 * checks found. Otherwise another project with the former address would count as the seller, so that the check itself
 * would get no x402 challenge.
 */
export async function queueChecksOfProject(db: Queryable, projectId: string): Promise<void> {
  await db.query(
    `with queued as (
       update seller_endpoints set check_queued_at = clock_timestamp(), challenge_pay_to = '{}'
       where project_id = $1 and deleted_at is null and url_pattern not like 'mcp://%'
       returning id as payload_id
     ) ${addJobsFrom('queued', 'verify_endpoint', 'endpointId')}`,
    [projectId],
  )
}

/** Queues another check of a project's endpoint. @returns false if the project has no such endpoint. */
export function checkEndpointAnew(
  pool: Pool,
  { projectId, id }: { projectId: string; id: string },
): Promise<boolean> {
  return transaction(pool, async (db) => {
    const { rows } = await db.query<{ urlPattern: string }>(
      `select url_pattern as "urlPattern" from seller_endpoints
       where project_id = $1 and id = $2 and deleted_at is null for no key update`,
      [projectId, id],
    )
    const [endpoint] = rows
    if (endpoint !== undefined) await checkEndpoint(db, { id, ...endpoint })
    return endpoint !== undefined
  })
}

/**
 * Queues a check of an endpoint after the service had to refuse an x402 challenge for it. The function queues at most
 * one check in `pauseMs` milliseconds. If another check already waits, the function queues no further one.
 * @returns the milliseconds until the function may queue the next check. The result 0 means that a check is queued, or
 * that the endpoint is deleted.
 */
export function provokeEndpointCheck(pool: Pool, id: string, pauseMs: number): Promise<number> {
  return transaction(pool, async (db) => {
    const { rows } = await db.query<{ isQueued: boolean; restMs: number | null }>(
      `select check_queued_at is not null as "isQueued",
         $2::float8 - extract(epoch from clock_timestamp() - check_provoked_at)::float8 * 1000 as "restMs"
       from seller_endpoints where id = $1 and deleted_at is null for update`,
      [id, pauseMs],
    )
    const [endpoint] = rows
    if (endpoint === undefined || endpoint.isQueued) return 0
    if (endpoint.restMs !== null && endpoint.restMs > 0) return endpoint.restMs
    await db.query(
      'update seller_endpoints set check_provoked_at = clock_timestamp() where id = $1',
      [id],
    )
    await queueEndpointCheck(db, id)
    return 0
  })
}

/**
 * Records that a worker process begins to request the URL of an endpoint. @returns the time of the beginning, which is
 * different for each check of this endpoint. Returns null if the endpoint does not exist.
 */
export async function startEndpointCheck(db: Queryable, id: string): Promise<Date | null> {
  const { rows } = await db.query<{ started_at: Date }>(
    `update seller_endpoints set check_queued_at = coalesce(check_queued_at, clock_timestamp()),
       check_started_at = greatest(clock_timestamp(), check_started_at + interval '1 millisecond')
     where id = $1 returning check_started_at as started_at`,
    [id],
  )
  return rows[0]?.started_at ?? null
}
