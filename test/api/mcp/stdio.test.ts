import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { callTool, cancelUnderWay, failTool } from '../../support/mcp.ts'
import { startProcess } from '../../support/process/process.ts'
import { startTestService, type TestService } from '../../support/service.ts'
import '../../support/long.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService({ smtp: false, workers: false })
})
afterAll(() => service[Symbol.asyncDispose]())

/** Starts the MCP server over stdio, as an MCP host on the same machine does. */
async function connect(env: Record<string, string>): Promise<Client & AsyncDisposable> {
  const client = new Client({ name: 'host', version: '1' })
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: ['run', '--silent', 'mcp'],
    cwd: join(import.meta.dir, '../../..'),
    env,
    stderr: 'ignore',
  })
  await client.connect(transport)
  await client.listTools()
  return Object.assign(client, { [Symbol.asyncDispose]: () => client.close() })
}

test('a local MCP host needs only an API key and a URL to get the tools of the service', async () => {
  const agent = await service.newAgent({ scopes: ['mail:read', 'mail:send'] })
  await using mcp = await connect({ PURSER_API_KEY: agent.key, PURSER_URL: service.url })
  expect(mcp.getServerVersion()?.name).toBe('purser')
  const { tools } = await mcp.listTools()
  expect(tools.map(({ name }) => name)).toContain('mail.send')
  expect(tools.map(({ name }) => name)).not.toContain('mail.update_labels')
  const mail = { to: ['a@example.com'], subject: 's', text: 't' }
  const [sent, list, me] = await Promise.all([
    callTool(mcp, 'mail.send', mail),
    callTool(mcp, 'mail.list_threads'),
    callTool(mcp, 'whoami'),
  ])
  expect(sent.inboxId).toBe(agent.address)
  expect(list.untrusted).toBe(true)
  expect(me.projectId).toBe(agent.project.id)
  expect(await failTool(mcp, 'mail.get_message', { messageId: 'x' })).toStartWith('not_found: ')
})

test('the stdio server supports underscore names and a URL with a trailing slash', async () => {
  const agent = await service.newAgent()
  await using mcp = await connect({
    PURSER_API_KEY: agent.key,
    PURSER_URL: `${service.url}/`,
    PURSER_TOOL_NAMES: 'underscore',
  })
  expect((await callTool(mcp, 'mail_list_messages')).count).toBe(0)
})

test('an HTTP error of the service becomes the error response of the MCP call', async () => {
  const agent = await service.newAgent()
  await using mcp = await connect({ PURSER_API_KEY: agent.key, PURSER_URL: service.url })
  await service.platform.post(`/v0/platform/projects/${agent.project.id}/rotate-key`)
  expect(await failTool(mcp, 'whoami')).toBe('unauthorized: Invalid API key.')
  await expect(mcp.listTools()).rejects.toThrow('unauthorized: Invalid API key.')
})

test('an MCP call over stdio while the service is unreachable gets an error response', async () => {
  const env = { PURSER_API_KEY: `loid-${'0'.repeat(64)}`, PURSER_URL: 'http://127.0.0.1:1' }
  await expect(connect(env)).rejects.toThrow('Could not reach http://127.0.0.1:1: is it running?')
})

test('a call that the stdio client cancels is aborted, and the next call succeeds', async () => {
  const agent = await service.newAgent()
  await using mcp = await connect({ PURSER_API_KEY: agent.key, PURSER_URL: service.url })
  await cancelUnderWay(mcp, agent, service.database)
})

test('if a setting is wrong, the stdio server ends and prints one line that names the setting', async () => {
  for (const [env, message] of [
    [
      {},
      'PURSER_API_KEY: it is missing, and must be a project key: loid- and 64 hexadecimal digits',
    ],
    [
      { PURSER_API_KEY: `lopk-${'0'.repeat(64)}` },
      'PURSER_API_KEY: its value must be a project key: loid- and 64 hexadecimal digits',
    ],
    [
      { PURSER_API_KEY: `loid-${'0'.repeat(64)}`, PURSER_URL: 'purser' },
      'PURSER_URL: its value must be a URL that starts with http:// or https://',
    ],
  ] as const) {
    const started = startProcess('api/mcp/main.ts', env)
    expect(await started.exited).toBe(78)
    expect([started.stdout(), started.stderr().trim()]).toEqual(['', message])
  }
})

test('an MCP host of the revision 2026-07-28 can call tools without a handshake', async () => {
  const agent = await service.newAgent()
  const child = Bun.spawn([process.execPath, 'run', '--silent', 'mcp'], {
    cwd: join(import.meta.dir, '../../..'),
    env: { PATH: process.env.PATH ?? '', PURSER_API_KEY: agent.key, PURSER_URL: service.url },
    stdin: 'pipe',
    stdout: 'pipe',
    stderr: 'ignore',
  })
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientCapabilities': {},
    'io.modelcontextprotocol/clientInfo': { name: 'host', version: '1' },
  }
  const calls = [
    { id: 1, method: 'server/discover', params: { _meta } },
    { id: 2, method: 'tools/list', params: { _meta } },
    { id: 3, method: 'tools/call', params: { name: 'whoami', arguments: {}, _meta } },
  ]
  for (const call of calls) child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...call })}\n`)
  await child.stdin.end()
  const lines = (await new Response(child.stdout).text()).trim().split('\n')
  const answers = lines.map((line) => JSON.parse(line)).toSorted((a, b) => a.id - b.id)
  const [discovered, listed, called] = answers.map(({ result }) => result)
  expect(discovered).toMatchObject({
    resultType: 'complete',
    supportedVersions: ['2026-07-28'],
    cacheScope: 'private',
  })
  expect(listed).toMatchObject({ resultType: 'complete', ttlMs: 60_000, cacheScope: 'private' })
  expect(listed.tools.length).toBeGreaterThan(20)
  expect(called.structuredContent.projectId).toBe(agent.project.id)
})
