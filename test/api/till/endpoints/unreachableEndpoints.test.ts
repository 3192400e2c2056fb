/** Tests that an endpoint that is unreachable from the internet gets no x402 challenge. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { Purser } from '../../../../api/client/main.ts'
import { requirePayment } from '../../../../api/client/paywalls/fetchPaywall.ts'
import { startReceiver, status } from '../../../support/events/receiver.ts'
import { freePort } from '../../../support/process/process.ts'
import type { Agent } from '../../../support/service.ts'
import { CHALLENGE } from '../../../support/till/headers/challenge.ts'
import { PRICE, pay, redeem, startTestTill, type TestTill } from '../../../support/till/till.ts'
import { waitFor } from '../../../support/waitFor.ts'
import '../../../support/long.ts'

const PATH = '/v0/sellers/endpoints'
let till: TestTill
let seller: Agent

beforeAll(async () => {
  till = await startTestTill({
    env: { ALLOW_PRIVATE_NETWORKS: 'true' },
    parts: { pools: ['webhooks'] },
  })
  seller = await till.newSeller()
})
afterAll(() => till[Symbol.asyncDispose]())

const register = async (resource: string): Promise<string> =>
  (await seller.put(PATH, { urlPattern: resource, priceUsdc: PRICE })).body.endpointId
const challenge = (resource: string) =>
  seller.post('/v0/payments/challenge', { amount: PRICE, resource })
const verdict = (id: string, wanted: string) =>
  waitFor(`the verdict ${wanted}`, async () => {
    const { body } = await seller.get(`${PATH}/${id}`)
    return body.verification.status === wanted ? body.verification : null
  })
const nowhere = async () => `http://127.0.0.1:${await freePort()}/report`

test('the first request for a challenge of a new unreachable endpoint waits for the first check, and is refused with the result of the check', async () => {
  const resource = await nowhere()
  const id = await register(resource)
  const { status: code, body } = await challenge(resource)
  expect([code, body.error]).toEqual([400, 'bad_request'])
  expect(body.message).toMatch(/unreachable from the internet at \d{4}-.*Z \(ECONNREFUSED\)/)
  expect(body.message).toContain(`POST ${PATH}/${id}/verify`)
})

test('a request for a challenge succeeds as soon as the seller’s server is reachable again, even right after a refusal', async () => {
  const resource = await nowhere()
  const id = await register(resource)
  await verdict(id, 'unreachable')
  expect((await challenge(resource)).status).toBe(400)
  const shop = Bun.serve({
    port: Number(new URL(resource).port),
    hostname: '127.0.0.1',
    fetch: () => new Response(CHALLENGE, { status: 402 }),
  })
  try {
    expect((await challenge(resource)).status).toBe(200)
  } finally {
    await shop.stop(true)
  }
})

test('twenty concurrent requests for a challenge of an unreachable endpoint cause at most two checks of its URL', async () => {
  const resource = await nowhere()
  const id = await register(resource)
  await verdict(id, 'unreachable')
  await challenge(resource)
  const answers = await Promise.all(Array.from({ length: 20 }, () => challenge(resource)))
  // A request for an x402 challenge may succeed while the endpoint's check is slow, because the check itself may have
  // caused the request.
  const refused = answers.filter(({ status: code }) => code === 400)
  expect(refused.length).toBeGreaterThan(0)
  // The error message contains the time of the endpoint's check, so at most two checks cause at most two different
  // messages.
  expect(new Set(refused.map(({ body }) => body.message)).size).toBeLessThanOrEqual(2)
})

test('the verify operation checks the endpoint again and returns the verdict', async () => {
  const resource = await nowhere()
  const id = await register(resource)
  await verdict(id, 'unreachable')
  const shop = Bun.serve({
    port: Number(new URL(resource).port),
    hostname: '127.0.0.1',
    fetch: () => new Response(CHALLENGE, { status: 402 }),
  })
  try {
    const { status: code, body } = await seller.post(`${PATH}/${id}/verify`)
    expect([code, body.verification.status]).toEqual([200, 'verified'])
    expect(body).toMatchObject({ endpointId: id, callCount: 0 })
    expect((await challenge(resource)).status).toBe(200)
  } finally {
    await shop.stop(true)
  }
  const stranger = await till.newSeller()
  expect((await stranger.post(`${PATH}/${id}/verify`)).status).toBe(404)
})

for (const [name, check] of [
  ['a payer', async () => {}],
  ['its seller', (purser: Purser, id: string) => purser.sellers.verify(id)],
] as const) {
  test(`if the service could not reach a paywall, the paywall can sell again as soon as ${name} sends a request`, async () => {
    const port = await freePort()
    const resource = `http://127.0.0.1:${port}/report`
    const purser = new Purser({ apiKey: seller.key, baseUrl: till.service.url })
    const serve = requirePayment({ purser, amount: PRICE, resource }, () => new Response('ha'))
    const open = () =>
      Bun.serve({ port, hostname: '127.0.0.1', fetch: (request) => serve(request) })
    // In this test, the paywall is first unreachable and then reachable again. The service must not count its own check
    // request as the request of a payer.
    const id = await register(resource)
    await verdict(id, 'unreachable')
    const shop = open()
    try {
      await check(purser, id)
      expect((await fetch(resource)).status).toBe(402)
      await verdict(id, 'verified')
    } finally {
      await shop.stop(true)
    }
  })
}

test('if the service reached an endpoint and found a fault in its response, the endpoint can still sell', async () => {
  await using receiver = await startReceiver(status(500))
  const resource = `http://127.0.0.1:${receiver.port}/report`
  await verdict(await register(resource), 'failed')
  expect((await challenge(resource)).status).toBe(200)
})

test('a signed payment is never refused because the endpoint is unreachable', async () => {
  const resource = await nowhere()
  await verdict(await register(resource), 'unreachable')
  const { body } = await redeem(seller, (await pay()).header, { resource })
  expect(body.ok).toBe(true)
})

test('an unreachable endpoint is checked again within one hour', async () => {
  const id = await register(await nowhere())
  await verdict(id, 'unreachable')
  // The job of the first check keeps a run time in the past until it ends. Therefore the test waits for a job with a
  // run time in the future.
  const inMs = await waitFor('the next check', async () => {
    const { rows } = await till.service.database.pool.query(
      `select extract(epoch from run_at - now()) * 1000 as ms from graphile_worker.jobs
       where key = $1 and run_at > now()`,
      [`verify_endpoint:${id}`],
    )
    return rows[0]?.ms ?? null
  })
  expect(Number(inMs)).toBeWithin(50 * 60_000, 60 * 60_000 + 1)
})
