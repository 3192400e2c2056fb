/**
 * Runs the whole OAuth flow with other programs: mcp-remote, the MCP Inspector, and test scenarios of the MCP project.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { allow, register, requestConsent, startOAuthService } from '../support/oauth.ts'
import { freePort } from '../support/process/process.ts'
import type { Agent, TestService } from '../support/service.ts'
import { waitFor } from '../support/waitFor.ts'
import '../support/long.ts'

const MODULES = join(import.meta.dir, 'node_modules')
const REMOTE = join(MODULES, 'mcp-remote/dist/proxy.js')
const CONFORMANCE = join(MODULES, '@modelcontextprotocol/conformance/dist/index.js')
const LIMIT_MS = 60_000

let service: TestService
let agent: Agent
let home: string
beforeAll(async () => {
  service = await startOAuthService()
  agent = await service.newAgent()
  home = mkdtempSync(join(tmpdir(), 'purser-home-'))
})
afterAll(async () => {
  await service[Symbol.asyncDispose]()
  rmSync(home, { recursive: true, force: true })
})

/** Starts a program as a child process. `said` collects the program's output as it arrives. */
function run(command: string[]) {
  const child = Bun.spawn(command, {
    stdin: 'pipe',
    stdout: 'pipe',
    stderr: 'pipe',
    // The program must open no browser, because the test acts as the owner. MCP_AUTO_OPEN_ENABLED keeps the MCP
    // Inspector from asking for a terminal.
    env: {
      PATH: process.env.PATH ?? '',
      HOME: home,
      MCP_REMOTE_CONFIG_DIR: home,
      MCP_AUTO_OPEN_ENABLED: 'true',
    },
  })
  const said = { out: '', all: '' }
  const read = async (stream: ReadableStream<Uint8Array>, isOut: boolean) => {
    const decoder = new TextDecoder()
    for await (const chunk of stream) {
      const text = decoder.decode(chunk, { stream: true })
      said.all += text
      if (isOut) said.out += text
    }
  }
  void read(child.stdout, true)
  void read(child.stderr, false)
  return {
    said,
    stdin: child.stdin,
    exited: child.exited,
    async [Symbol.asyncDispose]() {
      child.kill()
      await child.exited
    },
  }
}

/** Opens the authorization URL that a program prints, gives consent as the owner would, and follows the redirect. */
async function consentTo(said: { all: string }): Promise<void> {
  const url = await waitFor(
    'the address of the consent page',
    () => /http:\/\/\S+\/oauth\/authorize\?\S+/.exec(said.all)?.[0],
    LIMIT_MS,
  )
  const query = new URL(url).searchParams
  const { id, owner } = await requestConsent(service, { clientId: '', verifier: '', query })
  const scopes = (query.get('scope') ?? 'mail:read')
    .split(' ')
    .filter((scope) => scope.startsWith('mail:'))
  const { status, body } = await allow(owner, id, agent, { scopes })
  expect([status, body.message]).toEqual([200, undefined])
  expect((await fetch(body.redirectTo)).ok).toBe(true)
}

test(
  'the program mcp-remote registers as an OAuth app, gets consent, and lists the tools',
  async () => {
    await using program = run(['node', REMOTE, `${service.url}/mcp`, String(await freePort())])
    const send = (message: object) => {
      program.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
      program.stdin.flush()
    }
    const answer = (id: number) =>
      waitFor(
        `the answer ${id}`,
        () =>
          program.said.out
            .split('\n')
            .filter((line) => line.startsWith('{'))
            .map((line) => JSON.parse(line))
            .find((message) => message.id === id),
        LIMIT_MS,
      )
    await consentTo(program.said)
    const clientInfo = { name: 'host', version: '1' }
    send({
      id: 1,
      method: 'initialize',
      params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo },
    })
    expect((await answer(1)).result.serverInfo.name).toBe('purser')
    send({ method: 'notifications/initialized' })
    send({ id: 2, method: 'tools/list' })
    const { tools } = (await answer(2)).result
    expect(tools.map(({ name }: { name: string }) => name)).toContain('mail_list_messages')
  },
  LIMIT_MS * 2,
)

test(
  'the authorization scenarios of the MCP project’s conformance suite pass',
  async () => {
    const port = await freePort()
    const { body: client } = await register(service.url, {
      redirect_uris: [`http://127.0.0.1:${port}/callback`],
    })
    await using program = run([
      process.execPath,
      CONFORMANCE,
      'authorization',
      '--url',
      service.url,
      '--client-id',
      client.client_id,
      '--resource',
      `${service.url}/mcp`,
      '--port',
      String(port),
    ])
    await consentTo(program.said)
    const code = await program.exited
    expect([code, program.said.all]).toEqual([0, expect.stringMatching(/\b0 failed/)])
  },
  LIMIT_MS * 2,
)

// The MCP Inspector runs under Bun, because the Inspector needs a newer version of Node than the tests.
const INSPECTOR = [
  process.execPath,
  '--bun',
  join(MODULES, '@modelcontextprotocol/inspector/clients/launcher/build/index.js'),
  '--cli',
]

test(
  'the command-line program of the MCP Inspector gets the consent of the owner, and lists the tools',
  async () => {
    await using program = run([
      ...INSPECTOR,
      '--server-url',
      `${service.url}/mcp`,
      '--callback-url',
      `http://127.0.0.1:${await freePort()}/oauth/callback`,
      '--method',
      'tools/list',
    ])
    await consentTo(program.said)
    expect([await program.exited, program.said.out]).toEqual([
      0,
      expect.stringContaining('"mail_list_messages"'),
    ])
  },
  LIMIT_MS * 2,
)

test.each(['legacy', 'modern', 'auto'])(
  'the command line of the MCP Inspector works with an API key and with the MCP protocol era %s',
  async (era) => {
    const program = run([
      ...INSPECTOR,
      '--server-url',
      `${service.url}/mcp`,
      '--header',
      `Authorization: Bearer ${agent.key}`,
      '--protocol-era',
      era,
      '--method',
      'tools/call',
      '--tool-name',
      'whoami',
    ])
    expect([await program.exited, program.said.out]).toEqual([
      0,
      expect.stringContaining(agent.address),
    ])
  },
  LIMIT_MS,
)
