/**
 * Tests that strangers and payers cannot disturb a group of payments after its transaction is sent and before a block
 * contains it. No payment may be made twice or lost.
 */
import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test'
import { createWalletClient, type Hex, http, parseGwei } from 'viem'
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import type { Agent } from '../../../support/service.ts'
import { deployCode } from '../../../support/till/burnerWallet.ts'
import { type GroupScene, startGroupScene } from '../../../support/till/groupScene.ts'
import { newPayer, payer, redeem, SEPOLIA, type TestTill } from '../../../support/till/till.ts'
import { row } from '../../../support/till/tillRows.ts'
import {
  broadcastPayment,
  callToken,
  cancelPayment,
  stranger,
} from '../../../support/till/tokenCalls.ts'
import {
  claimAll,
  inPool,
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

test('if a stranger broadcasts one payment of a payment group, the stranger’s transaction settles this payment, and the group settles the others', async () => {
  const before = await scene.received()
  const { payments, hash } = await scene.groupInPool([...three, {}])
  const foreign = await broadcastPayment(till.client, payments[1]!)
  await scene.mineOn()
  expect(await scene.settledBy(payments[1]!)).toBe(foreign)
  for (const n of [0, 2, 3]) expect(await scene.settledBy(payments[n]!)).toBe(hash)
  expect(await scene.received()).toBe(before + 4n * PRICE_ATOMIC)
  for (const { header } of payments) {
    expect((await redeem(seller, header)).body.ok).toBe(true)
    expect((await redeem(seller, header)).body.reason).toBe('duplicate_settlement')
  }
})

test('payments in a group (one shared transaction) fail if they are cancelled, blacklisted, unfunded or expired before the block, and the others settle', async () => {
  const before = await scene.received()
  const [barred, emptied] = [await newPayer(till.client), await newPayer(till.client)]
  const { payments, hash } = await scene.groupInPool([
    {},
    {},
    { account: barred },
    { account: emptied },
    await scene.expiring(),
    {},
  ])
  await cancelPayment(till.client, payer, payments[1]!.authorization.nonce)
  await callToken(till.client, { functionName: 'blacklist', args: [barred.address] })
  await till.client.setBalance({ address: emptied.address, value: 10n ** 18n })
  await till.client.impersonateAccount({ address: emptied.address })
  const all = { functionName: 'transfer', args: [stranger, 1_000_000n] } as const
  await callToken(till.client, all, emptied.address)
  await till.client.increaseTime({ seconds: 120 })
  await scene.mineOn()
  for (const n of [0, 5]) expect(await scene.settledBy(payments[n]!)).toBe(hash)
  const reasons = await Promise.all(
    [1, 2, 3, 4].map(async (n) => (await reaches(seller, payments[n]!.id, 'failed')).failureReason),
  )
  expect(reasons).toEqual([
    'invalid_exact_evm_nonce_already_used',
    'invalid_transaction_state',
    'insufficient_funds',
    'invalid_exact_evm_payload_authorization_valid_before',
  ])
  expect(await scene.received()).toBe(before + 2n * PRICE_ATOMIC)
  for (const n of [1, 2, 3, 4]) {
    expect((await redeem(seller, payments[n]!.header)).body).toMatchObject({
      ok: false,
      stage: 'settle',
    })
  }
})

test('a payment counts as paid if a stranger broadcast the transfer before the payer was blacklisted', async () => {
  const barred = await newPayer(till.client)
  const { payments } = await scene.groupInPool([{}, { account: barred }])
  const foreign = await broadcastPayment(till.client, payments[1]!)
  await callToken(till.client, { functionName: 'blacklist', args: [barred.address] })
  await scene.mineOn()
  expect(await scene.settledBy(payments[1]!)).toBe(foreign)
})

test('if one payer’s contract code burns all gas, the payment group reverts, the other payments settle, and this payer’s later payments get separate transactions', async () => {
  const { pool } = till.service.database
  const before = await scene.received()
  const spoiler = await newPayer(till.client)
  const burner = await deployCode(till.client, '0xfe')
  const { payments, hash } = await scene.groupInPool([{ account: spoiler }, {}, {}, {}])
  await delegate(spoiler, burner)
  await scene.mineOn()
  for (const payment of payments.slice(1)) expect(await scene.settledBy(payment)).not.toBe(hash)
  expect((await till.client.getTransactionReceipt({ hash })).status).toBe('reverted')
  expect((await reaches(seller, payments[0]!.id, 'failed')).failureReason).not.toBeNull()
  expect(await scene.received()).toBe(before + 3n * PRICE_ATOMIC)
  for (const { id } of payments.slice(1)) {
    expect(await row(pool, 'payments', id)).toMatchObject({ revert_count: 0, goes_alone: true })
  }
  // After the transaction of the group has reverted, later payments of the payer go in separate transactions, even if
  // the contract code of the account is removed.
  await scene.rest()
  await till.client.setCode({ address: spoiler.address, bytecode: '0x' })
  const later = await claimAll(seller, await scene.lasting([{ account: spoiler }, {}, {}]))
  await scene.start()
  for (const payment of later) await scene.settledBy(payment)
  const sizes = (await transactionsOf(till, later)).map(({ members }) => members).toSorted()
  expect(sizes).toEqual([1, 2])
  expect((await transactionsOf(till, [later[0]!]))[0]!.members).toBe(1)
})

/**
 * Gives an account the code of a contract as defined by EIP-7702. The first transaction of the block sets the account's
 * code by an EIP-7702 delegation.
 */
async function delegate(account: PrivateKeyAccount, to: Hex): Promise<void> {
  const sponsor = privateKeyToAccount(generatePrivateKey())
  await till.client.setBalance({ address: sponsor.address, value: 10n ** 18n })
  const authorization = await account.signAuthorization({
    chainId: SEPOLIA.chainId,
    contractAddress: to,
    nonce: await till.client.getTransactionCount({ address: account.address }),
  })
  const wallet = createWalletClient({
    account: sponsor,
    transport: http(till.devnet.rpcUrl, { fetchOptions: { proxy: false } as never }),
  })
  await wallet.sendTransaction({
    chain: null,
    type: 'eip7702',
    to: sponsor.address,
    authorizationList: [authorization],
    gas: 200_000n,
    maxFeePerGas: parseGwei('60'),
    maxPriorityFeePerGas: parseGwei('20'),
  })
}

for (const [refusals, fate, members] of [
  [5, 'waits for the next group', [2]],
  [6, 'goes alone', [2, 1]],
] as const) {
  test(`after ${refusals} refusals in settlement groups (several payments in one transaction), a payment ${fate}`, async () => {
    const { pool } = till.service.database
    // The payer’s balance is enough for only one of its two payments. The simulation of each single payment succeeds,
    // but a simulation of both together refuses the second payment.
    const poor = await newPayer(till.client, PRICE_ATOMIC)
    await till.client.mine({ blocks: 1 })
    await till.client.setAutomine(false)
    const payments: WaitingPayment[] = []
    for (const order of await scene.lasting([{ account: poor }, {}, { account: poor }])) {
      payments.push(...(await claimAll(seller, [order])))
    }
    const { id } = payments[2]!
    await pool.query('update payments set trouble_count = $2 where id = $1', [id, refusals])
    await scene.start()
    await inPool(till, payments[0]!.id)
    await waitFor('the second payment to be judged', async () => {
      const { rows } = await pool.query(
        `select from payments where id = $1 and trouble_count > $2
         union all select from transaction_payments where payment_id = $1`,
        [id, refusals],
      )
      return rows.length > 0
    })
    const transactions = await transactionsOf(till, payments)
    expect(transactions.map(({ members }) => members)).toEqual([...members])
    await scene.mineOn()
    for (const n of [0, 1]) await scene.settledBy(payments[n]!)
    // The job of the payment is made due at once, so that the test does not wait for its scheduled time.
    await pool.query(`update graphile_worker._private_jobs set run_at = now() where key = $1`, [
      `settle_payment:${id}`,
    ])
    expect((await reaches(seller, id, 'failed')).failureReason).toBe('insufficient_funds')
  })
}
