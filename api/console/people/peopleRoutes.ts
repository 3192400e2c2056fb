import { type Static, Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { addressKey, parseAddress } from '../../../shared/mail/address.ts'
import { ROLES } from '../../../shared/people/roles.ts'
import { writeAudit } from '../../../sql/account/audit.ts'
import {
  addPerson,
  changePerson,
  EmailTakenError,
  type EndedGrant,
  FIRST_OPERATOR,
  findPerson,
  type ListedPerson,
  listPeople,
  PEOPLE_MAX,
  type Person,
  removePerson,
  UnknownProjectError,
} from '../../../sql/account/people/people.ts'
import type { Queryable } from '../../../sql/db.ts'
import { isHosted } from '../../../sql/mail/domains/hostedAddress.ts'
import { stillAdmitted } from '../../account/platformActor.ts'
import { badRequest, conflict, notFound } from '../../http/errors.ts'
import type { Services } from '../../http/services.ts'
import { organizationActor, sessionOf } from '../access.ts'
import { consoleOperation } from '../consoleOperation.ts'
import { OneLine } from '../oneLine.ts'

const PROJECTS_MAX = 500

const Email = t.String({ minLength: 3, maxLength: 320, error: 'be one email address' })
const Role = t.Union(
  ROLES.map((role) => t.Literal(role)),
  { error: `be one of ${ROLES.join(', ')}` },
)
const ProjectIds = t.Array(t.String({ maxLength: 100 }), {
  maxItems: PROJECTS_MAX,
  error: `be a list of at most ${PROJECTS_MAX} project ids`,
})
const NewBody = t.Object({ email: Email, name: OneLine, role: Role, projectIds: ProjectIds })
const ChangeBody = t.Partial(NewBody)
const OwnBody = t.Object({ name: t.Optional(OneLine), email: t.Optional(Email) })
const Params = t.Object({
  personId: t.String({ pattern: '^per_[0-9a-f]{24}$', error: 'be the id of a person' }),
})

/** Serves the people of the service, and the changes that each person may make to their own account. */
export function peopleRoutes(services: Services) {
  const { pool } = services
  return new Elysia({ prefix: '/console/api' })
    .get('/people', async () => ({ people: (await listPeople(pool)).map(listedView) }), {
      detail: consoleOperation('operator'),
    })
    .post('/people', ({ request, body, set }) => add(services, request, body, set), {
      body: NewBody,
      detail: consoleOperation('operator'),
    })
    .patch(
      '/people/:personId',
      ({ request, params, body }) => change(services, request, params.personId, body),
      { params: Params, body: ChangeBody, detail: consoleOperation('operator') },
    )
    .delete(
      '/people/:personId',
      ({ request, params }) => remove(services, request, params.personId),
      { params: Params, detail: consoleOperation('operator') },
    )
    .patch('/person', ({ request, body }) => changeOwn(services, request, body), {
      body: OwnBody,
      detail: consoleOperation('viewer'),
    })
}

async function add(
  services: Services,
  request: Request,
  body: Static<typeof NewBody>,
  set: { status?: number | string },
) {
  const email = await personAddress(services, body.email)
  const wanted = { ...body, email, projectIds: [...new Set(body.projectIds)] }
  checkProjects(wanted)
  const added = await readingFaults(() =>
    addPerson(services.pool, wanted, (db, id) => record(db, request, 'person.create', id, wanted)),
  )
  if (added === null) throw badRequest(`A service must have at most ${PEOPLE_MAX} people`)
  set.status = 201
  return toView(added)
}

async function change(
  services: Services,
  request: Request,
  personId: string,
  body: Static<typeof ChangeBody>,
) {
  const before = await findPerson(services.pool, personId)
  if (before === null) throw notFound('Person not found')
  const { person: self } = sessionOf(request)
  if (body.role !== undefined && body.role !== before.role) {
    if (personId === FIRST_OPERATOR) throw conflict('The first operator must stay an operator')
    if (personId === self.id) throw conflict('Another operator must change your role')
  }
  const { email, projectIds } = body
  checkProjects({ role: body.role ?? before.role, projectIds: projectIds ?? [] })
  // The update changes only the requested fields of a person, because another update of the same person may run at the
  // same time.
  const fields = {
    ...body,
    ...(email === undefined ? {} : { email: await personAddress(services, email) }),
    ...(projectIds === undefined ? {} : { projectIds: [...new Set(projectIds)] }),
  }
  const changed = await readingFaults(() =>
    changePerson(services.pool, personId, fields, async (db, after, ended) => {
      await record(db, request, 'person.update', personId, after)
      await recordEnded(db, request, ended)
    }),
  )
  if (changed === null) throw notFound('Person not found')
  return toView(changed)
}

async function remove({ pool }: Services, request: Request, personId: string): Promise<Response> {
  if (personId === FIRST_OPERATOR) throw conflict('The first operator must stay')
  if (personId === sessionOf(request).person.id) throw conflict('Another operator must remove you')
  const before = await findPerson(pool, personId)
  const removed =
    before !== null &&
    (await removePerson(pool, personId, async (db, ended) => {
      await record(db, request, 'person.delete', personId, before)
      await recordEnded(db, request, ended)
    }))
  if (!removed) throw notFound('Person not found')
  return new Response(null, { status: 204 })
}

/**
 * Changes the name of the person who makes the HTTP request. The first operator may also set their own mail address
 * once. All other people get their mail address from an operator.
 */
async function changeOwn(services: Services, request: Request, body: Static<typeof OwnBody>) {
  const { person } = sessionOf(request)
  if (body.email !== undefined && person.email !== null) {
    throw conflict('An operator must change your address')
  }
  return await change(services, request, person.id, body)
}

/**
 * Returns the form in which the service stores a person's mail address. The function refuses an address that this
 * service hosts, because an agent reads the inbox of such an address, and would get the person's sign-in links.
 * @throws {ApiError} 400 if the mail address is invalid, or if this service hosts the mail address.
 */
async function personAddress({ pool, config }: Services, given: string): Promise<string> {
  const address = parseAddress(given)
  if (address === null) throw badRequest('email must be one email address, such as ada@example.com')
  const email = addressKey(address)
  if (await isHosted(pool, config.mailDomain, email)) {
    throw badRequest('email must be outside of this service: agents read the mail of its domains')
  }
  return email
}

function checkProjects({ role, projectIds }: Pick<Person, 'role' | 'projectIds'>): void {
  if (role !== 'operator' || projectIds.length === 0) return
  throw badRequest('projectIds must be empty for an operator, who sees every project')
}

/**
 * Runs a change of a person's account, and turns the errors of the change into API errors. @throws {ApiError} 400 for
 * an unknown project, 409 for a conflict with another person.
 */
async function readingFaults<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof EmailTakenError) throw conflict('email must be free: somebody has it')
    if (error instanceof UnknownProjectError) {
      throw badRequest('projectIds must name live projects')
    }
    throw error
  }
}

/**
 * Records a change of a person in the transaction of the change. The function first checks the caller once more. The
 * transaction may have waited for another one that took the role from the caller, and the change is then undone.
 * @throws {ApiError} 401 or 403 for a caller who has lost the session or the role.
 */
async function record(
  db: Queryable,
  request: Request,
  action: string,
  subject: string,
  { email, role, projectIds }: Pick<Person, 'email' | 'role' | 'projectIds'>,
): Promise<void> {
  await stillAdmitted(request)()
  await writeAudit(db, organizationActor(request), {
    action,
    subject,
    detail: [email ?? '', role, ...projectIds].join(' ').slice(0, 400),
    outcome: 'ok',
  })
}

/**
 * Writes into the audit log of each project that an OAuth grant of the project has ended, because the people of a
 * project do not see the organization's audit log.
 */
async function recordEnded(
  db: Queryable,
  request: Request,
  ended: readonly EndedGrant[],
): Promise<void> {
  for (const { id, projectId, clientName } of ended) {
    await writeAudit(
      db,
      { ...organizationActor(request), projectId },
      {
        action: 'oauth_grant.revoke',
        subject: id,
        detail: `${clientName}: its person may no longer decide for the project`,
        outcome: 'ok',
      },
    )
  }
}

const toView = ({ id, ...person }: Person) => ({ ...person, personId: id })

const listedView = ({ createdAt, signedInAt, ...person }: ListedPerson) => ({
  ...toView(person),
  passkeys: person.passkeys,
  isFirst: person.id === FIRST_OPERATOR,
  createdAt: createdAt.toISOString(),
  signedInAt: signedInAt?.toISOString() ?? null,
})
