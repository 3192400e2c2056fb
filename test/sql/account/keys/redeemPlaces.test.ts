/**
 * Tests that a redeem call without a new payment does not use up the rate limit. The call's slot (one counted call)
 * becomes free for a later payment in the same minute.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { countRequests } from '../../../../sql/account/keys/rateWindows.ts'
import { freePlace, takePlace } from '../../../../sql/account/keys/redeemPlaces.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import { withinOneMinute } from '../../../support/rateWindow.ts'

let database: TestDatabase
let pool: TestDatabase['pool']

beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
})
afterAll(() => database[Symbol.asyncDispose]())

/** Counts a call of a project, and returns the end of the counted minute. */
const call = async (projectId: string) =>
  (await countRequests(pool, `${projectId}:redeem`, 1)).resetsAt

const free = (projectId: string, resetsAt: Date) => freePlace(pool, projectId, resetsAt)

/** Moves all counts of a project to the previous minute. */
const endMinute = (projectId: string) =>
  pool.query(
    `update rate_windows set window_start = window_start - interval '1 minute' where subject like $1`,
    [`${projectId}%`],
  )

test('payments can use the slots (counted calls) of the rate limit that other calls of the same project have released', async () => {
  await withinOneMinute()
  const resetsAt = await call('prj_a')
  for (let n = 0; n < 3; n++) await free('prj_a', resetsAt)
  for (const remaining of [2, 1, 0]) {
    expect(await takePlace(pool, 'prj_a', resetsAt)).toEqual({ remaining, resetsAt })
  }
  expect(await takePlace(pool, 'prj_a', resetsAt)).toBeNull()
  expect(await takePlace(pool, 'prj_b', resetsAt)).toBeNull()
})

test('if a project has used up all slots (counted calls) of the rate limit, each slot that a call releases later allows one payment', async () => {
  await withinOneMinute()
  const resetsAt = await call('prj_d')
  const takeMany = async () => {
    const places = await Promise.all(
      Array.from({ length: 20 }, () => takePlace(pool, 'prj_d', resetsAt)),
    )
    return places.filter((place) => place !== null).length
  }
  expect(await takeMany()).toBe(0)
  for (let n = 0; n < 3; n++) await free('prj_d', resetsAt)
  expect(await takeMany()).toBe(3)
  expect(await takeMany()).toBe(0)
  await free('prj_d', resetsAt)
  expect(await takeMany()).toBe(1)
})

test('a call cannot release a slot (counted call) of the rate limit in another minute, and unused slots expire with their minute', async () => {
  await withinOneMinute()
  const resetsAt = await call('prj_c')
  await free('prj_c', new Date(resetsAt.getTime() - 60_000))
  expect(await takePlace(pool, 'prj_c', resetsAt)).toBeNull()
  for (let n = 0; n < 3; n++) await free('prj_c', resetsAt)
  expect(await takePlace(pool, 'prj_c', resetsAt)).toMatchObject({ remaining: 2 })
  await endMinute('prj_c')
  expect(await takePlace(pool, 'prj_c', resetsAt)).toBeNull()
  await free('prj_c', resetsAt)
  expect(await takePlace(pool, 'prj_c', resetsAt)).toEqual({ remaining: 0, resetsAt })
})

test('if the minute of a payment is over, the payment uses no slot (counted call) of this minute, and counts in the new minute', async () => {
  await withinOneMinute()
  const resetsAt = await call('prj_e')
  const before = new Date(resetsAt.getTime() - 60_000)
  expect(await takePlace(pool, 'prj_e', before)).toEqual({ remaining: 0, resetsAt })
  await free('prj_e', resetsAt)
  expect(await takePlace(pool, 'prj_e', resetsAt)).toBeNull()
  await free('prj_e', resetsAt)
  expect(await takePlace(pool, 'prj_e', resetsAt)).toEqual({ remaining: 0, resetsAt })
})
