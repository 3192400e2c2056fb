/** Tests that a redeem call without a new payment frees its place for a later payment of the same minute. */
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

/** Counts a call of a project, and returns the end of its minute. */
const call = async (projectId: string) =>
  (await countRequests(pool, `${projectId}:redeem`, 1)).resetsAt

test('payments take the places that other calls of the same project have freed', async () => {
  await withinOneMinute()
  expect(await takePlace(pool, 'prj_a')).toMatchObject({ taken: 1, freed: 0 })
  const resetsAt = await call('prj_a')
  for (let n = 0; n < 3; n++) await freePlace(pool, 'prj_a', resetsAt)
  expect(await takePlace(pool, 'prj_a')).toEqual({ taken: 2, freed: 3, resetsAt })
  expect(await takePlace(pool, 'prj_b')).toMatchObject({ taken: 1, freed: 0 })
})

test('a call frees no place of another minute, and the places of a minute end with it', async () => {
  await withinOneMinute()
  const resetsAt = await call('prj_c')
  await freePlace(pool, 'prj_c', new Date(resetsAt.getTime() - 60_000))
  expect(await takePlace(pool, 'prj_c')).toMatchObject({ taken: 1, freed: 0 })
  await freePlace(pool, 'prj_c', resetsAt)
  await pool.query(
    `update rate_windows set window_start = window_start - interval '1 minute' where subject like 'prj_c%'`,
  )
  expect(await takePlace(pool, 'prj_c')).toMatchObject({ taken: 1, freed: 0 })
})
