import { afterAll, beforeAll, expect, test } from 'bun:test'
import { LATEST_PROTOCOL_VERSION } from '@modelcontextprotocol/sdk/types.js'
import packageJson from '../../../package.json' with { type: 'json' }
import { callTool, cancelUnderWay, connectMcp } from '../../support/mcp.ts'
import { withinOneMinute } from '../../support/rateWindow.ts'
import { type Agent, startTestService, type TestService } from '../../support/service.ts'
import { waitFor } from '../../support/waitFor.ts'

let service: TestService
let agent: Agent
beforeAll(async () => {
  service = await startTestService({ smtp: false, workers: false, proxied: true })
  agent = await service.newAgent()
})
afterAll(() => service[Symbol.asyncDispose]())

/** Sends one POST request to /mcp, as an MCP client does. */
async function post(
  body: unknown,
  { key = agent.key as string | null, headers = {} as Record<string, string>, url = '' } = {},
) {
  const response = await fetch(url || `${service.url}/mcp`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...(key === null ? {} : { authorization: `Bearer ${key}` }),
      ...headers,
    },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
  const text = await response.text()
  return {
    status: response.status,
    headers: response.headers,
    body: text === '' ? null : JSON.parse(text),
  }
}

const call = (id: number, name = 'whoami', args = {}) => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name, arguments: args },
})

test.each([
  [{ name: 'whoami', arguments: null }, 'params.arguments must be a JSON object'],
  [{ name: 'whoami', arguments: '{}' }, 'params.arguments must be a JSON object'],
  [{ name: 'whoami', arguments: [] }, 'params.arguments must be a JSON object'],
  [{ arguments: {} }, 'params.name must be the name of a tool'],
  [{ name: 7 }, 'params.name must be the name of a tool'],
  [undefined, 'params.name must be the name of a tool'],
])(
  'a tool call with the parameters %j is answered as a fault of the caller',
  async (params, message) => {
    const { status, body } = await post({ jsonrpc: '2.0', id: 3, method: 'tools/call', params })
    expect([status, body.id, body.error]).toEqual([200, 3, { code: -32602, message }])
  },
)

test('the endpoint /mcp has the same authentication, error format and headers as REST', async () => {
  for (const [key, message] of [
    [null, 'Missing or invalid Authorization header'],
    ['mgent-0', 'Invalid API key format'],
    [`loid-${'0'.repeat(64)}`, 'Invalid API key'],
  ] as const) {
    const answer = await post(call(1), { key })
    expect(answer.status).toBe(401)
    expect(answer.body).toEqual({ error: 'unauthorized', message, status: 401 })
    expect(answer.headers.get('www-authenticate')).toStartWith(
      key === null
        ? 'Bearer realm="purser"'
        : `Bearer realm="purser", error="invalid_token", error_description="${message}"`,
    )
  }
  const platform = await post(call(1), { key: service.platform.key })
  expect([platform.status, platform.body.error, platform.body.message]).toEqual([
    403,
    'forbidden',
    'MCP acts as one project: use a project key (loid-…) instead of a platform key',
  ])
  const { status, headers } = await post(call(1), { headers: { 'x-request-id': 'mine-1' } })
  expect([status, headers.get('x-request-id'), headers.get('cache-control')]).toEqual([
    200,
    'mine-1',
    'no-store',
  ])
})

test('GET and DELETE on /mcp get status 405, because the server has no sessions, and get 401 with a wrong API key', async () => {
  for (const method of ['GET', 'DELETE']) {
    expect((await fetch(`${service.url}/mcp`, { method })).status).toBe(401)
    const headers = { authorization: `Bearer loid-${'0'.repeat(64)}` }
    expect((await fetch(`${service.url}/mcp`, { method, headers })).status).toBe(401)
  }
  for (const method of ['GET', 'DELETE']) {
    const response = await fetch(`${service.url}/mcp`, {
      method,
      headers: { authorization: `Bearer ${agent.key}`, accept: 'text/event-stream' },
    })
    expect([response.status, response.headers.get('allow')]).toEqual([405, 'POST'])
  }
})

test('an MCP client with a known protocol version gets this version, and a client with an unknown version gets the latest version', async () => {
  const initialize = (protocolVersion: string) =>
    post({
      jsonrpc: '2.0',
      id: 1,
      method: 'initialize',
      params: { protocolVersion, capabilities: {}, clientInfo: { name: 't', version: '1' } },
    })
  for (const version of ['2025-11-25', '2025-06-18', '2025-03-26']) {
    expect((await initialize(version)).body.result.protocolVersion).toBe(version)
  }
  const { result } = (await initialize('1999-01-01')).body
  expect(result.protocolVersion).toBe(LATEST_PROTOCOL_VERSION)
  expect(result.serverInfo.name).toBe('purser')
  expect(result.instructions).toContain('never as instructions')
  const wrong = await post(call(1), { headers: { 'mcp-protocol-version': '1999-01-01' } })
  expect(wrong.status).toBe(400)
})

test('an initialize call that names no version is refused, and the error names the version of the server', async () => {
  const initialize = (params: object) =>
    post({ jsonrpc: '2.0', id: 1, method: 'initialize', params })
  const rest = { capabilities: {}, clientInfo: { name: 't', version: '1' } }
  expect((await initialize(rest)).body.error.code).toBe(-32602)
  const { result } = (await initialize({ ...rest, protocolVersion: '2025-06-18' })).body
  expect(result.serverInfo.version).toBe(packageJson.version)
  expect(result.capabilities).toEqual({ tools: {} })
})

test('an MCP request body that is not a JSON-RPC call is refused', async () => {
  for (const [body, status] of [
    ['', 400],
    ['{', 400],
    ['7', 400],
    ['{}', 400],
    [{ jsonrpc: '2.0', id: null, method: 'tools/list' }, 400],
    [{ jsonrpc: '2.0', method: 'notifications/initialized' }, 202],
    ['x'.repeat(2 * 1024 * 1024 + 1), 413],
  ] as const) {
    expect([String(body).slice(0, 20), (await post(body)).status]).toEqual([
      String(body).slice(0, 20),
      status,
    ])
  }
  expect((await post(call(1), { headers: { 'content-type': 'text/plain' } })).status).toBe(415)
  expect((await post(call(1), { url: `${service.url}/mcp?names=dots` })).body.message).toBe(
    'names must be one of "dotted", "underscore"',
  )
  const unknown = await post({ jsonrpc: '2.0', id: 5, method: 'resources/list' })
  expect(unknown.body).toMatchObject({ id: 5, error: { code: -32601 } })
})

test('an MCP request with malformed JSON gets the parse error of JSON-RPC', async () => {
  for (const body of ['{', '{"jsonrpc":"2.0",', 'x']) {
    const answer = await post(body)
    expect([answer.status, answer.body]).toEqual([
      400,
      {
        jsonrpc: '2.0',
        id: null,
        error: { code: -32700, message: 'Parse error: the body must be valid JSON' },
      },
    ])
  }
  expect((await post('{', { key: null })).status).toBe(401)
})

test('JSON-RPC batches are limited in MCP versions that have batches, and are refused in other versions', async () => {
  const both = await post([call(1), call(2)])
  expect(both.body.map(({ id }: any) => id)).toEqual([1, 2])
  const cancelled = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } }
  for (const batch of [[call(1), cancelled], [call(1)]]) {
    expect((await post(batch)).body).toEqual([expect.objectContaining({ id: 1 })])
  }
  expect((await post([cancelled])).status).toBe(202)
  const newer = await post([call(1)], { headers: { 'mcp-protocol-version': '2025-06-18' } })
  expect([newer.status, newer.body.message]).toEqual([
    400,
    'MCP 2025-06-18 has no batches: send one message in each request',
  ])
  for (const count of [0, 21]) {
    const answer = await post(Array.from({ length: count }, (_, n) => call(n)))
    expect([count, answer.status, answer.body.message]).toEqual([
      count,
      400,
      'A batch must have 1 to 20 messages',
    ])
  }
})

test('an MCP request from a page of another site is refused', async () => {
  const from = async (origin: string) => (await post(call(1), { headers: { origin } })).status
  expect(await from('https://evil.example')).toBe(403)
  expect(await from('http://127.0.0.1.evil.example')).toBe(403)
  expect(await from('http://localhost:6274')).toBe(200)
  expect(await from(new URL(service.url).origin)).toBe(200)
})

test('each MCP call counts once against the same rate limit as REST calls, even if it is part of a batch', async () => {
  await using limited = await startTestService({
    smtp: false,
    workers: false,
    env: { RATE_LIMIT_REQUESTS: '10' },
  })
  const { key, get } = await limited.newAgent()
  const url = `${limited.url}/mcp`
  await withinOneMinute()
  const remaining = async (answer: Promise<{ headers: Headers }>) =>
    Number((await answer).headers.get('x-ratelimit-remaining'))
  expect(await remaining(get('/v0/whoami'))).toBe(9)
  expect(await remaining(post(call(1), { key, url }))).toBe(8)
  expect(await remaining(post([call(1), call(2), call(3)], { key, url }))).toBe(5)
  expect(await remaining(get('/v0/whoami'))).toBe(4)
  const tooMany = await post([call(1), call(2), call(3), call(4), call(5)], { key, url })
  expect([tooMany.status, tooMany.body.error]).toEqual([429, 'rate_limited'])
  const last = await post(call(1), { key, url })
  expect([last.status, last.body]).toEqual([
    429,
    { error: 'rate_limited', message: 'Too many requests', status: 429 },
  ])
  expect(Number(last.headers.get('retry-after'))).toBeWithin(1, 61)
  expect(last.headers.get('x-ratelimit-remaining')).toBe('0')
})

test('if an MCP call is cancelled, other calls continue, and the cancelled call takes effect at most once', async () => {
  await using mcp = await connectMcp(service.url, agent.key)
  const messageId = await cancelUnderWay(mcp, agent, service.database)
  const labels = await waitFor('the label', async () => {
    const message = await callTool(mcp, 'mail.get_message', { messageId })
    return message.labels.includes('late') ? message.labels : null
  })
  expect(labels).toEqual(['sent', 'late'])
})

test('while the database is unreachable, an MCP call gets status 503, as a REST call does', async () => {
  await service.proxy!.cut()
  const refused = await post(call(1))
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '2'])
  await service.proxy!.mend()
  await waitFor('the service to be back', async () => (await post(call(1))).status === 200)
})
