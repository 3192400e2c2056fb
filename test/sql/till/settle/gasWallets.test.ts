/** Tests the nonces and the transactions of gas wallets, which pay the transaction fees. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import type { Address } from 'viem'
import {
  recordSends,
  type SignedTransaction,
  storeForNonce,
  storeSigned,
  syncWallet,
  type WalletId,
} from '../../../../sql/till/settle/gasWallets.ts'
import { failPayment } from '../../../../sql/till/settle/settlements.ts'
import { recordMisses } from '../../../../sql/till/watch/misses.ts'
import { findOpenTransactions } from '../../../../sql/till/watch/openTransactions.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import {
  blocked,
  crossing,
  newPayment,
  newTransaction,
  OTHER_CHAIN_ID,
  row,
  settle,
  signedFor,
  whileHeld,
} from '../../../support/till/tillRows.ts'

let database: TestDatabase
let pool: TestDatabase['pool']
let wallets = 0
/**
 * Holds the gas wallet of one test, with an address that no earlier test used. `elsewhere` is a gas wallet with the
 * same address on another chain.
 */
let wallet: WalletId
let elsewhere: WalletId

beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
})
beforeEach(async () => {
  const address = `0x${(++wallets).toString(16).padStart(40, '0')}` as Address
  wallet = { chainId: 84532, address }
  elsewhere = { chainId: OTHER_CHAIN_ID, address }
  await syncWallet(pool, wallet, 0n)
  await syncWallet(pool, elsewhere, 0n)
})
afterAll(() => database[Symbol.asyncDispose]())

const store = (ids: string[], of = wallet): Promise<SignedTransaction[]> =>
  storeSigned(
    pool,
    of,
    ids.map((id) => [id]),
    new Map(),
    async (parcel, nonce) => signedFor(parcel, nonce),
  )
const openOf = async (id: string) =>
  (await findOpenTransactions(pool, [id])).map(({ hash }) => hash)
const nextOf = (of: WalletId) => syncWallet(pool, of, 0n)

describe('a gas wallet uses each nonce only once', () => {
  test('a gas wallet never assigns a nonce twice, and never a nonce that another program used', async () => {
    expect(await syncWallet(pool, wallet, 5n)).toBe(5n)
    expect(await syncWallet(pool, wallet, 3n)).toBe(5n)
    const [first] = await store([await newPayment(pool)])
    expect([first?.nonce, await nextOf(wallet), await nextOf(elsewhere)]).toEqual([5n, 6n, 0n])
  })

  test('a gas wallet assigns each nonce only once, even if two processes request nonces at the same time', async () => {
    const [one, two] = [await newPayment(pool), await newPayment(pool)]
    const hold = 'select from gas_wallets where chain_id = $1 and address = $2 for update'
    const stored = await whileHeld(pool, hold, [wallet.chainId, wallet.address], () => [
      store([one]),
      store([two]),
    ])
    expect(
      stored
        .flat()
        .map(({ nonce }) => nonce)
        .toSorted(),
    ).toEqual([0n, 1n])
    const [other] = await store([await newPayment(pool)], elsewhere)
    expect([other?.nonce, await nextOf(wallet)]).toEqual([0n, 2n])
  })
})

describe('a payment gets only one transaction of a gas wallet at a time', () => {
  test('a payment gets only one transaction, even if two processes store a transaction for the payment at the same time', async () => {
    const id = await newPayment(pool)
    const asked = Promise.withResolvers<void>()
    const signing = Promise.withResolvers<void>()
    const first = storeSigned(pool, wallet, [[id]], new Map(), async (_, nonce) => {
      asked.resolve()
      await signing.promise
      return signedFor(id, nonce)
    })
    await asked.promise
    const second = store([id])
    await blocked(pool, 1)
    signing.resolve()
    expect([(await first).length, (await second).length].toSorted()).toEqual([0, 1])
    expect(await openOf(id)).toHaveLength(1)
    expect(await store([id])).toEqual([])
    expect(await nextOf(wallet)).toBe(1n)
  })

  test('a payment does not fail if another process stores its transaction at the same moment', async () => {
    const id = await newPayment(pool)
    const asked = Promise.withResolvers<void>()
    const signing = Promise.withResolvers<void>()
    const stored = storeSigned(pool, wallet, [[id]], new Map(), async (_, nonce) => {
      asked.resolve()
      await signing.promise
      return signedFor(id, nonce)
    })
    await asked.promise
    const failed = failPayment(pool, {
      ...{ paymentId: id, stage: 'verify', reason: 'insufficient_funds', detail: null },
    })
    await blocked(pool, 1)
    signing.resolve()
    await Promise.all([stored, failed])
    expect([(await row(pool, 'payments', id)).state, await openOf(id)]).toEqual([
      'verified',
      [(await stored)[0]!.hash],
    ])
  })

  test('no transaction is stored for a payment that has failed', async () => {
    const id = await newPayment(pool)
    await failPayment(pool, {
      paymentId: id,
      stage: 'verify',
      reason: 'insufficient_funds',
      detail: null,
    })
    expect(await store([id])).toEqual([])
  })

  test('a payment gets another transaction after its first transaction was displaced', async () => {
    const id = await newPayment(pool)
    const { hash } = await newTransaction(pool, id, wallet)
    await recordMisses(pool, { reverted: [], displaced: [hash] })
    expect(await openOf(id)).toEqual([])
    const [again] = await store([id])
    expect([again?.nonce, await openOf(id)]).toEqual([1n, [again!.hash]])
  })

  test('each payment gets only one transaction if two processes handle the same payments in opposite orders', async () => {
    const ids: string[] = []
    for (let n = 0; n < 4; n++) ids.push(await newPayment(pool))
    const hold = 'select from payments where id = any ($1) for update'
    const stored = await whileHeld(pool, hold, [ids.slice(0, 2)], () =>
      crossing(ids).map((list) => store(list)),
    )
    const paid = stored.flat().flatMap(({ paymentIds }) => paymentIds)
    expect(paid.toSorted()).toEqual(ids)
  })
})

describe('a gas wallet stores a transaction only for a nonce that it has assigned', () => {
  const dearer = (paymentId: string | null, nonce: bigint, maxFeeWei = 200n) => ({
    ...signedFor(paymentId, nonce),
    maxFeeWei,
  })

  test('a replacement transaction is stored for a nonce only if the replacement is based on the transaction with the highest fee', async () => {
    const id = await newPayment(pool)
    const first = await newTransaction(pool, id, wallet)
    const second = dearer(id, first.nonce)
    expect(await storeForNonce(pool, wallet, second, null)).toBe(false)
    expect(await storeForNonce(pool, wallet, second, first.hash)).toBe(true)
    const third = dearer(id, first.nonce, 300n)
    expect(await storeForNonce(pool, wallet, third, first.hash)).toBe(false)
    expect(await storeForNonce(pool, wallet, third, second.hash)).toBe(true)
  })

  test('a transaction is not stored if the gas wallet has not assigned its nonce', async () => {
    await newTransaction(pool, await newPayment(pool), wallet)
    expect(await storeForNonce(pool, wallet, dearer(null, 1n), null)).toBe(false)
    expect(await nextOf(wallet)).toBe(1n)
  })

  test('a filling transaction (with no payment) is stored for a nonce if all transactions with this nonce were displaced', async () => {
    const { nonce, hash } = await newTransaction(pool, await newPayment(pool), wallet)
    await recordMisses(pool, { reverted: [], displaced: [hash] })
    expect(await storeForNonce(pool, wallet, dearer(null, nonce), null)).toBe(true)
  })

  test('a filling transaction (with no payment) is not stored for a nonce that already has a mined transaction', async () => {
    const id = await newPayment(pool)
    const { nonce, hash } = await newTransaction(pool, id, wallet)
    await settle(pool, id, hash)
    expect(await storeForNonce(pool, wallet, dearer(null, nonce), null)).toBe(false)
  })

  test('only transactions of the same wallet and chain decide whether a nonce may get a filling transaction', async () => {
    const other: WalletId = { ...wallet, address: `0x${'ee'.repeat(19)}${wallets}0` as Address }
    await syncWallet(pool, wallet, 0n)
    await store([await newPayment(pool)], elsewhere)
    await store([await newPayment(pool)], other).catch(() => [])
    await syncWallet(pool, other, 0n)
    await store([await newPayment(pool)], other)
    await pool.query('update gas_wallets set next_nonce = 1 where chain_id = $1 and address = $2', [
      wallet.chainId,
      wallet.address,
    ])
    expect(await storeForNonce(pool, wallet, dearer(null, 0n), null)).toBe(true)
  })

  test('if two processes store a transaction for the same nonce at once, only one of the transactions is stored', async () => {
    const id = await newPayment(pool)
    const first = await newTransaction(pool, id, wallet)
    const hold = 'select from gas_wallets where chain_id = $1 and address = $2 for update'
    const stored = await whileHeld(pool, hold, [wallet.chainId, wallet.address], () =>
      [1, 2].map(() => storeForNonce(pool, wallet, dearer(id, first.nonce), first.hash)),
    )
    expect(stored.toSorted()).toEqual([false, true])
  })
})

test('the first broadcast of a transaction stores the current block number, and later broadcasts do not change this number', async () => {
  const { hash } = await newTransaction(pool, await newPayment(pool), wallet)
  await recordSends(pool, [{ hash, error: 'lost' }], 5n)
  await recordSends(pool, [{ hash, error: null }], 9n)
  expect(await row(pool, 'chain_transactions', hash)).toMatchObject({
    send_count: 2,
    sent_head: '5',
    send_error: null,
  })
})
