import type { Cursor } from '../../shared/cursor.ts'
import { conditions, holds } from '../conditions.ts'
import { type Pool, type Queryable, transaction } from '../db.ts'
import { type Order, pageOrder } from '../pageStart.ts'
import { postponeAttempt } from './deliveries.ts'
import { HAS_SECRET } from './webhookSecrets.ts'

type DeliveryStatus = 'pending' | 'delivered' | 'aborted' | 'exhausted'
/** Maps each status of a webhook delivery to the SQL literal of the status. */
const STATUSES: Record<DeliveryStatus, string> = {
  pending: 'pending',
  delivered: 'delivered',
  aborted: 'aborted',
  exhausted: 'exhausted',
}

/** Describes a webhook delivery as the API returns it. */
export type Delivery = {
  id: string
  /**
   * Holds the id of the seller's endpoint. A webhook delivery has either the id of an endpoint or the id of a project's
   * webhook.
   */
  endpointId: string | null
  webhookId: string | null
  subjectId: string | null
  event: string
  idempotencyKey: string
  url: string
  status: DeliveryStatus
  /** Counts the ended attempts of the webhook delivery, including the attempts after replays. */
  attemptCount: number
  nextAttemptAt: Date | null
  /** Tells why the service aborted the webhook delivery. */
  error: string | null
  createdAt: Date
  row: bigint
}

/** Describes one HTTP request of a webhook delivery. */
export type Attempt = {
  number: number
  startedAt: Date
  endedAt: Date
  statusCode: number | null
  error: string | null
  responsePrefix: string | null
}

type DeliveryRow = {
  id: string
  endpoint_id: string | null
  webhook_id: string | null
  subject_id: string | null
  event: string
  idempotency_key: string
  url: string
  status: DeliveryStatus
  attempt: number
  next_attempt_at: Date | null
  error: string | null
  created_at: Date
  row: string
}

/** Writes the SQL columns of a webhook delivery. The parameter `url` is the SQL expression of the shown URL. */
const columns = (
  url: string,
) => `id, endpoint_id, webhook_id, subject_id, event, idempotency_key, ${url} as url, status, attempt,
  next_attempt_at, error, created_at, row`

const toDelivery = (row: DeliveryRow): Delivery => ({
  id: row.id,
  endpointId: row.endpoint_id,
  webhookId: row.webhook_id,
  subjectId: row.subject_id,
  event: row.event,
  idempotencyKey: row.idempotency_key,
  url: row.url,
  status: row.status,
  attemptCount: row.attempt,
  nextAttemptAt: row.next_attempt_at,
  error: row.error,
  createdAt: row.created_at,
  row: BigInt(row.row),
})

/**
 * Lists the event types that the caller may read. The value `all` means every type. The path or the query of a webhook
 * URL is often a secret of the receiver. Therefore a caller sees the whole URL only if it may read all events of the
 * webhook, and if the webhook still has this URL.
 */
export type UrlReader = 'all' | readonly string[]

export type DeliveryFilter = {
  projectId: string
  endpointId?: string
  webhookId?: string
  /** Lists the event types that the caller may see in the delivery log. */
  events: readonly string[]
  urlsFor: UrlReader
  statuses?: readonly DeliveryStatus[]
  /** Selects webhook deliveries about the message or payment with this id. */
  subjectId?: string
  /** Selects webhook deliveries that have this text in their URL. */
  url?: string
  /** Tells whether the text `url` is searched only in the scheme and the host of the URL. */
  hostsOnly?: boolean
  after?: Date
  before?: Date
}

/** Writes SQL that computes the scheme, the host and the port of a stored webhook URL, which always has a path. */
const ORIGIN = `split_part(url, '/', 1) || '//' || split_part(url, '/', 3)`

/**
 * Writes SQL that computes the part of a delivery's URL that the caller may see. The project is the parameter $1 of the
 * SQL statement. The function appends its own parameter to `values`.
 */
function shownUrl(urlsFor: UrlReader, values: unknown[]): string {
  if (urlsFor === 'all') return 'url'
  return `case when webhook_id is null or (webhook_id, url) in (
    select w.id, w.url from project_webhooks w
    where w.project_id = $1 and w.deleted_at is null and w.events <@ $${values.push(urlsFor)}::text[]
  ) then url else ${ORIGIN} end`
}

/**
 * Writes the SQL conditions of a filter on webhook deliveries. They follow the parameters $1 (project) and $2 (events)
 * of the statement. The function appends their parameters to `values`.
 * @param url is the SQL expression of the URL that the caller sees.
 */
const deliveryConditions = (filter: DeliveryFilter, url: string, values: unknown[]): string =>
  conditions(values, [
    ['endpoint_id = ?', filter.endpointId],
    ['webhook_id = ?', filter.webhookId],
    ['subject_id = ?', filter.subjectId],
    [holds(filter.hostsOnly === true ? ORIGIN : url), filter.url],
    ['created_at >= ?', filter.after],
    ['created_at < ?', filter.before],
  ])

/** Lists webhook deliveries of a project in the requested order, with at most `limit` deliveries after the cursor. */
export async function listDeliveries(
  db: Queryable,
  filter: DeliveryFilter & { cursor: Cursor | null; limit: number; order?: Order },
): Promise<Delivery[]> {
  const { before, direction, start } = pageOrder(filter.order ?? 'newest', filter.cursor)
  const values: unknown[] = [filter.projectId, filter.events, ...start, filter.limit]
  const url = shownUrl(filter.urlsFor, values)
  const tests = deliveryConditions(filter, url, values)
  // The SQL query has a separate part for each delivery status, with the status as a literal. The reason is that the
  // index of undelivered deliveries returns rows in order only for a single status.
  const statuses = (filter.statuses ?? [null]).map((name) =>
    name === null ? '' : `and status = '${STATUSES[name]}'`,
  )
  const parts = statuses.map(
    (status) => `
      (select ${columns(url)} from webhook_deliveries
       where project_id = $1 and event = any ($2) and (created_at, row) ${before} ($3::timestamptz, $4::bigint)
         ${status} ${tests}
       order by created_at ${direction}, row ${direction} limit $5)`,
  )
  const { rows } = await db.query<DeliveryRow>(
    `select * from (${parts.join(' union all ')}) parts order by created_at ${direction}, row ${direction} limit $5`,
    values,
  )
  return rows.map(toDelivery)
}

/** Counts the deliveries of one endpoint or webhook that have a given status. */
export type DeliveryCount = {
  endpointId: string | null
  webhookId: string | null
  status: DeliveryStatus
  deliveries: number
}

/** Counts the newest `limit` webhook deliveries that match a filter, grouped by endpoint or webhook and by status. */
export async function countDeliveries(
  db: Queryable,
  filter: DeliveryFilter & { limit: number },
): Promise<DeliveryCount[]> {
  const values: unknown[] = [filter.projectId, filter.events, filter.limit, filter.statuses ?? null]
  const isSearched = filter.url !== undefined && filter.hostsOnly !== true
  const url = isSearched ? shownUrl(filter.urlsFor, values) : 'url'
  const { rows } = await db.query<DeliveryCount>(
    `select endpoint_id as "endpointId", webhook_id as "webhookId", status, count(*)::int as deliveries
     from (select endpoint_id, webhook_id, status from webhook_deliveries
           where project_id = $1 and event = any ($2) and ($4::text[] is null or status = any ($4))
             ${deliveryConditions(filter, url, values)}
           order by created_at desc, row desc limit $3) newest
     group by endpoint_id, webhook_id, status order by deliveries desc, endpoint_id, webhook_id, status`,
    values,
  )
  return rows
}

/** Finds one webhook delivery of a project. @returns null if the project has no such webhook delivery. */
export async function findDelivery(
  db: Queryable,
  { projectId, id, urlsFor }: { projectId: string; id: string; urlsFor: UrlReader },
): Promise<Delivery | null> {
  const values: unknown[] = [projectId, id]
  const { rows } = await db.query<DeliveryRow>(
    `select ${columns(shownUrl(urlsFor, values))} from webhook_deliveries where project_id = $1 and id = $2`,
    values,
  )
  return rows[0] === undefined ? null : toDelivery(rows[0])
}

/**
 * Limits how many of the latest attempts of a webhook delivery the service shows, because replays can add any number of
 * attempts.
 */
const ATTEMPTS_SHOWN = 100

/** Lists the latest attempts of a webhook delivery in the order of their numbers. */
export async function listAttempts(db: Queryable, deliveryId: string): Promise<Attempt[]> {
  const { rows } = await db.query<Attempt>({
    name: 'list-attempts',
    text: `
      select n as number, started_at as "startedAt", ended_at as "endedAt", status_code as "statusCode", error,
             response_prefix as "responsePrefix"
      from webhook_attempts where delivery_id = $1 order by n desc limit ${ATTEMPTS_SHOWN}`,
    values: [deliveryId],
  })
  return rows.reverse()
}

/**
 * Reports that the service has no secret to sign a webhook delivery, because the endpoint is deleted or has no webhook.
 */
export class NoWebhookError extends Error {}

/**
 * Replays a webhook delivery: the service sends the same bytes with the same idempotency key, and signs them with the
 * current secret. For an ended delivery, the replay restarts the retry schedule. For a pending delivery, it makes the
 * next attempt now and continues the schedule.
 * @returns the updated webhook delivery. Null means that the project has no webhook delivery with the id.
 * @throws {NoWebhookError} if the endpoint is deleted or has no webhook.
 */
export async function replayDelivery(
  pool: Pool,
  target: { projectId: string; id: string },
): Promise<Delivery | null> {
  return transaction(pool, async (db) => {
    const { rows } = await db.query<{ has_secret: boolean | null }>(
      `select ${HAS_SECRET} or w.id is not null as has_secret from webhook_deliveries d
       left join seller_endpoints e on e.id = d.endpoint_id and e.deleted_at is null
       left join project_webhooks w on w.id = d.webhook_id and w.deleted_at is null
       where d.project_id = $1 and d.id = $2 for update of d`,
      [target.projectId, target.id],
    )
    if (rows[0] === undefined) return null
    if (rows[0].has_secret !== true) throw new NoWebhookError()
    const replayed = await db.query<DeliveryRow>(
      `update webhook_deliveries set
         attempts_before = case when status = 'pending' then attempts_before else attempt end,
         status = 'pending', error = null, next_attempt_at = date_trunc('milliseconds', clock_timestamp())
       where id = $1 returning ${columns('url')}`,
      [target.id],
    )
    const delivery = toDelivery(replayed.rows[0]!)
    await postponeAttempt(db, {
      deliveryId: delivery.id,
      attempt: delivery.attemptCount + 1,
      inMs: 0,
    })
    return delivery
  })
}

/**
 * Aborts the pending deliveries of an endpoint, a webhook or a project. The function locks rows of deliveries in the
 * order of their ids, like `recordAttempts`. Therefore the two functions cannot deadlock.
 */
export async function abortDeliveriesOf(
  db: Queryable,
  of: ({ endpointId: string } | { webhookId: string } | { projectId: string }) & { error: string },
): Promise<void> {
  const [column, id] =
    'endpointId' in of
      ? ['endpoint_id', of.endpointId]
      : 'webhookId' in of
        ? ['webhook_id', of.webhookId]
        : ['project_id', of.projectId]
  await db.query(
    `with doomed as materialized (
       select id from webhook_deliveries where ${column} = $1 and status = 'pending' order by id for update
     )
     update webhook_deliveries d set status = 'aborted', error = $2, next_attempt_at = null
     from doomed where d.id = doomed.id`,
    [id, of.error],
  )
}
