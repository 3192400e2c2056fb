/**
 * Tests that an API key is valid until its revocation or the deletion of its project, and that each API key has its own
 * rate limit window.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { generateKey } from '../../../../shared/apiKey.ts'
import {
  authenticateAll,
  findKeyScopes,
  insertPlatformKey,
  isKnownKey,
  revokeProjectKey,
} from '../../../../sql/account/keys/keys.ts'
import type { RateWindow } from '../../../../sql/account/keys/rateWindows.ts'
import { deleteProject } from '../../../../sql/account/projects/deleteProject.ts'
import { createProject, rotateProjectKey } from '../../../../sql/account/projects/projects.ts'
import { findPlatformKeyUsage } from '../../../../sql/account/projects/usage.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'

let database: TestDatabase
let pool: TestDatabase['pool']

beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
})
afterAll(() => database[Symbol.asyncDispose]())

let made = 0
async function newKey() {
  const { project, rawKey } = await createProject(pool, {
    name: 'Agent',
    purpose: 'BUYER',
    emailAddress: `agent${++made}@mail.test`,
    scopes: ['mail:read'],
  })
  const { keyId } = (await authenticate(rawKey))!.identity
  return { projectId: project.id, key: rawKey, keyId }
}
/** Returns a changed copy of an API key that begins with the same lookup prefix. */
const lookalike = (key: string) => key.slice(0, -1) + (key.endsWith('0') ? '1' : '0')

const authenticate = async (key: string) =>
  (await authenticateAll(pool, [{ key, budget: '' }]))[0] ?? null

test('a rotated API key, or an API key of a deleted project, is refused and has no scopes', async () => {
  const [rotated, deleted, live] = [await newKey(), await newKey(), await newKey()]
  const { projectId } = rotated
  await rotateProjectKey(pool, projectId, { projectId, keyPrefix: 'test', requestId: 'r' })
  await deleteProject(pool, deleted.projectId, null)
  for (const { key, keyId } of [rotated, deleted]) {
    expect(await authenticate(key)).toBeNull()
    expect(await findKeyScopes(pool, keyId)).toBeNull()
  }
  expect(await findKeyScopes(pool, live.keyId)).toEqual(['mail:read'])
})

test('an API key of a deleted project is refused, even if the key was not revoked', async () => {
  const { projectId, key, keyId } = await newKey()
  await pool.query('update projects set deleted_at = now() where id = $1', [projectId])
  expect(await authenticate(key)).toBeNull()
  expect(await findKeyScopes(pool, keyId)).toBeNull()
})

test('a wrong API key with a known prefix is refused, and does not count as a request of the right API key', async () => {
  const { key, projectId } = await newKey()
  // The rate limit window is moved one minute into the future, so that it does not end between two requests.
  await pool.query(
    `update rate_windows set window_start = window_start + interval '1 minute' where subject = $1`,
    [projectId],
  )
  for (let n = 0; n < 3; n++) expect(await authenticate(lookalike(key))).toBeNull()
  expect((await authenticate(key))?.usage.used).toBe(2)
})

test('if a known platform key is stored again, nothing changes', async () => {
  const key = generateKey('platform')
  await insertPlatformKey(pool, key, 'first')
  await insertPlatformKey(pool, key, 'second')
  expect(await isKnownKey(pool, key)).toBe(true)
  expect(await isKnownKey(pool, lookalike(key))).toBe(false)
  const { rows } = await pool.query(`select name from api_keys where kind = 'platform'`)
  expect(rows).toEqual([{ name: 'first' }])
})

test('a second revocation of an API key keeps the time of the first, and API keys of other projects stay valid', async () => {
  const [{ projectId, keyId }, neighbour] = [await newKey(), await newKey()]
  await revokeProjectKey(pool, projectId)
  await pool.query(`update api_keys set revoked_at = '2020-01-01' where id = $1`, [keyId])
  await revokeProjectKey(pool, projectId)
  const { rows } = await pool.query('select revoked_at from api_keys where id = $1', [keyId])
  expect(rows[0].revoked_at.getUTCFullYear()).toBeLessThan(2021)
  expect(await findKeyScopes(pool, neighbour.keyId)).toEqual(['mail:read'])
})

/**
 * Returns API keys that have each been used once. The rate limit windows of these API keys are moved one minute into
 * the future, so that no window ends between two requests.
 */
async function frozenKeys(count: number): Promise<string[]> {
  const made = await Promise.all(Array.from({ length: count }, () => newKey()))
  await pool.query(
    `update rate_windows set window_start = window_start + interval '1 minute' where subject = any ($1)`,
    [made.map(({ projectId }) => projectId)],
  )
  return made.map(({ key }) => key)
}

test('in a batch of requests, each API key is counted separately in its own rate limit window', async () => {
  const [one = '', two = ''] = await frozenKeys(2)
  const wanted = (key: string, budget: RateWindow = '') => ({ key, budget })
  const batch = [
    wanted(one),
    wanted(two),
    wanted(one),
    wanted(lookalike(one)),
    wanted(one, ':x402'),
  ]
  const used = async () =>
    (await authenticateAll(pool, [...batch, wanted(one)])).map((found) => found?.usage.used ?? null)
  expect(await used()).toEqual([2, 2, 3, null, 1, 4])
  await pool.query(
    `update rate_windows set window_start = window_start + interval '1 minute'
     where window_start <= clock_timestamp()`,
  )
  expect(await used()).toEqual([5, 3, 6, null, 2, 7])
})

test('if concurrent batches contain the same API keys in different orders, each request is counted once', async () => {
  const keys = await frozenKeys(5)
  const seen = await Promise.all(
    Array.from({ length: 40 }, (_, n) => {
      const order = n % 2 === 0 ? keys : keys.toReversed()
      return authenticateAll(
        pool,
        order.map((key) => ({ key, budget: '' })),
      )
    }),
  )
  for (const n of keys.keys()) {
    const used = seen.map((found, batch) => found[batch % 2 === 0 ? n : 4 - n]!.usage.used)
    expect(used.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 40 }, (_, at) => at + 2))
  }
})

test('the lookup of the usage of an unknown API key returns null', async () => {
  expect(await findPlatformKeyUsage(pool, '0')).toBeNull()
  expect(await findPlatformKeyUsage(pool, '')).toBeNull()
})
