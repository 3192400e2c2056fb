import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createClient, startTestService, type TestService } from '../../support/service.ts'
import { waitFor } from '../../support/waitFor.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService({ smtp: false, workers: false })
})
afterAll(() => service[Symbol.asyncDispose]())

const unauthorized = (message: string) => ({ error: 'unauthorized', message, status: 401 })

test('a request with a missing, malformed or unknown API key gets exactly the documented error message', async () => {
  const hex = 'a'.repeat(64)
  const cases: [string | undefined, string][] = [
    [undefined, 'Missing or invalid Authorization header'],
    ['', 'Missing or invalid Authorization header'],
    ['Basic dXNlcjpwYXNz', 'Missing or invalid Authorization header'],
    ['Bearer', 'Missing or invalid Authorization header'],
    [`Bearer mgent-${hex}`, 'Invalid API key format'],
    [`Bearer ${hex}`, 'Invalid API key format'],
    [`Bearer loid-${hex}`, 'Invalid API key'],
    [`Bearer lopk-${hex}`, 'Invalid API key'],
    ['Bearer loid-short', 'Invalid API key'],
    [`Bearer loid-${'G'.repeat(64)}`, 'Invalid API key'],
  ]
  for (const [header, message] of cases) {
    const response = await fetch(`${service.url}/v0/messages`, {
      headers: header === undefined ? {} : { authorization: header },
    })
    expect(response.status).toBe(401)
    expect(await response.json()).toEqual(unauthorized(message))
  }
})

test('if an API key lacks the scope of an operation, the error names this scope', async () => {
  const bare = await service.newAgent({ scopes: [] })
  const operations: [string, string, string][] = [
    ['GET', '/v0/messages', 'mail:read'],
    ['GET', '/v0/messages/%3Ca%40b%3E', 'mail:read'],
    ['PATCH', '/v0/messages/%3Ca%40b%3E', 'mail:manage'],
    ['POST', '/v0/messages/send', 'mail:send'],
    ['POST', '/v0/messages/%3Ca%40b%3E/reply', 'mail:send'],
    ['GET', '/v0/threads', 'mail:read'],
    ['GET', '/v0/threads/thd_1', 'mail:read'],
    ['GET', '/v0/platform/projects', 'platform:manage'],
    ['POST', '/v0/platform/identities', 'platform:manage'],
  ]
  for (const [method, path, scope] of operations) {
    const response = await fetch(service.url + path, {
      method,
      headers: { authorization: `Bearer ${bare.key}`, 'content-type': 'application/json' },
    })
    expect([path, response.status, await response.json()]).toEqual([
      path,
      403,
      { error: 'forbidden', message: `Missing required scope: ${scope}`, status: 403 },
    ])
  }
})

test('a project key can call no operation of platform keys, and a platform key none of project keys', async () => {
  const agent = await service.newAgent()
  expect((await agent.get('/v0/platform/projects')).body.message).toBe(
    'Missing required scope: platform:manage',
  )
  expect((await service.platform.get('/v0/messages')).body.message).toBe(
    'Missing required scope: mail:read',
  )
  expect((await service.platform.get('/v0/platform/projects')).status).toBe(200)
  expect((await agent.get('/v0/messages')).status).toBe(200)
})

test('the service checks the API key before it reads the request body', async () => {
  const nobody = createClient(service.url, null)
  expect((await nobody.post('/v0/messages/send', '{not json')).status).toBe(401)
})

test('whoami returns the project and the scopes of an API key', async () => {
  const agent = await service.newAgent({ scopes: ['mail:read'] })
  const { status, body } = await agent.get('/v0/whoami')
  expect(status).toBe(200)
  expect(body).toEqual({
    identityId: agent.project.id,
    projectId: agent.project.id,
    name: agent.project.name,
    email: agent.address,
    displayName: agent.project.name,
    type: 'INBOX',
    purpose: 'SELLER',
    scopes: ['mail:read'],
    usageCount: expect.any(Number),
    lastUsedAt: null,
    createdAt: expect.stringMatching(/Z$/),
    wallet: null,
    purse: null,
  })
})

test('whoami with a platform key shows how many requests the key has made, and the time of the last one', async () => {
  const { body } = await service.platform.get('/v0/whoami')
  expect(body).toMatchObject({ type: 'PLATFORM', projectId: null, scopes: ['platform:manage'] })
  expect(body.createdAt).toMatch(/Z$/)
  const counted = await waitFor('the count', async () => {
    const { body } = await service.platform.get('/v0/whoami')
    return body.usageCount > 0 && body
  })
  expect(Date.parse(counted.lastUsedAt)).toBeGreaterThanOrEqual(Date.parse(counted.createdAt))
})

test('the database holds no byte sequence that reveals an API key', async () => {
  const agent = await service.newAgent()
  const { rows } = await service.database.pool.query('select t::text as line from api_keys t')
  expect(rows.length).toBeGreaterThan(0)
  for (const { line } of rows) {
    expect(line).not.toContain(agent.key)
    expect(line).not.toContain(agent.key.slice(20))
  }
})
