/** Tests the database queries for the open transactions of one wallet on one chain. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import type { Address } from 'viem'
import { recordSends, syncWallet, type WalletId } from '../../../../sql/till/settle/gasWallets.ts'
import { findGaps, reopenTransactions } from '../../../../sql/till/settle/nonceGaps.ts'
import {
  findDeployingPayers,
  findQuietTransactions,
  findUsedNonces,
  hasOpenTransactions,
} from '../../../../sql/till/watch/openTransactions.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import {
  newPayment,
  newTransaction,
  OTHER_CHAIN_ID,
  row,
  settle,
} from '../../../support/till/tillRows.ts'

let database: TestDatabase
let pool: TestDatabase['pool']
let wallets = 0
let wallet: WalletId
/**
 * Holds two more gas wallets besides `wallet`: one has the same address on another chain, and the other has another
 * address on the same chain.
 */
let others: WalletId[]
const addressOf = (n: number) => `0x${n.toString(16).padStart(40, '0')}` as Address

beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
})
beforeEach(async () => {
  wallet = { chainId: 84532, address: addressOf(++wallets) }
  others = [
    { chainId: OTHER_CHAIN_ID, address: wallet.address },
    { chainId: wallet.chainId, address: addressOf(wallets + 1_000) },
  ]
  await syncWallet(pool, wallet, 0n)
})
afterAll(() => database[Symbol.asyncDispose]())

const store = async (of = wallet, changes: Parameters<typeof newPayment>[1] = {}) =>
  newTransaction(pool, await newPayment(pool, changes), of)
const storeElsewhere = async () => {
  for (const other of others) for (const _ of [0, 1]) await store(other)
}
const mine = async (of = wallet) => {
  const transaction = await store(of)
  await settle(pool, transaction.paymentIds[0]!, transaction.hash)
  return transaction
}

test('a nonce of a gas wallet counts as used if it is lower than the transaction count of the wallet on the chain', async () => {
  await storeElsewhere()
  await mine()
  const [used] = [await store(), await store()]
  const found = await findUsedNonces(pool, wallet, used.nonce + 1n, 10)
  expect(found.map(({ hash }) => hash)).toEqual([used.hash])
})

test('quiet transactions (not signed or sent recently) are listed in the order of their nonces', async () => {
  await storeElsewhere()
  await mine()
  const [sent, first, second] = [await store(), await store(), await store()]
  await pool.query(
    `update chain_transactions set signed_at = signed_at - interval '1 minute', sent_at = sent_at - interval '1 minute'`,
  )
  await recordSends(pool, [{ hash: sent.hash, error: null }], 1n)
  await store()
  const found = await findQuietTransactions(pool, wallet, { quietMs: 30_000, limit: 10 })
  expect(found.map(({ hash }) => hash)).toEqual([first.hash, second.hash])
})

test('a transaction counts as open only on its own chain, and only until a block contains it', async () => {
  const chainId = 7_000
  const of = { chainId, address: wallet.address }
  await store(wallet)
  await mine(of)
  expect(await hasOpenTransactions(pool, chainId)).toBe(false)
  await store(of)
  expect(await hasOpenTransactions(pool, chainId)).toBe(true)
})

describe('the service finds a nonce of a gas wallet that no transaction uses, because such a gap blocks all later nonces', () => {
  test('a nonce counts as a gap if the gas wallet has assigned it, the chain has not used it, and no transaction is open for it', async () => {
    await storeElsewhere()
    await mine()
    await syncWallet(pool, wallet, 2n)
    await store()
    expect(await findGaps(pool, wallet, 0n, 10)).toEqual([0n, 1n])
    expect(await findGaps(pool, wallet, 1n, 10)).toEqual([1n])
  })

  test('if the block of a mined transaction is gone, all transactions with the same nonce become open again', async () => {
    for (const other of others) await mine(other)
    const [gone, next] = [await mine(), await mine()]
    expect(await reopenTransactions(pool, wallet, gone.nonce)).toBe(1)
    expect(await reopenTransactions(pool, wallet, gone.nonce)).toBe(0)
    const stateOf = async (hash: string) => (await row(pool, 'chain_transactions', hash)).state
    expect([await stateOf(gone.hash), await stateOf(next.hash)]).toEqual(['open', 'mined'])
  })
})

test('the wallet of a payer counts as being deployed while a deployment transaction of this wallet is open on the same chain', async () => {
  const deployment = { factory: addressOf(1), factoryData: '0x00' } as const
  const payerOf = (n: number) => `0x${'Ab'.repeat(19)}${n}0` as Address
  const [busy, plain, done, elsewhere] = [payerOf(1), payerOf(2), payerOf(3), payerOf(4)]
  await store(wallet, { payer: busy, deployment })
  await store(wallet, { payer: plain })
  const { paymentIds, hash } = await store(wallet, { payer: done, deployment })
  await settle(pool, paymentIds[0]!, hash)
  await store(others[0], { payer: elsewhere, deployment, chainId: OTHER_CHAIN_ID })
  const asked = [busy.toLowerCase(), plain, done, elsewhere]
  const found = await findDeployingPayers(pool, wallet.chainId, asked)
  expect([...found]).toEqual([busy.toLowerCase()])
})
