/**
 * Tests that a chain reorganisation undoes the settlements in the lost blocks, and that each payment then settles again
 * once.
 */
import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test'
import { pad } from 'viem'
import type { Agent } from '../../../support/service.ts'
import { type RpcProxy, startRpcProxy } from '../../../support/till/rpcProxy.ts'
import {
  pay,
  redeem,
  redeemToEnd,
  startTestTill,
  type TestTill,
} from '../../../support/till/till.ts'
import { row } from '../../../support/till/tillRows.ts'
import { inPool } from '../../../support/till/waitingPayments.ts'
import { waitFor } from '../../../support/waitFor.ts'

let till: TestTill
let seller: Agent
let proxy: RpcProxy

beforeAll(async () => {
  till = await startTestTill({
    env: { SETTLEMENT_WAIT_MS: '400' },
    proxy: (rpcUrl) => {
      proxy = startRpcProxy(rpcUrl)
      return proxy.url
    },
  })
  seller = await till.newSeller({ webhookUrl: 'http://127.0.0.1:9/hook' })
})
afterEach(() => {
  proxy.answers.clear()
  return till.client.setAutomine(true)
})
afterAll(async () => {
  await till[Symbol.asyncDispose]()
  await proxy.stop()
})

const record = async (id: string) => (await seller.get(`/v0/payments/${id}`)).body
const reaches = (id: string, status: string) =>
  waitFor(`status ${status}`, async () => {
    const payment = await record(id)
    expect(payment.status).not.toBe('failed')
    return payment.status === status ? payment : null
  })
/** Removes the newest block of the chain. The transactions of the removed block wait in the transaction pool. */
const reorganise = () => till.client.request({ method: 'anvil_reorg', params: [1, []] } as never)
const announced = async (id: string) => {
  const { rows } = await till.service.database.pool.query(
    `select count(*)::int as n from events where type = 'payment.settled' and data->>'paymentId' = $1`,
    [id],
  )
  return rows[0].n
}

test('after a reorganisation the same transaction settles a payment again, and the payment still has one receipt', async () => {
  const { header } = await pay()
  const { body } = await redeemToEnd(seller, header)
  expect(body.ok).toBe(true)
  await till.client.setAutomine(false)
  await reorganise()
  const takenBack = await reaches(body.paymentId, 'verified')
  expect(takenBack).toMatchObject({ settledAt: null, signedReceipt: null, finalizedAt: null })
  expect((await redeem(seller, header)).body.reason).toBe('settlement_pending')
  await till.client.setAutomine(true)
  await till.client.mine({ blocks: 1 })
  const again = await reaches(body.paymentId, 'settled')
  expect(again).toMatchObject({ txHash: body.txHash, signedReceipt: body.signedReceipt })
  expect(again.deliveries).toHaveLength(1)
  expect(await announced(body.paymentId)).toBe(1)
  expect((await redeem(seller, header)).body.reason).toBe('duplicate_settlement')
})

test('a payment that a reorganisation undid grants access to the paid resource only after the payment has settled again', async () => {
  await till.client.setAutomine(false)
  const { header } = await pay()
  const { body: pending } = await redeem(seller, header)
  await inPool(till, pending.paymentId)
  await till.client.mine({ blocks: 1 })
  await reaches(pending.paymentId, 'settled')
  await reorganise()
  await reaches(pending.paymentId, 'verified')
  expect((await redeem(seller, header)).body.reason).toBe('settlement_pending')
  await till.client.setAutomine(true)
  await till.client.mine({ blocks: 1 })
  await reaches(pending.paymentId, 'settled')
  expect((await redeem(seller, header)).body.ok).toBe(true)
})

test('a settled payment with an outdated block hash becomes final only after the hash is corrected', async () => {
  const { pool } = till.service.database
  const stale = await redeemToEnd(seller, (await pay()).header)
  const sound = await redeemToEnd(seller, (await pay()).header)
  const { paymentId } = stale.body
  const { block_hash } = await row(pool, 'payments', paymentId)
  await pool.query('update payments set block_hash = $2 where id = $1', [paymentId, pad('0xdead')])
  await till.client.mine({ blocks: 200 })
  await waitFor('finality', async () => (await record(sound.body.paymentId)).finalizedAt)
  const final = await waitFor('finality of the other', async () => {
    const stored = await row(pool, 'payments', paymentId)
    return stored.finalized_at === null ? null : stored
  })
  expect(final.block_hash).toBe(block_hash)
})
