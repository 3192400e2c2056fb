/** Tests which contract wallets must wait after a payment of a wallet reverted on the chain. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { type Address, type Hex, pad, toHex } from 'viem'
import { findPayment } from '../../../../sql/till/payments/payments.ts'
import { storeSigned, syncWallet, type WalletId } from '../../../../sql/till/settle/gasWallets.ts'
import { recordSettlements } from '../../../../sql/till/settle/settlements.ts'
import {
  failAndSuspend,
  findRevertedCodes,
  findSuspended,
  findUnprovenUnderWay,
} from '../../../../sql/till/settle/walletSuspensions.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import {
  BLOCK,
  newHash,
  newPayment,
  OTHER_CHAIN_ID,
  settle,
  signedFor,
  WALLET,
} from '../../../support/till/tillRows.ts'

const PAYER: Address = '0x00000000000000000000000000000000000000Aa'
const STRANGER: Address = '0x00000000000000000000000000000000000000bB'
const { chainId } = WALLET
let database: TestDatabase
let pool: TestDatabase['pool']
let codes = 0
/** Holds the hash of the contract code that the wallets of one test have. */
let code: Hex
const OTHER_CODE = pad('0xffff')

beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
})
beforeEach(async () => {
  code = pad(toHex(++codes))
  await pool.query('delete from wallet_suspensions')
})
afterAll(() => database[Symbol.asyncDispose]())

/** Stores a transaction for a payment of a wallet with the given code. */
async function open(payer: Address, payerCode: Hex | null = code, wallet: WalletId = WALLET) {
  const id = await newPayment(pool, { payer, chainId: wallet.chainId })
  await syncWallet(pool, wallet, 0n)
  const [signed] = await storeSigned(pool, wallet, [[id]], new Map(), async (ids, nonce) => ({
    ...signedFor(ids, nonce),
    payerCode,
  }))
  return { id, hash: signed!.hash }
}
async function paid(payer: Address): Promise<void> {
  const { id, hash } = await open(payer)
  await settle(pool, id, hash)
}
async function suspended(paymentId: string, payer: Address): Promise<void> {
  const why = { reason: 'invalid_transaction_state', detail: 'it reverted' } as const
  await pool.query(
    `update chain_transactions set state = 'mined', succeeded = false where payment_id = $1`,
    [paymentId],
  )
  await failAndSuspend(pool, { paymentId, chainId, payer, code, ...why })
}
const isSuspended = async (payer: Address, of: Hex | null, chain = chainId) =>
  (await findSuspended(pool, chain, [{ payer, code: of }]))[0]

describe('after a wallet’s payment reverted, wallets with the same contract code must wait', () => {
  const lower = PAYER.toLowerCase() as Address
  test('after a revert, the reverting wallet and all wallets with the same contract code must wait, and no other wallet', async () => {
    await suspended((await open(PAYER)).id, PAYER)
    for (const [payer, of, wanted] of [
      [PAYER, code, true],
      [lower, OTHER_CODE, true],
      [lower, null, true],
      [STRANGER, code, true],
      [STRANGER, OTHER_CODE, false],
      [STRANGER, null, false],
    ] as const) {
      expect([payer, of, await isSuspended(payer, of)]).toEqual([payer, of, wanted])
      expect(await isSuspended(payer, of, OTHER_CHAIN_ID)).toBe(false)
    }
    const payers = [STRANGER, PAYER, STRANGER].map((payer) => ({ payer, code: null }))
    expect(await findSuspended(pool, chainId, payers)).toEqual([false, true, false])
    expect(await findSuspended(pool, chainId, [])).toEqual([])
  })

  test('suspended wallets must wait for six hours after their last reverted payment', async () => {
    await suspended((await open(PAYER)).id, PAYER)
    const age = (time: string) =>
      pool.query(`update wallet_suspensions set suspended_at = clock_timestamp() - $1::interval`, [
        time,
      ])
    await age('359 minutes')
    expect([await isSuspended(PAYER, null), await isSuspended(STRANGER, code)]).toEqual([
      true,
      true,
    ])
    await age('361 minutes')
    expect([await isSuspended(PAYER, null), await isSuspended(STRANGER, code)]).toEqual([
      false,
      false,
    ])
    await suspended((await open(PAYER)).id, PAYER)
    expect(await isSuspended(PAYER, null)).toBe(true)
  })

  test('if wallets at two addresses have already paid with the same contract code, a reverted payment suspends only its own wallet', async () => {
    await suspended((await open(PAYER)).id, PAYER)
    await paid(STRANGER)
    await paid(STRANGER)
    expect(await isSuspended(STRANGER, code)).toBe(true)
    await paid(PAYER)
    expect([await isSuspended(STRANGER, code), await isSuspended(PAYER, code)]).toEqual([
      false,
      true,
    ])
  })

  test('a payment that has already ended causes no suspension of its wallet', async () => {
    const { id, hash } = await open(PAYER)
    await settle(pool, id, hash)
    await suspended(id, PAYER)
    expect((await findPayment(pool, id))?.state).toBe('settled')
    expect(await isSuspended(PAYER, code)).toBe(false)
  })

  test('a payment whose transaction reverted fails, and its failure stage is `settle` and not `verify`', async () => {
    const { id } = await open(PAYER)
    await suspended(id, PAYER)
    expect(await findPayment(pool, id)).toMatchObject({
      state: 'failed',
      failureStage: 'settle',
      failureReason: 'invalid_transaction_state',
      failureDetail: 'it reverted',
    })
  })
})

test('a wallet’s contract code counts as untested until a payment of such a wallet settles, and as pending while the transaction is open', async () => {
  const find = async (chain = chainId) => {
    const { unproven, underWay } = await findUnprovenUnderWay(pool, chain, [code, OTHER_CODE])
    return [unproven.has(code), underWay.has(code), unproven.has(OTHER_CODE)]
  }
  expect(await find()).toEqual([true, false, true])
  const { id, hash } = await open(PAYER)
  expect(await find()).toEqual([true, true, true])
  expect(await find(OTHER_CHAIN_ID)).toEqual([true, false, true])
  await settle(pool, id, hash)
  expect(await find()).toEqual([false, false, true])
  expect(await find(OTHER_CHAIN_ID)).toEqual([true, false, true])
})

test('if another transaction settled a payment, the payment does not prove that the contract code of the payer’s wallet works', async () => {
  const { id } = await open(PAYER)
  await settle(pool, id, newHash())
  expect((await findUnprovenUnderWay(pool, chainId, [code])).unproven.has(code)).toBe(true)
})

test('a payment counts as reverted only if its transaction reverted and the payer’s wallet has contract code', async () => {
  const ended = async (succeeded: boolean, payerCode: Hex | null) => {
    const { id, hash } = await open(PAYER, payerCode)
    const mined = [{ hash, succeeded, gasUsed: 1n, feeWei: 1n, ...BLOCK }]
    await recordSettlements(pool, { settlements: [], mined })
    return id
  }
  const reverted = await ended(false, code)
  const ids = [reverted, await ended(true, code), await ended(false, null), (await open(PAYER)).id]
  expect(await findRevertedCodes(pool, ids)).toEqual(
    new Map([[reverted, { code, block: BLOCK.blockNumber }]]),
  )
})
