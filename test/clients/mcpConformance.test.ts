/** The scenarios of the MCP project's own conformance suite that apply to a server of tools without sessions. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createServer, request, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { startTestService, type TestService } from '../support/service.ts'

const PROGRAM = join(
  import.meta.dir,
  'node_modules/@modelcontextprotocol/conformance/dist/index.js',
)
const SCENARIOS = ['server-initialize', 'ping', 'tools-list', 'dns-rebinding-protection']

let service: TestService
let keyed: Server
beforeAll(async () => {
  service = await startTestService({ smtp: false, workers: false })
  keyed = await withKey(service.url, (await service.newAgent()).key)
})
afterAll(async () => {
  keyed.close()
  await service[Symbol.asyncDispose]()
})

/** The suite sends no key: this adds it. */
function withKey(url: string, key: string): Promise<Server> {
  const { hostname, port } = new URL(url)
  const server = createServer((from, to) => {
    const { method, url: path, headers } = from
    const passed = request(
      {
        hostname,
        port,
        method,
        path,
        headers: { ...headers, authorization: `Bearer ${key}` },
      },
      (answer) => {
        to.writeHead(answer.statusCode!, answer.headers)
        answer.pipe(to)
      },
    )
    from.pipe(passed)
  })
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server)))
}

test.each(SCENARIOS)('conformance: %s', async (scenario) => {
  const url = `http://127.0.0.1:${(keyed.address() as AddressInfo).port}/mcp`
  const run = Bun.spawn(
    [process.execPath, '--bun', PROGRAM, 'server', '--url', url, '--scenario', scenario],
    { stdout: 'pipe', stderr: 'pipe' },
  )
  const [code, out, errors] = await Promise.all([
    run.exited,
    new Response(run.stdout).text(),
    new Response(run.stderr).text(),
  ])
  expect([code, out, errors].join('\n')).toMatch(/^0\n[\s\S]*Passed: [1-9]\d*\/\d+, 0 failed/)
})
