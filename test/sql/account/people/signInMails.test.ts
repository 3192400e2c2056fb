/** Tests that a request for a sign-in mail ends only once, even if two runs of its job overlap. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { askSignInMail, recordSignInMail } from '../../../../sql/account/people/signInMails.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import { dropJobs } from '../../../support/till/tillRows.ts'

let database: TestDatabase
let pool: TestDatabase['pool']
beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
})
afterAll(() => database[Symbol.asyncDispose]())

test('after one run has sent a sign-in mail, a slower run with a deferred mail queues no further mail', async () => {
  const email = 'owner@corp.example'
  await askSignInMail(pool, { email, browser: 'browser', isKnown: false })
  const read = async () => (await pool.query('select id, done_at from sign_in_mails')).rows[0]
  const jobs = async () => (await pool.query('select from graphile_worker.jobs')).rowCount
  const { id } = await read()
  await dropJobs(pool)
  await recordSignInMail(pool, id, true)
  expect([(await read()).done_at, await jobs()]).toEqual([null, 1])
  await dropJobs(pool)
  await recordSignInMail(pool, id, false)
  const { done_at: doneAt } = await read()
  expect(doneAt).toBeInstanceOf(Date)
  await recordSignInMail(pool, id, true)
  expect([(await read()).done_at, await jobs()]).toEqual([doneAt, 0])
})
