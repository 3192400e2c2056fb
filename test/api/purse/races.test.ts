/**
 * Tests many concurrent payments from two workers and two API keys. In total, they never exceed a mandate (a spending
 * limit), not even by one atomic unit.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import {
  newBuyer,
  type PurchaseView,
  paidBy,
  type Seller,
  startPurseTill,
  startSeller,
} from '../../support/purse/purseScene.ts'
import type { TestTill } from '../../support/till/till.ts'
import { waitFor } from '../../support/waitFor.ts'
import '../../support/long.ts'

const PAYMENTS = 200

let till: TestTill
let seller: Seller
beforeAll(async () => {
  // With one block a second, the clock of the test chain keeps real time. If each transaction had its own block, the
  // clock of the chain would run ahead, and signatures would expire.
  till = await startPurseTill({ blockTimeS: 1, parts: { pools: ['purse', 'purse'] } })
  seller = startSeller(till)
})
afterAll(async () => {
  await seller[Symbol.asyncDispose]()
  await till[Symbol.asyncDispose]()
})

const atomic = (usdc: string | undefined): bigint => BigInt(Math.round(Number(usdc) * 1e6))

test(`${PAYMENTS} parallel payments stay exactly within the limits of two mandates (spending limits)`, async () => {
  const buyer = await newBuyer(till)
  // The limit of 0.10 USDC is not a multiple of the price of 0.003 USDC, so payments cannot use up the limit
  // completely.
  const narrow = await buyer.giveMandate({ hosts: [seller.host], maxPerDay: '0.1' })
  const wide = await buyer.giveMandate({ hosts: [seller.host], maxTotal: '0.2' })
  seller.terms.amount = '3000'
  // The fake seller loses a third of its responses and refuses a third of the requests, but may settle the payments of
  // these requests nevertheless.
  seller.serve = async (payment) => {
    const place = seller.received.length % 3
    if (place === 0) return new Response('no', { status: 400 })
    await seller.settle(payment)
    return place === 1 ? new Response('lost', { status: 410 }) : new Response('content')
  }
  const all = await Promise.all(
    // A service under load may refuse requests with status 503. The client then repeats the request, which is safe,
    // because one Idempotency-Key never pays twice.
    Array.from({ length: PAYMENTS }, (_, n) =>
      waitFor('an accepted purchase', async () => {
        const answer = await buyer.pay(seller.url, { timeout: 40, key: `parallel-${n}` })
        return answer.status === 503 ? null : answer
      }),
    ),
  )
  const errors = all.filter(({ status }) => status >= 300)
  expect(errors).toEqual([])
  // Each request has a different idempotency key, so each request gets its own purchase.
  expect(new Set(all.map(({ body }) => body.purchaseId)).size).toBe(PAYMENTS)
  const ended: PurchaseView[] = await Promise.all(
    all.map(({ body }) =>
      waitFor('the end', async () => {
        const found = await buyer.purchase(body.purchaseId)
        expect(found.purchaseId).toBe(body.purchaseId)
        return found.state === 'pending' ? null : found
      }),
    ),
  )
  const signed = ended.filter(({ payment }) => payment !== null)
  for (const one of ended.filter(({ payment }) => payment === null)) {
    expect(one).toMatchObject({ state: 'refused', reason: 'mandate_exceeded' })
  }
  // Each signed payment belongs to a different purchase, and counts against both mandates (spending limits).
  expect(new Set(signed.map(({ purchaseId }) => purchaseId)).size).toBe(signed.length)
  for (const one of signed) {
    expect([one, one.payment!.mandateIds.toSorted()]).toEqual([one, [narrow, wide].toSorted()])
  }
  const paid = await paidBy(till, buyer.address)
  const sums = await waitFor('the sums of the chain', async () => {
    const found = await buyer.mandate(narrow)
    return atomic(found.spentUsdc) === paid ? found : null
  })
  const [reserved, spent, open, released] = [
    sums.reservedUsdc,
    sums.spentUsdc,
    sums.openUsdc,
    sums.releasedUsdc,
  ].map(atomic) as [bigint, bigint, bigint, bigint]
  process.stdout.write(
    `reserved ${reserved} = spent ${spent} + released ${released} + open ${open}; transfers ${paid}\n`,
  )
  expect(reserved).toBe(spent + released + open)
  expect(spent).toBe(paid)
  expect(spent + open).toBeLessThanOrEqual(100_000n)
  expect(reserved).toBe(BigInt(signed.length) * 3_000n)
  // The limit allows 33 payments. On a slow machine, signatures of refused payments expire during the test and release
  // their amounts, so more than 33 payments are possible.
  expect(signed.length).toBeGreaterThanOrEqual(33)
  if (released === 0n) expect(signed.length).toBe(33)
  const { reservedUsdc, spentUsdc } = await buyer.mandate(wide)
  expect([reservedUsdc, spentUsdc]).toEqual([sums.reservedUsdc, sums.spentUsdc])
})

test('parallel payments never exceed the balance of the purse (wallet)', async () => {
  const buyer = await newBuyer(till, { fundsAtomic: 10_000n })
  await buyer.giveMandate({ hosts: [seller.host] })
  seller.serve = async () => new Response('no', { status: 400 })
  const all = await Promise.all(Array.from({ length: 20 }, () => buyer.pay(seller.url)))
  const signed = all.filter(({ body }) => body.payment !== null)
  expect(signed.length).toBe(3)
})

test('if a mandate (spending limit) is reduced during payments, new payments are refused, and payments that are already signed stay valid', async () => {
  const buyer = await newBuyer(till)
  const id = await buyer.giveMandate({ hosts: [seller.host], maxTotal: '1' })
  const { promise: narrowed, resolve } = Promise.withResolvers<void>()
  seller.serve = async (payment) => {
    await narrowed
    await seller.settle(payment)
    return new Response('content')
  }
  const before = seller.received.length
  const first = buyer.pay(seller.url)
  await waitFor('the payment at the seller', () => seller.received.length > before)
  await till.service.platform.patch(`/v0/platform/projects/${buyer.project.id}/mandates/${id}`, {
    maxTotal: '0.000001',
  })
  expect((await buyer.pay(seller.url)).body.reason).toBe('mandate_exceeded')
  resolve()
  const { body } = await first
  expect(body.state).toBe('answered')
  await buyer.settled(body.purchaseId, 'spent')
})

test('a seller is paid once for twenty parallel purchase requests with the same Idempotency-Key', async () => {
  const buyer = await newBuyer(till)
  await buyer.giveMandate({ hosts: [seller.host] })
  seller.serve = async (payment) => {
    await seller.settle(payment)
    return new Response('content')
  }
  const before = seller.received.length
  const all = await Promise.all(
    Array.from({ length: 20 }, () => buyer.pay(seller.url, { key: 'the-same' })),
  )
  expect(new Set(all.map(({ body }) => body.purchaseId)).size).toBe(1)
  expect(seller.received.length).toBe(before + 1)
  expect(await paidBy(till, buyer.address)).toBe(3000n)
})
