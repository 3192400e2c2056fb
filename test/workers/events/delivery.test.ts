import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createHmac } from 'node:crypto'
import { purgeProject } from '../../../sql/account/projects/purgeProject.ts'
import { requeueLostDeliveries } from '../../../sql/events/deliveries.ts'
import { type Receiver, startReceiver, status } from '../../support/events/receiver.ts'
import {
  BODY,
  findJob,
  hurry,
  register,
  sendEvent,
  startWebhookService,
  waitForAttempts,
  waitForEnd,
  waitForNoJob,
} from '../../support/events/webhooks.ts'
import type { Agent, TestService } from '../../support/service.ts'
import { waitFor } from '../../support/waitFor.ts'

let service: TestService
let agent: Agent
beforeAll(async () => {
  service = await startWebhookService()
  agent = await service.newAgent()
})
afterAll(() => service[Symbol.asyncDispose]())

/** Lists the attempt numbers of the requests that a webhook receiver got. */
const attemptsAt = ({ requests }: Receiver) =>
  requests.map(({ headers }) => headers['x-service-delivery-attempt'])

test('a webhook receiver gets an event once, byte for byte, and signed with the webhook secret of the endpoint', async () => {
  await using receiver = await startReceiver()
  const endpoint = await register(agent, receiver.url)
  const id = await sendEvent(service.database, agent, endpoint, { subjectId: 'pay_1' })
  const delivery = await waitForEnd(agent, id)
  expect(receiver.requests).toHaveLength(1)
  const { method, headers, body } = receiver.requests[0]!
  expect(method).toBe('POST')
  expect(body.equals(BODY)).toBe(true)
  const hex = createHmac('sha256', endpoint.webhookSecret).update(body).digest('hex')
  expect(headers).toMatchObject({
    'content-type': 'application/json',
    'x-service-event': 'payment.received',
    'x-service-idempotency-key': id,
    'x-service-signature': `sha256=${hex}`,
    'x-service-delivery-attempt': '1',
  })
  expect(delivery).toEqual({
    deliveryId: id,
    endpointId: endpoint.endpointId,
    webhookId: null,
    messageId: null,
    paymentId: 'pay_1',
    subjectId: 'pay_1',
    event: 'payment.received',
    idempotencyKey: id,
    url: receiver.url,
    status: 'delivered',
    attemptCount: 1,
    nextAttemptAt: null,
    error: null,
    createdAt: expect.any(String),
    attempts: [
      {
        number: 1,
        at: expect.any(String),
        status: 200,
        ms: expect.any(Number),
        error: null,
        response: 'ok',
      },
    ],
  })
})

test('a webhook receiver that always fails gets six attempts, with pauses of 1, 4, 16, 64 and 300 s', async () => {
  await using receiver = await startReceiver(status(503, 'try later'))
  const endpoint = await register(agent, receiver.url)
  const id = await sendEvent(service.database, agent, endpoint)
  for (const [n, delayS] of [1, 4, 16, 64, 300].entries()) {
    const { attempts, nextAttemptAt, status } = await waitForAttempts(agent, id, n + 1)
    expect(status).toBe('pending')
    const { at, ms } = attempts.at(-1)
    expect(Date.parse(nextAttemptAt) - (Date.parse(at) + ms)).toBe(delayS * 1000)
    expect((await findJob(service.database, id))?.run_at.toISOString()).toBe(nextAttemptAt)
    await hurry(service.database, id)
  }
  const delivery = await waitForEnd(agent, id)
  expect(delivery).toMatchObject({ status: 'exhausted', attemptCount: 6, nextAttemptAt: null })
  await waitForNoJob(service.database, id)
  const { requests } = receiver
  expect(requests.map(({ headers }) => headers['x-service-delivery-attempt'])).toEqual([
    '1',
    '2',
    '3',
    '4',
    '5',
    '6',
  ])
  expect(new Set(requests.map(({ headers }) => headers['x-service-idempotency-key']))).toEqual(
    new Set([id]),
  )
  expect(requests.every(({ body }) => body.equals(BODY))).toBe(true)
})

test('if the worker loses its database connections during a webhook delivery attempt, the attempt is recorded and not repeated', async () => {
  const open: (() => void)[] = []
  await using receiver = await startReceiver((_request, response) => {
    open.push(() => response.writeHead(503).end())
  })
  const id = await sendEvent(service.database, agent, await register(agent, receiver.url))
  await waitFor('the attempt to be under way', () => open.length === 1)
  await service.database.pool.query(
    `select pg_terminate_backend(pid) from pg_stat_activity
     where datname = current_database() and application_name like 'purser worker%'`,
  )
  open[0]!()
  const { attempts, nextAttemptAt } = await waitForAttempts(agent, id, 1)
  expect(Date.parse(nextAttemptAt) - Date.parse(attempts[0].at) - attempts[0].ms).toBe(1_000)
  expect(attemptsAt(receiver).filter((attempt) => attempt === '1')).toHaveLength(1)
})

test('if a webhook delivery job runs twice, only one attempt is made, and the next attempt does not come earlier', async () => {
  await using receiver = await startReceiver(status(503))
  const id = await sendEvent(service.database, agent, await register(agent, receiver.url))
  const { nextAttemptAt } = await waitForAttempts(agent, id, 1)
  const add = (payload: unknown) =>
    service.database.pool.query(`select graphile_worker.add_job('deliver_webhook', $1::json)`, [
      JSON.stringify(payload),
    ])
  await add({ deliveryId: id })
  await add({ deliveryId: id, attempt: 1 })
  await add({ deliveryId: id, attempt: 3 })
  await waitFor('the jobs to be done', async () => {
    const { rows } = await service.database.pool.query(
      `select from graphile_worker.jobs where task_identifier = 'deliver_webhook' and key is null`,
    )
    return rows.length === 0
  })
  const { attempts } = await waitForAttempts(agent, id, 2)
  expect(attemptsAt(receiver).slice(0, 2)).toEqual(['1', '2'])
  expect(Date.parse(attempts[1].at)).toBeGreaterThanOrEqual(Date.parse(nextAttemptAt))
})

test('if the job of a webhook delivery is lost, the delivery gets a new job', async () => {
  await using receiver = await startReceiver(status(503))
  const id = await sendEvent(service.database, agent, await register(agent, receiver.url))
  await waitForAttempts(agent, id, 1)
  const { pool } = service.database
  const job = await findJob(service.database, id)
  await pool.query('select graphile_worker.complete_jobs(array[$1::bigint])', [job?.id])
  expect(await requeueLostDeliveries(pool)).toBe(0)
  await pool.query(
    `update webhook_deliveries set next_attempt_at = now() - interval '61 seconds' where id = $1`,
    [id],
  )
  expect(await requeueLostDeliveries(pool)).toBe(1)
  await waitForAttempts(agent, id, 2)
  expect(await requeueLostDeliveries(pool)).toBe(0)
})

test('the purge after a project’s deletion deletes the webhook deliveries and endpoints of this project if it has no payments, and changes no live project', async () => {
  const owner = await service.newAgent()
  await using receiver = await startReceiver()
  const endpoint = await register(owner, receiver.url)
  await waitForEnd(owner, await sendEvent(service.database, owner, endpoint))
  const { pool } = service.database
  const count = async () => {
    const { rows } = await pool.query(
      `select (select count(*)::int from webhook_deliveries where project_id = $1) as deliveries,
              (select count(*)::int from webhook_attempts a join webhook_deliveries d on d.id = a.delivery_id
               where d.project_id = $1) as attempts,
              (select count(*)::int from seller_endpoints where project_id = $1) as endpoints,
              (select count(*)::int from seller_endpoints where project_id = $1 and num_nonnulls(webhook_secret, webhook_key_id, webhook_wrapped_key, webhook_ciphertext) > 0)
                as secrets`,
      [owner.project.id],
    )
    return rows[0]
  }
  await purgeProject(pool, owner.project.id)
  expect(await count()).toEqual({ deliveries: 1, attempts: 1, endpoints: 1, secrets: 1 })
  await service.platform.delete(`/v0/platform/projects/${owner.project.id}`)
  await purgeProject(pool, owner.project.id)
  expect(await count()).toEqual({ deliveries: 0, attempts: 0, endpoints: 0, secrets: 0 })
})
