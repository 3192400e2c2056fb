/** Stores the people who sign in to the console. */
import { newPersonId } from '../../../shared/ids.ts'
import type { Role } from '../../../shared/people/roles.ts'
import { type Pool, type Queryable, transaction } from '../../db.ts'
import { notifyKeysChanged } from '../../events/events.ts'
import { disconnectAccount } from './companySignIns.ts'

/**
 * Holds the id of the first operator, a person who exists in every installation. The command `bun run console:login`
 * signs the first operator in.
 */
export const FIRST_OPERATOR = 'per_000000000000000000000000'

/** Sets the maximum number of people who may sign in to the console of an installation. */
export const PEOPLE_MAX = 1_000

/** Describes a person who signs in to the console. */
export type Person = {
  id: string
  /**
   * Holds the person's email address in lower case. Null means that the first operator has set no email address yet.
   */
  email: string | null
  name: string
  role: Role
  /**
   * Lists the projects of an owner or a viewer. For an operator, `projectIds` is empty, because an operator sees all
   * projects.
   */
  projectIds: string[]
}

/** Describes a person as the console's list of people shows the person. */
export type ListedPerson = Person & { createdAt: Date; signedInAt: Date | null; passkeys: number }

/** Reports that another person already has an email address. */
export class EmailTakenError extends Error {}
/** Reports that a project does not exist. */
export class UnknownProjectError extends Error {}

/** Lists the SQL columns of a person in the table alias `pe`. */
export const PERSON_COLUMNS = `pe.id as "personId", pe.email, pe.name, pe.role, array(
  select pp.project_id from person_projects pp join projects p on p.id = pp.project_id and p.deleted_at is null
  where pp.person_id = pe.id order by pp.project_id) as "projectIds"`

export type PersonRow = {
  personId: string
  email: string | null
  name: string
  role: Role
  projectIds: string[]
}

export const toPerson = ({ personId, email, name, role, projectIds }: PersonRow): Person => ({
  id: personId,
  email,
  name,
  role,
  projectIds,
})

/**
 * Writes the SQL condition that a person may decide approval requests and OAuth requests of a project. The parameters
 * `person` and `project` are SQL expressions for the two ids.
 */
export const mayDecide = (person: string, project: string): string => `exists (
  select from people pe where pe.id = ${person} and (pe.role = 'operator' or pe.role = 'owner' and exists (
    select from person_projects pp where pp.person_id = pe.id and pp.project_id = ${project})))`

/** Lists all people, the earliest added first. The list holds at most {@link PEOPLE_MAX} people. */
export async function listPeople(db: Queryable): Promise<ListedPerson[]> {
  const { rows } = await db.query<
    PersonRow & { createdAt: Date; signedInAt: Date | null; passkeys: number }
  >(
    `select ${PERSON_COLUMNS}, pe.created_at as "createdAt", pe.signed_in_at as "signedInAt",
       (select count(*)::int from passkeys k where k.person_id = pe.id) as passkeys
     from people pe order by pe.created_at, pe.id limit ${PEOPLE_MAX}`,
  )
  return rows.map(({ createdAt, signedInAt, passkeys, ...row }) => ({
    ...toPerson(row),
    createdAt,
    signedInAt,
    passkeys,
  }))
}

/** Finds a person by id. @returns null if the person does not exist. */
export async function findPerson(db: Queryable, id: string): Promise<Person | null> {
  const { rows } = await db.query<PersonRow>(
    `select ${PERSON_COLUMNS} from people pe where pe.id = $1`,
    [id],
  )
  return rows[0] === undefined ? null : toPerson(rows[0])
}

/** Finds a person by an email address in lower case. @returns null if no person has the email address. */
async function findPersonByEmail(db: Queryable, email: string): Promise<Person | null> {
  const { rows } = await db.query<PersonRow>(
    `select ${PERSON_COLUMNS} from people pe where pe.email = $1`,
    [email],
  )
  return rows[0] === undefined ? null : toPerson(rows[0])
}

/**
 * Adds a person.
 * @returns null if the service already has {@link PEOPLE_MAX} people.
 * @throws {EmailTakenError} if another person has the email address. @throws {UnknownProjectError} if a project does
 * not exist.
 */
export async function addPerson(
  pool: Pool,
  person: Omit<Person, 'id'>,
  audit: (db: Queryable, id: string) => Promise<void>,
): Promise<Person | null> {
  return transaction(pool, async (db) => {
    await db.query(`lock table people in share row exclusive mode`)
    const { rows } = await db.query<{ n: number }>('select count(*)::int as n from people')
    if (rows[0]!.n >= PEOPLE_MAX) return null
    const id = newPersonId()
    const { rowCount } = await db.query(
      `insert into people (id, email, name, role) values ($1, $2, $3, $4) on conflict (email) do nothing`,
      [id, person.email, person.name, person.role],
    )
    if (rowCount !== 1) throw new EmailTakenError()
    await setProjects(db, id, person)
    await audit(db, id)
    return await findPerson(db, id)
  })
}

/**
 * Changes the given fields of a person. Two concurrent changes of different fields both take effect. A change of the
 * email address signs the person out, and removes the person's passkeys and company account. Otherwise a reader of the
 * old mailbox could stay signed in, or could have added one of them to sign in again.
 * @returns null if no person has the id.
 * @throws {EmailTakenError} if another person has the email address. @throws {UnknownProjectError} if a project does
 * not exist.
 */
export async function changePerson(
  pool: Pool,
  id: string,
  change: Partial<Omit<Person, 'id'>>,
  audit: (db: Queryable, after: Person, ended: readonly EndedGrant[]) => Promise<void>,
): Promise<Person | null> {
  return transaction(pool, async (db) => {
    await db.query(`lock table people in share row exclusive mode`)
    const before = await findPerson(db, id)
    if (before === null) return null
    const after = { ...before, ...change }
    if (after.email !== null && after.email !== before.email) {
      const other = await findPersonByEmail(db, after.email)
      if (other !== null) throw new EmailTakenError()
    }
    await db.query('update people set email = $2, name = $3, role = $4 where id = $1', [
      id,
      after.email,
      after.name,
      after.role,
    ])
    if (before.email !== null && after.email !== before.email) {
      await db.query('delete from console_sessions where person_id = $1', [id])
      await db.query('delete from console_links where person_id = $1 and used_at is null', [id])
      await db.query('delete from passkeys where person_id = $1', [id])
      await disconnectAccount(db, id)
    }
    await setProjects(db, id, after)
    await audit(db, after, await endLostGrants(db, id))
    return await findPerson(db, id)
  })
}

/** Describes an OAuth grant that ended because of a change of its person. */
export type EndedGrant = { id: string; projectId: string; clientName: string }

/**
 * Ends the OAuth grants of a person for projects for which the person may no longer decide. They stay ended even if the
 * person gets the right back, because nobody could see and end them in the meantime. The housekeeping deletes their
 * tokens.
 */
async function endLostGrants(db: Queryable, personId: string): Promise<EndedGrant[]> {
  const { rows } = await db.query<EndedGrant>(
    `update oauth_grants g set revoked_at = clock_timestamp()
     where g.person_id = $1 and g.revoked_at is null and not ${mayDecide('g.person_id', 'g.project_id')}
     returning g.id, g.project_id as "projectId", g.client_name as "clientName"`,
    [personId],
  )
  await endWaitsOfApps(db, rows)
  return rows
}

/** Ends the calls that wait for mail of projects to which OAuth clients have lost their access. */
async function endWaitsOfApps(db: Queryable, grants: readonly EndedGrant[]): Promise<void> {
  const projectIds = new Set(grants.map(({ projectId }) => projectId))
  for (const projectId of projectIds) await notifyKeysChanged(db, projectId)
}

async function setProjects(
  db: Queryable,
  id: string,
  { role, projectIds }: Pick<Person, 'role' | 'projectIds'>,
): Promise<void> {
  await db.query('delete from person_projects where person_id = $1', [id])
  if (role === 'operator' || projectIds.length === 0) return
  const { rowCount } = await db.query(
    `insert into person_projects (person_id, project_id)
     select $1, p.id from projects p where p.id = any ($2) and p.deleted_at is null`,
    [id, projectIds],
  )
  if (rowCount !== projectIds.length) throw new UnknownProjectError()
}

/**
 * Removes a person, with the person's console sessions and passkeys, and ends the person's OAuth grants. The
 * housekeeping deletes the ended grants with their tokens. The first operator cannot be removed. If two operators
 * remove each other, the lock makes one wait. Then `audit` finds that the waiting operator is gone.
 */
export async function removePerson(
  pool: Pool,
  id: string,
  audit: (db: Queryable, ended: readonly EndedGrant[]) => Promise<void>,
): Promise<boolean> {
  if (id === FIRST_OPERATOR) return false
  return transaction(pool, async (db) => {
    await db.query(`lock table people in share row exclusive mode`)
    const { rowCount } = await db.query('delete from people where id = $1', [id])
    if (rowCount !== 1) return false
    // The deletion has waited for a concurrent transaction in which the person consents to an OAuth client. Therefore
    // this statement sees the new OAuth grant.
    const { rows: grants } = await db.query<EndedGrant>(
      `update oauth_grants set revoked_at = clock_timestamp()
       where person_id = $1 and revoked_at is null and expires_at > clock_timestamp()
       returning id, project_id as "projectId", client_name as "clientName"`,
      [id],
    )
    await endWaitsOfApps(db, grants)
    await audit(db, grants)
    return true
  })
}
