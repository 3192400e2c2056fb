/**
 * Tests which endpoints get no x402 challenge from the service. It also tests how long a request for a challenge waits
 * for the check of the endpoint.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { ApiError } from '../../../../api/http/errors.ts'
import { checkAnew, checkReachable } from '../../../../api/till/endpoints/reachable.ts'
import { newEndpointId } from '../../../../shared/ids.ts'
import { findEndpointCheck } from '../../../../sql/till/endpoints/endpointChecks.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import { newProject, row } from '../../../support/till/tillRows.ts'
import { waitFor } from '../../../support/waitFor.ts'

let database: TestDatabase
let pool: TestDatabase['pool']
let projectId: string
let id: string

beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
  projectId = await newProject(pool)
})
beforeEach(async () => {
  id = newEndpointId()
  await pool.query(
    `insert into seller_endpoints (id, project_id, url_pattern, match_key, price_atomic, network)
     values ($1, $2, 'https://a.example/' || $1, 'a.example/' || $1, 1, 'base-sepolia')`,
    [id, projectId],
  )
})
afterAll(() => database[Symbol.asyncDispose]())

const set = (columns: string) =>
  pool.query(`update seller_endpoints set ${columns} where id = $1`, [id])
const UNREACHABLE = `verification_status = 'unreachable', verification_detail = 'ECONNREFUSED',
  verification_checked_at = '2026-01-05T10:00:00Z'`
const VERIFIED = `verification_status = 'verified', check_queued_at = null, check_started_at = null`
const ago = (ms: number) => `clock_timestamp() - interval '${ms} milliseconds'`
const queued = async () => (await row(pool, 'seller_endpoints', id)).check_queued_at !== null

/** Returns the service's response to a request for an x402 challenge of the endpoint. */
async function check(verification: string | null, endpointId: string | null = id): Promise<string> {
  try {
    await checkReachable({ pool } as never, { endpointId, verification } as never)
    return 'reachable'
  } catch (error) {
    if (error instanceof ApiError) return `${error.status} ${error.message}`
    throw error
  }
}
const REFUSED =
  /^400 The endpoint was unreachable from the internet at 2026-01-05T10:00:00.000Z \(ECONNREFUSED\)\. POST/

describe('a seller gets an x402 challenge only for an endpoint that is active and reachable', () => {
  test('a request for an x402 challenge is refused if the endpoint is paused', async () => {
    expect(await check('paused')).toBe(
      `400 The endpoint is paused: PATCH /v0/sellers/endpoints/${id} with active true lets it sell again`,
    )
  })

  test('a request for an x402 challenge starts no check if an earlier check reached the endpoint, or if there is no endpoint', async () => {
    await set(UNREACHABLE)
    for (const verification of ['verified', 'failed', null]) {
      expect(await check(verification)).toBe('reachable')
    }
    expect(await check('pending', null)).toBe('reachable')
    expect(await check('unreachable', null)).toBe('reachable')
    expect(await queued()).toBe(false)
  })

  test('if a check of the endpoint was pending and has ended, a request for an x402 challenge uses its verdict and starts no second check', async () => {
    await set(VERIFIED)
    expect(await check('pending')).toBe('reachable')
    await set(UNREACHABLE)
    expect(await check('pending')).toMatch(REFUSED)
    expect(await queued()).toBe(false)
  })

  test('a request for an x402 challenge is refused if the endpoint is deleted during the request', async () => {
    await set('deleted_at = now()')
    expect(await check('pending')).toBe(
      '400 resource must match a registered, active endpoint of the project',
    )
  })

  test('a request for an x402 challenge of an unreachable endpoint makes a worker check the endpoint, and waits for the verdict', async () => {
    await set(UNREACHABLE)
    const answer = check('unreachable')
    await waitFor('the check', queued)
    await set(VERIFIED)
    expect(await answer).toBe('reachable')
  })

  test('if an unreachable endpoint was checked recently, a request for a challenge waits until the next check is allowed and has ended', async () => {
    await set(`${UNREACHABLE}, check_provoked_at = ${ago(1_800)}`)
    const answer = check('unreachable')
    await waitFor('the check', queued)
    await set(`${UNREACHABLE}, check_queued_at = null`)
    expect(await answer).toMatch(REFUSED)
  })

  test('the check of an unreachable endpoint starts even if the request’s timer ends before the database’s clock allows the next check', async () => {
    await set(`${UNREACHABLE}, check_provoked_at = ${ago(1_000)}`)
    const answer = check('unreachable')
    // The following queries take enough time for the request to read the time of the last check. The request then waits
    // until the next check is allowed.
    for (let n = 0; n < 20; n++) await findEndpointCheck(pool, id)
    await set(`check_provoked_at = check_provoked_at + interval '100 milliseconds'`)
    await waitFor('the check', queued)
    await set(VERIFIED)
    expect(await answer).toBe('reachable')
  })

  test('a request for an x402 challenge waits at most five seconds for a check that has not started', async () => {
    await set(`${UNREACHABLE}, check_queued_at = ${ago(5_200)}`)
    expect(await check('unreachable')).toMatch(REFUSED)
    expect(await queued()).toBe(true)
  })

  test('a request for an x402 challenge succeeds while a check of its endpoint is running', async () => {
    const running = `check_queued_at = ${ago(6_000)}, check_started_at = clock_timestamp()`
    await set(`${UNREACHABLE}, ${running}`)
    expect(await check('unreachable')).toBe('reachable')
  })
})

describe('if a seller requests a new check of an endpoint, the request waits for the verdict of the check', () => {
  const checkAgain = (target: { projectId: string; id: string }) =>
    checkAnew({ pool } as never, target)

  test('a seller’s request to check an endpoint again waits until this check has ended', async () => {
    const checked = checkAgain({ projectId, id })
    await waitFor('the check', queued)
    await set(VERIFIED)
    await checked
    expect((await findEndpointCheck(pool, id))?.status).toBe('verified')
  })

  test('if the endpoint is deleted during its check, the seller’s request to check it again ends without an error', async () => {
    const checked = checkAgain({ projectId, id })
    await waitFor('the check', queued)
    await set('deleted_at = now()')
    await checked
  })

  test('a request for a new check of another project’s endpoint gets the error not_found', async () => {
    const stranger = await newProject(pool)
    for (const target of [
      { projectId: stranger, id },
      { projectId, id: 'se_unknown' },
    ]) {
      const failed = checkAgain(target)
      await expect(failed).rejects.toMatchObject({ status: 404, message: 'Endpoint not found' })
    }
    expect(await queued()).toBe(false)
  })
})
