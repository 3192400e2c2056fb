/**
 * Tests which payments settle in one group. Projects get their payments into the groups in rotation, and payments with
 * separate transactions never delay the groups.
 */
import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test'
import { keepAlone } from '../../../../sql/till/settle/settlementQueue.ts'
import { testWhole } from '../../../support/database/extent.ts'
import { type GroupScene, startGroupScene } from '../../../support/till/groupScene.ts'
import { newPayer, payer, SEPOLIA, type TestTill } from '../../../support/till/till.ts'
import { claimAll, transactionsOf } from '../../../support/till/waitingPayments.ts'
import { waitFor } from '../../../support/waitFor.ts'
import '../../../support/long.ts'

let scene: GroupScene
let till: TestTill

beforeAll(async () => {
  scene = await startGroupScene()
  till = scene.till
})
afterEach(() => scene.rest())
afterAll(() => scene[Symbol.asyncDispose]())

test('a payment that is queued behind hundreds of payments of another project is still in the first settlement group', async () => {
  const greedy = await claimAll(scene.seller, 300)
  const other = await till.newSeller()
  const [single] = await claimAll(other, 1)
  await scene.start()
  await waitFor('all settlements', async () => {
    const groups = await transactionsOf(till, [...greedy, single!])
    return (
      groups.reduce((sum, { members }) => sum + members, 0) === 301 &&
      groups.every(({ state }) => state === 'mined')
    )
  })
  const [first, ...later] = await transactionsOf(till, [...greedy, single!])
  expect((await transactionsOf(till, [single!]))[0]!.hash).toBe(first!.hash)
  // While another project waits, one project may fill only a quarter of a settlement group (one shared transaction).
  // Otherwise, it may fill a whole group.
  expect(first!.members).toBe(17)
  expect(Math.max(...later.map(({ members }) => members))).toBe(64)
})

testWhole(
  'a payment group that is queued behind hundreds of payments with separate transactions is among the first transactions',
  async () => {
    const { pool } = till.service.database
    await keepAlone(pool, [{ chainId: SEPOLIA.chainId, payer: payer.address }])
    const lone = await claimAll(scene.seller, 200)
    const account = await newPayer(till.client)
    const payments = await claimAll(scene.seller, [{ account }, { account }, { account }])
    const before = await scene.nonceOf()
    await scene.start()
    const [hash] = await Promise.all(payments.map(scene.settledBy))
    expect((await transactionsOf(till, payments)).map(({ members }) => members)).toEqual([3])
    const { nonce } = await till.client.getTransaction({ hash: hash! })
    expect(nonce - before).toBeLessThan(40)
    await Promise.all(lone.map(scene.settledBy))
    expect(await scene.nonceOf()).toBe(before + 201)
    await pool.query('delete from lone_payers')
  },
)
