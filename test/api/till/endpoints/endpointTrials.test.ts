/**
 * Tests trials of an endpoint. In a trial, the service requests the endpoint's 402 response as a buyer does, and makes
 * one purchase with test money.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { queueTrial } from '../../../../sql/till/endpoints/endpointTrials.ts'
import { type Agent, startTestService } from '../../../support/service.ts'
import {
  type PaidShop,
  startDevnetTill,
  startPaidShop,
} from '../../../support/till/headers/paidShop.ts'
import { registerEndpoint, type TestTill } from '../../../support/till/till.ts'
import { waitFor } from '../../../support/waitFor.ts'

const PATH = '/v0/sellers/endpoints'
let till: TestTill
let seller: Agent
let shop: PaidShop

beforeAll(async () => {
  till = await startDevnetTill()
  seller = await till.newSeller()
  shop = startPaidShop(till, seller)
})
afterAll(async () => {
  shop[Symbol.dispose]()
  await till[Symbol.asyncDispose]()
})

const register = async (urlPattern: string, more: object = {}): Promise<string> => {
  const { body } = await seller.put(PATH, { urlPattern, priceUsdc: '0.01', ...more })
  return `${PATH}/${body.endpointId}`
}

const ended = (one: string) =>
  waitFor('the end of the trial', async () => {
    const { body } = await seller.get(`${one}/trial`)
    return body.trial?.endedAt == null ? null : body.trial
  })

test('a trial (test purchase) of an endpoint shows the 402 response, pays once, and leads to a payment, a receipt and a webhook', async () => {
  const webhookUrl = new URL('/hook', shop.url).href
  const one = await register(shop.url, { webhookUrl })
  expect((await seller.get(`${one}/trial`)).body).toEqual({ canBuy: true, trial: null })
  const begun = await seller.post(`${one}/trial`, { buy: false })
  expect([begun.status, begun.body.trial.state]).toEqual([202, 'asking'])
  const asked = await ended(one)
  expect(asked).toMatchObject({ state: 'asked', buy: false, status: 402, detail: null })
  expect(JSON.stringify(asked.challenge)).toContain('"10000"')
  expect(shop.paid).toEqual([])

  expect((await seller.post(`${one}/trial`, { buy: true })).status).toBe(202)
  expect(await ended(one)).toMatchObject({ state: 'paid', status: 200, body: 'fine weather' })
  const list = () => seller.get(`/v0/payments?endpointId=${one.split('/').at(-1)}`)
  const payment = await waitFor('the webhook of the payment', async () => {
    const [found] = (await list()).body.payments
    return found?.latestDelivery?.status === 'delivered' ? found : null
  })
  expect([payment.status, payment.signedReceipt === null]).toEqual(['settled', false])
  expect(shop.hooks.length).toBe(1)

  // Another worker repeats the job of the trial purchase, as if the first worker had been killed after it had sent the
  // payment.
  const { pool } = till.service.database
  const { rows } = await pool.query(
    `update endpoint_trials set state = 'paying', ended_at = null where endpoint_id = $1 returning id`,
    [one.split('/').at(-1)],
  )
  expect((await seller.post(`${one}/trial`, { buy: true })).status).toBe(409)
  await queueTrial(pool, rows[0].id)
  expect(await ended(one)).toMatchObject({ state: 'paid', status: 200, body: 'fine weather' })
  expect(shop.paid).toEqual([shop.paid[0]!, shop.paid[0]!])
  expect((await list()).body.count).toBe(1)
})

test('if an endpoint is unreachable or sends no x402 challenge, its trial (test purchase) fails and states this reason', async () => {
  const free = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response('a\0b') })
  const open = await register(`http://127.0.0.1:${free.port}/open`)
  await seller.post(`${open}/trial`, { buy: true })
  expect(await ended(open)).toMatchObject({
    state: 'failed',
    status: 200,
    body: 'a\ufffdb',
    detail: 'answered 200, expected 402',
    challenge: null,
  })
  await free.stop(true)
  await seller.post(`${open}/trial`, { buy: false })
  expect(await ended(open)).toMatchObject({ state: 'failed', status: null })
})

test('a trial (test purchase) of an endpoint is refused if the input is invalid, or if the endpoint is an MCP tool or another project’s', async () => {
  const one = await register(shop.url)
  const wrong = await seller.post(`${one}/trial`, { buy: 'yes' })
  expect([wrong.status, wrong.body.message]).toEqual([400, 'buy must be true or false'])
  const other = await till.service.newAgent()
  expect((await other.get(`${one}/trial`)).status).toBe(404)
  expect((await other.post(`${one}/trial`, { buy: false })).status).toBe(404)
  const reader = await till.service.newAgent({ scopes: ['mail:read'] })
  expect((await reader.post(`${one}/trial`, { buy: false })).status).toBe(403)
  const tool = await register('mcp://tool/weather')
  const refused = await seller.post(`${tool}/trial`, { buy: false })
  expect([refused.status, refused.body.message]).toEqual([
    409,
    'The endpoint is an MCP tool: it has no URL to ask',
  ])
})

test('a trial (test purchase) of an endpoint on a real network buys nothing, because only the devnet has test money', async () => {
  await using service = await startTestService({
    smtp: false,
    workers: false,
    env: { RPC_URL: 'http://127.0.0.1:1' },
  })
  const agent = await service.newAgent()
  const id = await registerEndpoint(service.database.pool, {
    projectId: agent.project.id,
    resource: 'https://api.example.com/tea',
  })
  const { status, body } = await agent.post(`${PATH}/${id}/trial`, { buy: true })
  expect([status, body.message]).toEqual([
    409,
    'buy: only the embedded devnet has a payer; on a real network a buyer pays',
  ])
  expect((await agent.get(`${PATH}/${id}/trial`)).body).toEqual({ canBuy: false, trial: null })
})
