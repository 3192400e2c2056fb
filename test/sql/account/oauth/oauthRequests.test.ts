/** Tests that a request for consent is decided once, and only by the browser that began it. */
import { expect, test } from 'bun:test'
import { createRequest, decideRequest } from '../../../../sql/account/oauth/oauthRequests.ts'
import { createTestDatabase } from '../../../support/database/database.ts'

test('a request for consent is decided once, and by no other browser', async () => {
  await using database = await createTestDatabase()
  const { pool } = database
  const asked = {
    ...{ clientId: 'https://app.example/a.json', clientName: 'App', clientHost: 'app.example' },
    ...{ redirectUri: 'https://app.example/cb', state: null, challenge: 'c'.repeat(43) },
    ...{ scopes: ['mail:read'], resource: 'https://api.example/mcp' },
  }
  const id = (await createRequest(pool, 'mine', asked, '203.0.113.1'))!
  const by = { actor: 'owner', personId: 'per_1', requestId: 'r', organization: 'org' }
  const deny = (browser: string) => decideRequest(pool, { id, browser, consent: null }, by)
  expect(await deny('other')).toBeNull()
  expect(await deny('mine')).toMatchObject({ request: { id }, code: null })
  expect(await deny('mine')).toBeNull()
})
