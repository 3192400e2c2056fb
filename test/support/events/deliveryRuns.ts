/** Runs delivery jobs on a test database without a worker pool. */
import type { Pool } from '../../../sql/db.ts'
import { createDelivery, type NewDelivery } from '../../../sql/events/deliveries.ts'
import { createDeliverWebhook } from '../../../workers/events/deliverWebhook.ts'
import { createHeldOutcomes } from '../../../workers/queue/heldOutcomes.ts'
import type { PoolContext } from '../../../workers/queue/task.ts'
import { silentLog } from '../logs.ts'
import { registerEndpoint } from '../till/till.ts'
import { newProject } from '../till/tillRows.ts'
import { KEYRING } from './eventRows.ts'

/** Makes an endpoint with a webhook, and a delivery to this webhook with its job. */
export async function newEndpointDelivery(
  pool: Pool,
  url: string,
  changes: Partial<NewDelivery> = {},
) {
  const projectId = await newProject(pool)
  const resource = 'https://api.example.com/a'
  const endpointId = await registerEndpoint(pool, { projectId, resource, webhookUrl: url })
  const { id } = await createDelivery(pool, {
    projectId,
    to: { endpointId },
    subjectId: null,
    event: 'payment.received',
    url,
    body: Buffer.from('{}'),
    ...changes,
  })
  return { projectId, endpointId, id }
}

export type RunOptions = {
  /** Holds the number of the delivery attempt that the job names. */
  attempt?: number | undefined
  /** Holds a function that the test runs while the delivery attempt waits until it may send. */
  meanwhile?: (() => Promise<unknown>) | undefined
  /**
   * Holds the milliseconds after which the delivery attempt may try again, if the receiver already has too many
   * attempts in progress.
   */
  returnInMs?: number
  allowPrivate?: boolean
}

/**
 * Starts an attempt of a webhook delivery. The attempt is the first attempt of the delivery, unless the options name
 * another attempt.
 */
export function startRun(
  pool: Pool,
  deliveryId: string,
  { meanwhile, returnInMs, allowPrivate = true, ...given }: RunOptions = {},
) {
  const turns = { entered: 0, left: 0 }
  const lanes: string[][] = []
  const enter = async (...lane: string[]) => {
    turns.entered++
    lanes.push(lane)
    await meanwhile?.()
    const leave = () => {
      turns.left++
    }
    if (returnInMs !== undefined) return { granted: false, returnInMs }
    return { granted: true, waited: meanwhile !== undefined, leave }
  }
  const outcomes = createHeldOutcomes(silentLog)
  const context = { pool, lanes: { enter }, outcomes } as unknown as PoolContext
  const policy = { allowPrivate }
  const deliver = createDeliverWebhook(context, { keyring: async () => KEYRING, policy })
  const attempt = 'attempt' in given ? given.attempt : 1
  const job = attempt === undefined ? { deliveryId } : { deliveryId, attempt }
  const done = deliver(job, { attempt: 1 })
  return { turns, lanes, done }
}
