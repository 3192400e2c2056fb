/** Tests the counts of challenges and payments of a project. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import {
  addOfferCounts,
  deleteStaleOfferCounts,
  ENDPOINTS_SHOWN_MAX,
  readFunnel,
} from '../../../../sql/till/payments/funnel.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import { newPayment, newProject } from '../../../support/till/tillRows.ts'

const FROM = new Date('2026-01-05T00:00:00.000Z')

let database: TestDatabase
let pool: TestDatabase['pool']
let projectId: string

beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
})
beforeEach(async () => {
  projectId = await newProject(pool)
})
afterAll(() => database[Symbol.asyncDispose]())

const counted = (endpointId: string, day: string, challenges = 1) =>
  addOfferCounts(pool, [{ projectId, endpointId, day, challenges, refusals: 2 }])

test('the sales funnel (from challenge to payment) of a project counts challenges and payments since a given day, for one endpoint or for all endpoints', async () => {
  for (const day of ['2026-01-04', '2026-01-05', '2026-01-05']) await counted('se_1', day)
  await counted('se_2', '2026-01-05', 7)
  for (const time of [new Date(FROM.getTime() - 1), FROM]) {
    const id = await newPayment(pool, { projectId })
    await pool.query('update payments set created_at = $2 where id = $1', [id, time])
  }
  const all = await readFunnel(pool, { projectId, since: FROM, endpointId: null })
  expect(all.total).toMatchObject({ challenges: 9, refused: 6, claimed: 1, settled: 0 })
  expect(all.days).toHaveLength(1)
  expect(all.endpoints.map(({ endpointId, challenges }) => [endpointId, challenges])).toEqual([
    ['se_2', 7],
    ['se_1', 2],
    [null, 0],
  ])
  const one = await readFunnel(pool, { projectId, since: FROM, endpointId: 'se_1' })
  expect(one.total).toMatchObject({ challenges: 2, refused: 4, claimed: 0 })
})

test('the sales funnel (from challenge to payment) of a project lists the hundred endpoints with the most challenges', async () => {
  for (let n = 1; n <= ENDPOINTS_SHOWN_MAX + 1; n++) await counted(`se_${n}`, '2026-01-05', n)
  const { endpoints } = await readFunnel(pool, { projectId, since: FROM, endpointId: null })
  expect([endpoints.length, endpoints.at(-1)?.endpointId]).toEqual([ENDPOINTS_SHOWN_MAX, 'se_2'])
})

test('the sales funnel (from challenge to payment) of a project keeps the counts of each day for 400 days', async () => {
  const { rows } = await pool.query(
    `select (current_date - n)::text as day from unnest(array[400, 401]) n order by n`,
  )
  for (const { day } of rows) await counted('se_1', day)
  await deleteStaleOfferCounts(pool)
  const left = await pool.query('select day::text from offer_counts where project_id = $1', [
    projectId,
  ])
  expect(left.rows).toEqual([rows[0]])
})
