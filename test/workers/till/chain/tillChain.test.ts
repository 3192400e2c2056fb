/**
 * Tests pending payments with transactions that the chain drops or delays, and payments that strangers broadcast first.
 */
import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test'
import { type Hex, parseGwei } from 'viem'
import { DEVNET_ACCOUNTS } from '../../../../shared/till/devnetAccounts.ts'
import type { Agent } from '../../../support/service.ts'
import {
  newPayer,
  pay,
  payer,
  redeem,
  redeemToEnd,
  type SignedPayment,
  startTestTill,
  type TestTill,
} from '../../../support/till/till.ts'
import {
  broadcastPayment,
  callToken,
  cancelPayment,
  stranger,
} from '../../../support/till/tokenCalls.ts'
import { waitFor } from '../../../support/waitFor.ts'
import '../../../support/long.ts'

const gasWallet = DEVNET_ACCOUNTS.gasWallet.address

let till: TestTill
let seller: Agent

beforeAll(async () => {
  till = await startTestTill({ env: { SETTLEMENT_WAIT_MS: '400' } })
  seller = await till.newSeller({ webhookUrl: 'http://127.0.0.1:9/hook' })
})
afterEach(() => till.client.setAutomine(true))
afterAll(() => till[Symbol.asyncDispose]())

const record = async (id: string) => (await seller.get(`/v0/payments/${id}`)).body
const reaches = (id: string, status: string) =>
  waitFor(`status ${status}`, async () => {
    const payment = await record(id)
    return payment.status === status ? payment : null
  })
const nonceOf = () => till.client.getTransactionCount({ address: gasWallet })
const deliveries = async (id: string): Promise<number> => (await record(id)).deliveries.length

/** Tells whether the chain node has a transaction, either in its transaction pool or in a block. */
const has = (hash: Hex) =>
  till.client.getTransaction({ hash }).then(
    () => true,
    () => false,
  )

/**
 * Redeems a payment while no block is mined, and waits until the transaction of the payment is in the transaction pool
 * of the chain node.
 */
async function inPool(
  options: Parameters<typeof pay>[1] = {},
): Promise<{ payment: SignedPayment; id: string; txHash: Hex }> {
  await till.client.setAutomine(false)
  const payment = await pay({}, options)
  const { body } = await redeem(seller, payment.header)
  expect(body).toMatchObject({ ok: false, reason: 'settlement_pending' })
  const txHash = await waitFor('the transaction to be in the pool', async () => {
    const { txHash: signed } = await record(body.paymentId)
    return signed !== null && (await has(signed)) ? (signed as Hex) : null
  })
  return { payment, id: body.paymentId, txHash }
}

test('a transaction that the chain dropped is broadcast again, with the same bytes', async () => {
  const before = await nonceOf()
  const { id, txHash } = await inPool()
  await till.client.dropTransaction({ hash: txHash })
  await till.client.setAutomine(true)
  expect(await reaches(id, 'settled')).toMatchObject({ txHash })
  expect(await nonceOf()).toBe(before + 1)
})

test('a stuck transaction is replaced by a transaction with the same nonce and a higher fee', async () => {
  const before = await nonceOf()
  const { payment, id, txHash } = await inPool()
  const settled = await waitFor('the settlement', async () => {
    // Every empty block lowers the base fee. After a few dozen empty blocks, the fee of the first transaction would be
    // high enough for a block, so the test raises the base fee again.
    await till.client.setNextBlockBaseFeePerGas({ baseFeePerGas: parseGwei('40') })
    await till.client.mine({ blocks: 1 })
    const now = await record(id)
    return now.status === 'settled' ? now : null
  })
  expect(settled.txHash).not.toBe(txHash)
  expect(await nonceOf()).toBe(before + 1)
  expect((await redeemToEnd(seller, payment.header)).body.ok).toBe(true)
})

test('a settled payment becomes final when its block becomes final', async () => {
  const { header } = await pay()
  const { body } = await redeemToEnd(seller, header)
  expect((await record(body.paymentId)).finalizedAt).toBeNull()
  await till.client.mine({ blocks: 200 })
  await waitFor('finality', async () => (await record(body.paymentId)).finalizedAt)
})

test('if a stranger broadcasts the authorization of a payment first, the stranger’s transaction settles the payment', async () => {
  const { payment, id, txHash } = await inPool()
  const foreign = await broadcastPayment(till.client, payment)
  await waitFor('the foreign transaction to be in the pool', () => has(foreign))
  // Earlier tests in this file have raised the base fee. The test lowers it, because only with a low base fee can a
  // stranger’s transaction pay a higher tip (priority fee) than the service’s transaction.
  await till.client.setNextBlockBaseFeePerGas({ baseFeePerGas: parseGwei('1') })
  await till.client.mine({ blocks: 1 })
  const settled = await reaches(id, 'settled')
  expect(settled.txHash).toBe(foreign)
  expect(settled.txHash).not.toBe(txHash)
  expect(settled.signedReceipt.body.txHash).toBe(foreign)
  expect((await redeemToEnd(seller, payment.header)).body).toMatchObject({
    ok: true,
    txHash: foreign,
  })
  expect(await deliveries(id)).toBe(1)
})

test('a payment is refused if its authorization was used before the service claimed (stored) the payment', async () => {
  const payment = await pay()
  const { blockNumber } = await till.client.waitForTransactionReceipt({
    hash: await broadcastPayment(till.client, payment),
  })
  await waitFor('the worker to see the block', async () => {
    const { rows } = await till.service.database.pool.query('select head_number from chain_status')
    return BigInt(rows[0].head_number) >= blockNumber
  })
  const before = await nonceOf()
  expect((await redeemToEnd(seller, payment.header)).body).toMatchObject({
    ok: false,
    stage: 'verify',
    reason: 'invalid_exact_evm_nonce_already_used',
  })
  expect(await nonceOf()).toBe(before)
})

test('a pending payment fails without giving access to the paid resource if the payer cancels its authorization', async () => {
  const { payment, id } = await inPool()
  await cancelPayment(till.client, payer, payment.authorization.nonce)
  await till.client.mine({ blocks: 1 })
  const failed = await reaches(id, 'failed')
  expect(failed.failureReason).toBe('invalid_exact_evm_nonce_already_used')
  expect((await redeemToEnd(seller, payment.header)).body).toMatchObject({
    ok: false,
    stage: 'settle',
  })
  expect(await deliveries(id)).toBe(0)
})

test('a payment fails if the payer moves the money away before the payment is in a block', async () => {
  const account = await newPayer(till.client, 10_000n)
  const { id } = await inPool({ account })
  await till.client.setBalance({ address: account.address, value: 10n ** 18n })
  await till.client.impersonateAccount({ address: account.address })
  const transfer = { functionName: 'transfer', args: [stranger, 10_000n] } as const
  await callToken(till.client, transfer, account.address)
  await till.client.mine({ blocks: 1 })
  const failed = await reaches(id, 'failed')
  expect(failed.failureReason).toBe('insufficient_funds')
})

test('a payment that the token contract refuses fails before a transaction is sent', async () => {
  const before = await nonceOf()
  const poor = await pay({}, { account: await newPayer(till.client, 1n) })
  expect((await redeemToEnd(seller, poor.header)).body).toMatchObject({
    ok: false,
    stage: 'verify',
    reason: 'insufficient_funds',
  })
  const barred = await newPayer(till.client)
  const blacklist = { functionName: 'blacklist', args: [barred.address] } as const
  await till.client.waitForTransactionReceipt({ hash: await callToken(till.client, blacklist) })
  expect(
    (await redeemToEnd(seller, (await pay({}, { account: barred })).header)).body,
  ).toMatchObject({
    ok: false,
    stage: 'verify',
    reason: 'invalid_transaction_state',
    detail: 'Blacklistable: account is blacklisted',
  })
  const pause = async (functionName: 'pause' | 'unpause') =>
    till.client.waitForTransactionReceipt({
      hash: await callToken(till.client, { functionName }),
    })
  await pause('pause')
  expect((await redeemToEnd(seller, (await pay()).header)).body).toMatchObject({
    ok: false,
    reason: 'invalid_transaction_state',
    detail: 'Pausable: paused',
  })
  await pause('unpause')
  expect((await redeemToEnd(seller, (await pay()).header)).body.ok).toBe(true)
  expect(await nonceOf()).toBe(before + 1)
})

test('if a gas wallet has an unused nonce, it fills the nonce with an empty transaction, so that transactions with later nonces are mined', async () => {
  const { pool } = till.service.database
  const before = await nonceOf()
  await pool.query('update gas_wallets set next_nonce = next_nonce + 3')
  const { header } = await pay()
  const first = await redeem(seller, header)
  await waitFor('the settlement', async () => {
    const { body } = await redeemToEnd(seller, header)
    return body.ok || first.body.ok
  })
  expect(await nonceOf()).toBe(before + 4)
})

test('a payment whose authorization expires before a block contains it fails without giving access, and the next payment settles', async () => {
  const before = await nonceOf()
  const { payment, id } = await inPool()
  await till.client.increaseTime({ seconds: 120 })
  await till.client.mine({ blocks: 1 })
  const failed = await reaches(id, 'failed')
  expect(failed.failureReason).toBe('invalid_exact_evm_payload_authorization_valid_before')
  expect(await nonceOf()).toBe(before + 1)
  expect((await redeemToEnd(seller, payment.header)).body).toMatchObject({
    ok: false,
    stage: 'settle',
    paymentId: id,
  })
  await till.client.setAutomine(true)
  const late = await pay({ validBefore: BigInt(Math.floor(Date.now() / 1000)) + 600n })
  expect((await redeemToEnd(seller, late.header)).body.ok).toBe(true)
})
