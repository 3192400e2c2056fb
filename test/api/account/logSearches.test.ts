import { expect, test } from 'bun:test'
import { listLogs } from '../../../api/account/logRoutes.ts'
import { createSearches } from '../../../api/http/limits/searches.ts'
import { createTestDatabase } from '../../support/database/database.ts'

test.each([
  { q: 'vault' },
  { requestId: 'req_1' },
  { action: 'vault.get' },
  { category: 'vault' },
  { actor: 'loid-1' },
  { outcome: 'ok' as const },
  { status: 'failure' as const },
  { severity: 'WARNING' as const },
])(
  'a search of the audit log waits for another search of the project, and a page of one subject does not wait: %p',
  async (search) => {
    await using database = await createTestDatabase()
    const { pool } = database
    const searches = createSearches(pool, 1)
    const services = { pool, searches }
    const { promise: released, resolve: release } = Promise.withResolvers<void>()
    const ended: string[] = []
    const running = searches.run('prj_1', () => released).then(() => ended.push('search of mail'))
    const waiting = listLogs(services, 'prj_1', search).then((page) => {
      ended.push('search of the log')
      return page
    })
    expect(await listLogs(services, 'prj_1', {})).toEqual({ logs: [], count: 0 })
    ended.push('plain page')
    const ofSubject = { subject: 'github', after: '2026-01-05T00:00:00Z' }
    expect(await listLogs(services, 'prj_1', ofSubject)).toEqual({ logs: [], count: 0 })
    release()
    expect(await waiting).toEqual({ logs: [], count: 0 })
    await running
    expect(ended).toEqual(['plain page', 'search of mail', 'search of the log'])
  },
)
