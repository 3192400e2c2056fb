/**
 * Tests that an idempotency key repeats its stored response for a day, but only for the project and the operation that
 * used the key.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { beginIdempotent, findIdempotent } from '../../../sql/account/idempotency.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database/database.ts'
import { expireAll } from '../../support/retention.ts'
import { newProject } from '../../support/till/tillRows.ts'

let database: TestDatabase
let pool: TestDatabase['pool']

beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
})
afterAll(() => database[Symbol.asyncDispose]())

const [FIRST, SECOND] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)]

/**
 * Stores an idempotency key with a response for a new project, as if this had happened the given time ago. @returns the
 * request to which the idempotency key belongs.
 */
async function answered(age: string) {
  const request = { projectId: await newProject(pool), operation: 'redeem', key: 'k' }
  await beginIdempotent(pool, { ...request, hash: FIRST })
  await pool.query(
    `update idempotency_keys set result = 'the answer', created_at = now() - $2::interval where project_id = $1`,
    [request.projectId, age],
  )
  return request
}

const readIdempotent = async (...given: Parameters<typeof findIdempotent>) =>
  (await findIdempotent(...given))?.result ?? null

test('for 24 hours, an idempotency key returns its stored request hash and response', async () => {
  const request = await answered('23 hours 59 minutes')
  const kept = { requestHash: FIRST, result: 'the answer' }
  expect(await beginIdempotent(pool, { ...request, hash: SECOND })).toEqual(kept)
  expect(await findIdempotent(pool, request)).toEqual(kept)
  await expireAll(pool)
  expect(await readIdempotent(pool, request)).toBe('the answer')
})

test('an idempotency key that has expired can be used for a new request, and then stores this request', async () => {
  const request = await answered('24 hours 1 minute')
  expect(await findIdempotent(pool, request)).toBeNull()
  const taken = { requestHash: SECOND, result: null }
  expect(await beginIdempotent(pool, { ...request, hash: SECOND })).toEqual(taken)
  expect(await findIdempotent(pool, request)).toEqual(taken)
  expect(await beginIdempotent(pool, { ...request, hash: FIRST })).toEqual(taken)
})

test('an expired idempotency key is deleted', async () => {
  const request = await answered('24 hours 1 minute')
  await expireAll(pool)
  expect(await readIdempotent(pool, request)).toBeNull()
})

test('an idempotency key does not affect other projects, other operations or other keys', async () => {
  const request = await answered('1 minute')
  const others = [
    { ...request, projectId: await newProject(pool) },
    { ...request, operation: 'send' },
    { ...request, key: 'l' },
  ]
  for (const other of others) {
    expect(await findIdempotent(pool, other)).toBeNull()
    expect(await readIdempotent(pool, other)).toBeNull()
    expect(await beginIdempotent(pool, { ...other, hash: SECOND })).toEqual({
      requestHash: SECOND,
      result: null,
    })
  }
  expect(await readIdempotent(pool, request)).toBe('the answer')
})
