/** Tests purchases of agents: the seller's response, the payment, and the reasons to refuse a purchase. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import {
  newBuyer,
  type Seller,
  startPurseTill,
  startSeller,
} from '../../support/purse/purseScene.ts'
import type { TestTill } from '../../support/till/till.ts'

let till: TestTill
let seller: Seller
beforeAll(async () => {
  till = await startPurseTill()
  seller = startSeller(till)
})
afterAll(async () => {
  await seller[Symbol.asyncDispose]()
  await till[Symbol.asyncDispose]()
})

for (const version of [1, 2] as const) {
  test(`an agent buys from a seller of x402 version ${version}, once for each Idempotency-Key`, async () => {
    const buyer = await newBuyer(till)
    const mandateId = await buyer.giveMandate({ hosts: [seller.host] })
    seller.version = version
    const before = seller.received.length
    const { status, body } = await buyer.pay(seller.url, {
      key: 'weather-1',
      why: 'The user asked.',
    })
    expect(body).toMatchObject({
      state: 'answered',
      status: 200,
      response: { untrusted: true, body: '{"tempC":7}' },
      terms: { amountUsdc: '0.01', description: 'The weather' },
      payment: { mandateIds: [mandateId] },
    })
    expect(status).toBe(200)
    const again = await buyer.pay(seller.url, { key: 'weather-1', why: 'The user asked.' })
    expect(again.body.purchaseId).toBe(body.purchaseId)
    expect(seller.received.length).toBe(before + 1)
    const other = await buyer.pay(seller.url, { key: 'weather-1', why: 'Another request.' })
    expect(other.status).toBe(409)

    const spent = await buyer.settled(body.purchaseId, 'spent')
    expect(spent.payment).toMatchObject({ paidWithoutContent: false, txHash: expect.any(String) })
    expect(await buyer.mandate(mandateId)).toMatchObject({
      reservedUsdc: '0.01',
      spentUsdc: '0.01',
      openUsdc: '0',
      releasedUsdc: '0',
    })
    const { body: list } = await buyer.get('/v0/purse/payments?payment=spent')
    expect(list).toMatchObject({ count: 1, payments: [{ purchaseId: body.purchaseId }] })
    const { body: me } = await buyer.get('/v0/whoami')
    expect(me).toMatchObject({ purse: { address: buyer.address } })
  })
}

test('with only the scope purse:pay an agent can pay, but it needs the scope purse:read to read a purchase', async () => {
  const buyer = await newBuyer(till)
  await buyer.giveMandate({ hosts: [seller.host] })
  const change = (scopes: object) =>
    till.service.platform.patch(`/v0/platform/projects/${buyer.project.id}`, scopes)
  await change({ removeScopes: ['purse:read'] })
  const { status, body } = await buyer.pay(seller.url, { key: 'scopes' })
  expect([status, body.state]).toEqual([200, 'answered'])
  const path = `/v0/purse/payments/${body.purchaseId}`
  expect(await buyer.get(path)).toMatchObject({
    status: 403,
    body: { message: 'Missing required scope: purse:read' },
  })
  await change({ addScopes: ['purse:read'], removeScopes: ['purse:pay'] })
  expect(await buyer.get(path)).toMatchObject({ status: 200 })
})
