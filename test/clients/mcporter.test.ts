/** Tests mcporter, an MCP host that reads the usual `mcpServers` configuration, over HTTP and over stdio. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { some } from '../support/database/extent.ts'
import { startCommand } from '../support/process/process.ts'
import { type Agent, startTestService, type TestService } from '../support/service.ts'
import '../support/long.ts'

const ROOT = join(import.meta.dir, '../..')
const folder = mkdtempSync(join(tmpdir(), 'purser-mcporter-'))
const config = join(folder, 'mcporter.json')

let service: TestService
let agent: Agent
beforeAll(async () => {
  service = await startTestService({ smtp: false, workers: false })
  agent = await service.newAgent()
  const [http, stdio] = documentedServers().map((server) =>
    JSON.parse(
      server
        .replaceAll('http://127.0.0.1:3000', service.url)
        .replaceAll('loid-…', agent.key)
        .replaceAll('/path/to/purser', ROOT),
    ),
  )
  const dotted = { ...http, url: `${service.url}/mcp` }
  const mcpServers = { dotted, underscore: http, stdio }
  writeFileSync(config, JSON.stringify({ mcpServers }))
})
afterAll(async () => {
  await service[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true, force: true })
})

/** Reads the example configurations of docs/agent.md for HTTP and for stdio. */
function documentedServers(): string[] {
  const blocks = readFileSync(join(ROOT, 'docs/agent.md'), 'utf8').matchAll(
    /```json\n([\s\S]*?)```/g,
  )
  return [...blocks].map(([, json]) => JSON.stringify(JSON.parse(json!).mcpServers.purser))
}

async function mcporter(...args: string[]): Promise<{ code: number | string; answer: any }> {
  const cli = 'test/clients/node_modules/mcporter/dist/cli.js'
  await using process = startCommand(['node', cli, '--config', config, ...args], {
    HOME: folder,
    MCPORTER_LIST_TIMEOUT: '150000',
    MCPORTER_CALL_TIMEOUT: '150000',
  })
  const code = await process.exited
  const text = process.stdout()
  return { code, answer: text.startsWith('{') ? JSON.parse(text) : text + process.stderr() }
}

const SEND = JSON.stringify({ to: ['a@example.com'], subject: 's', text: 't' })

for (const [server, tool] of some([
  ['dotted', 'mail.send'],
  ['underscore', 'mail_send'],
  ['stdio', 'mail_send'],
] as const)) {
  test(`the MCP host mcporter lists and calls tools of the server "${server}"`, async () => {
    const listed = await mcporter('list', server, '--json')
    expect(listed.code).toBe(0)
    expect(listed.answer.tools.map(({ name }: any) => name)).toContain(tool)
    const call = ['call', '--server', server, '--tool', tool, '--args', SEND, '--output', 'json']
    const sent = await mcporter(...call)
    expect(sent).toMatchObject({ code: 0, answer: { inboxId: agent.address, labels: ['sent'] } })
  })
}

test('the MCP host mcporter shows the service’s error for an invalid tool call', async () => {
  const lost = await mcporter(
    ...['call', '--server', 'dotted', '--tool', 'mail.get_thread', '--output', 'json'],
    ...['--args', '{"threadId":"thd_0"}'],
  )
  expect(JSON.stringify(lost.answer)).toContain('not_found: Thread not found. Take threadId from')
})
