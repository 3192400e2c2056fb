/** Tests that strangers who begin sign-ins at the company's identity provider do not block the people of the company. */
import { afterAll, beforeEach, expect, test } from 'bun:test'
import {
  beginCompanySignIn,
  connectAccount,
  findOwnSignIn,
  takeSignIn,
} from '../../../../sql/account/people/companySignIns.ts'
import { addPerson } from '../../../../sql/account/people/people.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import { blocked } from '../../../support/till/tillRows.ts'

let database: TestDatabase
beforeEach(async () => {
  await database?.[Symbol.asyncDispose]()
  database = await createTestDatabase()
})
afterAll(() => database[Symbol.asyncDispose]())

/** Adds unfinished company sign-ins from a number of networks, the oldest first. */
const fill = (count: number, state: string, validFor: string, networks = count) =>
  database.pool.query(
    `insert into company_sign_ins (id, browser_hash, state, expires_at, network)
     select 'csi_' || $2 || n, sha256(n::text::bytea), $2,
       clock_timestamp() + $3::interval + n * interval '1 millisecond', 'flood' || n % $4::int
     from generate_series(1, $1::int) n`,
    [count, state, validFor, networks],
  )
const begin = (personId: string | null = null, network = '203.0.113.1') =>
  beginCompanySignIn(database.pool, { browser: 'browser', personId, network })
const isUnderWay = async (id: string | null) =>
  (await findOwnSignIn(database.pool, id ?? '', 'browser')) !== null
const count = async (state: string) =>
  (await database.pool.query('select from company_sign_ins where state = $1', [state])).rowCount
/** Tells which of the company sign-ins with the given row ids are stored. */
const stored = async (ids: string[]) =>
  (
    await database.pool.query<{ id: string }>(
      'select id from company_sign_ins where id = any ($1) order by id',
      [ids],
    )
  ).rows.map(({ id }) => id)

test('a sign-in can begin although 5,000 earlier sign-ins are expired or ended, because these do not count', async () => {
  await fill(5_000, 'asked', '-1 minute')
  await fill(5_000, 'failed', '5 minutes')
  expect(await begin()).toBeString()
})

test('while 5,000 recent sign-ins of many networks are in progress, only a person who is already signed in can begin a sign-in', async () => {
  await fill(4_999, 'open', '9 minutes')
  expect(await begin()).toBeString()
  expect(await begin()).toBeNull()
  const email = 'owner@corp.example'
  const person = await addPerson(
    database.pool,
    { name: 'Owner', email, role: 'operator', projectIds: [] },
    async () => {},
  )
  expect(await begin(person!.id)).toBeString()
})

test('if 17 networks have 5,000 sign-ins in progress, a new sign-in replaces the oldest sign-in of the network that has most of them', async () => {
  const early = await begin(null, '198.51.100.1')
  await database.pool.query(`update company_sign_ins set state = 'open'`)
  await fill(4_999, 'open', '9 minutes', 17)
  const late = await begin()
  const later = await begin(null, '203.0.113.2')
  expect(await Promise.all([early, late, later].map(isUnderWay))).toEqual([true, true, true])
  // The network flood1 had one sign-in more than each other network, so the service removed its oldest sign-in. After
  // that, all networks have equally many sign-ins. The service then removes the oldest sign-in of flood0, which is the
  // first network in the order of names.
  expect(await stored(['csi_open1', 'csi_open17', 'csi_open18', 'csi_open2'])).toEqual([
    'csi_open18',
    'csi_open2',
  ])
  expect((await count('open'))! + (await count('asked'))!).toBe(5_000)
})

test('if many networks have 5,000 sign-ins in progress, a new sign-in replaces the oldest one that is older than three minutes', async () => {
  await fill(5_000, 'open', '6 minutes 50 seconds')
  expect(await isUnderWay(await begin())).toBe(true)
  expect(await stored(['csi_open1', 'csi_open2'])).toEqual(['csi_open2'])
})

test('the sign-in of a person who connects an account is not replaced by a stranger’s sign-in', async () => {
  const person = await addPerson(
    database.pool,
    { name: 'Owner', email: 'owner@corp.example', role: 'operator', projectIds: [] },
    async () => {},
  )
  const connecting = await begin(person!.id, 'flood0')
  await fill(4_999, 'open', '5 minutes', 1)
  await database.pool.query(
    `update company_sign_ins set expires_at = clock_timestamp() + interval '1 minute' where id = $1`,
    [connecting],
  )
  expect(await isUnderWay(await begin())).toBe(true)
  expect(await isUnderWay(connecting)).toBe(true)
  expect(await stored(['csi_open1'])).toEqual([])
})

test('at most 50,000 sign-ins are stored, even if all of them have ended', async () => {
  await fill(50_000, 'done', '9 minutes')
  expect(await begin()).toBeNull()
  await database.pool.query(
    `update company_sign_ins set state = 'failed' where id in ('csi_done7', 'csi_done8')`,
  )
  expect(await isUnderWay(await begin())).toBe(true)
  expect(await stored(['csi_done7', 'csi_done8'])).toEqual(['csi_done8'])
  expect((await count('done'))! + (await count('failed'))! + (await count('asked'))!).toBe(50_000)
})

test('the result of a company sign-in can be read only once, and an unfinished one has no result', async () => {
  await fill(1, 'done', '5 minutes')
  await fill(1, 'open', '5 minutes')
  const take = (id: string) => takeSignIn(database.pool, id)
  expect([await take('csi_done1'), await take('csi_done1')]).toEqual(['nobody', 'taken'])
  expect([await take('csi_open1'), await take('csi_none')]).toEqual(['taken', 'taken'])
  const connect = connectAccount(database.pool, 'csi_open1', 'per_none', async () => {})
  expect(await connect).toBe('taken')
})

test('if two people connect one account at the same moment, the first one gets it, and the second one learns that it is taken', async () => {
  const people = ['ada', 'bob'].map((name) =>
    addPerson(
      database.pool,
      { email: `${name}@x.test`, name, role: 'operator', projectIds: [] },
      async () => {},
    ),
  )
  const [ada, bob] = (await Promise.all(people)).map((person) => person!.id)
  await fill(2, 'done', '5 minutes')
  await database.pool.query(
    `update company_sign_ins set issuer = 'https://id.example', subject = 'one',
       person_id = (array[$1, $2])[right(id, 1)::int]`,
    [ada, bob],
  )
  let second: Promise<string> | undefined
  const first = connectAccount(database.pool, 'csi_done1', ada!, async () => {
    second = connectAccount(database.pool, 'csi_done2', bob!, async () => {})
    await blocked(database.pool, 1)
  })
  expect(await first).toBe('connected')
  expect(await second).toBe('of_other')
})
