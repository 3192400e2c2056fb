/** Tests that one run of the housekeeping deletes all old responses of sellers, and not only those of one project. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { transaction } from '../../../../sql/db.ts'
import { deleteOldAnswers } from '../../../../sql/purse/purchases/purchaseJobs.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import { newProject } from '../../../support/till/tillRows.ts'

let database: TestDatabase
let pool: TestDatabase['pool']
beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
})
afterAll(() => database[Symbol.asyncDispose]())

/** Adds purchases whose responses were to be kept until `ageMinutes` ago. */
const add = (projectId: string, count: number, ageMinutes: number) =>
  pool.query(
    `insert into purchases (id, project_id, kind, request_hash, method, host, path, max_atomic, asked_by, key_id,
       wrapped_key, ciphertext, content_until)
     select 'pur_' || $1 || '_' || $3 || '_' || n, $1, 'payment', '', 'GET', 'seller.example', '/', 1, 'test', 'key', '', '',
       clock_timestamp() - $3::int * interval '1 minute'
     from generate_series(1, $2::int) n`,
    [projectId, count, ageMinutes],
  )
const kept = async (projectId: string) =>
  (
    await pool.query('select from purchases where project_id = $1 and ciphertext is not null', [
      projectId,
    ])
  ).rowCount

test('the housekeeping deletes all old responses of sellers at once except a locked one, and keeps new responses', async () => {
  const [busy, other] = [await newProject(pool), await newProject(pool)]
  await add(busy, 1_200, 2)
  await add(other, 3, 1)
  await add(other, 2, -9)
  await transaction(pool, async (db) => {
    await db.query('select from purchases where project_id = $1 limit 1 for update', [busy])
    await deleteOldAnswers(pool)
    expect([await kept(busy), await kept(other)]).toEqual([1, 2])
  })
  await deleteOldAnswers(pool)
  expect([await kept(busy), await kept(other)]).toEqual([0, 2])
  const { rowCount } = await pool.query('select from purchases')
  expect(rowCount).toBe(1_205)
})
