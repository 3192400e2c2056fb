/**
 * Buys with a purse (wallet) of the service from every seller: the reference middleware, the client library's paywalls,
 * and another instance of the service.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { getAddress } from 'viem'
import { PurchaseError, Purser } from '../../../api/client/main.ts'
import { requirePayment } from '../../../api/client/paywalls/fetchPaywall.ts'
import { type Buyer, newBuyer, startPurseTill } from '../../support/purse/purseScene.ts'
import type { TestTill } from '../../support/till/till.ts'
import { type Seller, startSellers } from '../sellers.ts'
import '../../support/long.ts'

let till: TestTill
let sellers: Record<string, Seller>
let buyer: Buyer
beforeAll(async () => {
  till = await startPurseTill({ parts: { pools: ['purse', 'webhooks'] } })
  const seller = await till.newSeller()
  sellers = await startSellers({ service: till.service, seller })
  for (const { url } of Object.values(sellers)) {
    await seller.put('/v0/sellers/endpoints', { urlPattern: url, priceUsdc: '0.01' })
  }
  buyer = await newBuyer(till)
  await buyer.giveMandate({ hosts: Object.values(sellers).map(({ url }) => new URL(url).host) })
})
afterAll(async () => {
  await Promise.all(Object.values(sellers).map(({ stop }) => stop()))
  await till[Symbol.asyncDispose]()
})

test('a purse (the agent’s wallet) can buy once from every seller, and the chain shows each payment', async () => {
  const client = new Purser({ apiKey: buyer.key, baseUrl: till.service.url })
  for (const [name, { url, served }] of Object.entries(sellers)) {
    const before = served?.() ?? 0
    const answer = await client.fetch(url, { maxAmount: '0.01', key: encodeURIComponent(name) })
    expect([name, answer.status]).toEqual([name, 200])
    expect((await answer.text()).length).toBeGreaterThan(1)
    if (served !== null) expect([name, served()]).toEqual([name, before + 1])
    const id = answer.headers.get('purser-purchase-id')!
    const spent = await buyer.settled(id, 'spent')
    expect([name, spent.payment?.paidWithoutContent]).toEqual([name, false])
    // For a repeated Idempotency-Key, the service returns the existing purchase and sends no request to the seller, so
    // the seller serves the resource only once.
    await client.fetch(url, { maxAmount: '0.01', key: encodeURIComponent(name) })
    if (served !== null) expect([name, served()]).toEqual([name, before + 1])
  }
})

/** Holds the private key of the fourth account of the devnet's mnemonic. */
const OTHER_WALLET = '0x7c852118294e51e653712a81e05800f419141751be58f605c371e15141b007a6'

test('a purse (wallet) of one instance of the service buys from a seller of another instance, and both record the payment', async () => {
  await using other = await startPurseTill({
    beside: till,
    worker: { settlementKeys: [OTHER_WALLET] },
  })
  const seller = await other.newSeller()
  const purser = new Purser({ apiKey: seller.key, baseUrl: other.service.url })
  await using shop = Bun.serve({
    ...{ port: 0, hostname: '127.0.0.1' },
    fetch: requirePayment({ purser, amount: '0.01' }, () => new Response('fine')),
  })
  const url = `http://127.0.0.1:${shop.port}/`
  await seller.put('/v0/sellers/endpoints', { urlPattern: url, priceUsdc: '0.01' })
  await buyer.giveMandate({ hosts: [new URL(url).host] })
  const { body } = await buyer.pay(url)
  expect([body.state, body.response?.body]).toEqual(['answered', 'fine'])
  const spent = await buyer.settled(body.purchaseId, 'spent')
  const { body: sold } = await seller.get('/v0/payments')
  expect((sold as any).payments).toMatchObject([
    { payerAddress: getAddress(buyer.address), txHash: spent.payment?.txHash, status: 'settled' },
  ])
})

test('if a purchase is refused, the client library throws an error with the reason', async () => {
  const client = new Purser({ apiKey: buyer.key, baseUrl: till.service.url })
  const { url } = Object.values(sellers)[0]!
  const refused = client.fetch(url, { maxAmount: '0.000001' })
  await expect(refused).rejects.toBeInstanceOf(PurchaseError)
  await expect(refused).rejects.toThrow('refused: the price is above maxAmount')
})
