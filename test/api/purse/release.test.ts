/**
 * Tests when the amount of a payment becomes available again in a mandate (a spending limit). Only the state of the
 * chain decides this.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { parseAbiItem } from 'viem'
import {
  type Buyer,
  newBuyer,
  type Seller,
  served,
  startPurseTill,
  startSeller,
} from '../../support/purse/purseScene.ts'
import type { TestTill } from '../../support/till/till.ts'
import { waitFor } from '../../support/waitFor.ts'
import '../../support/long.ts'

/**
 * Sets how many new blocks make an earlier block final: one more than the distance between anvil's finalized block and
 * its newest block.
 */
const FINAL_BLOCKS = 66

let till: TestTill
let seller: Seller
let buyer: Buyer
let mandateId: string
// Each test uses a new chain, because it changes the clock of the chain.
beforeEach(async () => {
  till = await startPurseTill()
  seller = startSeller(till)
  seller.terms.maxTimeoutSeconds = 15
  buyer = await newBuyer(till)
  mandateId = await buyer.giveMandate({ hosts: [seller.host], maxTotal: '0.01' })
})
afterEach(async () => {
  await seller[Symbol.asyncDispose]()
  await till[Symbol.asyncDispose]()
})

const CANCELED = parseAbiItem(
  'event AuthorizationCanceled(address indexed authorizer, bytes32 indexed nonce)',
)

/** Runs a seller that keeps the signed payment and delivers no content. */
const keep = async () => new Response('no', { status: 400 })

/** Moves the chain's time ahead by some seconds, and mines blocks until a block with the new time is final. */
async function pass(seconds: number): Promise<void> {
  await till.client.increaseTime({ seconds })
  await till.client.mine({ blocks: FINAL_BLOCKS, interval: 1 })
}

const sums = async () => {
  const { reservedUsdc, openUsdc, spentUsdc, releasedUsdc } = await buyer.mandate(mandateId)
  return { reservedUsdc, openUsdc, spentUsdc, releasedUsdc }
}

test('an unused signed payment reserves its amount until a final block is later than its expiry; then the mandate (spending limit) may spend the amount again', async () => {
  seller.serve = keep
  const { body } = await buyer.pay(seller.url)
  expect(body).toMatchObject({ state: 'answered', status: 400, payment: { state: 'open' } })
  // The newest block is later than the expiry of the payment's signature, but all final blocks are earlier, so the
  // amount must stay reserved.
  await till.client.increaseTime({ seconds: 3_600 })
  await till.client.mine({ blocks: 1 })
  const before = await balanceBlock()
  await waitFor('looks at the chain', async () => (await balanceBlock()) > before)
  expect((await buyer.purchase(body.purchaseId)).payment?.state).toBe('open')
  expect((await buyer.pay(seller.url)).body.reason).toBe('mandate_exceeded')

  await till.client.mine({ blocks: FINAL_BLOCKS, interval: 1 })
  const released = await buyer.settled(body.purchaseId, 'released')
  expect(released.payment).toMatchObject({ final: true, paidWithoutContent: false })
  expect(await sums()).toEqual({
    reservedUsdc: '0.01',
    openUsdc: '0',
    spentUsdc: '0',
    releasedUsdc: '0.01',
  })
  seller.serve = async (payment) => served(payment, await seller.settle(payment))
})

async function balanceBlock(): Promise<number> {
  await till.client.mine({ blocks: 1 })
  const { body } = await buyer.get('/v0/purse')
  return (body as { balanceBlock: number }).balanceBlock
}

test('if a seller takes the money without delivering content, the service records this, whoever sent the payment to the chain', async () => {
  seller.serve = keep
  const { body } = await buyer.pay(seller.url)
  await seller.settle(seller.received[0]!)
  const spent = await buyer.settled(body.purchaseId, 'spent')
  expect(spent.payment).toMatchObject({ paidWithoutContent: true, final: false })
  expect(await sums()).toMatchObject({ openUsdc: '0', spentUsdc: '0.01' })
  await pass(60)
  await waitFor('finality', async () => (await buyer.purchase(body.purchaseId)).payment?.final)
  expect(await sums()).toMatchObject({ spentUsdc: '0.01', releasedUsdc: '0' })
})

test('if a payment is settled in the last second of its validity, it counts as settled', async () => {
  seller.serve = keep
  const { body } = await buyer.pay(seller.url)
  const { timestamp } = await till.client.getBlock()
  const last = BigInt(body.payment!.validBefore) - 1n
  if (last > timestamp) await till.client.setNextBlockTimestamp({ timestamp: last })
  await seller.settle(seller.received[0]!)
  await pass(600)
  const spent = await buyer.settled(body.purchaseId, 'spent')
  expect(spent.payment?.paidWithoutContent).toBe(true)
})

test('a purse (wallet) does not trust the seller’s own claim that a payment is settled', async () => {
  const lie = `0x${'ab'.repeat(32)}`
  seller.serve = async (payment) => served(payment, lie)
  const { body } = await buyer.pay(seller.url)
  expect(body).toMatchObject({ state: 'answered', payment: { state: 'open', txHash: null } })
  await pass(600)
  await buyer.settled(body.purchaseId, 'released')
  expect(await sums()).toMatchObject({ spentUsdc: '0', releasedUsdc: '0.01' })
})

test('if a seller does not answer, the purse (wallet) sends the same signed payment again and signs no second payment', async () => {
  let calls = 0
  seller.serve = async (payment) => {
    if (++calls === 1) return new Response('away', { status: 503 })
    return served(payment, await seller.settle(payment))
  }
  const { body } = await buyer.pay(seller.url)
  expect(body).toMatchObject({ state: 'answered', status: 200 })
  expect(seller.received.map(({ header }) => header)).toEqual([
    seller.received[0]!.header,
    seller.received[0]!.header,
  ])
  await buyer.settled(body.purchaseId, 'spent')
})

test('if the seller sends a second 402 response after the payment, the purchase ends, and the purse (wallet) signs no second payment', async () => {
  seller.serve = async () => seller.challenge([{ amount: '9999' }])
  const { body } = await buyer.pay(seller.url)
  expect(body).toMatchObject({ state: 'answered', status: 402, payment: { state: 'open' } })
  expect(seller.received.length).toBe(1)
})

test('if the purse (wallet) is stopped, its signed but unsettled payments are cancelled on the chain, and their amounts can be spent again under the mandate (spending limit)', async () => {
  seller.serve = keep
  seller.terms.maxTimeoutSeconds = 120
  const { body } = await buyer.pay(seller.url)
  expect(body.payment?.state).toBe('open')
  const { status } = await till.service.platform.post(
    `/v0/platform/projects/${buyer.project.id}/purse/stop`,
  )
  expect(status).toBe(200)
  await waitFor('the cancellation on the chain', async () => {
    await till.client.mine({ blocks: 1 })
    const logs = await till.client.getLogs({
      event: CANCELED,
      args: { authorizer: buyer.address },
      fromBlock: 0n,
    })
    return logs.length === 1
  })
  expect((await buyer.purchase(body.purchaseId)).payment?.state).toBe('open')
  await expect(seller.settle(seller.received[0]!)).rejects.toThrow('reverted')
  await till.client.mine({ blocks: FINAL_BLOCKS, interval: 1 })
  await buyer.settled(body.purchaseId, 'released')
  expect(await sums()).toMatchObject({ spentUsdc: '0', releasedUsdc: '0.01' })
})

test('if the seller settles a payment before the owner stops the mandate (spending limit), the payment counts as settled', async () => {
  seller.serve = keep
  const { body } = await buyer.pay(seller.url)
  await seller.settle(seller.received[0]!)
  const path = `/v0/platform/projects/${buyer.project.id}/mandates/${mandateId}`
  await till.service.platform.patch(path, { state: 'stopped' })
  await buyer.settled(body.purchaseId, 'spent')
  await pass(60)
  await waitFor('finality', async () => (await buyer.purchase(body.purchaseId)).payment?.final)
  expect(await sums()).toMatchObject({ spentUsdc: '0.01', releasedUsdc: '0' })
})

test('even if a project has many unused signed payments, the service notices that a newer payment is settled', async () => {
  const path = `/v0/platform/projects/${buyer.project.id}/mandates/${mandateId}`
  await till.service.platform.patch(path, { maxTotal: '10' })
  seller.terms.maxTimeoutSeconds = 120
  seller.serve = keep
  // The test makes more payments than the watcher of the chain reads in one poll, so one poll cannot cover all of them.
  await Promise.all(Array.from({ length: 205 }, () => buyer.pay(seller.url)))
  const { body } = await buyer.pay(seller.url)
  await seller.settle(seller.received.at(-1)!)
  await buyer.settled(body.purchaseId, 'spent')
})
