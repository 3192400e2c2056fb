/** Tests that strangers who request passkey challenges neither fill the database nor prevent the sign-in of people. */
import { afterAll, beforeEach, expect, test } from 'bun:test'
import { storeChallenge, useChallenge } from '../../../../sql/account/people/passkeys.ts'
import { addPerson } from '../../../../sql/account/people/people.ts'
import { consoleClient } from '../../../support/console/consoleSession.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import { startTestService } from '../../../support/service.ts'

const CHALLENGES_MAX = 20_000

let database: TestDatabase
beforeEach(async () => {
  await database?.[Symbol.asyncDispose]()
  database = await createTestDatabase()
})
afterAll(() => database[Symbol.asyncDispose]())

/** Adds passkey challenges from a number of networks, the oldest first. */
const fill = (count: number, validFor: string, networks = count, pool = database.pool) =>
  pool.query(
    `insert into passkey_challenges (challenge_hash, browser_hash, expires_at, network)
     select sha256(('flood' || n)::bytea), '', clock_timestamp() + $2::interval + n * interval '1 millisecond',
       'flood' || n % $3::int
     from generate_series(1, $1::int) n`,
    [count, validFor, networks],
  )
const store = (
  challenge: string,
  { personId = null as string | null, network = '203.0.113.1' } = {},
) => storeChallenge(database.pool, { challenge, browser: 'browser', personId, network })
const isUsable = (challenge: string, personId: string | null = null) =>
  useChallenge(database.pool, { challenge, browser: 'browser', personId })
const count = async (pool = database.pool) =>
  (await pool.query('select from passkey_challenges')).rowCount
/** Tells which of the challenges with the given numbers are stored. */
const stored = async (...numbers: number[]) =>
  (
    await database.pool.query<{ n: number }>(
      `select n from unnest($1::int[]) n
       where exists (select from passkey_challenges where challenge_hash = sha256(('flood' || n)::bytea)) order by n`,
      [numbers],
    )
  ).rows.map(({ n }) => n)

test('at most 20,000 passkey challenges are stored, and a browser must wait if all of them are in use', async () => {
  await using service = await startTestService({
    smtp: false,
    workers: false,
    env: { BASE_URL: 'http://purser.example' },
  })
  const { pool } = service.database
  const ask = () => consoleClient(service.url, '').post('/passkey-sessions/options', {})
  await fill(CHALLENGES_MAX, '4 minutes', 1, pool)
  expect((await ask()).status).toBe(200)
  expect(await count(pool)).toBe(CHALLENGES_MAX)
  await pool.query(`update passkey_challenges set network = encode(challenge_hash, 'base64')`)
  const { status, headers, body } = await ask()
  expect([status, headers.get('retry-after'), body.message]).toEqual([
    503,
    '60',
    'Too many browsers wait for a passkey: try again in a minute',
  ])
  expect(await count(pool)).toBe(CHALLENGES_MAX)
})

test('while 20,000 recent passkey challenges of many networks are stored, only a person who is signed in gets a new challenge', async () => {
  await fill(CHALLENGES_MAX - 1, '4 minutes')
  expect(await store('last')).toBe(true)
  expect(await store('too many')).toBe(false)
  expect(await isUsable('too many')).toBe(false)
  const person = await addPerson(
    database.pool,
    { name: 'Owner', email: 'owner@corp.example', role: 'operator', projectIds: [] },
    async () => {},
  )
  expect(await store('own', { personId: person!.id })).toBe(true)
  expect(await isUsable('own', person!.id)).toBe(true)
  expect(await isUsable('last')).toBe(true)
})

test('if 17 networks have 20,000 passkey challenges, a new challenge replaces the oldest challenge of the network that has most of them', async () => {
  await store('early', { network: '198.51.100.1' })
  await fill(CHALLENGES_MAX - 1, '4 minutes', 17)
  expect(await store('late')).toBe(true)
  expect(await isUsable('early')).toBe(true)
  expect(await isUsable('late')).toBe(true)
  // The networks flood1 to flood7 have one passkey challenge more than the other networks. Of these seven, flood1 comes
  // first by its name, so it loses its oldest challenge.
  expect(await stored(1, 2, 17, 18)).toEqual([2, 17, 18])
})

test('a new passkey challenge replaces an expired one, or else another network’s challenge that is older than two minutes', async () => {
  await fill(CHALLENGES_MAX, '2 minutes 30 seconds')
  await database.pool.query(
    `update passkey_challenges set expires_at = clock_timestamp() where challenge_hash = sha256('flood9')`,
  )
  expect(await store('one')).toBe(true)
  expect(await stored(1, 9)).toEqual([1])
  expect(await store('two')).toBe(true)
  expect(await stored(1, 2)).toEqual([2])
  expect(await count()).toBe(CHALLENGES_MAX)
})

test('the passkey challenge of a person who adds a passkey is not replaced by a stranger’s challenge', async () => {
  const person = await addPerson(
    database.pool,
    { name: 'Owner', email: 'owner@corp.example', role: 'operator', projectIds: [] },
    async () => {},
  )
  await store('own', { personId: person!.id, network: 'flood0' })
  await database.pool.query(
    `update passkey_challenges set expires_at = clock_timestamp() + interval '1 minute'`,
  )
  await fill(CHALLENGES_MAX - 1, '4 minutes', 1)
  expect(await store('new')).toBe(true)
  expect(await isUsable('own', person!.id)).toBe(true)
  expect(await stored(1, 2)).toEqual([2])
})
