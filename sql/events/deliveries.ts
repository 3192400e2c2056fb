import { createHash } from 'node:crypto'
import { newDeliveryId } from '../../shared/ids.ts'
import type { Pool, Queryable } from '../db.ts'
import { addJobsFrom } from '../queue/jobs.ts'
import { type SecretRow, type StoredSecret, storedSecret } from './webhookSecrets.ts'

/** An event for one webhook URL. */
export type NewDelivery = {
  projectId: string
  /** Of whose webhook: a seller's endpoint's, or one of the project's own. */
  to: { endpointId: string } | { webhookId: string }
  /** What the event is about, such as a payment's id. */
  subjectId: string | null
  /** `payment.received`, sent as X-Service-Event. */
  event: string
  url: string
  /** The exact bytes that every attempt sends. */
  body: Uint8Array
  /** What the receiver de-duplicates on; the delivery's id when left out. */
  idempotencyKey?: string
}

/**
 * The key of an event that happens to a payment once. It is the same when a restored database makes the event again: the
 * chain has the payment, the backup does not show its end, and the receiver must not count it twice.
 */
export const paymentEventKey = (about: {
  /** Whose webhook it is for: an endpoint, or a webhook of the project. */
  ownerId: string
  event: string
  paymentId: string
}): string => {
  const text = `${about.ownerId} ${about.event} ${about.paymentId}`
  return `whk_${createHash('sha256').update(text).digest('hex').slice(0, 24)}`
}

/** The job key of a delivery: one waiting job at most. */
const jobKey = (deliveryId: string) => `deliver_webhook:${deliveryId}`

/**
 * Stores a delivery and queues its first attempt for now, in the caller's transaction: once that commits, the event will
 * be sent, whatever dies.
 */
export async function createDelivery(
  db: Queryable,
  delivery: NewDelivery,
): Promise<{ id: string }> {
  const id = newDeliveryId()
  const { rows } = await db.query<{ count: string }>({
    name: 'create-delivery',
    text: `
      with inserted as (
        insert into webhook_deliveries
          (id, project_id, endpoint_id, subject_id, event, idempotency_key, url, body, webhook_id, next_attempt_at)
        values ($1, $2, $3, $4, $5, $9, $6, $7, $8, date_trunc('milliseconds', clock_timestamp()))
        returning id as payload_id
      ) ${addJobsFrom('inserted', 'deliver_webhook', 'deliveryId')}`,
    values: [
      id,
      delivery.projectId,
      'endpointId' in delivery.to ? delivery.to.endpointId : null,
      delivery.subjectId,
      delivery.event,
      delivery.url,
      Buffer.from(delivery.body),
      'webhookId' in delivery.to ? delivery.to.webhookId : null,
      delivery.idempotencyKey ?? id,
    ],
  })
  if (Number(rows[0]?.count) !== 1) throw new Error('the delivery was not queued')
  return { id }
}

/** A delivery whose next attempt is to be made. */
export type DueDelivery = {
  id: string
  projectId: string
  /** Whose webhook it is for: an endpoint, or a webhook of the project. */
  ownerId: string | null
  event: string
  idempotencyKey: string
  url: string
  body: Buffer
  /** Attempts that ended, and how many of them belong to schedules before the current one. */
  attempt: number
  attemptsBefore: number
  /** The endpoint's secret of this moment; null when it is deleted or has no webhook any more. */
  secret: StoredSecret | null
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
}

/**
 * Reads deliveries for an attempt each; null for one that nothing is left to do for. Many at once, because a burst of due
 * deliveries is read by as many jobs at the same moment.
 */
export async function findDueDeliveries(
  db: Queryable,
  ids: string[],
): Promise<(DueDelivery | null)[]> {
  const { rows } = await db.query<DueRow>({
    name: 'find-due-deliveries',
    text: `
      select d.id, d.project_id, coalesce(d.endpoint_id, d.webhook_id) as owner_id, d.event, d.idempotency_key, d.url, d.body, d.attempt,
             d.attempts_before, e.webhook_secret,
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
})

/**
 * Queues an attempt for another time, in place of the job that is queued already. Only while it is the delivery's next:
 * a stale run must not replace the job of a later attempt.
 */
export async function postponeAttempt(
  db: Queryable,
  { deliveryId, attempt, runAt }: { deliveryId: string; attempt: number; runAt: Date },
): Promise<void> {
  const { rows } = await db.query<{ id: string | null }>({
    name: 'postpone-attempt',
    text: `
      with next as materialized (
        select id from webhook_deliveries where id = $1 and status = 'pending' and attempt = $2 - 1 for update
      )
      select (graphile_worker.add_job('deliver_webhook', json_build_object('deliveryId', id, 'attempt', $2::int),
        run_at := $3::timestamptz, job_key := $4)).id from next`,
    values: [deliveryId, attempt, runAt, jobKey(deliveryId)],
  })
  if (rows.length === 1 && rows[0]!.id === null) throw new Error('the attempt was not queued')
}

/** Gives up a pending delivery without an attempt. */
export async function abortDelivery(db: Queryable, id: string, error: string): Promise<void> {
  await db.query(
    `update webhook_deliveries set status = 'aborted', error = $2, next_attempt_at = null
     where id = $1 and status = 'pending'`,
    [id, error],
  )
}

/**
 * Milliseconds until the next retry of anyone is due; null when none is. By the database's clock, over an index that holds
 * pending deliveries only: 0.1 ms whatever the backlog.
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
 * Queues the next attempt of deliveries that are long due and have no job: the last resort against jobs that were lost,
 * by an operator's hand or a restored backup.
 * @returns how many there were.
 */
export async function requeueLostDeliveries(pool: Pool): Promise<number> {
  const { rows } = await pool.query<{ id: string; attempt: number }>(
    `select d.id, d.attempt from webhook_deliveries d
     where d.status = 'pending' and d.next_attempt_at < clock_timestamp() - interval '${LOST_AFTER}'
       and not exists (select from graphile_worker.jobs j where j.key = 'deliver_webhook:' || d.id)
     order by d.next_attempt_at limit ${LOST_BATCH}`,
  )
  const runAt = new Date()
  for (const { id, attempt } of rows) {
    await postponeAttempt(pool, { deliveryId: id, attempt: attempt + 1, runAt })
  }
  return rows.length
}
