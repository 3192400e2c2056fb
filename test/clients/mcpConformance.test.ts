/** Runs the conformance suite of the MCP project, with every server scenario that two revisions of MCP require. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { createServer, request, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startTestService, type TestService } from '../support/service.ts'
import '../support/long.ts'

const PROGRAM = join(
  import.meta.dir,
  'node_modules/@modelcontextprotocol/conformance/dist/index.js',
)
const LIMIT_MS = 120_000

/**
 * Maps each reason for a failure to the conformance scenarios that must fail for it. If such a scenario passes, the
 * test fails.
 */
const EXPECTED: Record<string, string[]> = {
  "it calls a tool of the suite's own": [
    'tools-call-simple-text',
    'tools-call-image',
    'tools-call-audio',
    'tools-call-embedded-resource',
    'tools-call-mixed-content',
    'tools-call-error',
    'tools-call-with-logging',
    'tools-call-with-progress',
    'tools-call-sampling',
    'tools-call-elicitation',
    'elicitation-sep1034-defaults',
    'elicitation-sep1330-enums',
    'json-schema-2020-12',
    'http-custom-header-server-validation',
    'input-required-result-basic-elicitation',
    'input-required-result-basic-sampling',
    'input-required-result-basic-list-roots',
    'input-required-result-request-state',
    'input-required-result-multiple-input-requests',
    'input-required-result-multi-round',
    'input-required-result-non-tool-request',
    'input-required-result-result-type',
    'input-required-result-tampered-state',
    'input-required-result-capability-check',
  ],
  'we have tools alone: no resources': [
    'resources-list',
    'resources-read-text',
    'resources-read-binary',
    'resources-templates-read',
    'resources-subscribe',
    'resources-unsubscribe',
  ],
  'we have tools alone: no prompts, no completion': [
    'prompts-list',
    'prompts-get-simple',
    'prompts-get-with-args',
    'prompts-get-embedded-resource',
    'prompts-get-with-image',
    'completion-complete',
  ],
  'we send no log to a client': ['logging-set-level'],
  'tasks are an extension that no host has yet': [
    'tasks-lifecycle',
    'tasks-capability-negotiation',
    'tasks-wire-fields',
    'tasks-request-state-removal',
    'tasks-mrtr-input',
    'tasks-request-headers',
    'tasks-dispatch-and-envelope',
    'tasks-required-task-error',
    'tasks-mrtr-composition',
  ],
}

/**
 * Maps a scenario to those checks that fail because this service lacks the tools, prompts and resources that the
 * conformance suite expects.
 */
const IN_PART: Record<string, string[]> = {
  'server-stateless': [
    'sep-2575-http-server-no-independent-requests-on-stream',
    'sep-2575-missing-capability-http-400',
    'sep-2575-server-no-log-without-loglevel',
    'sep-2575-server-rejects-undeclared-capability',
  ],
  caching: [
    'sep-2549-prompts-list-caching-hints',
    'sep-2549-resources-list-caching-hints',
    'sep-2549-resources-templates-list-caching-hints',
  ],
}

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

/** Starts a proxy that adds an API key to each request, because the conformance suite sends no API key. */
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

/** Runs the conformance scenarios that a revision of MCP requires. @returns the failed checks of each scenario. */
async function failedChecks(revision: string): Promise<Map<string, string[]>> {
  const folder = mkdtempSync(join(tmpdir(), 'purser-conformance-'))
  try {
    const url = `http://127.0.0.1:${(keyed.address() as AddressInfo).port}/mcp`
    const run = Bun.spawn(
      [
        ...[process.execPath, '--bun', PROGRAM, 'server', '--url', url],
        ...['--requirements', revision, '--output-dir', folder],
      ],
      { stdout: 'ignore', stderr: 'ignore' },
    )
    await run.exited
    return new Map(
      readdirSync(folder).map((name) => {
        const checks: { id: string; status: string }[] = JSON.parse(
          readFileSync(join(folder, name, 'checks.json'), 'utf8'),
        )
        const scenario = name.replace(/^server-/, '').replace(/-\d{4}-\d\d-\d\dT.*$/, '')
        const failed = checks.filter(({ status }) => status === 'FAILURE')
        return [scenario, failed.map(({ id }) => id).toSorted()]
      }),
    )
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/**
 * Reads the row of an MCP revision in docs/clients.md: the number of all scenarios, and the number of scenarios with
 * each outcome.
 */
function documentedFigures(revision: string): number[] {
  const page = readFileSync(join(import.meta.dir, '../../docs/clients.md'), 'utf8')
  const row = page.split('\n').find((line) => line.startsWith(`| ${revision} `))!
  return row.split('|').slice(2, -1).map(Number)
}

test.each(['2026-07-28', '2025-11-25'])(
  'all conformance tests of MCP revision %s pass, except for the tests listed in the tables EXPECTED and IN_PART',
  async (revision) => {
    const found = await failedChecks(revision)
    const known = new Set(Object.values(EXPECTED).flat())
    const passed = [...found].filter(([, failed]) => failed.length === 0).map(([name]) => name)
    expect(passed.filter((name) => known.has(name))).toEqual([])
    const others = [...found].filter(([name]) => !known.has(name) && !passed.includes(name))
    const partly = Object.entries(IN_PART).filter(([name]) => found.has(name))
    expect(Object.fromEntries(others)).toEqual(Object.fromEntries(partly))
    const absent = found.size - passed.length - partly.length
    expect(documentedFigures(revision)).toEqual([found.size, passed.length, partly.length, absent])
    // In every conformance scenario, the messages of the service must have the form that the MCP revision defines.
    expect([...found].filter(([, failed]) => failed.includes('wire-schema-valid'))).toEqual([])
  },
  LIMIT_MS,
)
