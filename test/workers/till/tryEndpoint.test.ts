/**
 * Runs the job of a trial (test purchase) of an endpoint alone on a test database, against a local server of the
 * seller.
 */
import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { newTrialId } from '../../../shared/ids.ts'
import {
  findTrial,
  startTrial,
  TRIAL_CHALLENGE_MAX,
} from '../../../sql/till/endpoints/endpointTrials.ts'
import { createTryEndpoint } from '../../../workers/till/tryEndpoint.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database/database.ts'
import { type Receiver, startReceiver, status } from '../../support/events/receiver.ts'
import { requirementV2 } from '../../support/till/headers/x402v2.ts'
import { registerEndpoint } from '../../support/till/till.ts'
import { dropJobs, newProject } from '../../support/till/tillRows.ts'

const GRANTED = { granted: true, waited: false, leave: () => {} }

let database: TestDatabase
let pool: TestDatabase['pool']
let server: Receiver
let turn: object
let challenge: string
let paid: Receiver['answer']
let run: (trialId: string) => Promise<void>

beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
  server = await startReceiver((request, response) => {
    if (request.headers['payment-signature'] !== undefined) paid(request, response)
    else status(402, challenge)(request, response)
  })
  const attempt = createTryEndpoint(
    {
      pool,
      lanes: { enter: async () => turn },
      outcomes: { record: (work: () => unknown) => work() },
    } as never,
    { allowPrivate: true },
  )
  run = (trialId) => attempt({ trialId }, { attempt: 1 })
})
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  await database[Symbol.asyncDispose]()
})
beforeEach(() => {
  server.requests.length = 0
  turn = GRANTED
  challenge = JSON.stringify(challenged())
  paid = status(200, 'tea')
})

const challenged = (change: Record<string, unknown> = {}) => ({
  x402Version: 2,
  accepts: [requirementV2(change)],
})

let made = 0
async function start(buy: boolean): Promise<{ id: string; endpointId: string }> {
  const projectId = await newProject(pool)
  const resource = new URL(`/tea/${++made}`, server.url).href
  const endpointId = await registerEndpoint(pool, { projectId, resource })
  const id = newTrialId()
  await startTrial(pool, { id, endpointId, projectId, buy })
  return { id, endpointId }
}
async function ended(buy: boolean) {
  const { id, endpointId } = await start(buy)
  await run(id)
  return await findTrial(pool, endpointId)
}

test('the job of a trial (test purchase) that has ended or was replaced sends no request', async () => {
  const { id } = await start(false)
  await pool.query('update endpoint_trials set ended_at = now() where id = $1', [id])
  await run(id)
  await run(newTrialId())
  expect(server.requests).toEqual([])
})

test('the trial (test purchase) of an endpoint runs later if the service may not send a request to the endpoint’s server now', async () => {
  const { id } = await start(false)
  await dropJobs(pool)
  turn = { granted: false, returnInMs: 60_000 }
  await run(id)
  const { rows } = await pool.query(
    `select run_at > now() + interval '50 seconds' as is_later from graphile_worker.jobs where key = $1`,
    [`try_endpoint:${id}`],
  )
  expect([rows, server.requests]).toEqual([[{ is_later: true }], []])
})

test('a trial (test purchase) shows a challenge of the maximum length, and refuses a longer challenge', async () => {
  // JSON writes the number 1e20 with 21 digits, so the stored challenge is longer than the received one.
  const numbers = Array.from({ length: 1_500 }, () => 1e20)
  const { length } = JSON.stringify(challenged({ extra: { numbers, pad: '' } }))
  for (const [more, state, detail] of [
    [0, 'asked', null],
    [1, 'failed', 'its challenge is too long'],
  ] as const) {
    const pad = 'x'.repeat(TRIAL_CHALLENGE_MAX - length + more)
    const text = JSON.stringify(challenged({ extra: { numbers, pad } }))
    expect(text.length).toBe(TRIAL_CHALLENGE_MAX + more)
    challenge = text.replaceAll('1'.padEnd(21, '0'), '1e20')
    expect(await ended(false)).toMatchObject({ state, detail, status: 402 })
  }
})

test('if an endpoint has no offer for the devnet, its trial (test purchase) does not pay', async () => {
  challenge = JSON.stringify(challenged({ network: 'eip155:1' }))
  expect(await ended(true)).toMatchObject({
    ...{ state: 'failed', detail: expect.stringContaining('chain'), status: 402 },
    challenge: { accepts: [{ network: 'eip155:1' }] },
  })
  expect(server.requests).toHaveLength(1)
})

const PAID: [string, Receiver['answer'], object][] = [
  ['200', status(200, 'tea'), { state: 'paid', detail: null, status: 200, body: 'tea' }],
  ['399', status(399), { state: 'paid', status: 399 }],
  [
    '400',
    status(400, 'no'),
    { state: 'failed', detail: 'answered 400 to the payment', status: 400, body: 'no' },
  ],
  [
    'no response',
    (_request, response) => void response.destroy(),
    { state: 'failed', detail: 'ECONNRESET; the seller may have taken the payment', status: null },
  ],
]
for (const [name, answer, end] of PAID) {
  test(`a trial (test purchase) ends with the response of the endpoint to its payment: ${name}`, async () => {
    paid = answer
    expect(await ended(true)).toMatchObject(end)
    expect(server.requests).toHaveLength(2)
  })
}
