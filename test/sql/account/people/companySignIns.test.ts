/** Tests that strangers who begin sign-ins at the company's identity provider do not block the people of the company. */
import { afterAll, beforeEach, expect, test } from 'bun:test'
import {
  beginCompanySignIn,
  connectAccount,
  takeSignIn,
} from '../../../../sql/account/people/companySignIns.ts'
import { addPerson } from '../../../../sql/account/people/people.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'

let database: TestDatabase
beforeEach(async () => {
  await database?.[Symbol.asyncDispose]()
  database = await createTestDatabase()
})
afterAll(() => database[Symbol.asyncDispose]())

const fill = (count: number, state: string, validFor: string) =>
  database.pool.query(
    `insert into company_sign_ins (id, browser_hash, state, expires_at)
     select 'csi_' || $2 || n, sha256(n::text::bytea), $2, clock_timestamp() + $3::interval
     from generate_series(1, $1::int) n`,
    [count, state, validFor],
  )
const begin = (personId: string | null = null) =>
  beginCompanySignIn(database.pool, { browser: 'browser', personId })

test('a sign-in begins although 5,000 earlier sign-ins are expired or ended', async () => {
  await fill(5_000, 'asked', '-1 minute')
  await fill(5_000, 'failed', '5 minutes')
  expect(await begin()).toBeString()
})

test('while 5,000 sign-ins are in progress, only a person who is signed in can begin another', async () => {
  await fill(4_999, 'open', '5 minutes')
  expect(await begin()).toBeString()
  expect(await begin()).toBeNull()
  const email = 'owner@corp.example'
  const person = await addPerson(
    database.pool,
    { name: 'Owner', email, role: 'operator', projectIds: [] },
    async () => {},
  )
  expect(await begin(person!.id)).toBeString()
})

test('at most 50,000 sign-ins are stored, also if all of them have ended', async () => {
  await fill(50_000, 'done', '5 minutes')
  expect(await begin()).toBeNull()
})

test('the result of a sign-in is taken only once, and a sign-in that is not done has no result', async () => {
  await fill(1, 'done', '5 minutes')
  await fill(1, 'open', '5 minutes')
  const take = (id: string) => takeSignIn(database.pool, id)
  expect([await take('csi_done1'), await take('csi_done1')]).toEqual(['nobody', 'taken'])
  expect([await take('csi_open1'), await take('csi_none')]).toEqual(['taken', 'taken'])
  const connect = connectAccount(database.pool, 'csi_open1', 'per_none', async () => {})
  expect(await connect).toBe('taken')
})
