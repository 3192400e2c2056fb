/** Tests when a check of an endpoint is queued again, and that concurrent changes of the endpoint have priority. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { newEndpointId } from '../../../../shared/ids.ts'
import {
  checkEndpoint,
  checkEndpointAnew,
  findEndpointCheck,
  provokeEndpointCheck,
  startEndpointCheck,
} from '../../../../sql/till/endpoints/endpointChecks.ts'
import {
  findEndpoint,
  recordOpenApi,
  recordVerification,
} from '../../../../sql/till/endpoints/endpoints.ts'
import { isSoldByAnother } from '../../../../sql/till/endpoints/rivalEndpoints.ts'
import { changeProject } from '../../../support/changeProject.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import { newProject, row, whileHeld } from '../../../support/till/tillRows.ts'
import { waitFor } from '../../../support/waitFor.ts'

const PAUSE_MS = 60_000

let database: TestDatabase
let pool: TestDatabase['pool']
beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
})
afterAll(() => database[Symbol.asyncDispose]())

async function newEndpoint(): Promise<{ id: string; projectId: string }> {
  const projectId = await newProject(pool)
  const id = newEndpointId()
  await pool.query(
    `insert into seller_endpoints (id, project_id, url_pattern, match_key, price_atomic, network)
     values ($1, $2, 'https://a.example/' || $1, 'a.example/' || $1, 1, 'base-sepolia')`,
    [id, projectId],
  )
  return { id, projectId }
}
const change = (id: string, set: string) =>
  pool.query(`update seller_endpoints set ${set} where id = $1`, [id])
const provoke = (id: string) => provokeEndpointCheck(pool, id, PAUSE_MS)
const isQueued = async (id: string) =>
  (await row(pool, 'seller_endpoints', id)).check_queued_at !== null

test('the check of an endpoint is queued at most once within the pause between checks, and not while another check waits', async () => {
  const { id } = await newEndpoint()
  expect(await provoke(id)).toBe(0)
  expect(await isQueued(id)).toBe(true)
  expect(await provoke(id)).toBe(0)
  await change(id, 'check_queued_at = null')
  const restMs = await provoke(id)
  expect([restMs > 0, restMs <= PAUSE_MS, await isQueued(id)]).toEqual([true, true, false])
  await change(id, `check_provoked_at = check_provoked_at - interval '1 minute'`)
  expect(await provoke(id)).toBe(0)
  expect(await isQueued(id)).toBe(true)
})

test('no check is queued for a deleted or unknown endpoint', async () => {
  const { id, projectId } = await newEndpoint()
  await change(id, 'deleted_at = now()')
  for (const target of [id, 'se_none']) {
    expect(await provoke(target)).toBe(0)
    expect(await checkEndpointAnew(pool, { projectId, id: target })).toBe(false)
  }
  expect(await isQueued(id)).toBe(false)
})

test('a project can request new checks only of its own endpoints', async () => {
  const [mine, other] = [await newEndpoint(), await newEndpoint()]
  expect(await checkEndpointAnew(pool, { ...other, id: mine.id })).toBe(false)
  expect(await isQueued(mine.id)).toBe(false)
  expect(await checkEndpointAnew(pool, mine)).toBe(true)
  expect(await isQueued(mine.id)).toBe(true)
})

test('if an endpoint is deleted at the same time, no new check is made', async () => {
  const target = await newEndpoint()
  const hold = 'update seller_endpoints set deleted_at = now() where id = $1'
  expect(await whileHeld(pool, hold, [target.id], () => [checkEndpointAnew(pool, target)])).toEqual(
    [false],
  )
})

test('if two requests for a challenge cause a check of an endpoint at once, only one check is queued, and the second request must wait for the next check', async () => {
  const { id } = await newEndpoint()
  const hold = 'update seller_endpoints set check_provoked_at = clock_timestamp() where id = $1'
  const [restMs] = await whileHeld(pool, hold, [id], () => [provoke(id)])
  expect(restMs).toBeGreaterThan(0)
  expect(await isQueued(id)).toBe(false)
})

test('an endpoint that is an MCP tool counts as verified at once and needs no check', async () => {
  const { id } = await newEndpoint()
  const urlPattern = 'mcp://tool/weather'
  await change(id, `url_pattern = '${urlPattern}'`)
  await checkEndpoint(pool, { id, urlPattern })
  expect(await findEndpointCheck(pool, id)).toMatchObject({ status: 'verified', queuedMs: null })
})

test('the state of an endpoint check tells whether the check waits in the queue or runs', async () => {
  const { id } = await newEndpoint()
  expect(await findEndpointCheck(pool, 'se_none')).toBeNull()
  expect(await findEndpointCheck(pool, id)).toMatchObject({ queuedMs: null, isRunning: false })
  await provoke(id)
  expect(await findEndpointCheck(pool, id)).toMatchObject({
    queuedMs: expect.any(Number),
    isRunning: false,
  })
  await startEndpointCheck(pool, id)
  expect(await findEndpointCheck(pool, id)).toMatchObject({ isRunning: true })
  await change(id, `check_started_at = check_started_at - interval '26 seconds'`)
  expect(await findEndpointCheck(pool, id)).toMatchObject({ isRunning: false })
})

test('a project that changes its payTo address still counts as the seller of its resource, even if another project has the old address', async () => {
  const [former, later] = [`0x${'ab'.repeat(20)}`, `0x${'cd'.repeat(20)}`]
  const { id, projectId } = await newEndpoint()
  const other = await newProject(pool)
  for (const one of [other, projectId]) {
    await changeProject(pool, one, { payTo: former, paymentsEnabled: true })
  }
  await pool.query(`update seller_endpoints set challenge_pay_to = array[$2] where id = $1`, [
    id,
    former,
  ])
  const { match_key: matchKey } = await row(pool, 'seller_endpoints', id)
  await changeProject(pool, projectId, { payTo: later })
  expect(await isSoldByAnother(pool, projectId, matchKey)).toBe(false)
})

test('a new payment address (payTo) of a project queues new checks of its endpoints, because a check compares the payTo in the 402 response', async () => {
  const { id, projectId } = await newEndpoint()
  const other = await newEndpoint()
  const [payTo, later] = [`0x${'Ab'.repeat(20)}`, `0x${'12'.repeat(20)}`]
  await changeProject(pool, projectId, { payTo })
  expect([await isQueued(id), await isQueued(other.id)]).toEqual([true, false])
  await change(id, 'check_queued_at = null')
  await changeProject(pool, projectId, { name: 'Weather', payTo: payTo.toLowerCase() })
  expect(await isQueued(id)).toBe(false)
  await changeProject(pool, projectId, { payTo: null })
  expect(await isQueued(id)).toBe(false)
  await changeProject(pool, projectId, { payTo: later })
  expect(await isQueued(id)).toBe(true)
  const { rows } = await pool.query(`select from graphile_worker.jobs where key = $1`, [
    `verify_endpoint:${id}`,
  ])
  expect(rows).toHaveLength(1)
})

test('of two checks of an endpoint that overlap, only the check that began later records its results', async () => {
  const { id, projectId } = await newEndpoint()
  const url = `https://a.example/${id}`
  const openApiUrl = `${url}/openapi.json`
  await change(id, `open_api_url = '${openApiUrl}'`)
  const record = (status: 'verified' | 'failed', startedAt: Date) => {
    const found = { detail: '', versions: [], payees: [], seen: {} }
    return recordVerification(pool, { id, url, status, startedAt, ...found })
  }
  const document = (checkedAt: Date, fault: string | null) =>
    recordOpenApi(pool, { id, url: openApiUrl, checkedAt, fault, metadata: {} })
  const first = (await startEndpointCheck(pool, id))!
  const firstAt = (await record('failed', first))!
  /** Waits for the next millisecond, because the service compares the times of checks in milliseconds. */
  const nextMillisecond = () => {
    const startMs = Date.now()
    return waitFor('the next millisecond', () => Date.now() > startMs + 1)
  }
  await nextMillisecond()
  const slow = (await startEndpointCheck(pool, id))!
  await nextMillisecond()
  const quick = (await startEndpointCheck(pool, id))!
  const quickAt = (await record('verified', quick))!
  expect(await record('failed', slow)).toBeNull()
  await document(quickAt, null)
  await document(firstAt, 'answered 500, expected 200')
  expect(await findEndpoint(pool, { projectId, id })).toMatchObject({
    verification: { status: 'verified' },
    openApi: { status: 'read' },
  })
  const [slower, last] = [await startEndpointCheck(pool, id), await startEndpointCheck(pool, id)]
  expect(await record('failed', slower!)).toBeNull()
  expect(await record('verified', last!)).toBeInstanceOf(Date)
})

test('if a seller asks for a check while another check runs, the result of the running check does not end the wait for the new check', async () => {
  const { id } = await newEndpoint()
  const url = `https://a.example/${id}`
  const startedAt = (await startEndpointCheck(pool, id))!
  await change(id, `check_started_at = check_started_at - interval '1 second'`)
  await checkEndpoint(pool, { id, urlPattern: url })
  const found = { detail: '', versions: [], payees: [], seen: {} } as const
  const early = new Date(startedAt.getTime() - 1_000)
  await recordVerification(pool, { id, url, status: 'unreachable', startedAt: early, ...found })
  expect(await findEndpointCheck(pool, id)).toMatchObject({
    status: 'unreachable',
    queuedMs: expect.any(Number),
    isRunning: false,
  })
  const last = (await startEndpointCheck(pool, id))!
  await recordVerification(pool, { id, url, status: 'verified', startedAt: last, ...found })
  expect(await findEndpointCheck(pool, id)).toMatchObject({ status: 'verified', queuedMs: null })
})
