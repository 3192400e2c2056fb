/** Tests what happens when concurrent requests need the metadata document of an OAuth client. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { documentId, wantDocument } from '../../../../sql/account/oauth/clientDocuments.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database[Symbol.asyncDispose]())

test('concurrent first requests for one client metadata document all succeed, and cause only one fetch', async () => {
  const { pool } = database
  const urls = Array.from({ length: 80 }, (_, n) => `https://app.example/${n}.json`)
  for (const url of urls) {
    const asked = Array.from({ length: 8 }, () =>
      wantDocument(pool, { id: documentId(url), url, network: '' }),
    )
    expect(await Promise.all(asked)).toEqual(Array(8).fill(true))
  }
  const { rows } = await pool.query('select count(*)::int as n from graphile_worker.jobs')
  expect(rows[0].n).toBe(urls.length)
})
