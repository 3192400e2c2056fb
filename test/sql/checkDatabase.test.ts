/** Tests the check of the database at the start of a process. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { checkDatabase, warnWhenAway } from '../../sql/checkDatabase.ts'
import { createTestDatabase, type TestDatabase } from '../support/database/database.ts'
import { startFakePostgres } from '../support/database/fakePostgres.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase('template0')
})
afterAll(() => database[Symbol.asyncDispose]())

test('PostgreSQL 15 is new enough, and 14 is too old', async () => {
  await using oldest = await startFakePostgres({ version: '15.0' })
  await using older = await startFakePostgres({ version: '14.99' })
  await checkDatabase(oldest.url)
  await expect(checkDatabase(older.url)).rejects.toThrow('PostgreSQL 14.99')
})

test('a start only warns if no database answers, and fails if the server lacks the database', async () => {
  const warnings: string[] = []
  const check = (url: string) => warnWhenAway(url, { warn: (message) => warnings.push(message) })
  await check(database.url)
  expect(warnings).toEqual([])
  await check('postgres://purser@127.0.0.1:1/purser')
  expect(warnings).toEqual([expect.stringContaining('no database answers at 127.0.0.1:1')])
  const missing = database.url.replace(/[^/]*$/, 'missing')
  await expect(check(missing)).rejects.toThrow('there is no database "missing"')
  expect(warnings).toHaveLength(1)
})
