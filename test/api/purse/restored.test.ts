/**
 * Tests payments that are missing from a database that was restored from an older backup. The test deletes the records
 * of a payment, as such a restore does, and repeats the API call.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import {
  newBuyer,
  paidBy,
  served,
  startPurseTill,
  startSeller,
} from '../../support/purse/purseScene.ts'
import type { TestTill } from '../../support/till/till.ts'
import '../../support/long.ts'

let till: TestTill
beforeAll(async () => {
  till = await startPurseTill()
})
afterAll(() => till[Symbol.asyncDispose]())

test('if a restored database lacks a purchase, a call with the same Idempotency-Key takes no money a second time', async () => {
  await using seller = startSeller(till)
  const buyer = await newBuyer(till)
  const mandateId = await buyer.giveMandate({ hosts: [seller.host] })
  const { pool } = till.service.database
  const first = await buyer.pay(seller.url, { key: 'weather-1' })
  const { payment } = await buyer.settled(first.body.purchaseId, 'spent')
  expect(await paidBy(till, buyer.address)).toBe(10_000n)
  await pool.query('delete from purchases where project_id = $1', [buyer.project.id])
  await pool.query(
    'update mandates set reserved_atomic = 0, spent_atomic = 0, released_atomic = 0 where id = $1',
    [mandateId],
  )
  // So many blocks pass that the search for the transfer of a new payment would not reach back to the first transfer.
  await till.client.mine({ blocks: 20 })
  // This seller has forgotten the first payment, and when it settles the second payment, the transaction reverts.
  seller.serve = async (paid) => {
    const hash = await seller.settle(paid).catch(() => null)
    return hash === null ? new Response('used', { status: 402 }) : served(paid, hash)
  }
  const again = await buyer.pay(seller.url, { key: 'weather-1' })
  expect(again.body.purchaseId).not.toBe(first.body.purchaseId)
  const known = await buyer.settled(again.body.purchaseId, 'spent')
  expect(known.payment).toMatchObject({ txHash: payment!.txHash, nonce: payment!.nonce })
  expect(await paidBy(till, buyer.address)).toBe(10_000n)
  expect(await buyer.mandate(mandateId)).toMatchObject({ spentUsdc: '0.01', openUsdc: '0' })
  // The database is restored again, and the seller then asks for another price. The purse signs the same nonce, which
  // the chain accepts only once.
  await pool.query('delete from purchases where project_id = $1', [buyer.project.id])
  seller.terms.amount = '11000'
  const dearer = await buyer.pay(seller.url, { key: 'weather-1' })
  expect(dearer.body.payment).toMatchObject({ nonce: payment!.nonce, state: 'open' })
  await till.client.mine({ blocks: 66 })
  await buyer.settled(dearer.body.purchaseId, 'released')
  expect(await paidBy(till, buyer.address)).toBe(10_000n)
  seller.terms.amount = '10000'
  const other = await buyer.pay(seller.url, { key: 'weather-2' })
  await buyer.settled(other.body.purchaseId, 'spent')
  expect(await paidBy(till, buyer.address)).toBe(20_000n)
})
