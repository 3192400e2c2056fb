/** A host that reads the usual `mcpServers` configuration: mcporter, over HTTP and over stdio. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startCommand } from '../support/process.ts'
import { type Agent, startTestService, type TestService } from '../support/service.ts'

setDefaultTimeout(60_000)

const ROOT = join(import.meta.dir, '../..')
const folder = mkdtempSync(join(tmpdir(), 'purser-mcporter-'))
const config = join(folder, 'mcporter.json')

let service: TestService
let agent: Agent
beforeAll(async () => {
  service = await startTestService({ smtp: false, workers: false })
  agent = await service.newAgent()
  const http = (names: string) => ({
    url: `${service.url}/mcp${names}`,
    headers: { Authorization: `Bearer ${agent.key}` },
  })
  const mcpServers = {
    dotted: http(''),
    underscore: http('?names=underscore'),
    stdio: {
      command: join(ROOT, 'node_modules/.bin/bun'),
      args: ['run', '--silent', '--cwd', ROOT, 'mcp'],
      env: {
        PURSER_URL: service.url,
        PURSER_API_KEY: agent.key,
        PURSER_TOOL_NAMES: 'underscore',
      },
    },
  }
  writeFileSync(config, JSON.stringify({ mcpServers }))
})
afterAll(async () => {
  await service[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true, force: true })
})

async function mcporter(...args: string[]): Promise<{ code: number | string; answer: any }> {
  const cli = 'test/clients/node_modules/mcporter/dist/cli.js'
  await using process = startCommand(['node', cli, '--config', config, ...args], { HOME: folder })
  const code = await process.exited
  const text = process.stdout()
  return { code, answer: text.startsWith('{') ? JSON.parse(text) : text + process.stderr() }
}

const SEND = JSON.stringify({ to: ['a@example.com'], subject: 's', text: 't' })

for (const [server, tool] of [
  ['dotted', 'mail.send'],
  ['underscore', 'mail_send'],
  ['stdio', 'mail_send'],
] as const) {
  test(`${server}: the list, and a call`, async () => {
    const listed = await mcporter('list', server, '--json')
    expect(listed.code).toBe(0)
    expect(listed.answer.tools.map(({ name }: any) => name)).toContain(tool)
    const call = ['call', '--server', server, '--tool', tool, '--args', SEND, '--output', 'json']
    const sent = await mcporter(...call)
    expect(sent).toMatchObject({ code: 0, answer: { inboxId: agent.address, labels: ['sent'] } })
  })
}

test('a wrong call is told as the service tells it', async () => {
  const lost = await mcporter(
    ...['call', '--server', 'dotted', '--tool', 'mail.get_thread', '--output', 'json'],
    ...['--args', '{"threadId":"thd_0"}'],
  )
  expect(JSON.stringify(lost.answer)).toContain('not_found: Thread not found. Take threadId from')
})
