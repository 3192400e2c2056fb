/**
 * Tests a settlement transaction with several payments that the chain drops, leaves out of blocks, or loses in a
 * reorganisation.
 */
import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test'
import { queueSettlement } from '../../../../sql/till/settle/settlementQueue.ts'
import type { Agent } from '../../../support/service.ts'
import { type GroupScene, startGroupScene } from '../../../support/till/groupScene.ts'
import { pay, redeemToEnd, type TestTill } from '../../../support/till/till.ts'
import { broadcastPayment } from '../../../support/till/tokenCalls.ts'
import {
  type Order,
  reaches,
  transactionsOf,
  type WaitingPayment,
} from '../../../support/till/waitingPayments.ts'
import { waitFor } from '../../../support/waitFor.ts'
import '../../../support/long.ts'

let scene: GroupScene
let till: TestTill
let seller: Agent

beforeAll(async () => {
  scene = await startGroupScene()
  till = scene.till
  seller = scene.seller
})
afterEach(() => scene.rest())
afterAll(() => scene[Symbol.asyncDispose]())

const PRICE_ATOMIC = 10_000n
const three: readonly Order[] = [{}, {}, {}]

test('if the chain dropped the transaction of a payment group, the same bytes are broadcast again', async () => {
  const before = await scene.nonceOf()
  const { payments, hash } = await scene.groupInPool(three)
  await till.client.dropTransaction({ hash })
  await till.client.setAutomine(true)
  for (const payment of payments) expect(await scene.settledBy(payment)).toBe(hash)
  expect(await scene.nonceOf()).toBe(before + 1)
})

/**
 * Mines an empty block whose base fee is slightly above the fee of every open transaction. Mines no block if the open
 * transaction with the highest fee contains `members` payments. Each call can double the base fee, so unneeded calls
 * would exceed 100 gwei, the maximum fee of a transaction.
 */
async function passBy(members: number): Promise<void> {
  const { rows } = await till.service.database.pool.query(
    `select max_fee_wei as fee, send_count,
            (select count(*)::int from transaction_payments m where m.hash = t.hash) as members
     from chain_transactions t where state = 'open' order by max_fee_wei desc limit 1`,
  )
  // Until a replacement transaction is sent, the base fee must not change, so no block is mined.
  if (rows[0] === undefined || rows[0].send_count === 0 || rows[0].members === members) return
  const baseFeePerGas = BigInt(rows[0].fee) + 1n
  await till.client.setNextBlockBaseFeePerGas({ baseFeePerGas })
  await till.client.mine({ blocks: 1 })
}
const isInPool = (hash: string) =>
  till.client.getTransaction({ hash: hash as `0x${string}` }).then(
    () => true,
    () => false,
  )
const passByUntil = <Result>(wanted: string, members: number, probe: () => Promise<Result>) =>
  waitFor(wanted, async () => {
    await passBy(members)
    return probe()
  })

/**
 * Queues the settlement of a payment, and tells whether the payment has failed. The settlement fails the payment if its
 * authorization has expired by the clock of the chain.
 */
async function hasFailed({ id }: WaitingPayment): Promise<boolean> {
  await queueSettlement(till.service.database.pool, id, null)
  return (await seller.get(`/v0/payments/${id}`)).body.status === 'failed'
}

test('the stuck transaction of a payment group is replaced by a transaction with the same nonce, which leaves out payments that have ended', async () => {
  const nonce = await scene.nonceOf()
  const { payments, hash } = await scene.groupInPool([{}, await scene.expiring(), {}])
  await till.client.increaseTime({ seconds: 120 })
  await passBy(2)
  await waitFor('the failure of the expired member', () => hasFailed(payments[1]!))
  await passByUntil('a group of two in the pool', 2, async () => {
    const raised = (await transactionsOf(till, payments)).find(({ members }) => members === 2)
    return raised !== undefined && (await isInPool(raised.hash))
  })
  const { rows } = await till.service.database.pool.query(
    'select distinct wallet, nonce::int from chain_transactions where nonce >= $1',
    [nonce],
  )
  expect(rows).toHaveLength(1)
  await mineUntilUsed(nonce)
  const [first, third] = [await scene.settledBy(payments[0]!), await scene.settledBy(payments[2]!)]
  expect(first).toBe(third)
  expect(first).not.toBe(hash)
  expect(await scene.nonceOf()).toBe(nonce + 1)
})

test('the stuck transaction of a payment group is replaced by an empty transfer if no payment of the group still waits', async () => {
  const nonce = await scene.nonceOf()
  const late = await scene.expiring()
  const { payments } = await scene.groupInPool([late, late])
  await till.client.increaseTime({ seconds: 120 })
  await passBy(0)
  for (const payment of payments) await waitFor('the failure', () => hasFailed(payment))
  await passByUntil('the empty transfer', 0, async () => {
    const { rows } = await till.service.database.pool.query(
      `select hash from chain_transactions t where nonce = $1 and not exists (
         select from transaction_payments m where m.hash = t.hash)`,
      [nonce],
    )
    return rows.length > 0 && (await isInPool(rows[0].hash))
  })
  await mineUntilUsed(nonce)
  await till.client.setAutomine(true)
  const [next] = await scene.lasting([{}])
  const { header } = await pay(next!.changes)
  expect((await redeemToEnd(seller, header)).body.ok).toBe(true)
})

const mineUntilUsed = (nonce: number) =>
  waitFor('the nonce to be used', async () => {
    await till.client.setNextBlockBaseFeePerGas({ baseFeePerGas: 1n })
    await till.client.mine({ blocks: 1 })
    return (await scene.nonceOf()) > nonce
  })

test('after a reorganisation the same transaction settles the payments of its group again, with the same receipts', async () => {
  const before = await scene.received()
  const { payments, hash } = await scene.groupInPool(three)
  await till.client.mine({ blocks: 1 })
  const first = await Promise.all(payments.map(({ id }) => reaches(seller, id, 'settled')))
  await scene.reorganise()
  for (const { id } of payments) await reaches(seller, id, 'verified')
  await scene.mineOn()
  for (const [n, { id }] of payments.entries()) {
    const again = await reaches(seller, id, 'settled')
    expect(again).toMatchObject({ txHash: hash, signedReceipt: first[n].signedReceipt })
  }
  expect(await scene.received()).toBe(before + 3n * PRICE_ATOMIC)
})

test('after a reorganisation a stranger’s transaction settles one payment of a group, and the group’s transaction settles the others', async () => {
  const before = await scene.received()
  const { payments, hash } = await scene.groupInPool(three)
  await till.client.mine({ blocks: 1 })
  for (const { id } of payments) await reaches(seller, id, 'settled')
  const announced = async () => {
    const { rows } = await till.service.database.pool.query(
      `select count(*)::int as n from events where type = 'payment.settled' and data->>'paymentId' = any ($1)`,
      [payments.map(({ id }) => id)],
    )
    return rows[0].n
  }
  await scene.reorganise()
  const foreign = await broadcastPayment(till.client, payments[1]!)
  await scene.mineOn()
  await waitFor('the foreign settlement', async () => {
    const { body } = await seller.get(`/v0/payments/${payments[1]!.id}`)
    expect(body.status).not.toBe('failed')
    return body.status === 'settled' && body.txHash === foreign
  })
  for (const n of [0, 2]) expect(await scene.settledBy(payments[n]!)).toBe(hash)
  expect(await scene.received()).toBe(before + 3n * PRICE_ATOMIC)
  expect(await announced()).toBe(3)
})
