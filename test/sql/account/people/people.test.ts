/** Tests how the people of the console are added, changed and removed. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { hashSecret } from '../../../../shared/secretHash.ts'
import { storeSignInLink } from '../../../../sql/account/people/consoleSessions.ts'
import {
  addPerson,
  changePerson,
  EmailTakenError,
  FIRST_OPERATOR,
  findPerson,
  listPeople,
  mayDecide,
  PEOPLE_MAX,
  type Person,
  removePerson,
  UnknownProjectError,
} from '../../../../sql/account/people/people.ts'
import { deleteProject } from '../../../../sql/account/projects/deleteProject.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import { newProject } from '../../../support/till/tillRows.ts'

let database: TestDatabase
let pool: TestDatabase['pool']
let project: string
beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
  project = await newProject(pool)
})
afterAll(() => database[Symbol.asyncDispose]())

const UNKNOWN = 'per_ffffffffffffffffffffffff'
let made = 0
let audited: string[] = []
const noted = async () => {
  audited.push('audited')
}
const newEmail = () => `person${++made}@mail.example`

async function add(about: Partial<Omit<Person, 'id'>> = {}): Promise<Person> {
  const person = { email: newEmail(), name: 'Mira', role: 'owner' as const, projectIds: [project] }
  const added = await addPerson(pool, { ...person, ...about }, noted)
  if (added === null) throw new Error('no person was added')
  return added
}
const change = (id: string, about: Partial<Omit<Person, 'id'>>) =>
  changePerson(pool, id, about, noted)

/** Gives a person a session, an unused sign-in link and a used sign-in link. */
async function signIn(personId: string): Promise<void> {
  await pool.query(
    `insert into console_sessions (id, secret_hash, person_id, expires_at)
     values ($1, sha256(convert_to($1, 'UTF8')), $2, now() + interval '1 day')`,
    [`ses_${personId}`, personId],
  )
  for (const used of [null, new Date()]) {
    await pool.query(
      `insert into console_links (token_hash, person_id, used_at, expires_at)
       values (sha256(convert_to($1, 'UTF8')), $2, $3, now() + interval '1 day')`,
      [`link ${personId} ${used}`, personId, used],
    )
  }
}
async function signedIn(personId: string): Promise<number[]> {
  const { rows } = await pool.query(
    `select (select count(*)::int from console_sessions where person_id = $1) as sessions,
            (select count(*)::int from console_links where person_id = $1) as links`,
    [personId],
  )
  return [rows[0].sessions, rows[0].links]
}

describe('a new person is stored only with a free email address and existing projects', () => {
  test('a new person has the given name, role and projects', async () => {
    const other = await newProject(pool)
    const person = await add({ name: 'Ann', role: 'viewer', projectIds: [project, other] })
    expect(person).toMatchObject({
      name: 'Ann',
      role: 'viewer',
      projectIds: [project, other].toSorted(),
    })
    expect(await findPerson(pool, person.id)).toEqual(person)
  })

  test('a new operator has no list of projects, because an operator sees all projects', async () => {
    const operator = await add({ role: 'operator' })
    expect(operator.projectIds).toEqual([])
    const { rowCount } = await pool.query('select from person_projects where person_id = $1', [
      operator.id,
    ])
    expect(rowCount).toBe(0)
  })

  test('a new person needs an email address that no other person has, and projects that exist', async () => {
    const { email } = await add()
    audited = []
    await expect(add({ email })).rejects.toBeInstanceOf(EmailTakenError)
    await expect(add({ projectIds: [project, 'prj_none'] })).rejects.toBeInstanceOf(
      UnknownProjectError,
    )
    const deleted = await newProject(pool)
    await deleteProject(pool, deleted, null)
    await expect(add({ projectIds: [deleted] })).rejects.toBeInstanceOf(UnknownProjectError)
    expect(audited).toEqual([])
  })
})

describe('a change of a person replaces only the given fields, and a new email address ends the person’s sessions', () => {
  test('a change of a person who does not exist changes nothing', async () => {
    audited = []
    expect(await change(UNKNOWN, { name: 'Eve' })).toBeNull()
    expect(audited).toEqual([])
  })

  test('a change of a person keeps the person’s session and all fields that the change does not name', async () => {
    const person = await add()
    await signIn(person.id)
    expect(await change(person.id, { name: 'Eve' })).toEqual({ ...person, name: 'Eve' })
    expect(await change(person.id, { email: person.email })).toEqual({ ...person, name: 'Eve' })
    expect(await signedIn(person.id)).toEqual([1, 2])
  })

  test('a sign-in mail that is on its way when the person’s email address changes does not sign anybody in', async () => {
    const person = await add()
    const browserHash = hashSecret('browser')
    const store = (token: string, email: string | null) =>
      storeSignInLink(pool, { token, personId: person.id, browserHash, email })
    await change(person.id, { email: newEmail() })
    await store('late', person.email)
    expect(await signedIn(person.id)).toEqual([0, 0])
    await store('new', (await findPerson(pool, person.id))!.email)
    expect(await signedIn(person.id)).toEqual([0, 1])
  })

  test('a change of a person’s email address ends the person’s sessions and unused sign-in links', async () => {
    const [person, other] = [await add(), await add()]
    await signIn(person.id)
    await signIn(other.id)
    const email = newEmail()
    expect((await change(person.id, { email }))!.email).toBe(email)
    expect(await signedIn(person.id)).toEqual([0, 1])
    expect(await signedIn(other.id)).toEqual([1, 2])
  })

  test('a change to another person’s email address is refused, and the session continues', async () => {
    const [person, other] = [await add(), await add()]
    await signIn(person.id)
    await expect(change(person.id, { email: other.email, name: 'Eve' })).rejects.toBeInstanceOf(
      EmailTakenError,
    )
    expect(await findPerson(pool, person.id)).toEqual(person)
    expect(await signedIn(person.id)).toEqual([1, 2])
  })

  test('a change of a person’s projects replaces the old list, and a person who becomes an operator has no list', async () => {
    const person = await add()
    const other = await newProject(pool)
    expect((await change(person.id, { projectIds: [other] }))!.projectIds).toEqual([other])
    expect((await change(person.id, { projectIds: [] }))!.projectIds).toEqual([])
    await change(person.id, { projectIds: [other] })
    expect((await change(person.id, { role: 'operator' }))!.projectIds).toEqual([])
  })
})

describe('a person can be removed once, but not the first operator', () => {
  test('a person can be removed only once, and the audit log has one entry for the removal', async () => {
    const person = await add()
    audited = []
    expect(await removePerson(pool, person.id, noted)).toBe(true)
    expect(await removePerson(pool, person.id, noted)).toBe(false)
    expect(audited).toEqual(['audited'])
    expect(await findPerson(pool, person.id)).toBeNull()
  })

  test('the first operator cannot be removed, so that somebody can always sign in', async () => {
    audited = []
    expect(await removePerson(pool, FIRST_OPERATOR, noted)).toBe(false)
    expect(audited).toEqual([])
    expect((await findPerson(pool, FIRST_OPERATOR))!.role).toBe('operator')
  })
})

test('an operator may decide for every project, an owner for their own projects, and a viewer for none', async () => {
  const other = await newProject(pool)
  const people = [
    await add({ role: 'operator' }),
    await add({ role: 'owner' }),
    await add({ role: 'viewer' }),
  ]
  const decides = async (person: Person, of: string) =>
    (await pool.query(`select ${mayDecide('$1', '$2')} as may`, [person.id, of])).rows[0].may
  expect(await Promise.all(people.map((person) => decides(person, project)))).toEqual([
    true,
    true,
    false,
  ])
  expect(await Promise.all(people.map((person) => decides(person, other)))).toEqual([
    true,
    false,
    false,
  ])
})

test('the service has at most 1,000 people, and the list shows all of them, the oldest first', async () => {
  const early = await add()
  const { rows } = await pool.query('select count(*)::int as n from people')
  await pool.query(
    `insert into people (id, email, name, role)
     select 'per_' || 'many' || lpad(n::text, 20, '0'), n || '@many.example', 'One of many', 'viewer'
     from generate_series(1, $1::int) n`,
    [PEOPLE_MAX - rows[0].n - 1],
  )
  const last = await add()
  expect(await addPerson(pool, { ...last, email: newEmail() }, noted)).toBeNull()
  const ids = (await listPeople(pool)).map(({ id }) => id)
  expect(ids).toHaveLength(PEOPLE_MAX)
  expect(ids.indexOf(early.id)).toBeLessThan(ids.indexOf(last.id))
})
