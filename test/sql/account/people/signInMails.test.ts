/**
 * Tests that a request for a sign-in mail is completed only once, and that strangers who fill the table of requests
 * prevent nobody’s sign-in.
 */
import { afterAll, beforeEach, expect, test } from 'bun:test'
import { askSignInMail, recordSignInMail } from '../../../../sql/account/people/signInMails.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import { dropJobs } from '../../../support/till/tillRows.ts'

let database: TestDatabase
let pool: TestDatabase['pool']
beforeEach(async () => {
  await database?.[Symbol.asyncDispose]()
  database = await createTestDatabase()
  pool = database.pool
})
afterAll(() => database[Symbol.asyncDispose]())

test('if one job run has sent a sign-in mail, a slower run that could not send the mail does not queue it again', async () => {
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

const ask = (email: string, isKnown = false) =>
  askSignInMail(pool, { email, browser: 'browser', isKnown })
/** Stores requests for sign-in mails, the oldest first. The email address of each request is `prefix` and a number. */
const fill = (prefix: string, count: number, age: string) =>
  pool.query(
    `insert into sign_in_mails (id, email, browser_hash, created_at, expires_at)
     select $1 || n, $1 || n || '@corp.example', '', clock_timestamp() - $3::interval + n * interval '1 millisecond',
       clock_timestamp()
     from generate_series(1, $2::int) n`,
    [prefix, count, age],
  )
const countOf = async (email: string) =>
  (await pool.query('select from sign_in_mails where email like $1', [email])).rowCount

test('if 20,000 requests for sign-in mails are stored, a new request replaces the oldest one, from whatever network', async () => {
  await pool.query(
    `insert into people (id, name, email, role) values ('per_1', 'Ada', 'flood2@corp.example', 'viewer')`,
  )
  await fill('flood', 20_000, '11 minutes')
  await ask('late@corp.example')
  await ask('later@corp.example')
  expect([await countOf('late%'), await countOf('flood%')]).toEqual([2, 19_998])
  expect([await countOf('flood1@%'), await countOf('flood2@%')]).toEqual([0, 0])
})

test('if all 20,000 stored requests are younger than ten minutes, only a browser in which the person has signed in before gets a sign-in mail', async () => {
  await fill('flood', 20_000, '9 minutes')
  await ask('late@corp.example')
  await ask('known@corp.example', true)
  expect([await countOf('late%'), await countOf('known%'), await countOf('flood%')]).toEqual([
    ...[0, 1, 20_000],
  ])
})

test('if an email address has reached its limit of sign-in mails, a request for this address replaces no other request', async () => {
  const email = 'owner1@corp.example'
  for (let n = 0; n < 10; n++) await ask(email)
  await fill('flood', 19_990, '30 minutes')
  await ask(email)
  expect([await countOf(email), await countOf('flood%')]).toEqual([10, 19_990])
})
