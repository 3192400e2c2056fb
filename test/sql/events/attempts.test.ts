/**
 * Tests that attempts to deliver a webhook event are recorded once, in order, together with the job of the next
 * attempt.
 */
import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { type AttemptResult, recordAttempts } from '../../../sql/events/attempts.ts'
import { abortDelivery, postponeAttempt } from '../../../sql/events/deliveries.ts'
import { listAttempts, replayDelivery } from '../../../sql/events/deliveryLog.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database/database.ts'
import {
  attemptOf,
  DELIVERED,
  newDelivery,
  queuedAttempt,
  withLostJobs,
} from '../../support/events/eventRows.ts'
import { crossing, dropJobs, newProject, row, whileHeld } from '../../support/till/tillRows.ts'

let database: TestDatabase
let pool: TestDatabase['pool']

beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
})
beforeEach(() => dropJobs(pool))
afterAll(() => database[Symbol.asyncDispose]())

const stateOf = async (id: string) => {
  const { status, attempt, error } = await row(pool, 'webhook_deliveries', id)
  return { status, attempt, error }
}
const deliveries = async (count: number) => {
  const projectId = await newProject(pool)
  const ids: string[] = []
  for (let n = 0; n < count; n++) ids.push(await newDelivery(pool, { projectId }))
  return ids.toSorted()
}

test('if two job runs make the same webhook attempt, the service records it once and queues the next attempt once', async () => {
  const id = await newDelivery(pool)
  expect(await recordAttempts(pool, [attemptOf(id, 1)])).toEqual([true])
  expect(await recordAttempts(pool, [attemptOf(id, 1, { statusCode: 500 })])).toEqual([false])
  expect((await listAttempts(pool, id)).map(({ statusCode }) => statusCode)).toEqual([503])
  expect(await stateOf(id)).toMatchObject({ status: 'pending', attempt: 1 })
  expect((await queuedAttempt(pool, id))?.attempt).toBe(2)
})

test('if two job runs record the same webhook attempt at the same time, it is recorded once', async () => {
  const id = await newDelivery(pool)
  const ended = `update webhook_deliveries set attempt = 1, next_attempt_at = now() + interval '1 hour' where id = $1`
  const late = () => [recordAttempts(pool, [attemptOf(id, 1)])]
  expect(await whileHeld(pool, ended, [id], late)).toEqual([[false]])
  expect(await stateOf(id)).toMatchObject({ status: 'pending', attempt: 1 })
})

test('if the result of an attempt arrives after its webhook delivery was aborted, the delivery does not change', async () => {
  for (const late of [{}, DELIVERED]) {
    const id = await newDelivery(pool)
    await abortDelivery(pool, id, 'the endpoint was deleted')
    expect(await recordAttempts(pool, [attemptOf(id, 1, late)])).toEqual([false])
    expect(await stateOf(id)).toEqual({
      status: 'aborted',
      attempt: 0,
      error: 'the endpoint was deleted',
    })
    expect(await listAttempts(pool, id)).toEqual([])
    expect(await queuedAttempt(pool, id)).toBeNull()
  }
})

/** Returns the number and the HTTP status of each recorded attempt. */
const logOf = async (id: string) =>
  (await listAttempts(pool, id)).map(({ number, statusCode }) => [number, statusCode])

test('if two requests of one webhook attempt overlap, a late success still ends the delivery', async () => {
  const ends = [{}, { status: 'exhausted', retryInS: null }, { status: 'aborted', retryInS: null }]
  for (const first of ends as Partial<AttemptResult>[]) {
    const id = await newDelivery(pool)
    await recordAttempts(pool, [attemptOf(id, 1, first)])
    expect(await recordAttempts(pool, [attemptOf(id, 1, DELIVERED)])).toEqual([true])
    expect(await row(pool, 'webhook_deliveries', id)).toMatchObject({
      status: 'delivered',
      attempt: 2,
      next_attempt_at: null,
    })
    expect(await logOf(id)).toEqual([
      [1, 503],
      [2, 200],
    ])
    for (const attempt of [1, 2, 3]) {
      for (const late of [{}, DELIVERED]) {
        expect(await recordAttempts(pool, [attemptOf(id, attempt, late)])).toEqual([false])
      }
    }
    expect(await stateOf(id)).toMatchObject({ status: 'delivered', attempt: 2 })
  }
})

test('a late success ends a webhook delivery even if later attempts have failed in the meantime', async () => {
  const id = await newDelivery(pool)
  for (const attempt of [1, 2, 3]) await recordAttempts(pool, [attemptOf(id, attempt)])
  const ended = `update webhook_deliveries set attempt = 4 where id = $1`
  const late = () => [recordAttempts(pool, [attemptOf(id, 2, DELIVERED)])]
  expect(await whileHeld(pool, ended, [id], late)).toEqual([[true]])
  expect(await stateOf(id)).toMatchObject({ status: 'delivered', attempt: 5 })
  expect((await logOf(id)).at(-1)).toEqual([5, 200])
})

test('if the service records a failure and a success of one webhook attempt in the same batch, the success counts', async () => {
  for (const results of [
    [{}, DELIVERED],
    [DELIVERED, {}],
  ] as Partial<AttemptResult>[][]) {
    const id = await newDelivery(pool)
    const recorded = await recordAttempts(
      pool,
      results.map((result) => attemptOf(id, 1, result)),
    )
    expect(recorded).toEqual(results.map((result) => result === DELIVERED))
    expect(await stateOf(id)).toMatchObject({ status: 'delivered', attempt: 1 })
    expect(await queuedAttempt(pool, id)).toBeNull()
  }
})

test('if a finished webhook delivery is replayed, a success that an earlier attempt reports late does not finish the delivery', async () => {
  const projectId = await newProject(pool)
  const id = await newDelivery(pool, { projectId })
  await recordAttempts(pool, [attemptOf(id, 1, { status: 'exhausted', retryInS: null })])
  await replayDelivery(pool, { projectId, id })
  expect(await recordAttempts(pool, [attemptOf(id, 1, DELIVERED)])).toEqual([false])
  expect(await stateOf(id)).toMatchObject({ status: 'pending', attempt: 1 })
  expect((await queuedAttempt(pool, id))?.attempt).toBe(2)
})

test('after a webhook delivery succeeded, no later attempt is made', async () => {
  const [done, open] = await deliveries(2)
  const results = [attemptOf(done!, 1, DELIVERED), attemptOf(open!, 1)]
  expect(await recordAttempts(pool, results)).toEqual([true, true])
  expect(await queuedAttempt(pool, done!)).toBeNull()
  expect((await queuedAttempt(pool, open!))?.attempt).toBe(2)
})

test('the end time of a webhook attempt is rounded up, so that the next attempt never comes too early', async () => {
  for (const id of await deliveries(20)) {
    const { rows } = await pool.query('select clock_timestamp()::text as now')
    await recordAttempts(pool, [attemptOf(id, 1, { retryInS: 1, endedMs: performance.now() })])
    const ended = await pool.query(
      `select a.ended_at >= $2::timestamptz as is_late_enough, d.next_attempt_at - a.ended_at = interval '1 s' as is_whole
       from webhook_deliveries d join webhook_attempts a on a.delivery_id = d.id where d.id = $1`,
      [id, rows[0].now],
    )
    expect(ended.rows).toEqual([{ is_late_enough: true, is_whole: true }])
  }
})

test('if the job for the next webhook attempt cannot be queued, the result of this attempt is not recorded', async () => {
  const id = await newDelivery(pool)
  const recorded = withLostJobs(pool, () => recordAttempts(pool, [attemptOf(id, 1)]))
  expect(await recorded.catch(({ message }) => message)).toBe(
    'jobs were not queued: {deliver_webhook}',
  )
  expect(await stateOf(id)).toMatchObject({ status: 'pending', attempt: 0 })
  expect(await listAttempts(pool, id)).toEqual([])
})

test('if webhook attempt 1 is postponed too late, the job of attempt 2 does not change', async () => {
  const id = await newDelivery(pool)
  await recordAttempts(pool, [attemptOf(id, 1)])
  const queued = await queuedAttempt(pool, id)
  await postponeAttempt(pool, { deliveryId: id, attempt: 1, inMs: 0 })
  expect(await queuedAttempt(pool, id)).toEqual(queued)
})

test('a call that postpones a webhook attempt waits while the result of the attempt is recorded, and then does nothing', async () => {
  const id = await newDelivery(pool)
  const ended = 'update webhook_deliveries set attempt = 1 where id = $1'
  await whileHeld(pool, ended, [id], () => [
    postponeAttempt(pool, { deliveryId: id, attempt: 1, inMs: 0 }),
  ])
  expect(await queuedAttempt(pool, id)).toBeNull()
})

test('two processes record attempts of the same deliveries in opposite orders without a deadlock', async () => {
  const ids = await deliveries(4)
  const hold = 'select from webhook_deliveries where id = any ($1) for update'
  const record = (list: string[]) =>
    recordAttempts(
      pool,
      list.map((id) => attemptOf(id, 1)),
    )
  const results = await whileHeld(pool, hold, [ids.slice(0, 2)], () => crossing(ids).map(record))
  expect(results.flat().filter((isRecorded) => isRecorded)).toHaveLength(4)
  for (const id of ids) expect(await stateOf(id)).toMatchObject({ attempt: 1 })
})
