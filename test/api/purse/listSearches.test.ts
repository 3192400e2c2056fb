import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createSearches } from '../../../api/http/limits/searches.ts'
import { listPayments } from '../../../api/purse/purseRoutes.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database/database.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database[Symbol.asyncDispose]())

test.each([
  { payment: 'open' as const },
  { state: 'refused' as const },
  { host: 'shop.example' },
  { mandate: 'mdt_1' },
])(
  'a search of the payments of a purse waits for another search of the project, and a plain page does not wait: %p',
  async (search) => {
    const { pool } = database
    const searches = createSearches(pool, 1)
    const services = { pool, searches }
    const { promise: released, resolve: release } = Promise.withResolvers<void>()
    const running = searches.run('prj_1', () => released)
    let isRead = false
    const waiting = listPayments(services, 'prj_1', search).finally(() => {
      isRead = true
    })
    const inTime = { from: '2026-01-05T00:00:00Z', until: '2026-01-06T00:00:00Z' }
    expect(await listPayments(services, 'prj_1', inTime)).toEqual({ payments: [], count: 0 })
    expect(isRead).toBe(false)
    release()
    expect(await waiting).toEqual({ payments: [], count: 0 })
    await running
  },
)
