/** Runs the job that checks an endpoint alone on a test database, against a local server of the seller. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { OPEN_API_BYTES_MAX } from '../../../shared/till/bazaar/openApi.ts'
import { createVerifyEndpoint } from '../../../workers/till/verifyEndpoint.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database/database.ts'
import { type Receiver, startReceiver, status } from '../../support/events/receiver.ts'
import { CHALLENGE } from '../../support/till/headers/challenge.ts'
import { registerEndpoint } from '../../support/till/till.ts'
import { newProject, row } from '../../support/till/tillRows.ts'

let database: TestDatabase
let pool: TestDatabase['pool']
let server: Receiver
let document: Receiver['answer']
/** Runs when the job requests permission to send, which is after the job has read the endpoint. */
let onTurn: () => Promise<object>
let run: (endpointId: string) => Promise<void>

beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
  server = await startReceiver((request, response) =>
    request.path === '/openapi.json'
      ? document(request, response)
      : status(402, CHALLENGE)(request, response),
  )
  const verify = createVerifyEndpoint({ pool, lanes: { enter: () => onTurn() } } as never, {
    allowPrivate: true,
  })
  run = (endpointId) => verify({ endpointId }, { attempt: 1 })
})
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  await database[Symbol.asyncDispose]()
})
beforeEach(() => {
  server.requests.length = 0
  onTurn = async () => ({ granted: true, waited: false, leave: () => {} })
})

let made = 0
const url = (path: string) => new URL(path, server.url).href
const register = async () =>
  registerEndpoint(pool, { projectId: await newProject(pool), resource: url(`/tea/${++made}`) })

test('the check of a deleted endpoint sends no request', async () => {
  const id = await register()
  await pool.query('update seller_endpoints set deleted_at = now() where id = $1', [id])
  await run(id)
  await run('se_none')
  expect(server.requests).toEqual([])
})

test('if the row of an endpoint disappears before its check begins, the check sends no request', async () => {
  const id = await register()
  const granted = onTurn
  onTurn = async () => {
    await pool.query('delete from seller_endpoints where id = $1', [id])
    return granted()
  }
  await run(id)
  expect(server.requests).toEqual([])
})

test('the check of an endpoint runs later if the service may not send a request to the endpoint’s server now', async () => {
  const id = await register()
  onTurn = async () => ({ granted: false, returnInMs: 60_000 })
  await run(id)
  const { rows } = await pool.query(
    `select run_at > now() + interval '50 seconds' as is_later from graphile_worker.jobs where key = $1`,
    [`verify_endpoint:${id}`],
  )
  expect([rows, server.requests]).toEqual([[{ is_later: true }], []])
})

const described = (path: string) =>
  JSON.stringify({ openapi: '3.1.0', info: { title: 'Tea' }, paths: { [path]: { get: {} } } })
const padded = (text: string, bytes: number) => text + ' '.repeat(bytes - text.length)
const FAULTS: [string, (path: string) => Receiver['answer'], string | null][] = [
  ['is read', (path) => status(200, described(path)), null],
  [
    'has the greatest length',
    (path) => status(200, padded(described(path), OPEN_API_BYTES_MAX)),
    null,
  ],
  [
    'is longer',
    (path) => status(200, padded(described(path), OPEN_API_BYTES_MAX + 1)),
    `the document is longer than ${OPEN_API_BYTES_MAX} bytes`,
  ],
  ['is missing', (path) => status(404, described(path)), 'answered 404, expected 200'],
  ['is cut off', () => (_request, response) => void response.destroy(), 'ECONNRESET'],
  ['is no JSON', () => status(200, 'tea'), 'the document is not JSON'],
]
for (const [name, answer, fault] of FAULTS) {
  test(`the check of an endpoint stores the metadata or the fault of an OpenAPI document that ${name}`, async () => {
    const id = await register()
    const openApiUrl = url('/openapi.json')
    await pool.query('update seller_endpoints set open_api_url = $2 where id = $1', [
      id,
      openApiUrl,
    ])
    document = answer(`/tea/${made}`)
    await run(id)
    const stored = await row(pool, 'seller_endpoints', id)
    expect([stored.verification_status, stored.open_api_detail]).toEqual(['verified', fault])
    expect(stored.open_api_metadata.serviceName).toBe(fault === null ? 'Tea' : undefined)
  })
}
