/**
 * Tests that an app can collect only a limited number of tokens, and that a thief cannot use this limit to hide the use
 * of a stolen refresh token.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import {
  ageExchange,
  exchange,
  type Grant,
  given,
  newGrant,
  refresh,
} from '../../../support/oauth/grantRows.ts'

let database: TestDatabase
let pool: TestDatabase['pool']
beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
})
afterAll(() => database[Symbol.asyncDispose]())

const TOO_OFTEN = 'temporarily_unavailable'

/**
 * Refreshes the tokens of an OAuth grant (consent), each time with the newest refresh token, until the service refuses.
 */
async function useUp(grant: Grant, token: string): Promise<{ newest: string; refreshes: number }> {
  let newest = token
  for (let refreshes = 0; refreshes < 1_000; refreshes++) {
    const pair = await refresh(pool, grant, newest)
    if (pair === TOO_OFTEN) return { newest, refreshes }
    if (typeof pair === 'string') throw new Error(pair)
    newest = pair.refresh
  }
  throw new Error('the service refused no refresh')
}

/** Moves the counted refreshes of an OAuth grant (consent) back in time, as if time had passed since then. */
const pass = (grant: Grant, minutes: number) =>
  pool.query(
    `update oauth_grants set refreshed_to = refreshed_to - $2 * interval '1 minute' where id = $1`,
    [grant.id, minutes],
  )

test('an app can refresh its tokens 100 times at once, and then once a minute', async () => {
  const grant = await newGrant(pool)
  const { refresh: token } = await given(exchange(pool, grant))
  const { newest, refreshes } = await useUp(grant, token)
  expect(refreshes).toBe(100)
  await pass(grant, 1)
  const { refresh: next } = await given(refresh(pool, grant, newest))
  expect(await refresh(pool, grant, next)).toBe(TOO_OFTEN)
  await pass(grant, 10_000)
  expect((await useUp(grant, next)).refreshes).toBe(100)
})

test('an app cannot exceed the limit with many exchanges of one refresh token, and another OAuth grant has its own limit', async () => {
  const grant = await newGrant(pool)
  const { refresh: token } = await given(exchange(pool, grant))
  const asked: Awaited<ReturnType<typeof refresh>>[] = []
  for (let n = 0; n < 14; n++) {
    asked.push(...(await Promise.all(Array.from({ length: 8 }, () => refresh(pool, grant, token)))))
  }
  expect(asked.filter((pair) => pair !== TOO_OFTEN)).toHaveLength(100)
  const { rows } = await pool.query(
    'select count(*)::int as tokens from oauth_tokens where grant_id = $1',
    [grant.id],
  )
  expect(rows).toEqual([{ tokens: 202 }])
  const other = await newGrant(pool)
  await given(refresh(pool, other, (await given(exchange(pool, other))).refresh))
})

test('if a thief uses up the limit of refreshes of an OAuth grant (consent), the next use of the stolen refresh token still ends the grant', async () => {
  const grant = await newGrant(pool)
  const { refresh: stolen } = await given(exchange(pool, grant))
  const { newest } = await useUp(grant, stolen)
  await ageExchange(pool, stolen)
  expect(await refresh(pool, grant, stolen)).toBe('invalid_grant')
  await pass(grant, 10_000)
  expect(await refresh(pool, grant, newest)).toBe('invalid_grant')
})

test('a refused refresh does not use up the refresh token, and a refresh with a wrong scope does not count against the limit', async () => {
  const grant = await newGrant(pool)
  const { refresh: token } = await given(exchange(pool, grant))
  for (let n = 0; n < 3; n++) {
    expect(await refresh(pool, grant, token, ['vault:use'])).toBe('invalid_scope')
  }
  const { newest, refreshes } = await useUp(grant, token)
  expect(refreshes).toBe(100)
  await ageExchange(pool, newest)
  await pass(grant, 1)
  await given(refresh(pool, grant, newest))
})
