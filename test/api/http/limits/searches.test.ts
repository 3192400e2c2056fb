import { expect, test } from 'bun:test'
import { createSearches } from '../../../../api/http/limits/searches.ts'
import { createPool } from '../../../../sql/db.ts'
import { SearchTimeoutError } from '../../../../sql/mail/search/hits.ts'
import { createTestDatabase } from '../../../support/database/database.ts'

test('a search that takes too long gets status 400 with advice, and does not prevent a later search', async () => {
  await using database = await createTestDatabase()
  const pool = createPool({ url: database.url, size: 1, name: 'test', statementTimeoutMs: 20 })
  const searches = createSearches(pool, 1)
  const refusal = { status: 400, message: expect.stringContaining('The search takes too long') }
  for (const read of [
    () => pool.query('select pg_sleep(60)'),
    () => Promise.reject(new SearchTimeoutError()),
  ]) {
    const error = await searches.run('prj_1', read).catch((caught: unknown) => caught)
    expect(error).toMatchObject(refusal)
  }
  expect(await searches.run('prj_1', async () => 'found')).toBe('found')
  const other = searches.run('prj_1', () => Promise.reject(new TypeError('a bug')))
  await expect(other).rejects.toThrow(TypeError)
  await pool.end()
})

test('if a search fails because the database did not answer for a time, the service repeats the search once', async () => {
  await using database = await createTestDatabase()
  const pool = createPool({ url: database.url, size: 1, name: 'test', statementTimeoutMs: 20 })
  const searches = createSearches(pool, 1)
  const statements = ['select pg_sleep(60)', 'select 1 as found']
  const found = await searches.run('prj_1', (db) => db.query(statements.shift()!))
  expect(found.rows).toEqual([{ found: 1 }])
  await pool.end()
})
