/** Tests that a paused endpoint accepts no new buyers, but still serves buyers who already have a challenge. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Agent } from '../../../support/service.ts'
import { PRICE, pay, redeem, startTestTill, type TestTill } from '../../../support/till/till.ts'

const PATH = '/v0/sellers/endpoints'
const TOOL = 'mcp://tool/weather'
let till: TestTill
let seller: Agent

beforeAll(async () => {
  till = await startTestTill({})
  seller = await till.newSeller()
})
afterAll(() => till[Symbol.asyncDispose]())

const challenge = () => seller.post('/v0/payments/challenge', { amount: PRICE, resource: TOOL })

test('a paused endpoint gets no new x402 challenge, still accepts payments that are already signed, and sells again after the pause', async () => {
  const { body: made } = await seller.put(PATH, { urlPattern: TOOL, priceUsdc: PRICE })
  expect(made.active).toBe(true)
  expect((await challenge()).status).toBe(200)
  const one = `${PATH}/${made.endpointId}`
  expect((await seller.patch(one, { active: false })).body.active).toBe(false)
  expect((await seller.patch(one, { active: false })).body.active).toBe(false)
  const refused = await challenge()
  expect([refused.status, refused.body.message]).toEqual([
    400,
    `The endpoint is paused: PATCH ${one} with active true lets it sell again`,
  ])
  const { body: redeemed } = await redeem(seller, (await pay()).header, { resource: TOOL })
  expect(redeemed.ok).toBe(true)
  expect((await seller.get(one)).body).toMatchObject({ active: false, callCount: 1 })
  // A new price does not end the pause of an endpoint.
  expect((await seller.patch(one, { priceUsdc: '0.02' })).body.active).toBe(false)
  expect((await seller.patch(one, { active: true })).body.active).toBe(true)
  expect((await challenge()).status).toBe(200)
  expect((await seller.patch(one, { active: 'no' })).body.message).toBe(
    'active must be true or false',
  )
})
