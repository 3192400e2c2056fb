/**
 * Tests that the service takes every query parameter that the clients of the reference service send. The tests do not
 * install these clients, so a table lists their requests. The requests come from public sources: `@loomal/sdk` 0.6.2,
 * `@loomal/cli` 0.3.0, `@loomal/mcp` 0.6.2, `loomal-sdk` 0.6.2 for Python, and the version 0.7.1 of their successors
 * `mailgent`.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { encodeCursor } from '../../../../shared/cursor.ts'
import { type Agent, startTestService, type TestService } from '../../../support/service.ts'

const limit = '50'
const pageToken = encodeCursor({ atMs: Date.parse('2026-01-01'), row: 1n })

type Query = Record<string, string>
/** Lists the GET requests of the reference clients: the client's method, the path, and the query. */
const REQUESTS: [method: string, path: string, query: Query][] = [
  ['identity.whoami', '/v0/whoami', {}],
  ['mail.listMessages', '/v0/messages', { limit, labels: 'received,unread', pageToken }],
  ['mail.getMessage', '/v0/messages/%3Cno%40where%3E', {}],
  ['mail.listThreads', '/v0/threads', { limit, pageToken }],
  ['mail.getThread', '/v0/threads/thd_0', { limit }],
  ['mail.listRules', '/v0/email-rules', {}],
  ['vault.list', '/v0/vault', {}],
  ['vault.get', '/v0/vault/none', {}],
  ['vault.totp', '/v0/vault/none/totp', {}],
  ['logs.list', '/v0/logs', { limit, category: 'vault', action: 'vault.get', pageToken }],
  ['logs.list', '/v0/logs', { status: 'success', severity: 'INFO' }],
  ['logs.list', '/v0/logs', { status: 'error', severity: 'WARNING' }],
  ['logs.list', '/v0/logs', { status: 'denied', severity: 'ERROR' }],
  ['logs.stats', '/v0/logs/stats', {}],
  ['payments.list', '/v0/payments', { limit }],
  ['payments.activity', '/v0/payments/activity', { limit }],
  ['payments.get', '/v0/payments/pay_0', {}],
  ['did.root', '/.well-known/did.json', {}],
  ['did.identity', '/identities/prj_0/did.json', {}],
  ['identities.list', '/v0/platform/identities', { limit, pageToken }],
  ['identities.get', '/v0/platform/identities/prj_0', {}],
]
/** Holds the paths of {@link REQUESTS} that name no existing object. */
const ABSENT = /no%40where|thd_0|\/none|pay_0|prj_0|did\.json/

let service: TestService
let agent: Agent
beforeAll(async () => {
  service = await startTestService({ smtp: false, workers: false })
  agent = await service.newAgent()
})
afterAll(() => service[Symbol.asyncDispose]())

const ask = (path: string, query: Query) => {
  const { get } = path.startsWith('/v0/platform') ? service.platform : agent
  return get(`${path}?${new URLSearchParams(query)}`)
}

test.each(REQUESTS)(
  'the service takes the query of the reference client’s %s: %s %j',
  async (...request) => {
    const [, path, query] = request
    const expected = ABSENT.test(path) ? 404 : 200
    // A reference client may send only one of its parameters, so the test also sends each parameter alone.
    const alone = Object.entries(query).map(([name, value]) => ({ [name]: value }))
    for (const sent of [query, ...alone]) {
      const { status, body } = await ask(path, sent)
      expect([sent, status, body]).toEqual([sent, expected, expect.anything()])
    }
  },
)

test('the calendar answers a reference client that names no period', async () => {
  expect(await ask('/v0/calendar', {})).toMatchObject({ status: 200, body: { count: 0 } })
})

test('the calendar accepts a request with all three query parameters of the reference clients', async () => {
  const period = { from: '2026-01-01', to: '2026-12-31T00:00:00Z' }
  const { status, body } = await ask('/v0/calendar', { limit, ...period })
  expect([status, body]).toEqual([200, { events: [], count: 0 }])
})
