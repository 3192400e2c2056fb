import { transaction } from '../../../sql/db.ts'
import { createDelivery } from '../../../sql/events/deliveries.ts'
import type { TestDatabase } from '../database/database.ts'
import {
  type Agent,
  startTestService,
  type TestService,
  type TestServiceOptions,
} from '../service.ts'
import { waitFor } from '../waitFor.ts'

export const BODY = Buffer.from('{"body":{"paymentId":"pay_1"},"note":"ü \\u0000"}')

/** Starts the API and the worker pool for webhooks, which may call this machine. */
export const startWebhookService = (options: TestServiceOptions = {}): Promise<TestService> =>
  startTestService({
    smtp: false,
    pools: ['webhooks'],
    ...options,
    env: { ALLOW_PRIVATE_NETWORKS: 'true', ...options.env },
  })

export type Registered = { endpointId: string; webhookUrl: string; webhookSecret: string }

let resources = 0
/** Registers a new endpoint with a webhook URL. */
export async function register(agent: Agent, webhookUrl: string): Promise<Registered> {
  const { status, body } = await agent.put('/v0/sellers/endpoints', {
    // No server listens on port 1, so the verification of the endpoint fails at once.
    urlPattern: `http://127.0.0.1:1/resource${++resources}`,
    priceUsdc: '0.01',
    webhookUrl,
  })
  if (status !== 201) throw new Error(`not registered: ${JSON.stringify(body)}`)
  return body
}

/** Stores an event for the webhook of an endpoint, as a settlement does. */
export async function sendEvent(
  { pool }: TestDatabase,
  agent: Agent,
  { endpointId, webhookUrl }: { endpointId: string; webhookUrl: string },
  { body = BODY, subjectId = null }: { body?: Uint8Array; subjectId?: string | null } = {},
): Promise<string> {
  const { id } = await transaction(pool, (db) =>
    createDelivery(db, {
      projectId: agent.project.id,
      to: { endpointId },
      subjectId,
      event: 'payment.received',
      url: webhookUrl,
      body,
    }),
  )
  return id
}

/** Waits until `attempts` attempts of the webhook delivery have ended. @returns the delivery in the form of the API */
export const waitForAttempts = (agent: Agent, deliveryId: string, attempts: number): Promise<any> =>
  waitFor(`${attempts} attempts of ${deliveryId}`, async () => {
    const { body } = await agent.get(`/v0/webhooks/deliveries/${deliveryId}`)
    return body.attemptCount >= attempts ? body : null
  })

/** Waits until the webhook delivery has ended. */
export const waitForEnd = (agent: Agent, deliveryId: string): Promise<any> =>
  waitFor(`the end of ${deliveryId}`, async () => {
    const { body } = await agent.get(`/v0/webhooks/deliveries/${deliveryId}`)
    return body.status === 'pending' ? null : body
  })

/** Finds the waiting job of a webhook delivery. */
export async function findJob({ pool }: TestDatabase, deliveryId: string) {
  const { rows } = await pool.query<{ id: string; run_at: Date; attempts: number }>(
    'select id, run_at, attempts from graphile_worker.jobs where key = $1',
    [`deliver_webhook:${deliveryId}`],
  )
  return rows[0] ?? null
}

/** Makes the waiting job of a webhook delivery due now. */
export async function hurry(database: TestDatabase, deliveryId: string): Promise<void> {
  const job = await findJob(database, deliveryId)
  await database.pool.query(
    'select graphile_worker.reschedule_jobs(array[$1::bigint], run_at := now())',
    [job?.id],
  )
}

/**
 * Waits until a webhook delivery has no job. The database row of a job is deleted only a moment after the job has
 * ended.
 */
export const waitForNoJob = (database: TestDatabase, deliveryId: string): Promise<true> =>
  waitFor('the job to be gone', async () => (await findJob(database, deliveryId)) === null)
