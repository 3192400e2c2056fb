import { afterAll, beforeAll, expect, test } from 'bun:test'
import { connect } from 'node:net'
import { signInAs } from '../../support/console/consoleSession.ts'
import { createClient, startTestService, type TestService } from '../../support/service.ts'
import { waitFor } from '../../support/waitFor.ts'
import '../../support/long.ts'

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

test('a project key cannot call the operations for platform keys, and a platform key cannot call those for project keys', async () => {
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

test('if an API key is stored, no bytes in the database reveal the key', async () => {
  const agent = await service.newAgent()
  const { rows } = await service.database.pool.query('select t::text as line from api_keys t')
  expect(rows.length).toBeGreaterThan(0)
  for (const { line } of rows) {
    expect(line).not.toContain(agent.key)
    expect(line).not.toContain(agent.key.slice(20))
  }
})

/** Sends a request whose body arrives in two parts. @returns the whole response with its head. */
async function inTwoParts(
  request: { method: string; path: string; headers: Record<string, string>; body: object },
  between: () => Promise<unknown>,
): Promise<string> {
  const { method, path, headers, body } = request
  const bytes = JSON.stringify(body)
  const lines = Object.entries({
    host: new URL(service.url).host,
    'content-type': 'application/json',
    'content-length': String(bytes.length),
    connection: 'close',
    ...headers,
  }).map(([name, value]) => `${name}: ${value}\r\n`)
  let text = ''
  const socket = connect(Number(new URL(service.url).port), '127.0.0.1')
  const ended = new Promise((resolve) => socket.on('close', resolve))
  socket.on('data', (data) => {
    text += data.toString()
  })
  socket.write(`${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n${bytes.slice(0, 5)}`)
  await Bun.sleep(1_500)
  await between()
  socket.write(bytes.slice(5))
  await ended
  return text
}

test('the service refuses a request if its API key is replaced or loses the scope while the request body arrives', async () => {
  for (const [change, status] of [
    [{ path: '/rotate-key', body: undefined }, 401],
    [{ path: '', body: { removeScopes: ['vault:write'] } }, 403],
  ] as const) {
    const agent = await service.newAgent()
    const path = `/v0/platform/projects/${agent.project.id}${change.path}`
    const response = await inTwoParts(
      {
        method: 'PUT',
        path: '/v0/vault/late',
        headers: { authorization: `Bearer ${agent.key}` },
        body: { type: 'CUSTOM', data: { key: 'value' } },
      },
      () =>
        change.body === undefined
          ? service.platform.post(path)
          : service.platform.patch(path, change.body),
    )
    expect(response).toStartWith(`HTTP/1.1 ${status} `)
  }
})

test('a console request is refused if its session ends or the signed-in person loses the required role while the body of the request arrives', async () => {
  const agent = await service.newAgent()
  for (const [sql, status] of [
    ['delete from console_sessions where person_id = $1', 401],
    [`update people set role = 'viewer' where id = $1`, 403],
    ['delete from person_projects where person_id = $1', 404],
  ] as const) {
    const owner = await signInAs(service, 'owner', [agent.project.id])
    const response = await inTwoParts(
      {
        method: 'PUT',
        path: `/console/api/projects/${agent.project.id}/v0/vault/late`,
        headers: { cookie: owner.cookie, 'x-purser-console': '1' },
        body: { type: 'CUSTOM', data: { key: 'value' } },
      },
      () => service.database.pool.query(sql, [owner.personId]),
    )
    expect(response).toStartWith(`HTTP/1.1 ${status} `)
  }
  expect((await agent.get('/v0/vault/late')).status).toBe(404)
})

test('if the check of an API key or a session after the arrival of the body fails, the error does not blame the request body', async () => {
  const agent = await service.newAgent()
  const { pool } = service.database
  const response = await inTwoParts(
    {
      method: 'PUT',
      path: '/v0/vault/late',
      headers: { authorization: `Bearer ${agent.key}` },
      body: { type: 'CUSTOM', data: { key: 'value' } },
    },
    () => pool.query('alter table api_keys rename to lost_keys'),
  ).finally(() => pool.query('alter table lost_keys rename to api_keys'))
  expect(response).toStartWith('HTTP/1.1 500 ')
})
