/** Packs the published MCP relay, and runs it with npx in an empty folder, as an MCP host does. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { callTool } from '../support/mcp.ts'
import { startTestService, type TestService } from '../support/service.ts'
import '../support/long.ts'

const ROOT = join(import.meta.dir, '../..')
const PACKAGE = join(ROOT, 'api/mcp/package')
const LIMIT_MS = 60_000

let service: TestService
let folder: string
beforeAll(async () => {
  service = await startTestService({ smtp: false, workers: false })
  folder = mkdtempSync(join(tmpdir(), 'purser-relay-'))
  const pack = Bun.spawn(['npm', 'pack', '--pack-destination', folder], {
    cwd: PACKAGE,
    // The build of the MCP relay's package needs Bun, although the built package runs under Node.
    env: {
      HOME: folder,
      PATH: [join(ROOT, 'node_modules/.bin'), process.env.PATH].join(delimiter),
    },
    stdout: 'ignore',
    stderr: 'ignore',
  })
  expect(await pack.exited).toBe(0)
}, LIMIT_MS)
afterAll(async () => {
  await service[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true, force: true })
})

test(
  'the command npx runs the packed MCP relay under Node, and an MCP host gets the tools',
  async () => {
    const agent = await service.newAgent()
    const [tarball = ''] = readdirSync(folder).filter((name) => name.endsWith('.tgz'))
    const client = new Client({ name: 'host', version: '1' })
    const transport = new StdioClientTransport({
      command: 'npx',
      args: ['--yes', '--offline', '--package', join(folder, tarball), 'purser-mcp'],
      cwd: folder,
      env: {
        PATH: process.env.PATH ?? '',
        HOME: folder,
        PURSER_URL: service.url,
        PURSER_API_KEY: agent.key,
      },
      stderr: 'ignore',
    })
    await client.connect(transport)
    expect((await callTool(client, 'whoami')).projectId).toBe(agent.project.id)
    await client.close()
  },
  LIMIT_MS,
)

test('the server record for the MCP registry names the package, its version and its settings', () => {
  const read = (name: string) => JSON.parse(readFileSync(join(PACKAGE, name), 'utf8'))
  const [server, npm] = [read('server.json'), read('package.json')]
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  const [packed] = server.packages
  expect([server.name, packed.identifier]).toEqual([npm.mcpName, npm.name])
  expect([server.version, packed.version, npm.version]).toEqual([version, version, version])
  const names = packed.environmentVariables.map(({ name }: { name: string }) => name)
  expect(names).toEqual(['PURSER_URL', 'PURSER_API_KEY', 'PURSER_TOOL_NAMES'])
})
