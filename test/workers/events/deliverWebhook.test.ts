/**
 * Tests the request that the receiver gets from one run of a webhook delivery job, and the entry in the delivery log.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, setSystemTime, test } from 'bun:test'
import { createHmac } from 'node:crypto'
import { recordAttempts } from '../../../sql/events/attempts.ts'
import { replayDelivery } from '../../../sql/events/deliveryLog.ts'
import { updateEndpoint } from '../../../sql/till/endpoints/endpointChanges.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database/database.ts'
import {
  newEndpointDelivery,
  type RunOptions,
  startRun,
} from '../../support/events/deliveryRuns.ts'
import { attemptOf, KEYRING, newDelivery, queuedAttempt } from '../../support/events/eventRows.ts'
import { type Receiver, startReceiver, status } from '../../support/events/receiver.ts'
import { dropJobs, row } from '../../support/till/tillRows.ts'

let database: TestDatabase
let pool: TestDatabase['pool']
let receiver: Receiver

beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
  receiver = await startReceiver()
})
beforeEach(() => {
  receiver.requests.length = 0
  receiver.answer = status(200, 'ok')
})
afterAll(async () => {
  await receiver[Symbol.asyncDispose]()
  await database[Symbol.asyncDispose]()
})

const delivery = (id: string) => row(pool, 'webhook_deliveries', id)

async function lastAttempt(id: string): Promise<any> {
  const { rows } = await pool.query(
    'select * from webhook_attempts where delivery_id = $1 order by n desc limit 1',
    [id],
  )
  return rows[0]
}

/** Runs a webhook delivery job to its end. */
async function run(id: string, options: RunOptions = {}) {
  const { turns, lanes, done } = startRun(pool, id, options)
  await done
  return { turns, lanes }
}

describe('a webhook delivery job sends one signed attempt, or sends nothing if the attempt is not due', () => {
  test('a webhook delivery job sends the signed event body with the webhook headers', async () => {
    const body = Buffer.from('{"note":"ü \\u0000"}')
    const { id } = await newEndpointDelivery(pool, receiver.url, { body, idempotencyKey: 'whk_1' })
    await run(id)
    const [request] = receiver.requests
    const hex = createHmac('sha256', 'whsec_test').update(body).digest('hex')
    expect(request!.method).toBe('POST')
    expect(request!.body.equals(body)).toBe(true)
    expect(request!.headers).toMatchObject({
      'content-type': 'application/json',
      'x-service-event': 'payment.received',
      'x-service-idempotency-key': 'whk_1',
      'x-service-signature': `sha256=${hex}`,
      'x-service-delivery-attempt': '1',
    })
  })

  test('a webhook delivery job without an attempt number makes only the first attempt of its delivery', async () => {
    receiver.answer = status(503)
    const { id } = await newEndpointDelivery(pool, receiver.url)
    await run(id, { attempt: undefined })
    await run(id, { attempt: undefined })
    expect(receiver.requests).toHaveLength(1)
    expect((await delivery(id)).attempt).toBe(1)
  })

  test('a webhook delivery job sends nothing if its attempt number is not the next attempt number of the delivery', async () => {
    const { id } = await newEndpointDelivery(pool, receiver.url)
    for (const attempt of [0, 2, 3]) await run(id, { attempt })
    await run('del_none')
    expect(receiver.requests).toHaveLength(0)
    await run(id, { attempt: 1 })
    expect(receiver.requests).toHaveLength(1)
  })

  test('the permission to send of a webhook delivery job counts against the limits of its endpoint and its project, and ends when the job ends', async () => {
    const { id, projectId, endpointId } = await newEndpointDelivery(pool, receiver.url)
    const { turns, lanes } = await run(id)
    expect(lanes).toEqual([[endpointId, projectId]])
    expect(turns.left).toBeGreaterThan(0)
  })

  test('the permission to send of a delivery job for a project webhook counts against the limit of this webhook', async () => {
    const id = await newDelivery(pool)
    const { webhook_id, project_id } = await delivery(id)
    expect((await run(id)).lanes).toEqual([[webhook_id, project_id]])
  })

  test('a webhook delivery job that gets no permission to send yet (no free slot of its receiver) sends nothing, and queues the same attempt for later', async () => {
    const { id } = await newEndpointDelivery(pool, receiver.url)
    await dropJobs(pool)
    const beforeMs = Date.now()
    await run(id, { returnInMs: 60_000 })
    expect(receiver.requests).toHaveLength(0)
    expect(await delivery(id)).toMatchObject({ status: 'pending', attempt: 0 })
    const queued = await queuedAttempt(pool, id)
    expect(queued?.attempt).toBe(1)
    expect(queued!.runAt.getTime()).toBeWithin(beforeMs + 60_000, Date.now() + 60_001)
  })

  test('a webhook delivery job that gets no permission to send yet is due by the clock of the database, even if the clock of the worker is wrong', async () => {
    const { id } = await newEndpointDelivery(pool, receiver.url)
    for (const aheadMs of [3_600_000, -3_600_000]) {
      await dropJobs(pool)
      const beforeMs = Date.now()
      setSystemTime(beforeMs + aheadMs)
      await run(id, { returnInMs: 60_000 }).finally(() => setSystemTime())
      const queued = await queuedAttempt(pool, id)
      expect(queued!.runAt.getTime()).toBeWithin(beforeMs + 60_000, Date.now() + 60_001)
    }
  })

  test('if an endpoint no longer has a webhook, its webhook delivery job aborts the delivery without a request', async () => {
    const { id, endpointId } = await newEndpointDelivery(pool, receiver.url)
    await pool.query('update seller_endpoints set webhook_secret = null where id = $1', [
      endpointId,
    ])
    const { turns } = await run(id)
    expect(receiver.requests).toHaveLength(0)
    expect(turns.left).toBeGreaterThan(0)
    expect(await delivery(id)).toMatchObject({
      status: 'aborted',
      attempt: 0,
      error: 'the endpoint no longer has a webhook',
    })
  })

  test('a webhook delivery job signs the event with the current secret of the endpoint, even if the secret was created after the event', async () => {
    const { id, endpointId, projectId } = await newEndpointDelivery(pool, receiver.url)
    const change = { webhookSecret: 'whsec_new' }
    await updateEndpoint(pool, KEYRING, { projectId, id: endpointId, change })
    await run(id)
    const hex = createHmac('sha256', 'whsec_new').update('{}').digest('hex')
    expect(receiver.requests[0]!.headers['x-service-signature']).toBe(`sha256=${hex}`)
  })

  test('if signing the request fails, the webhook delivery job gives back its permission to send (a free slot of its receiver)', async () => {
    const { id, endpointId } = await newEndpointDelivery(pool, receiver.url)
    await pool.query(
      `update seller_endpoints set webhook_secret = null, webhook_key_id = 'k1',
         webhook_wrapped_key = '\\x00', webhook_ciphertext = '\\x00' where id = $1`,
      [endpointId],
    )
    const { turns, done } = startRun(pool, id)
    await expect(done).rejects.toThrow()
    expect(turns).toEqual({ entered: 1, left: 1 })
    expect(await delivery(id)).toMatchObject({ status: 'pending', attempt: 0 })
  })
})

describe('the outcome of a webhook delivery attempt decides the state of the delivery', () => {
  test.each([
    [200, 'delivered'],
    [299, 'delivered'],
    [302, 'aborted'],
    [499, 'aborted'],
    [500, 'pending'],
  ])(
    'a webhook delivery attempt with the response status %p is recorded as %p, with the status and the start of the response',
    async (code, end) => {
      receiver.answer = status(code, 'text')
      const { id } = await newEndpointDelivery(pool, receiver.url)
      await run(id)
      expect(await delivery(id)).toMatchObject({ status: end, attempt: 1 })
      const kept = { n: 1, status_code: code, error: null, response_prefix: 'text' }
      expect(await lastAttempt(id)).toMatchObject(kept)
    },
  )

  test('after a failed connection a webhook delivery stays pending, and the delivery log contains the error and no response', async () => {
    const { id } = await newEndpointDelivery(pool, 'http://127.0.0.1:1/hook')
    await run(id)
    expect((await delivery(id)).status).toBe('pending')
    expect(await lastAttempt(id)).toMatchObject({ status_code: null, response_prefix: null })
    expect((await lastAttempt(id)).error).not.toBe('')
    expect((await queuedAttempt(pool, id))?.attempt).toBe(2)
  })

  test('a webhook delivery to a private IP address is aborted without a second attempt', async () => {
    const { id } = await newEndpointDelivery(pool, receiver.url)
    await dropJobs(pool)
    await run(id, { allowPrivate: false })
    expect(receiver.requests).toHaveLength(0)
    expect(await delivery(id)).toMatchObject({ status: 'aborted', next_attempt_at: null })
    expect(await lastAttempt(id)).toMatchObject({ status_code: null, response_prefix: null })
    expect(await queuedAttempt(pool, id)).toBeNull()
  })

  test('a webhook delivery has the state exhausted after six failed attempts, and a replay begins the retry schedule again', async () => {
    receiver.answer = status(503)
    const { id, projectId } = await newEndpointDelivery(pool, receiver.url)
    for (const n of [1, 2, 3, 4, 5]) await recordAttempts(pool, [attemptOf(id, n)])
    await run(id, { attempt: 6 })
    expect(await delivery(id)).toMatchObject({ status: 'exhausted', next_attempt_at: null })
    expect(receiver.requests[0]!.headers['x-service-delivery-attempt']).toBe('6')
    await replayDelivery(pool, { projectId, id })
    await run(id, { attempt: 7 })
    const { ended_at } = await lastAttempt(id)
    const { next_attempt_at, status: state } = await delivery(id)
    expect([state, next_attempt_at - ended_at]).toEqual(['pending', 1_000])
  })
})

describe('the delivery log stores the beginning of a webhook response', () => {
  test.each([
    ['of 1,024 bytes is whole', 'x'.repeat(1_024), 'x'.repeat(1_024)],
    ['of 1,025 bytes is cut', 'x'.repeat(1_025), 'x'.repeat(1_024)],
    [
      'ends before a character that the cut would split',
      `${'x'.repeat(1_022)}€`,
      'x'.repeat(1_022),
    ],
    ['has no U+0000, which counts for no byte', `\0${'x'.repeat(1_024)}\0`, 'x'.repeat(1_024)],
    ['of an empty response is empty', '', ''],
  ])('in the delivery log, a response %s', async (_name, sent, kept) => {
    receiver.answer = status(200, sent)
    const { id } = await newEndpointDelivery(pool, receiver.url)
    await run(id)
    expect((await lastAttempt(id)).response_prefix).toBe(kept)
  })
})
