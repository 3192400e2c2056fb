import { createHash } from 'node:crypto'
import { newDeliveryId } from '../../shared/ids.ts'
import { traceparent } from '../../shared/process/workContext.ts'
import type { Pool, Queryable } from '../db.ts'
import { addJobsFrom, addPayloadsFrom, hasNoJob } from '../queue/jobs.ts'
import { type SecretRow, type StoredSecret, storedSecret } from './webhookSecrets.ts'

/** Describes the delivery of an event to one webhook URL. */
export type NewDelivery = {
  projectId: string
  /** Names the receiver of the webhook delivery: a seller's endpoint, or a webhook of the project. */
  to: { endpointId: string } | { webhookId: string }
  /** Holds the id of the object that the webhook event is about, such as a payment. */
  subjectId: string | null
  /** Holds the value of the header X-Service-Event, such as `payment.received`. */
  event: string
  url: string
  /** Holds the body of the webhook as bytes. Every attempt of the delivery sends the same bytes. */
  body: Uint8Array
  /**
   * Holds the key by which the receiver recognises a repeated event. If it is absent, the id of the delivery serves as
   * the key.
   */
  idempotencyKey?: string
  /**
   * Holds the W3C trace context that the delivery continues. If `traceparent` is absent, the delivery continues the
   * trace of the running work.
   */
  traceparent?: string | null
}

/**
 * Returns the idempotency key of a webhook event that occurs only once for each payment, refund or purchase. A database
 * that was restored from a backup may lack a transfer that is on the chain. The service then sends the webhook again,
 * with the same key, so that the receiver does not count the transfer twice.
 */
export const transferEventKey = (about: {
  /** Holds the id of the webhook's owner: the seller's endpoint, or the project's webhook. */
  ownerId: string
  event: string
  /** Holds the id of the payment, the refund or the purchase. */
  id: string
}): string => {
  const text = `${about.ownerId} ${about.event} ${about.id}`
  return `whk_${createHash('sha256').update(text).digest('hex').slice(0, 24)}`
}

/**
 * Returns the job key of a webhook delivery. The job key ensures that each webhook delivery has at most one waiting
 * job.
 */
const jobKey = (deliveryId: string) => `deliver_webhook:${deliveryId}`

/**
 * Stores webhook deliveries in the given order and queues their first attempts, in the caller's transaction. After the
 * commit, a crash can no longer lose a delivery. The function needs the same number of SQL statements for any number of
 * deliveries, because the caller's transaction may hold the locks of many inboxes. Deliveries with the same body object
 * share one copy in the SQL parameters.
 * @returns the ids of the deliveries in the order of `deliveries`.
 */
export async function createDeliveries(
  db: Queryable,
  deliveries: readonly NewDelivery[],
): Promise<string[]> {
  if (deliveries.length === 0) return []
  const ids = deliveries.map(() => newDeliveryId())
  const bodies = [...new Set(deliveries.map(({ body }) => body))]
  const places = new Map(bodies.map((body, n) => [body, n + 1]))
  const trace = traceparent()
  const column = <Value>(read: (delivery: NewDelivery) => Value) => deliveries.map(read)
  await db.query({
    name: 'create-deliveries',
    text: `
      with inserted as (
        insert into webhook_deliveries
          (id, project_id, endpoint_id, webhook_id, subject_id, event, idempotency_key, url, body, traceparent,
           next_attempt_at)
        select d.id, d.project_id, d.endpoint_id, d.webhook_id, d.subject_id, d.event, d.idempotency_key, d.url, b.body,
               d.traceparent, date_trunc('milliseconds', clock_timestamp())
        from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
            $9::text[], $10::int[]) with ordinality
          d (id, project_id, endpoint_id, webhook_id, subject_id, event, idempotency_key, url, traceparent, place, n)
        join unnest($11::bytea[]) with ordinality b (body, place) on b.place = d.place
        order by d.n
        returning id as payload_id, row
      ) ${addJobsFrom('inserted', 'deliver_webhook', 'deliveryId', 's.row')}`,
    values: [
      ids,
      column(({ projectId }) => projectId),
      column(({ to }) => ('endpointId' in to ? to.endpointId : null)),
      column(({ to }) => ('webhookId' in to ? to.webhookId : null)),
      column(({ subjectId }) => subjectId),
      column(({ event }) => event),
      deliveries.map(({ idempotencyKey }, n) => idempotencyKey ?? ids[n]),
      column(({ url }) => url),
      column((delivery) => delivery.traceparent ?? trace),
      column(({ body }) => places.get(body)),
      bodies.map((body) => Buffer.from(body)),
    ],
  })
  return ids
}

/** Stores one webhook delivery as {@link createDeliveries} does. */
export async function createDelivery(
  db: Queryable,
  delivery: NewDelivery,
): Promise<{ id: string }> {
  const [id] = await createDeliveries(db, [delivery])
  return { id: id! }
}

/** Describes a webhook delivery with a next attempt that is due. */
export type DueDelivery = {
  id: string
  projectId: string
  /** Holds the id of the seller's endpoint, or of the webhook of the project. */
  ownerId: string | null
  event: string
  idempotencyKey: string
  url: string
  body: Buffer
  /**
   * Counts all ended attempts of the webhook delivery. The field `attemptsBefore` counts the ended attempts before the
   * last replay of the delivery.
   */
  attempt: number
  attemptsBefore: number
  /**
   * Holds the webhook's current secret. It is null if the endpoint or webhook is deleted, or if its URL was removed.
   */
  secret: StoredSecret | null
  traceparent: string | null
}

type DueRow = SecretRow & {
  id: string
  project_id: string
  owner_id: string | null
  event: string
  idempotency_key: string
  url: string
  body: Buffer
  attempt: number
  attempts_before: number
  traceparent: string | null
}

/**
 * Reads the webhook deliveries with the given ids for their next attempts. Null means that the delivery is no longer
 * pending. The function reads many deliveries at once, because a burst of due deliveries starts as many jobs at the
 * same time.
 */
export async function findDueDeliveries(
  db: Queryable,
  ids: string[],
): Promise<(DueDelivery | null)[]> {
  const { rows } = await db.query<DueRow>({
    name: 'find-due-deliveries',
    text: `
      select d.id, d.project_id, coalesce(d.endpoint_id, d.webhook_id) as owner_id, d.event, d.idempotency_key, d.url, d.body, d.attempt,
             d.attempts_before, d.traceparent, e.webhook_secret,
             coalesce(e.webhook_key_id, w.webhook_key_id) as webhook_key_id,
             coalesce(e.webhook_wrapped_key, w.webhook_wrapped_key) as webhook_wrapped_key,
             coalesce(e.webhook_ciphertext, w.webhook_ciphertext) as webhook_ciphertext
      from webhook_deliveries d
      left join seller_endpoints e on e.id = d.endpoint_id and e.deleted_at is null
      left join project_webhooks w on w.id = d.webhook_id and w.deleted_at is null
      where d.id = any ($1) and d.status = 'pending'`,
    values: [ids],
  })
  const found = new Map(rows.map((row) => [row.id, toDueDelivery(row)]))
  return ids.map((id) => found.get(id) ?? null)
}

const toDueDelivery = (row: DueRow): DueDelivery => ({
  id: row.id,
  projectId: row.project_id,
  ownerId: row.owner_id,
  event: row.event,
  idempotencyKey: row.idempotency_key,
  url: row.url,
  body: row.body,
  attempt: row.attempt,
  attemptsBefore: row.attempts_before,
  secret: storedSecret(row),
  traceparent: row.traceparent,
})

/**
 * Queues the next attempt of a webhook delivery for a later moment and replaces the queued job. If the given attempt is
 * not the delivery's next one, the function changes nothing, because an outdated job must not replace the job of a later
 * attempt.
 * @param next.inMs is the number of milliseconds until the attempt, by the database's clock.
 */
export async function postponeAttempt(
  db: Queryable,
  { deliveryId, attempt, inMs }: { deliveryId: string; attempt: number; inMs: number },
): Promise<void> {
  await db.query({
    name: 'postpone-attempt',
    text: `
      with next as materialized (
        select 'deliver_webhook' as task, $4::text as key,
          json_build_object('deliveryId', id, 'attempt', $2::int) as payload
        from webhook_deliveries where id = $1 and status = 'pending' and attempt = $2 - 1 for update
      ) ${addPayloadsFrom('next', { runAt: IN_MS })}`,
    values: [deliveryId, attempt, inMs, jobKey(deliveryId)],
  })
}

const IN_MS = `clock_timestamp() + $3::float8 * interval '1 millisecond'`

/** Aborts a pending webhook delivery, so that no further attempt follows. */
export async function abortDelivery(db: Queryable, id: string, error: string): Promise<void> {
  await db.query(
    `update webhook_deliveries set status = 'aborted', error = $2, next_attempt_at = null
     where id = $1 and status = 'pending'`,
    [id, error],
  )
}

/**
 * Returns the milliseconds until the next future attempt of any webhook delivery, by the database's clock. Null means
 * that no delivery waits for one. The query takes 0.1 ms even with a large backlog, because the index holds only
 * pending deliveries.
 */
export async function nextDeliveryInMs(db: Queryable): Promise<number | null> {
  const { rows } = await db.query<{ in_ms: number | null }>({
    name: 'next-delivery',
    text: `
      select (extract(epoch from min(next_attempt_at) - statement_timestamp()) * 1000)::float8 as in_ms
      from webhook_deliveries where status = 'pending' and next_attempt_at > statement_timestamp()`,
  })
  return rows[0]?.in_ms ?? null
}

const LOST_AFTER = '60 seconds'
const LOST_BATCH = 1_000

/**
 * Queues the next attempt of overdue webhook deliveries that have no job, or a job that failed for good. A job can be
 * missing after an operator deleted it, or after a restore from a backup. A job fails for good if, for example, a
 * process lacks a master key for days.
 * @returns the number of webhook deliveries that the function queued again.
 */
export async function requeueLostDeliveries(pool: Pool): Promise<number> {
  const { rows } = await pool.query<{ id: string; attempt: number }>(
    `select d.id, d.attempt from webhook_deliveries d
     where d.status = 'pending' and d.next_attempt_at < clock_timestamp() - interval '${LOST_AFTER}'
       and ${hasNoJob("'deliver_webhook:' || d.id")}
     order by d.next_attempt_at limit ${LOST_BATCH}`,
  )
  for (const { id, attempt } of rows) {
    await postponeAttempt(pool, { deliveryId: id, attempt: attempt + 1, inMs: 0 })
  }
  return rows.length
}
