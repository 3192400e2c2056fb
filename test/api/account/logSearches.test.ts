import { expect, test } from 'bun:test'
import { listLogs } from '../../../api/account/logRoutes.ts'
import { createSearches } from '../../../api/mail/messages/searches.ts'
import { createTestDatabase } from '../../support/database/database.ts'

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
