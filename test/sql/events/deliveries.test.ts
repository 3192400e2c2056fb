/** Tests when pending webhook deliveries are due, and when they end. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { deleteProject } from '../../../sql/account/projects/deleteProject.ts'
import { recordAttempts } from '../../../sql/events/attempts.ts'
import {
  abortDelivery,
  createDelivery,
  findDueDeliveries,
  nextDeliveryInMs,
  postponeAttempt,
  requeueLostDeliveries,
} from '../../../sql/events/deliveries.ts'
import {
  abortDeliveriesOf,
  NoWebhookError,
  replayDelivery,
} from '../../../sql/events/deliveryLog.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database/database.ts'
import {
  attemptOf,
  DELIVERED,
  HOOK,
  newDelivery,
  newWebhook,
  queuedAttempt,
  withLostJobs,
} from '../../support/events/eventRows.ts'
import { registerEndpoint } from '../../support/till/till.ts'
import {
  blocked,
  dropJobs,
  failJobs,
  newProject,
  row,
  whileHeld,
} from '../../support/till/tillRows.ts'

let database: TestDatabase
let pool: TestDatabase['pool']

beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
})
beforeEach(async () => {
  await pool.query('delete from webhook_deliveries')
  await dropJobs(pool)
})
afterAll(() => database[Symbol.asyncDispose]())

const statusOf = async (id: string) => (await row(pool, 'webhook_deliveries', id)).status
const deliver = (id: string) => recordAttempts(pool, [attemptOf(id, 1, DELIVERED)])
const dueIn = (id: string, interval: string) =>
  pool.query('update webhook_deliveries set next_attempt_at = now() + $2::interval where id = $1', [
    id,
    interval,
  ])
const toWebhook = (projectId: string, webhookId: string) => ({
  projectId,
  to: { webhookId },
  subjectId: null,
  event: 'message.received',
  url: HOOK,
  body: Buffer.from('{}'),
})

describe('the service stores or postpones a webhook delivery only together with its job', () => {
  test('a webhook delivery is not stored if its job cannot be queued', async () => {
    const projectId = await newProject(pool)
    const delivery = toWebhook(projectId, await newWebhook(pool, projectId))
    const made = withLostJobs(pool, () => createDelivery(pool, delivery))
    expect(await made.catch(({ message }) => message)).toBe(
      'jobs were not queued: {deliver_webhook}',
    )
  })

  test('a webhook delivery is not postponed if the job for the later time cannot be queued', async () => {
    const deliveryId = await newDelivery(pool)
    const postponed = withLostJobs(pool, () =>
      postponeAttempt(pool, { deliveryId, attempt: 1, inMs: 0 }),
    )
    expect(await postponed.catch(({ message }) => message)).toBe(
      'jobs were not queued: {deliver_webhook}',
    )
  })

  test('a webhook delivery that has ended is not due, and cannot be postponed or aborted', async () => {
    const id = await newDelivery(pool)
    await deliver(id)
    await postponeAttempt(pool, { deliveryId: id, attempt: 2, inMs: 0 })
    expect(await queuedAttempt(pool, id)).toBeNull()
    await abortDelivery(pool, id, 'too late')
    expect(await statusOf(id)).toBe('delivered')
    expect(await findDueDeliveries(pool, [id])).toEqual([null])
  })

  test('if its webhook or endpoint is deleted, a delivery has no secret for the signature', async () => {
    const projectId = await newProject(pool)
    const webhookId = await newWebhook(pool, projectId)
    const id = await newDelivery(pool, { projectId, webhookId })
    const endpointId = await registerEndpoint(pool, {
      projectId,
      resource: 'https://api.example.com/a',
      webhookUrl: HOOK,
    })
    const { id: other } = await createDelivery(pool, {
      ...toWebhook(projectId, webhookId),
      to: { endpointId },
    })
    const secrets = async () =>
      (await findDueDeliveries(pool, [id, other])).map((due) => due?.secret === null)
    expect(await secrets()).toEqual([false, false])
    // The row of a deleted webhook can still contain its secret. A delivery that is stored during the deletion must not
    // get this secret.
    await pool.query('update project_webhooks set deleted_at = now() where id = $1', [webhookId])
    await pool.query('update seller_endpoints set deleted_at = now() where id = $1', [endpointId])
    expect(await secrets()).toEqual([true, true])
    for (const gone of [id, other]) {
      const replayed = replayDelivery(pool, { projectId, id: gone })
      expect(await replayed.catch((error) => error)).toBeInstanceOf(NoWebhookError)
    }
  })
})

describe('the service finds the webhook delivery that is due next, and queues it again if its job was lost', () => {
  test('the webhook delivery with the earliest future time is the next one that becomes due', async () => {
    expect(await nextDeliveryInMs(pool)).toBeNull()
    const [late, next, later] = [
      await newDelivery(pool),
      await newDelivery(pool),
      await newDelivery(pool),
    ]
    await dueIn(late, '-1 minute')
    await dueIn(next, '1 minute')
    await dueIn(later, '2 minutes')
    expect(await nextDeliveryInMs(pool)).toBeWithin(50_000, 60_001)
  })

  test('a due webhook delivery is queued again only if its job was lost', async () => {
    const [lost, queued, recent] = [
      await newDelivery(pool),
      await newDelivery(pool),
      await newDelivery(pool),
    ]
    await postponeAttempt(pool, { deliveryId: queued, attempt: 1, inMs: -1_000_000 })
    const job = await queuedAttempt(pool, queued)
    await dueIn(lost, '-61 seconds')
    await dueIn(queued, '-61 seconds')
    await dueIn(recent, '-40 seconds')
    expect(await requeueLostDeliveries(pool)).toBe(1)
    expect((await queuedAttempt(pool, lost))?.attempt).toBe(1)
    expect(await queuedAttempt(pool, queued)).toEqual(job)
    expect(await queuedAttempt(pool, recent)).toBeNull()
  })

  test('if the job of a webhook delivery has failed permanently, the delivery gets a new job', async () => {
    const id = await newDelivery(pool)
    await pool.query(
      `update webhook_deliveries set next_attempt_at = clock_timestamp() - interval '2 minutes' where id = $1`,
      [id],
    )
    expect(await requeueLostDeliveries(pool)).toBe(1)
    await failJobs(pool)
    expect(await requeueLostDeliveries(pool)).toBe(1)
    expect(await requeueLostDeliveries(pool)).toBe(0)
    expect((await queuedAttempt(pool, id))?.attempt).toBe(1)
  })
})

describe('the deletion of a project aborts its pending webhook deliveries', () => {
  const projectGone = 'the project was deleted'

  test('when a project is deleted, its webhook deliveries are aborted, except those that are already delivered', async () => {
    const projectId = await newProject(pool)
    const [open, done] = [
      await newDelivery(pool, { projectId }),
      await newDelivery(pool, { projectId }),
    ]
    const neighbours = await newDelivery(pool)
    await deliver(done)
    await deleteProject(pool, projectId, null)
    expect(await row(pool, 'webhook_deliveries', open)).toMatchObject({
      status: 'aborted',
      error: projectGone,
      next_attempt_at: null,
    })
    expect(await row(pool, 'webhook_deliveries', done)).toMatchObject({
      status: 'delivered',
      error: null,
    })
    expect(await statusOf(neighbours)).toBe('pending')
  })

  test('if a webhook delivery succeeds while its project is deleted, the delivery stays delivered', async () => {
    const projectId = await newProject(pool)
    const id = await newDelivery(pool, { projectId })
    const delivered = `update webhook_deliveries set status = 'delivered', attempt = 1 where id = $1`
    await whileHeld(pool, delivered, [id], () => [
      abortDeliveriesOf(pool, { projectId, error: projectGone }),
    ])
    expect(await row(pool, 'webhook_deliveries', id)).toMatchObject({
      status: 'delivered',
      error: null,
    })
  })

  test('webhook deliveries can be aborted and recorded at the same time, in either order', async () => {
    for (const isAbortFirst of [true, false]) {
      const projectId = await newProject(pool)
      const ids: string[] = []
      for (let n = 0; n < 3; n++) ids.push(await newDelivery(pool, { projectId }))
      // The database stores the deliveries in the opposite order of their ids. A statement that does not sort the rows
      // would lock them in the stored order.
      const sorted = ids.toSorted()
      for (const [n, id] of sorted.toReversed().entries()) {
        await pool.query(
          `update webhook_deliveries set created_at = now() - $2 * interval '1 s',
             next_attempt_at = now() + $2 * interval '1 s' where id = $1`,
          [id, n],
        )
      }
      const turns: (() => Promise<unknown>)[] = [
        () => abortDeliveriesOf(pool, { projectId, error: projectGone }),
        () =>
          recordAttempts(
            pool,
            sorted.map((id) => attemptOf(id, 1)),
          ),
      ]
      const [first, second] = isAbortFirst ? turns : turns.toReversed()
      const hold = 'select from webhook_deliveries where id = $1 for update'
      await whileHeld<unknown>(pool, hold, [sorted[0]], () => [
        first!(),
        blocked(pool, 1).then(() => second!()),
      ])
      for (const id of ids) expect(await statusOf(id)).toBe('aborted')
    }
  })
})
