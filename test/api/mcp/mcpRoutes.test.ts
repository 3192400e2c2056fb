/** Tests which requests to /mcp the service refuses before a tool runs, and with which error messages. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { connect, startOAuthService, toolCall } from '../../support/oauth.ts'
import type { Agent, TestService } from '../../support/service.ts'

let service: TestService
let agent: Agent
beforeAll(async () => {
  service = await startOAuthService()
  agent = await service.newAgent()
})
afterAll(() => service[Symbol.asyncDispose]())

type Options = { key?: string; headers?: Record<string, string>; path?: string }
async function post(body: unknown, { key = agent.key, headers = {}, path = '/mcp' }: Options = {}) {
  const response = await fetch(service.url + path, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      authorization: `Bearer ${key}`,
      ...headers,
    },
    body: JSON.stringify(body),
  })
  const text = await response.text()
  return {
    status: response.status,
    headers: response.headers,
    body: text === '' ? null : JSON.parse(text),
  }
}

const WHOAMI = toolCall('whoami')
const CANCELLED = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } }

describe('a request to /mcp is refused if its method is GET or DELETE, or if its body is not an object', () => {
  test.each(['GET', 'DELETE'])(
    'an MCP request with the method %s gets status 405 and a message that says to use POST',
    async (method) => {
      const headers = { authorization: `Bearer ${agent.key}` }
      const response = await fetch(`${service.url}/mcp`, { method, headers })
      const { message } = (await response.json()) as { message: string }
      expect([response.status, response.headers.get('allow'), message]).toEqual([
        405,
        'POST',
        'MCP has no sessions here: use POST',
      ])
    },
  )
})

test('an MCP request body that is not a JSON object is refused', async () => {
  for (const body of [7, 'text', true, null]) {
    const { status } = await post(body)
    expect([body, status]).toEqual([body, 400])
    expect([body, (await post([body])).status]).toEqual([body, 400])
  }
})

describe('a message that cancels an MCP call gets no JSON-RPC response', () => {
  test('an MCP message or batch that contains only cancellations gets status 202 and no JSON-RPC response', async () => {
    for (const body of [CANCELLED, [CANCELLED], Array(20).fill(CANCELLED)]) {
      const { status, body: answer } = await post(body)
      expect([status, answer]).toEqual([202, null])
    }
  })

  test('a cancellation in an MCP batch does not cancel a call in the same batch', async () => {
    const { body } = await post([CANCELLED, WHOAMI, CANCELLED, { ...WHOAMI, id: 2 }])
    expect(body.map(({ id }: { id: number }) => id)).toEqual([1, 2])
  })
})

describe('a batch of MCP messages is accepted only with an allowed length and MCP version', () => {
  const NOTE = { jsonrpc: '2.0', method: 'notifications/initialized' }

  test('an MCP batch must have 1 to 20 messages, and cancellations count as messages', async () => {
    const full = await post([WHOAMI, ...Array(19).fill(NOTE)])
    expect([full.status, full.body.id ?? full.body[0].id]).toEqual([200, 1])
    for (const body of [[], [WHOAMI, ...Array(20).fill(NOTE)], Array(21).fill(CANCELLED)]) {
      const { status, body: answer } = await post(body)
      expect([status, answer.message]).toEqual([400, 'A batch must have 1 to 20 messages'])
    }
  })

  test('a JSON-RPC batch in which two calls have the same id is refused before any call runs', async () => {
    const mail = { to: ['a@example.com'], subject: 's', text: 't' }
    for (const id of [1, '1']) {
      const send = { ...toolCall('mail.send', mail), id }
      const { status, body } = await post([send, NOTE, { ...WHOAMI, id: 2 }, send])
      expect([status, body.message]).toEqual([400, 'A batch must not use an id twice'])
    }
    expect((await agent.get('/v0/messages?labels=sent')).body.count).toBe(0)
    const { body } = await post([WHOAMI, { ...WHOAMI, id: '1' }, NOTE, NOTE])
    expect(body.map(({ id }: { id: unknown }) => id)).toEqual([1, '1'])
  })

  test('a batch is accepted in MCP version 2025-03-26 or without a version, and refused in any other version', async () => {
    const of = (version: string) => post([WHOAMI], { headers: { 'mcp-protocol-version': version } })
    expect((await of('2025-03-26')).status).toBe(200)
    for (const version of ['2025-06-18', '1']) {
      const { status, body } = await of(version)
      expect([status, body.message]).toEqual([
        400,
        `MCP ${version} has no batches: send one message in each request`,
      ])
    }
  })
})

describe('the Origin header decides which web pages may send an MCP request', () => {
  const from = async (origin: string) => await post(WHOAMI, { headers: { origin } })

  test('a web page of localhost or of the service’s own host, at any port, may send an MCP request', async () => {
    for (const origin of [
      'http://localhost:6274',
      'https://localhost',
      'http://[::1]:1',
      'http://127.0.0.1',
    ])
      expect([origin, (await from(origin)).status]).toEqual([origin, 200])
  })

  test('a page of a local program may send an MCP request if its URL scheme is neither http nor https', async () => {
    for (const origin of ['vscode-webview://abc', 'app://host.example'])
      expect([origin, (await from(origin)).status]).toEqual([origin, 200])
  })

  test('a web page of another site may not send an MCP request', async () => {
    for (const origin of [
      'https://evil.example',
      'http://evil.example:80',
      'http://localhost.evil.example',
      'http://evil-localhost',
    ]) {
      const { status, body } = await from(origin)
      expect([origin, status, body.message]).toEqual([
        origin,
        403,
        'Pages of this Origin may not use this MCP server',
      ])
    }
  })
})

describe('the form of the MCP tool names depends on the client and its request', () => {
  const namesAt = async (path: string, key = agent.key) => {
    const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' }
    const { body } = await post(list, { path, key })
    return body.result.tools.map(({ name }: { name: string }) => name) as string[]
  }

  test('tool names have dots for an API key and underscores for an OAuth client, unless the request asks for another form', async () => {
    const { access } = await connect(service, agent)
    const all = await Promise.all([
      namesAt('/mcp'),
      namesAt('/mcp?names=dotted'),
      namesAt('/mcp?names=underscore'),
      namesAt('/mcp', access),
      namesAt('/mcp?names=dotted', access),
    ])
    expect(all.map((names) => names.includes('mail.send'))).toEqual([
      true,
      true,
      false,
      false,
      true,
    ])
    expect(all.map((names) => names.includes('mail_send'))).toEqual([
      false,
      false,
      true,
      true,
      false,
    ])
  })
})

describe('if the call of an OAuth client lacks a scope, the response names the missing scope', () => {
  const challenge = async (body: unknown, key: string) => {
    const answer = await post(body, { key })
    return { ...answer, header: answer.headers.get('www-authenticate') }
  }

  test('if an OAuth client’s call lacks a scope, the response names the scopes that the client has and the missing scope', async () => {
    const { access } = await connect(service, agent, { scopes: ['mail:read'] })
    const { status, body, header } = await challenge(toolCall('mail_send'), access)
    expect([status, body.message]).toEqual([403, 'Missing required scope: mail:send'])
    expect(header).toBe(
      `Bearer realm="purser", error="insufficient_scope", scope="mail:read mail:send", resource_metadata="${service.url}/.well-known/oauth-protected-resource/mcp"`,
    )
  })

  test('an OAuth client’s call gets no OAuth challenge if it has the scope, if no consent can grant the scope, or if the tool does not exist', async () => {
    const { access } = await connect(service, agent, { scopes: ['mail:read'] })
    for (const body of [
      toolCall('whoami'),
      toolCall('mail_list_messages'),
      toolCall('purse_pay'),
      toolCall('constructor'),
      toolCall('__proto__'),
      { ...WHOAMI, params: { name: 7 } },
      { ...WHOAMI, params: null },
      { jsonrpc: '2.0', id: 1, method: 'tools/call' },
      { jsonrpc: '2.0', id: 1, method: 'tools/list', params: { name: 'mail_send' } },
    ]) {
      const { status, header } = await challenge(body, access)
      expect([body, status === 403, header]).toEqual([body, false, null])
    }
  })

  test('if one call of a JSON-RPC batch is refused, its own result contains the refusal, and the other calls of the batch still run', async () => {
    const { access } = await connect(service, agent, { scopes: ['mail:read'] })
    const { status, body } = await challenge(
      [toolCall('mail_send'), { ...toolCall('whoami'), id: 2 }],
      access,
    )
    expect(status).toBe(200)
    const byId = new Map<number, any>(body.map((one: { id: number }) => [one.id, one]))
    expect(byId.get(1).error ?? byId.get(1).result.isError).toBeTruthy()
    expect(byId.get(2).result.structuredContent.projectId).toBe(agent.project.id)
  })

  test('a call with an API key that lacks a scope gets no OAuth challenge, because consent cannot extend an API key', async () => {
    const reader = await service.newAgent({ scopes: ['mail:read'] })
    const { status, header } = await challenge(toolCall('mail.send'), reader.key)
    expect([status, header]).toEqual([200, null])
  })
})
