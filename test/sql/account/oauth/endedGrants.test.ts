/**
 * Tests that an app cannot keep its OAuth grant (consent) from ending. An app that refreshed its tokens all day had so
 * many tokens that one statement could not delete them within the statement timeout. The test simulates this with a
 * locked token.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { hashSecret } from '../../../../shared/secretHash.ts'
import { revokeGrant } from '../../../../sql/account/oauth/oauthGrants.ts'
import {
  authenticateToken,
  revokeToken,
  type TokenPair,
} from '../../../../sql/account/oauth/oauthTokens.ts'
import { changePerson, removePerson } from '../../../../sql/account/people/people.ts'
import { createPool, type Pool } from '../../../../sql/db.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import {
  ageExchange,
  cleanUp,
  exchange,
  type Grant,
  given,
  newGrant,
  refresh,
} from '../../../support/oauth/grantRows.ts'

let database: TestDatabase
/** Holds a database pool with a short statement timeout, so that a statement that waits for a lock fails soon. */
let pool: Pool
beforeAll(async () => {
  database = await createTestDatabase()
  pool = createPool({ url: database.url, size: 8, name: 'test', statementTimeoutMs: 1_000 })
})
afterAll(async () => {
  await pool.end()
  await database[Symbol.asyncDispose]()
})

/** Runs `work` while no statement can delete a token. */
async function whileLocked(token: string, work: () => Promise<void>): Promise<void> {
  const client = await database.pool.connect()
  try {
    await client.query('begin')
    await client.query('select from oauth_tokens where token_hash = $1 for update', [
      hashSecret(token),
    ])
    await work()
  } finally {
    await client.query('rollback')
    client.release()
  }
}

const isValid = async (token: string) => (await authenticateToken(pool, token)) !== null
const by = { actor: 'owner', requestId: 'req_1' }

type Held = { grant: Grant; first: TokenPair; second: TokenPair }

const ENDINGS: [string, (held: Held) => Promise<unknown>, result: unknown][] = [
  [
    'the owner revokes it',
    ({ grant }) => revokeGrant(pool, { grantId: grant.id, projectIds: null }, by),
    true,
  ],
  [
    'the app gives its refresh token back',
    ({ grant, second }) =>
      revokeToken(pool, { token: second.refresh, clientId: grant.clientId }, 'req_1'),
    undefined,
  ],
  [
    'a refresh token is used again',
    async ({ grant, first }) => {
      await ageExchange(pool, first.refresh)
      return await refresh(pool, grant, first.refresh)
    },
    'invalid_grant',
  ],
  ['the code is used again', ({ grant }) => exchange(pool, grant), 'invalid_grant'],
  [
    'its person loses the right',
    async ({ grant }) =>
      (await changePerson(pool, grant.personId, { role: 'owner' }, async () => {}))?.role,
    'owner',
  ],
  [
    'its person is removed',
    ({ grant }) => removePerson(pool, grant.personId, async () => {}),
    true,
  ],
]

test.each(ENDINGS)(
  'an OAuth grant (consent) whose tokens cannot be deleted ends when %s',
  async (_, end, result) => {
    const grant = await newGrant(pool)
    const first = await given(exchange(pool, grant))
    const second = await given(refresh(pool, grant, first.refresh))
    await whileLocked(first.access, async () => {
      expect(await end({ grant, first, second })).toEqual(result)
      expect(await isValid(first.access)).toBe(false)
      expect(await isValid(second.access)).toBe(false)
      expect(await refresh(pool, grant, second.refresh)).toBe('invalid_grant')
    })
  },
)

test('the clean-up deletes the tokens of ended OAuth grants (consents) even before the tokens expire, and keeps the tokens of other grants', async () => {
  const [ended, live] = [await newGrant(pool), await newGrant(pool)]
  const { access } = await given(exchange(pool, ended))
  await exchange(pool, live)
  const tokensOf = async ({ id }: Grant) =>
    (await pool.query('select from oauth_tokens where grant_id = $1', [id])).rowCount
  await revokeGrant(pool, { grantId: ended.id, projectIds: null }, by)
  await whileLocked(access, async () => {
    await cleanUp(pool)
    expect([await tokensOf(ended), await tokensOf(live)]).toEqual([1, 2])
  })
  await cleanUp(pool)
  expect([await tokensOf(ended), await tokensOf(live)]).toEqual([0, 2])
})
