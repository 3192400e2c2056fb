import { expect, test } from 'bun:test'
import { listLogs } from '../../../../api/account/logRoutes.ts'
import { createSearches } from '../../../../api/mail/messages/searches.ts'
import { createPool } from '../../../../sql/db.ts'
import { SearchTimeoutError } from '../../../../sql/mail/search/hits.ts'
import { createTestDatabase } from '../../../support/database/database.ts'

test('a search that takes too long gets status 400 with advice, and a later search still works', async () => {
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

test('if a search failed because the database stood still for a time, the service repeats the search once', async () => {
  await using database = await createTestDatabase()
  const pool = createPool({ url: database.url, size: 1, name: 'test', statementTimeoutMs: 20 })
  const searches = createSearches(pool, 1)
  const statements = ['select pg_sleep(60)', 'select 1 as found']
  const found = await searches.run('prj_1', (db) => db.query(statements.shift()!))
  expect(found.rows).toEqual([{ found: 1 }])
  await pool.end()
})

test('a text search of the audit log waits for another search of the project, and a plain page of the audit log does not wait', async () => {
  await using database = await createTestDatabase()
  const { pool } = database
  const searches = createSearches(pool, 1)
  const services = { pool, searches }
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  const ended: string[] = []
  const running = searches.run('prj_1', () => released).then(() => ended.push('search of mail'))
  const textSearch = listLogs(services, 'prj_1', { q: 'vault' }).then((page) => {
    ended.push('text search')
    return page
  })
  expect(await listLogs(services, 'prj_1', {})).toEqual({ logs: [], count: 0 })
  ended.push('plain page')
  release()
  expect(await textSearch).toEqual({ logs: [], count: 0 })
  await running
  expect(ended).toEqual(['plain page', 'search of mail', 'text search'])
})
