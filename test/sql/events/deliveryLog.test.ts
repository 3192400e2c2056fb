/** Tests the log of the webhook deliveries of a project, and how deliveries are replayed. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { recordAttempts } from '../../../sql/events/attempts.ts'
import { findDueDeliveries } from '../../../sql/events/deliveries.ts'
import {
  findDelivery,
  listAttempts,
  listDeliveries,
  replayDelivery,
} from '../../../sql/events/deliveryLog.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database/database.ts'
import { attemptOf, DELIVERED, newDelivery, queuedAttempt } from '../../support/events/eventRows.ts'
import { newProject, whileHeld } from '../../support/till/tillRows.ts'

let database: TestDatabase
let pool: TestDatabase['pool']

beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
})
afterAll(() => database[Symbol.asyncDispose]())

const deliver = (id: string) => recordAttempts(pool, [attemptOf(id, 1, DELIVERED)])

describe('the service lists the webhook deliveries of one project with their latest attempts', () => {
  test('a project lists only its own webhook deliveries, newest first, in pages', async () => {
    const projectId = await newProject(pool)
    const ids: string[] = []
    for (let n = 0; n < 3; n++) ids.push(await newDelivery(pool, { projectId }))
    const foreign = await newDelivery(pool)
    const page = { projectId, events: ['message.received'], urlsFor: 'all', limit: 2 } as const
    const first = await listDeliveries(pool, { ...page, cursor: null })
    expect(first.map(({ id }) => id)).toEqual([ids[2]!, ids[1]!])
    const cursor = { atMs: first[1]!.createdAt.getTime(), row: first[1]!.row }
    const second = await listDeliveries(pool, { ...page, cursor })
    expect(second.map(({ id }) => id)).toEqual([ids[0]!])
    const others = { ...page, events: ['payment.received'], cursor: null }
    expect(await listDeliveries(pool, others)).toEqual([])
    expect(await findDelivery(pool, { projectId, id: foreign, urlsFor: 'all' })).toBeNull()
    expect(await replayDelivery(pool, { projectId, id: foreign })).toBeNull()
    expect(await queuedAttempt(pool, foreign)).toBeNull()
  })

  test('a list of webhook deliveries contains the latest 100 attempts of each delivery', async () => {
    const [id, other] = [await newDelivery(pool), await newDelivery(pool)]
    await deliver(other)
    await pool.query(
      `insert into webhook_attempts (delivery_id, n, started_at, ended_at)
       select $1, n, now(), now() from generate_series(1, 101) n`,
      [id],
    )
    const shown = await listAttempts(pool, id)
    expect(shown.map(({ number }) => number)).toEqual(Array.from({ length: 100 }, (_, n) => n + 2))
  })
})

test('the replay of a webhook delivery waits while the result of an attempt is recorded, and then queues the next attempt', async () => {
  const projectId = await newProject(pool)
  const id = await newDelivery(pool, { projectId })
  const ended = `update webhook_deliveries set attempt = 1, status = 'exhausted', error = 'x' where id = $1`
  const [replayed] = await whileHeld(pool, ended, [id], () => [
    replayDelivery(pool, { projectId, id }),
  ])
  expect(replayed).toMatchObject({ status: 'pending', attemptCount: 1, error: null })
  expect((await queuedAttempt(pool, id))?.attempt).toBe(2)
  expect((await findDueDeliveries(pool, [id]))[0]?.attemptsBefore).toBe(1)
})

test('if a webhook delivery is removed while it is replayed, the replay returns null', async () => {
  const projectId = await newProject(pool)
  const id = await newDelivery(pool, { projectId })
  const removed = 'delete from webhook_deliveries where id = $1'
  const replay = () => [replayDelivery(pool, { projectId, id })]
  expect(await whileHeld(pool, removed, [id], replay)).toEqual([null])
})

test('the replay of a pending webhook delivery continues the delivery’s schedule of attempts', async () => {
  const projectId = await newProject(pool)
  const id = await newDelivery(pool, { projectId })
  await recordAttempts(pool, [attemptOf(id, 1)])
  await replayDelivery(pool, { projectId, id })
  expect((await findDueDeliveries(pool, [id]))[0]).toMatchObject({ attempt: 1, attemptsBefore: 0 })
})
