/** Tests which reverted payments of contract wallets end, and how these payments end. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { type Address, type Hex, pad } from 'viem'
import { findPayment, findPayments } from '../../../../sql/till/payments/payments.ts'
import type { NewClaim } from '../../../../sql/till/settle/claims.ts'
import { storeSigned, syncWallet } from '../../../../sql/till/settle/gasWallets.ts'
import { findSuspended } from '../../../../sql/till/settle/walletSuspensions.ts'
import { recordMisses } from '../../../../sql/till/watch/misses.ts'
import { RpcTrouble } from '../../../../workers/till/chain/rpc.ts'
import { findReverted } from '../../../../workers/till/watch/revertedPayments.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import { blockAt, type HandChain, startHandChain } from '../../../support/till/handChain.ts'
import { BLOCK, newPayment, signedFor, WALLET } from '../../../support/till/tillRows.ts'

const WALLET_PAYER: Address = '0x00000000000000000000000000000000000000AA'
const CODE = pad('0xc0de')
const DEPLOYMENT = { factory: '0x00000000000000000000000000000000000000fa', factoryData: '0x12' }
let database: TestDatabase
let pool: TestDatabase['pool']
let hand: HandChain
beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
  hand = startHandChain(pool)
})
beforeEach(async () => {
  await pool.query('truncate payments, chain_transactions, gas_wallets, wallet_suspensions cascade')
  await syncWallet(pool, WALLET, 0n)
  hand.reset()
  hand.blocks.set(10n, blockAt(10n))
})
afterAll(async () => {
  hand[Symbol.dispose]()
  await database[Symbol.asyncDispose]()
})

/** Makes a payment whose transaction reverted as many times as `times` says. */
async function reverted({
  code = CODE,
  times = 1,
  inBlock = BLOCK,
  ...changes
}: Partial<NewClaim> & {
  code?: Hex | null
  times?: number
  inBlock?: { blockNumber: bigint; blockHash: Hex }
} = {}): Promise<string> {
  const id = await newPayment(pool, { payer: WALLET_PAYER, ...changes })
  for (let n = 0; n < times; n++) {
    const [signed] = await storeSigned(pool, WALLET, [[id]], new Map(), async (ids, nonce) => ({
      ...signedFor(ids, nonce),
      payerCode: code,
    }))
    const mined = { hash: signed!.hash, succeeded: false, gasUsed: 1n, feeWei: 1n, ...inBlock }
    await recordMisses(pool, { reverted: [mined], displaced: [] })
  }
  return id
}
/**
 * Stores block 9 as the newest block at the claim (storing) of the payments, so that block 10 comes after the claim.
 */
const claimedAtBlock9 = () =>
  pool.query('update payments set claim_head = 9, created_at = to_timestamp(9)')
const find = async (...ids: string[]) => findReverted(hand.chain, await findPayments(pool, ids))
const isFound = async (id: string) => (await find(id)).size === 1
const deploying = { deployment: DEPLOYMENT as NewClaim['deployment'] }

test('a payment ends if its contract wallet made the transaction revert, and no other payment ends', async () => {
  const ids = [
    await newPayment(pool),
    await reverted(),
    await reverted({ code: null }),
    await reverted({ times: 3 }),
  ]
  const found = [...(await find(...ids)).keys()].map(({ id }) => id)
  expect(found.toSorted()).toEqual([ids[1]!, ids[3]!].toSorted())
  expect((await find(ids[0]!)).size).toBe(0)
})

test('a payment is sent once more if the transaction reverted because another party had deployed the payer’s wallet', async () => {
  expect(await isFound(await reverted(deploying))).toBe(true)
  hand.codes.set(WALLET_PAYER.toLowerCase(), '0x60')
  expect(await isFound(await reverted(deploying))).toBe(false)
  expect(await isFound(await reverted({ ...deploying, times: 2 }))).toBe(true)
  expect(await isFound(await reverted())).toBe(true)
})

test('if the transaction of a contract wallet’s payment reverted, the payment fails and the wallet is suspended', async () => {
  const id = await reverted()
  const [end] = (await find(id)).values()
  await end!()
  expect(await findPayment(pool, id)).toMatchObject({
    state: 'failed',
    failureStage: 'settle',
    failureReason: 'invalid_transaction_state',
    failureDetail: 'the contract wallet reverted on chain, and is not tried again',
  })
  const payers = [{ payer: WALLET_PAYER, code: null }]
  expect(await findSuspended(pool, WALLET.chainId, payers)).toEqual([true])
})

test('a reverted payment is settled if another party’s transaction used its authorization', async () => {
  const id = await reverted()
  await claimedAtBlock9()
  const payment = (await findPayment(pool, id))!
  const txHash = pad('0xabc')
  hand.mine(txHash, blockAt(10n), [payment])
  const { payer, nonce } = payment
  hand.events.set(nonce, { kind: 'used', payer, txHash, block: 10n })
  const [end] = (await find(id)).values()
  await end!()
  expect(await findPayment(pool, id)).toMatchObject({ state: 'settled', txHash })
  const payers = [{ payer: WALLET_PAYER, code: CODE }]
  expect(await findSuspended(pool, WALLET.chainId, payers)).toEqual([false])
})

test('if the chain node does not know the block of the revert yet, the payment waits and its wallet is not suspended', async () => {
  const revertBlock = 11n
  const inBlock = { blockNumber: revertBlock, blockHash: pad('0xb11') }
  const ids = [await reverted({ inBlock }), await reverted({ ...deploying, inBlock })]
  await claimedAtBlock9()
  // The newest known block is block 10. In block 11, another party settled the first payment and deployed the wallet of
  // the second payment.
  const payment = (await findPayment(pool, ids[0]!))!
  const txHash = pad('0xabd')
  hand.mine(txHash, blockAt(revertBlock), [payment])
  hand.events.set(payment.nonce, { kind: 'used', payer: payment.payer, txHash, block: revertBlock })
  const unknown = { error: { code: -32000, message: 'header not found' } }
  hand.codes.set(WALLET_PAYER.toLowerCase(), (block) => (hand.blocks.has(block) ? '0x60' : unknown))
  const [end] = (await find(ids[0]!)).values()
  await expect(end!()).rejects.toThrow(RpcTrouble)
  const [wait] = (await find(ids[1]!)).values()
  await expect(wait!()).rejects.toThrow(RpcTrouble)
  expect(await findPayment(pool, ids[0]!)).toMatchObject({ state: 'verified' })
  const payers = [{ payer: WALLET_PAYER, code: CODE }]
  expect(await findSuspended(pool, WALLET.chainId, payers)).toEqual([false])
  hand.blocks.set(revertBlock, blockAt(revertBlock))
  await end!()
  expect(await findPayment(pool, ids[0]!)).toMatchObject({ state: 'settled', txHash })
  expect(await isFound(ids[1]!)).toBe(false)
})
