/** Tests that requests are counted for each minute, and that the count of each minute starts at 0. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import {
  countAuthFailure,
  countRequests,
  deleteStaleRateWindows,
} from '../../../../sql/account/keys/rateWindows.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import { whileHeld } from '../../../support/till/tillRows.ts'

let database: TestDatabase
let pool: TestDatabase['pool']

beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
})
afterAll(() => database[Symbol.asyncDispose]())

/** Moves the rate limit window of a subject (such as a project) by the given number of minutes. */
const shift = (subject: string, minutes: number) =>
  pool.query(
    `update rate_windows set window_start = date_trunc('minute', clock_timestamp()) + $2 * interval '1 minute'
     where subject = $1`,
    [subject, minutes],
  )
const startOf = async (subject: string): Promise<number | undefined> => {
  const { rows } = await pool.query('select window_start from rate_windows where subject = $1', [
    subject,
  ])
  return rows[0]?.window_start.getTime()
}

test('after a rate limit window ends, the count begins again with the weight of the next request (as how many requests it counts)', async () => {
  await countRequests(pool, 'prj_a', 190)
  await shift('prj_a', -1)
  const before = (await startOf('prj_a'))!
  const usage = await countRequests(pool, 'prj_a', 3)
  expect(usage.used).toBe(3)
  expect(usage.resetsAt.getTime()).toBeGreaterThanOrEqual(before + 120_000)
  expect(await startOf('prj_a')).toBe(usage.resetsAt.getTime() - 60_000)
})

test('within one rate limit window, the weights of the requests (as how many requests each of them counts) are added', async () => {
  await countRequests(pool, 'prj_b', 2)
  // The start of the rate limit window is moved one minute into the future, so that the window does not end between the
  // two counts.
  await shift('prj_b', 1)
  const { used, resetsAt } = await countRequests(pool, 'prj_b', 5)
  expect(used).toBe(7)
  expect(resetsAt.getTime()).toBe((await startOf('prj_b'))! + 60_000)
})

test('a request that waits past the end of a minute counts in the rate limit window of the new minute', async () => {
  await countAuthFailure(pool, '192.0.2.1')
  await shift('ip:192.0.2.1', 1)
  const start = await startOf('ip:192.0.2.1')
  expect((await countAuthFailure(pool, '192.0.2.1')).used).toBe(2)
  expect(await startOf('ip:192.0.2.1')).toBe(start)
})

test('after the clock of the database was set back, a new rate limit window begins', async () => {
  await countRequests(pool, 'prj_back', 200)
  await shift('prj_back', 20)
  const { used, resetsAt } = await countRequests(pool, 'prj_back', 1)
  expect(used).toBe(1)
  expect(resetsAt.getTime() - Date.now()).toBeLessThanOrEqual(60_000)
})

test('two concurrent requests are both counted in the rate limit window', async () => {
  await countRequests(pool, 'prj_c', 1)
  await shift('prj_c', 1)
  const hold = 'select from rate_windows where subject = $1 for update'
  const counts = await whileHeld(pool, hold, ['prj_c'], () =>
    [1, 2].map(() => countRequests(pool, 'prj_c', 1)),
  )
  expect(counts.map(({ used }) => used).toSorted()).toEqual([2, 3])
})

test('a rate limit window is deleted an hour after its end', async () => {
  for (const subject of ['prj_old', 'prj_new']) await countRequests(pool, subject, 1)
  await shift('prj_old', -62)
  await shift('prj_new', -58)
  await deleteStaleRateWindows(pool)
  expect(await startOf('prj_old')).toBeUndefined()
  expect(await startOf('prj_new')).toBeNumber()
})
