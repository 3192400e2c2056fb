/** Makes rows of webhook deliveries in a test database with the functions of the service. */
import { createSecretKey } from 'node:crypto'
import type { EventType } from '../../../shared/events/events.ts'
import { Keyring } from '../../../shared/vault/envelope.ts'
import { type Pool, transaction } from '../../../sql/db.ts'
import type { AttemptResult } from '../../../sql/events/attempts.ts'
import { createDelivery } from '../../../sql/events/deliveries.ts'
import { createProjectWebhook } from '../../../sql/events/webhooks.ts'
import { dropJobs, newProject } from '../till/tillRows.ts'

export const HOOK = 'http://127.0.0.1:9/hook'
export const KEYRING = new Keyring([{ id: 'k1', key: createSecretKey(new Uint8Array(32)) }])

/** Creates a webhook of a project for some event types. */
export async function newWebhook(
  pool: Pool,
  projectId: string,
  events: readonly EventType[] = ['message.received'],
): Promise<string> {
  const made = await createProjectWebhook(pool, KEYRING, { projectId, url: HOOK, events })
  return made.webhook.id
}

/**
 * Creates a webhook delivery that waits for its first attempt. The delivery has no job, so that every queued job comes
 * from the function under test.
 */
export async function newDelivery(
  pool: Pool,
  of: { projectId?: string; webhookId?: string } = {},
): Promise<string> {
  const projectId = of.projectId ?? (await newProject(pool))
  const webhookId = of.webhookId ?? (await newWebhook(pool, projectId))
  const body = Buffer.from('{}')
  const event = 'message.received'
  const { id } = await transaction(pool, (db) =>
    createDelivery(db, { projectId, to: { webhookId }, subjectId: null, event, url: HOOK, body }),
  )
  await dropJobs(pool)
  return id
}

/**
 * Returns the result of a delivery attempt whose response had the status 503. `changes` replaces parts of the result.
 */
export const attemptOf = (
  deliveryId: string,
  attempt: number,
  changes: Partial<AttemptResult> = {},
): AttemptResult => ({
  deliveryId,
  attempt,
  ms: 5,
  endedMs: performance.now(),
  statusCode: 503,
  error: null,
  responsePrefix: '',
  status: 'pending',
  retryInS: 60,
  ...changes,
})

export const DELIVERED = { status: 'delivered', statusCode: 200, retryInS: null } as const

/** Returns the attempt and the due time of the waiting job of a webhook delivery, or null if there is no job. */
export async function queuedAttempt(
  pool: Pool,
  deliveryId: string,
): Promise<{ attempt: number; runAt: Date } | null> {
  const { rows } = await pool.query(
    `select (j.payload->>'attempt')::int as attempt, j.run_at as "runAt"
     from graphile_worker._private_jobs j where j.key = $1`,
    [`deliver_webhook:${deliveryId}`],
  )
  return rows[0] ?? null
}

/** Runs `work` while the job queue loses every job that `work` adds. */
export async function withLostJobs<Result>(
  pool: Pool,
  work: () => Promise<Result>,
): Promise<Result> {
  await pool.query(`
    create function lose_job() returns trigger language plpgsql as $$ begin return null; end $$;
    create trigger lose_jobs before insert on graphile_worker._private_jobs
      for each row execute function lose_job()`)
  try {
    return await work()
  } finally {
    await pool.query(
      'drop trigger lose_jobs on graphile_worker._private_jobs; drop function lose_job()',
    )
  }
}
