/** Tests that the job of a webhook delivery sends no request if it runs too late, or if the delivery has ended. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { recordAttempts } from '../../../sql/events/attempts.ts'
import { deleteEndpoint } from '../../../sql/till/endpoints/endpointChanges.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database/database.ts'
import { newEndpointDelivery, startRun } from '../../support/events/deliveryRuns.ts'
import { attemptOf } from '../../support/events/eventRows.ts'
import { type Receiver, startReceiver } from '../../support/events/receiver.ts'
import { blocked, row } from '../../support/till/tillRows.ts'

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
})
afterAll(async () => {
  await receiver[Symbol.asyncDispose]()
  await database[Symbol.asyncDispose]()
})

const newDelivery = () => newEndpointDelivery(pool, receiver.url)

/**
 * Runs the first attempt of a webhook delivery to its end.
 * @returns how often the attempt got permission to send, and how often it gave the permission back.
 */
async function run(deliveryId: string, meanwhile?: () => Promise<unknown>) {
  const { turns, done } = startRun(pool, deliveryId, { meanwhile })
  await done
  return turns
}

test('a webhook delivery job sends nothing and asks for no permission to send (a free slot of its receiver) if its attempt is already recorded', async () => {
  const { id } = await newDelivery()
  await recordAttempts(pool, [attemptOf(id, 1)])
  expect(await run(id)).toEqual({ entered: 0, left: 0 })
  expect(receiver.requests).toHaveLength(0)
})

test('if an attempt is recorded while its job waits for permission to send (a free slot of its receiver), the job sends nothing and gives the permission back', async () => {
  const { id } = await newDelivery()
  const turns = await run(id, () => recordAttempts(pool, [attemptOf(id, 1)]))
  expect(receiver.requests).toHaveLength(0)
  expect(turns.left).toBeGreaterThan(0)
})

test('if an endpoint is deleted while its webhook delivery job waits for permission to send (a free slot of its receiver), the job sends nothing', async () => {
  const { id, projectId, endpointId } = await newDelivery()
  await run(id, () => deleteEndpoint(pool, { projectId, id: endpointId }))
  expect(receiver.requests).toHaveLength(0)
  expect((await row(pool, 'webhook_deliveries', id)).error).toBe('the endpoint was deleted')
})

test('if a delivery job that waited for permission to send (a free slot of its receiver) runs a second time, the event is still sent only once', async () => {
  const { id } = await newDelivery()
  await run(id, async () => {})
  await run(id)
  expect(receiver.requests).toHaveLength(1)
  expect((await row(pool, 'webhook_deliveries', id)).status).toBe('delivered')
})

test('a webhook delivery job gives back its permission to send (a free slot of its receiver) before it records the response', async () => {
  const { id } = await newDelivery()
  const client = await pool.connect()
  try {
    await client.query('begin')
    await client.query('select from webhook_deliveries where id = $1 for update', [id])
    const { turns, done } = startRun(pool, id)
    await blocked(pool, 1)
    expect(turns).toEqual({ entered: 1, left: 1 })
    await client.query('commit')
    await done
  } finally {
    client.release()
  }
})
