/** Tests that an app loses its access when the person who connected it loses the right to the project. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { signIn, signInAs } from '../../support/console/consoleSession.ts'
import { changingBefore } from '../../support/database/beforeStatement.ts'
import {
  allow,
  authorizationOf,
  callMcp,
  codeFor,
  connect,
  register,
  requestConsent,
  startOAuthService,
  token,
  toolCall,
} from '../../support/oauth.ts'
import type { Agent, TestService } from '../../support/service.ts'
import { waitFor } from '../../support/waitFor.ts'

let service: TestService
let own: Agent
let foreign: Agent
beforeAll(async () => {
  service = await startOAuthService()
  own = await service.newAgent()
  foreign = await service.newAgent()
})
afterAll(() => service[Symbol.asyncDispose]())

const works = async (access: string) => (await callMcp(service.url, access)).status

test.each<
  [string, (personId: string) => [method: 'patch' | 'delete', path: string, body?: object]]
>([
  ['is removed', (id) => ['delete', `/people/${id}`]],
  ['becomes a viewer', (id) => ['patch', `/people/${id}`, { role: 'viewer' }]],
  ['loses the project', (id) => ['patch', `/people/${id}`, { projectIds: [] }]],
])(
  'an access token is refused at the next call when the person who connected the app %s',
  async (_name, change) => {
    const operator = await signIn(service)
    const person = await signInAs(service, 'owner', [own.project.id])
    const app = await connect(service, own, { person })
    const isListed = async () =>
      (await operator.get('/oauth/grants')).body.grants.some(
        ({ actor }: any) => actor === `console:${person.email}`,
      )
    expect([await works(app.access), await isListed()]).toEqual([200, true])
    const [method, path, body] = change(person.personId)
    const answer = await (method === 'delete' ? operator.delete(path) : operator.patch(path, body))
    expect(answer.status).toBeLessThan(300)
    expect(await works(app.access)).toBe(401)
    const refreshed = await token(service.url, {
      grant_type: 'refresh_token',
      refresh_token: app.refresh,
      client_id: app.clientId,
    })
    expect([refreshed.status, refreshed.body.error]).toEqual([400, 'invalid_grant'])
    expect(await isListed()).toBe(false)
    // The people of the project see only the audit log of the project, and not the audit log of the organization.
    // Therefore the end of the access must be in the audit log of the project.
    const { body: log } = await own.get('/v0/logs')
    expect(log.logs[0]).toMatchObject({
      action: 'oauth_grant.revoke',
      requestId: answer.headers.get('x-request-id'),
    })
  },
)

test.each<[string, object, object]>([
  ['role', { role: 'viewer' }, { role: 'owner' }],
  ['project', { projectIds: [] }, {}],
])(
  'an app does not get its access back when the person who connected it gets back the %s',
  async (_name, lost, back) => {
    const operator = await signIn(service)
    const person = await signInAs(service, 'owner', [own.project.id])
    const [app, other] = [
      await connect(service, own, { person }),
      await connect(service, foreign, { person: operator }),
    ]
    await operator.patch(`/people/${person.personId}`, lost)
    await operator.patch(`/people/${person.personId}`, { projectIds: [own.project.id], ...back })
    expect(await works(app.access)).toBe(401)
    const refreshed = await token(service.url, {
      grant_type: 'refresh_token',
      refresh_token: app.refresh,
      client_id: app.clientId,
    })
    expect([refreshed.status, refreshed.body.error]).toEqual([400, 'invalid_grant'])
    expect(await works(other.access)).toBe(200)
  },
)

test('apps stay connected to a project if a person’s changed name, role or project list still lets the person decide for the project', async () => {
  const operator = await signIn(service)
  const person = await signInAs(service, 'owner', [own.project.id])
  const app = await connect(service, own, { person })
  for (const change of [
    { name: 'Mira' },
    { projectIds: [own.project.id, foreign.project.id] },
    { role: 'operator', projectIds: [] },
  ]) {
    expect((await operator.patch(`/people/${person.personId}`, change)).status).toBe(200)
    expect(await works(app.access)).toBe(200)
  }
  await operator.delete(`/people/${person.personId}`)
})

/** Returns the number of MCP calls that wait for mail. */
const countWaiting = async (): Promise<number> => {
  const metrics = await (await fetch(`${service.url}/metrics`)).text()
  return Number(/^purser_event_readers (\d+)$/m.exec(metrics)?.[1])
}

test.each<[string, (app: { personId: string; grantId: string }) => [string, object?]]>([
  ['the owner disconnects the app', ({ grantId }) => [`/oauth/grants/${grantId}`]],
  ['the person who connected it is removed', ({ personId }) => [`/people/${personId}`]],
  ['that person becomes a viewer', ({ personId }) => [`/people/${personId}`, { role: 'viewer' }]],
])('the call of an app that waits for mail ends when %s', async (_name, change) => {
  const operator = await signIn(service)
  const person = await signInAs(service, 'owner', [own.project.id])
  const app = await connect(service, own, { person })
  const { grants } = (await operator.get('/oauth/grants')).body
  const { id: grantId } = grants.find(({ actor }: any) => actor === `console:${person.email}`)
  const call = callMcp(service.url, app.access, toolCall('mail_wait', { timeout: 30 }))
  await waitFor('the call', async () => (await countWaiting()) === 1)
  const [path, body] = change({ personId: person.personId, grantId })
  await (body === undefined ? operator.delete(path) : operator.patch(path, body))
  // If nothing ended the call, it would wait 30 s for mail.
  const ended = await Promise.race([call, Bun.sleep(20_000).then(() => null)])
  expect(ended).not.toBeNull()
  // If the app loses its access before the call begins to wait, the call is refused, so its response has no structured
  // content.
  expect(ended!.body.result?.structuredContent ?? { found: false }).toMatchObject({ found: false })
})

test('an owner can connect, see and disconnect apps only for their own projects, and a viewer cannot see the apps', async () => {
  const owner = await signInAs(service, 'owner', [own.project.id])
  const { body } = await register(service.url)
  const asked = authorizationOf(service.url, body.client_id, { scope: 'mail:read' })
  const consent = await requestConsent(service, asked, owner)
  const refused = await allow(consent.owner, consent.id, foreign, { scopes: ['mail:read'] })
  expect([refused.status, refused.body.message]).toEqual([
    400,
    'projectId must be a project that you decide for',
  ])
  await connect(service, foreign)
  await connect(service, own, { person: owner })
  const listed = async (who: typeof owner) =>
    (await who.get('/oauth/grants')).body.grants.map(({ projectId }: any) => projectId)
  expect(await listed(owner)).toEqual([own.project.id])
  const operator = await signIn(service)
  const { grants } = (await operator.get('/oauth/grants')).body
  const theirs = grants.find(({ projectId }: any) => projectId === foreign.project.id)
  expect((await owner.delete(`/oauth/grants/${theirs.id}`)).status).toBe(404)
  const viewer = await signInAs(service, 'viewer', [own.project.id])
  expect((await viewer.get('/oauth/grants')).status).toBe(403)
})

test('if an owner chooses a deleted project that the consent page still shows, the service refuses it, and the owner can choose another project', async () => {
  const gone = await service.newAgent()
  const { body } = await register(service.url)
  const consent = await requestConsent(service, authorizationOf(service.url, body.client_id))
  expect((await service.platform.delete(`/v0/platform/projects/${gone.project.id}`)).status).toBe(
    204,
  )
  const refused = await allow(consent.owner, consent.id, gone)
  expect([refused.status, refused.body.message]).toEqual([
    409,
    'projectId must be a project that you decide for',
  ])
  expect((await allow(consent.owner, consent.id, own)).status).toBe(200)
})

test('an app gets no access if the person becomes a viewer while the service records the consent', async () => {
  const operator = await signIn(service)
  const person = await signInAs(service, 'owner', [own.project.id])
  const path = `/people/${person.personId}`
  let lost: Promise<unknown> = Promise.resolve()
  const { exchange } = await changingBefore(
    'update oauth_clients set used_at',
    async () => {
      lost = operator.patch(path, { role: 'viewer' })
      // The request that makes the person a viewer may wait until the consent is recorded. The consent must not wait
      // for this request.
      await Promise.race([lost, Bun.sleep(1_000)])
    },
    () => codeFor(service, own, { person }),
  )
  expect(await lost).toMatchObject({ status: 200 })
  await operator.patch(path, { role: 'owner', projectIds: [own.project.id] })
  const { status, body } = await token(service.url, exchange)
  expect([status, body.error]).toEqual([400, 'invalid_grant'])
})

test('an owner reads the connected apps in pages, and can disconnect the oldest app', async () => {
  const agent = await service.newAgent()
  await connect(service, agent)
  await service.database.pool.query(
    `insert into oauth_grants (id, project_id, client_id, client_name, redirect_host, scopes, resource, actor, created_at,
       expires_at, person_id)
     select id || n, project_id, client_id, 'App ' || n, redirect_host, scopes, resource, actor, created_at, expires_at,
       person_id
     from oauth_grants, generate_series(1, 520) n where project_id = $1`,
    [agent.project.id],
  )
  const owner = await signInAs(service, 'owner', [agent.project.id])
  const ids: string[] = []
  for (let query = '?limit=100'; query !== ''; ) {
    const { grants, nextPageToken } = (await owner.get(`/oauth/grants${query}`)).body
    ids.push(...grants.map(({ id }: any) => id))
    query = nextPageToken === undefined ? '' : `?limit=100&pageToken=${nextPageToken}`
  }
  expect([ids.length, new Set(ids).size]).toEqual([521, 521])
  expect((await owner.delete(`/oauth/grants/${ids.at(-1)}`)).status).toBe(204)
})
