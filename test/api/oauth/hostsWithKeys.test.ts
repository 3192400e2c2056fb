/**
 * Tests MCP hosts that use an API key from their configuration. None of their requests may get status 401, because the
 * host would then start OAuth.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { startOAuthService } from '../../support/oauth.ts'
import type { Agent, TestService } from '../../support/service.ts'

let service: TestService
let agent: Agent
beforeAll(async () => {
  service = await startOAuthService()
  agent = await service.newAgent()
})
afterAll(() => service[Symbol.asyncDispose]())

type Step = { method: 'POST' | 'GET' | 'DELETE'; headers?: Record<string, string>; body?: object }

const initialize = (version: string, name: string): Step => ({
  method: 'POST',
  body: {
    jsonrpc: '2.0',
    id: 0,
    method: 'initialize',
    params: { protocolVersion: version, capabilities: {}, clientInfo: { name, version: '1' } },
  },
})
const posted = (body: object, version: string): Step => ({
  method: 'POST',
  headers: { 'mcp-protocol-version': version },
  body: { jsonrpc: '2.0', ...body },
})
const initialized = (version: string) => posted({ method: 'notifications/initialized' }, version)
const list = (version: string) => posted({ id: 1, method: 'tools/list', params: {} }, version)
const call = (version: string) =>
  posted({ id: 2, method: 'tools/call', params: { name: 'whoami', arguments: {} } }, version)
const stream: Step = { method: 'GET', headers: { accept: 'text/event-stream' } }
const end: Step = { method: 'DELETE' }

const NEW = '2026-07-28'
const modern = (method: string, params: Record<string, unknown> = {}): Step => ({
  method: 'POST',
  headers: {
    'mcp-protocol-version': NEW,
    'mcp-method': method,
    ...(typeof params.name === 'string' ? { 'mcp-name': params.name } : {}),
  },
  body: {
    jsonrpc: '2.0',
    id: 1,
    method,
    params: {
      ...params,
      _meta: {
        'io.modelcontextprotocol/protocolVersion': NEW,
        'io.modelcontextprotocol/clientCapabilities': {},
      },
    },
  },
})

const legacy = (version: string, name: string): Step[] => [
  initialize(version, name),
  initialized(version),
  stream,
  list(version),
  call(version),
  end,
]

/**
 * Lists the MCP hosts in which a user can configure a header with an API key. Claude on the web and ChatGPT do not let
 * a user configure a header with an API key.
 */
const HOSTS: Record<string, { agent: string; steps: Step[] }> = {
  'Claude Code': { agent: 'claude-code/2.0', steps: legacy('2025-06-18', 'claude-code') },
  Cursor: { agent: 'Cursor/3.0', steps: legacy('2025-06-18', 'cursor-vscode') },
  'VS Code': {
    agent: 'node',
    steps: [...legacy('2025-11-25', 'Visual Studio Code'), stream],
  },
  'mcp-remote --header': { agent: 'node', steps: legacy('2025-11-25', 'mcp-remote') },
  'SDK client 1.32': { agent: 'node', steps: legacy('2025-11-25', 'sdk') },
  'SDK client 2.4': {
    agent: 'node',
    steps: [
      modern('server/discover'),
      modern('tools/list'),
      modern('tools/call', { name: 'whoami', arguments: {} }),
    ],
  },
  Inspector: {
    agent: 'Mozilla/5.0',
    steps: [...legacy('2025-03-26', 'inspector'), modern('server/discover'), modern('tools/list')],
  },
}

test('if an MCP host requests a stream of tool list changes, the service refuses the request, because the tool list never changes', async () => {
  const { headers, body } = modern('subscriptions/listen')
  const answer = await fetch(`${service.url}/mcp`, {
    method: 'POST',
    headers: {
      ...{ 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      ...{ authorization: `Bearer ${agent.key}`, ...headers },
    },
    body: JSON.stringify(body),
  })
  expect([answer.status, await answer.json()]).toEqual([
    404,
    { jsonrpc: '2.0', id: 1, error: { code: -32601, message: 'Method not found' } },
  ])
})

test.each(Object.entries(HOSTS))(
  '%s connects with a configured API key, and gets no 401',
  async (_name, { agent: userAgent, steps }) => {
    const found: [string, number][] = []
    let tools = 0
    for (const { method, headers, body } of steps) {
      const response = await fetch(`${service.url}/mcp`, {
        method,
        headers: {
          authorization: `Bearer ${agent.key}`,
          'user-agent': userAgent,
          accept: 'application/json, text/event-stream',
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      })
      const name = body === undefined ? method : (body as { method: string }).method
      found.push([name, response.status])
      expect([name, response.headers.get('www-authenticate')]).toEqual([name, null])
      if (name === 'tools/list') tools = ((await response.json()) as any).result.tools.length
    }
    const wanted: Record<string, number> = {
      'notifications/initialized': 202,
      GET: 405,
      DELETE: 405,
    }
    expect(found).toEqual(found.map(([name]) => [name, wanted[name] ?? 200]))
    expect(tools).toBeGreaterThan(20)
  },
)

test('a request for missing OAuth metadata does not get status 200, so that an MCP host can connect with its API key', async () => {
  for (const path of [
    '/.well-known/oauth-protected-resource/mcp',
    '/.well-known/oauth-protected-resource',
    '/.well-known/oauth-authorization-server',
  ]) {
    const response = await fetch(`${service.url}${path}`)
    const body = response.status === 200 ? ((await response.json()) as object) : null
    // If missing OAuth metadata were answered with status 200, hosts that use a configured header would break.
    expect([path, body === null || 'resource' in body || 'issuer' in body]).toEqual([path, true])
  }
})
