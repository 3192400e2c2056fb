import { newDeliveryId } from '../shared/ids.ts'
import type { Queryable } from './db.ts'
import { addJob } from './jobs.ts'

/** One event for one webhook. */
export type NewDelivery = {
  projectId: string
  endpointId: string
  subjectId: string
  event: 'payment.received'
  url: string
  /** The exact bytes that every attempt sends. */
  body: Uint8Array
}

/** Stores a delivery and its first attempt's job, in the caller's transaction. */
export async function createDelivery(db: Queryable, delivery: NewDelivery): Promise<void> {
  const id = newDeliveryId()
  await db.query(
    `insert into webhook_deliveries (
       id, project_id, endpoint_id, subject_id, event, idempotency_key, url, body, next_attempt_at)
     values ($1, $2, $3, $4, $5, $1, $6, $7, clock_timestamp())`,
    [
      id,
      delivery.projectId,
      delivery.endpointId,
      delivery.subjectId,
      delivery.event,
      delivery.url,
      Buffer.from(delivery.body),
    ],
  )
  await addJob(db, {
    task: 'deliver_webhook',
    payload: { deliveryId: id },
    key: `deliver_webhook:${id}`,
  })
}
