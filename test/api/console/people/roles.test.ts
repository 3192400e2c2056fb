/** Tests every route of the console with every role that a person can have. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { consoleRoutes } from '../../../../api/console/consoleRoutes.ts'
import { listOpened } from '../../../../api/console/delegation.ts'
import type { Services } from '../../../../api/http/services.ts'
import { isAtLeast, type Role } from '../../../../shared/people/roles.ts'
import { startSession } from '../../../../sql/account/people/consoleSessions.ts'
import { addPerson } from '../../../../sql/account/people/people.ts'
import { recordEvents } from '../../../../sql/events/events.ts'
import { consoleClient, signIn, signInAs } from '../../../support/console/consoleSession.ts'
import { type Agent, startTestService, type TestService } from '../../../support/service.ts'
import { whileHeld } from '../../../support/till/tillRows.ts'
import { waitFor } from '../../../support/waitFor.ts'
import '../../../support/long.ts'

let service: TestService
let own: Agent
let foreign: Agent
beforeAll(async () => {
  service = await startTestService({ smtp: false, workers: false, env: { RATE_LIMIT_AUTH: '0' } })
  own = await service.newAgent()
  foreign = await service.newAgent()
})
afterAll(() => service[Symbol.asyncDispose]())

type Listed = { method: string; path: string; role: Role; ofProject: boolean }

/** Lists the routes that exist only for the console, and the API routes that the console may also call. */
function listRoutes(): Listed[] {
  const config = { http: { baseUrl: 'http://127.0.0.1' } }
  const made = consoleRoutes({ config } as unknown as Services).routes
  const ownRoutes = made.flatMap(({ method, path, hooks }) => {
    const { access, role } = (hooks?.detail ?? {}) as unknown as { access: string; role: Role }
    const ofProject = path.includes(':projectId')
    return access === 'console' ? [{ method, path, role, ofProject }] : []
  })
  const opened = listOpened().map(({ route, role }) => {
    const [method = '', path = ''] = route.split(' ')
    const isPlatform = path.startsWith('/v0/platform/')
    return {
      method,
      path: `/console/api${isPlatform ? '' : '/projects/:projectId'}${path}`,
      role,
      ofProject: !isPlatform || path.includes(':projectId'),
    }
  })
  // The test calls the route that deletes the project last, because the other routes need the project.
  const isLast = ({ method, path }: Listed) =>
    method === 'DELETE' && path.endsWith('/projects/:projectId')
  const all = [...ownRoutes, ...opened]
  return [...all.filter((route) => !isLast(route)), ...all.filter(isLast)]
}

const EXAMPLES: Record<string, string> = {
  sessionId: 'ses_000000000000',
  personId: 'per_0123456789abcdef01234567',
  requestId: 'oar_0123456789abcdef01234567',
  grantId: 'oag_0123456789abcdef01234567',
  passkeyId: 'AAAA',
  keyId: '999999',
  jobId: '999999',
  version: '1',
  domain: 'agents.example.com',
}

const fill = (path: string, projectId: string) =>
  path.replace(/:(\w+)/g, (_, name) => (name === 'projectId' ? projectId : (EXAMPLES[name] ?? 'x')))

test('each console route serves people whose role may call it, and refuses people of every other role', async () => {
  const { pool } = service.database
  const deleted = await service.newAgent()
  const deletedToo = await service.newAgent()
  const personOf = async (role: Role, projectIds: string[]) => {
    const email = `${crypto.randomUUID()}@people.example`
    return (await addPerson(pool, { email, name: 'Ada', role, projectIds }, async () => {}))!.id
  }
  const routes = listRoutes()
  expect(routes.length).toBeGreaterThan(70)
  const roles = ['viewer', 'owner', 'operator'] as const
  const found: string[] = []
  const wanted: string[] = []
  for (const route of routes) {
    for (const role of roles) {
      for (const agent of route.ofProject ? [deletedToo, deleted] : [deleted]) {
        const projectIds = role === 'operator' ? [] : [deleted.project.id]
        // The test creates a new person with a new session for each route, because some routes end the session or
        // remove the person.
        const personId = await personOf(role, projectIds)
        const started = await startSession(pool, { personId, method: 'mail', agent: null })
        const cookie = `purser_session=${started!.secret}`
        const path = fill(route.path, agent.project.id).replace('/console/api', '')
        const answer = await call(cookie, route.method, path)
        const isForeign = route.ofProject && agent === deletedToo && role !== 'operator'
        const name = `${role} ${route.method} ${route.path}${isForeign ? ' of another project' : ''}`
        wanted.push(
          `${name}: ${isForeign ? 'not found' : isAtLeast(role, route.role) ? 'admitted' : 'refused'}`,
        )
        found.push(`${name}: ${verdict(answer)}`)
      }
    }
    const stranger = await call(
      '',
      route.method,
      fill(route.path, deleted.project.id).replace('/console/api', ''),
    )
    expect([route, stranger.status]).toEqual([route, 401])
  }
  expect(found).toEqual(wanted)
})

const call = (cookie: string, method: string, path: string) => {
  const client = consoleClient(service.url, cookie)
  if (method === 'GET') return client.get(path)
  if (method === 'DELETE') return client.delete(path)
  const send = { POST: client.post, PUT: client.put, PATCH: client.patch }[method]!
  return send(path, {})
}

function verdict({ status, body }: { status: number; body: any }): string {
  if (status === 403 && /^This needs the role \w+\. Yours is \w+$/.test(body.message))
    return 'refused'
  if (status === 404 && body.message === 'Project not found') return 'not found'
  return status < 500 && status !== 401 ? 'admitted' : `${status} ${JSON.stringify(body)}`
}

test('a viewer can change nothing but the ways in which this viewer signs in', () => {
  const changes = listRoutes()
    .filter(({ method, role }) => method !== 'GET' && role === 'viewer')
    .map(({ method, path }) => `${method} ${path.replace('/console/api', '')}`)
  expect(changes.toSorted()).toEqual(
    [
      'DELETE /session',
      'DELETE /sessions',
      'DELETE /sessions/:sessionId',
      'PATCH /person',
      'POST /passkeys/options',
      'POST /passkeys',
      'DELETE /passkeys/:passkeyId',
      'POST /company-account',
      'POST /company-account/answer',
      'DELETE /company-account',
    ].toSorted(),
  )
})

test('a viewer gets status 403 for the list of secrets and for each secret', async () => {
  const viewer = await signInAs(service, 'viewer', [own.project.id])
  await own.put('/v0/vault/work', { type: 'API_KEY', data: { key: 'correct horse' } })
  const path = `/projects/${own.project.id}/v0`
  for (const secret of ['/vault', '/vault/work']) {
    expect([secret, (await viewer.get(`${path}${secret}`)).status]).toEqual([secret, 403])
  }
  const owner = await signInAs(service, 'owner', [own.project.id])
  expect((await owner.get(`${path}/vault/work`)).body.data).toEqual({ key: 'correct horse' })
})

test('a viewer sees only the host of a webhook’s URL, and neither its path nor its query', async () => {
  const url = 'https://hooks.example.com/services/T0/secret-path?token=secret-query'
  await own.post('/v0/webhooks', { url, events: ['message.received'] })
  const path = `/projects/${own.project.id}/v0/webhooks`
  const viewer = await signInAs(service, 'viewer', [own.project.id])
  const { body, status } = await viewer.get(path)
  expect([status, body.webhooks[0].url]).toEqual([200, 'https://hooks.example.com/…'])
  expect(JSON.stringify(body)).not.toContain('secret')
  const owner = await signInAs(service, 'owner', [own.project.id])
  expect((await owner.get(path)).body.webhooks[0].url).toBe(url)
})

test('a viewer cannot find out a webhook’s URL by searching the log of its deliveries', async () => {
  const agent = await service.newAgent()
  const url = 'https://hooks.example.com/services/secret-path?token=secret-query'
  await agent.post('/v0/webhooks', { url, events: ['vault.used', 'message.sent'] })
  await recordEvents(service.database.pool, [
    {
      projectId: agent.project.id,
      type: 'message.sent',
      data: {
        messageId: '<sent@example.com>',
        threadId: 'thd_0',
        inboxId: agent.address,
        from: [agent.address],
        to: ['ada@example.com'],
        subject: 'Sent',
        labels: ['sent'],
      },
    },
  ])
  const path = `/projects/${agent.project.id}/v0/webhooks/deliveries`
  const viewer = await signInAs(service, 'viewer', [agent.project.id])
  const owner = await signInAs(service, 'owner', [agent.project.id])
  for (const q of ['secret-path', 'secret-query', '/services/', 'com/s']) {
    expect([q, (await owner.get(`${path}?q=${q}`)).body.count]).toEqual([q, 1])
    expect([q, (await viewer.get(`${path}?q=${q}`)).body.count]).toEqual([q, 0])
    expect([q, (await viewer.get(`${path}/stats?q=${q}`)).body.total]).toEqual([q, 0])
  }
  for (const q of ['hooks.example', 'https://hooks.example.com']) {
    expect([q, (await viewer.get(`${path}?q=${q}`)).body.count]).toEqual([q, 1])
  }
})

test('a viewer downloads files and exports unchanged, even if their content looks like the URL of a webhook', async () => {
  const content = '{"url":"https://hooks.example.com/kept","n":1'
  const { body: sent } = await own.post('/v0/messages/send', {
    to: ['bo@example.com'],
    subject: 'A file',
    text: 'See below.',
    attachments: [
      {
        filename: 'half.json',
        contentType: 'application/json',
        content: Buffer.from(content).toString('base64'),
      },
    ],
  })
  const viewer = await signInAs(service, 'viewer', [own.project.id])
  const path = `/projects/${own.project.id}/v0`
  const message = `${path}/messages/${encodeURIComponent(sent.messageId)}`
  const [file] = (await viewer.get(message)).body.attachments
  const fetched = await fetch(
    `${service.url}/console/api${message}/attachments/${file.attachmentId}`,
    { headers: { cookie: viewer.cookie, 'x-purser-console': '1' } },
  )
  expect([fetched.status, await fetched.text()]).toEqual([200, content])
  for (const [method, wanted] of [
    ['GET', `${path}/payments/export?format=jsonl`],
    ['HEAD', `${path}/webhooks`],
  ] as const) {
    const { status } = await fetch(`${service.url}/console/api${wanted}`, {
      method,
      headers: { cookie: viewer.cookie, 'x-purser-console': '1' },
    })
    expect([wanted, status]).toEqual([wanted, 200])
  }
})

test('if a person changes their own name while an operator changes their role, the new role stays', async () => {
  const person = await signInAs(service, 'owner', [own.project.id])
  const db = await service.database.pool.connect()
  try {
    await db.query('begin')
    await db.query('lock table people in share row exclusive mode')
    const renamed = person.patch('/person', { name: 'Countess' })
    await waitFor('the change to wait', async () => {
      const { rows } = await service.database.pool.query(
        `select count(*)::int as n from pg_locks where not granted and relation = 'people'::regclass`,
      )
      return rows[0].n > 0
    })
    await db.query(`update people set role = 'viewer' where id = $1`, [person.personId])
    await db.query('commit')
    expect((await renamed).body).toMatchObject({ name: 'Countess', role: 'viewer' })
  } finally {
    db.release()
  }
})

test('an owner sees and changes only their own projects, and cannot set the limits of a project', async () => {
  const owner = await signInAs(service, 'owner', [own.project.id])
  const { body } = await owner.get('/v0/platform/projects')
  expect(body.projects.map(({ projectId }: any) => projectId)).toEqual([own.project.id])
  const path = `/v0/platform/projects/${own.project.id}`
  expect((await owner.patch(path, { name: 'Mine' })).body.name).toBe('Mine')
  const raised = await owner.patch(path, { limits: { dailyGas: 1 } })
  expect([raised.status, raised.body.message]).toEqual([403, 'limits must be set by an operator'])
  expect((await owner.patch(path, { name: 'a'.repeat(9_000) })).status).toBe(400)
})

test('if a person’s role or project list changes, the change applies to the person’s next request', async () => {
  const operator = await signIn(service)
  const person = await signInAs(service, 'owner', [own.project.id])
  const secrets = `/projects/${own.project.id}/v0/vault/work`
  expect((await person.get(secrets)).status).toBe(200)
  const change = (body: object) => operator.patch(`/people/${person.personId}`, body)
  expect((await change({ role: 'viewer' })).body.role).toBe('viewer')
  expect((await person.get(secrets)).status).toBe(403)
  expect((await change({ projectIds: [foreign.project.id] })).status).toBe(200)
  expect((await person.get(secrets)).status).toBe(404)
  expect((await operator.delete(`/people/${person.personId}`)).status).toBe(204)
  expect((await person.get('/session')).status).toBe(401)
})

test('the audit log names the person for every action of this person at the console', async () => {
  const owner = await signInAs(service, 'owner', [own.project.id])
  const path = `/projects/${own.project.id}/v0`
  await owner.post(`${path}/email-rules`, {
    type: 'BLOCK',
    scope: 'RECEIVE',
    value: '*@spam.example',
  })
  const { logs } = (await own.get('/v0/logs?action=email_rule.create')).body
  expect(logs[0].actor).toBe(`console:${owner.email}`)
})

test('if an operator enters invalid data about a person, the service names the wrong field', async () => {
  const operator = await signIn(service)
  const good = {
    email: 'bo@people.example',
    name: 'Bo',
    role: 'owner',
    projectIds: [own.project.id],
  }
  const cases: [object, number, string][] = [
    [{ ...good, email: 'b' }, 400, 'email must be one email address'],
    [
      { ...good, email: 'no address' },
      400,
      'email must be one email address, such as ada@example.com',
    ],
    [
      { ...good, email: 'Bo@Agents.Example.Com' },
      400,
      'email must be outside of this service: agents read the mail of its domains',
    ],
    [
      { ...good, email: own.address },
      400,
      'email must be outside of this service: agents read the mail of its domains',
    ],
    [{ ...good, role: 'god' }, 400, 'role must be one of viewer, owner, operator'],
    [
      { ...good, role: 'operator' },
      400,
      'projectIds must be empty for an operator, who sees every project',
    ],
    [{ ...good, projectIds: ['prj_none'] }, 400, 'projectIds must name live projects'],
    [{ ...good, name: 'a\nb' }, 400, 'name must be one line of 1 to 100 characters'],
  ]
  // The mail domain is not verified yet, but an agent may already get an inbox at this domain, so no person may have an
  // address there.
  await operator.post('/v0/platform/domains', { domain: 'agents.example.com' })
  for (const [body, status, message] of cases) {
    const answer = await operator.post('/people', body)
    expect([body, answer.status, answer.body.message]).toEqual([body, status, message])
  }
  expect((await operator.post('/people', good)).status).toBe(201)
  const again = await operator.post('/people', { ...good, email: 'BO@people.example' })
  expect([again.status, again.body.message]).toEqual([409, 'email must be free: somebody has it'])
})

test('an operator cannot add a person to a service that has 1,000 people', async () => {
  const operator = await signIn(service)
  const { pool } = service.database
  await pool.query(
    `insert into people (id, email, name, role) select 'per_' || n, n || '@many.example', 'One of many', 'viewer'
     from generate_series(1, 1000) n`,
  )
  const late = { email: 'late@people.example', name: 'Late', role: 'viewer', projectIds: [] }
  const { status, body } = await operator.post('/people', late)
  await pool.query(`delete from people where email like '%@many.example'`)
  expect([status, body.message]).toEqual([400, 'A service must have at most 1000 people'])
})

test('if an operator changes a person while another operator removes this person, the change gets status 404', async () => {
  const operator = await signIn(service)
  const { personId } = await signInAs(service, 'viewer')
  const [late] = await whileHeld(
    service.database.pool,
    'delete from people where id = $1',
    [personId],
    () => [operator.patch(`/people/${personId}`, { name: 'Late' })],
  )
  expect([late!.status, late!.body.message]).toEqual([404, 'Person not found'])
})

test('nobody can remove the first operator (the console’s initial user), and nobody can change their own role', async () => {
  const first = await signIn(service)
  const { personId } = (await first.get('/session')).body.person
  expect((await first.delete(`/people/${personId}`)).status).toBe(409)
  const operator = await signInAs(service, 'operator')
  expect((await operator.patch(`/people/${personId}`, { role: 'viewer' })).status).toBe(409)
  expect((await operator.patch(`/people/${operator.personId}`, { role: 'viewer' })).status).toBe(
    409,
  )
  expect((await operator.delete(`/people/${operator.personId}`)).status).toBe(409)
  expect(
    (await first.patch('/person', { name: 'Grace', email: 'grace@people.example' })).body,
  ).toMatchObject({
    name: 'Grace',
    email: 'grace@people.example',
  })
  expect((await first.patch('/person', { email: 'other@people.example' })).status).toBe(409)
})

test('people list and end their own console sessions, and an operator lists and ends the sessions of all people', async () => {
  const one = await signInAs(service, 'viewer', [own.project.id])
  const other = await signInAs(service, 'viewer', [own.project.id])
  const { sessions } = (await one.get('/sessions')).body
  expect(sessions.map(({ personId, isThis, method }: any) => [personId, isThis, method])).toEqual([
    [one.personId, true, 'mail'],
  ])
  const [theirs] = (await other.get('/sessions')).body.sessions
  expect((await one.delete(`/sessions/${theirs.sessionId}`)).status).toBe(404)
  const operator = await signIn(service)
  expect((await operator.delete(`/sessions/${theirs.sessionId}`)).status).toBe(204)
  expect((await other.get('/session')).status).toBe(401)
  expect((await one.get('/session')).status).toBe(200)
})
