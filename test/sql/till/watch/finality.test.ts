import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { findPayment } from '../../../../sql/till/payments/payments.ts'
import {
  findSettlementBlocks,
  findUnfinalized,
  recordFinal,
  recordMoved,
  recordReorganised,
} from '../../../../sql/till/watch/finality.ts'
import { recordMisses } from '../../../../sql/till/watch/misses.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import {
  BLOCK,
  dropJobs,
  newHash,
  newPayment,
  newSettled,
  newTransaction,
  OTHER_CHAIN_ID,
  queuedPayments,
  row,
  settle,
  WALLET,
} from '../../../support/till/tillRows.ts'

let database: TestDatabase
let pool: TestDatabase['pool']

beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
})
beforeEach(() => dropJobs(pool))
afterAll(() => database[Symbol.asyncDispose]())

const unfinalized = async () =>
  (await findUnfinalized(pool, WALLET.chainId, 100)).map(({ paymentId }) => paymentId)
const takeBack = (paymentId: string, txHash: `0x${string}`) =>
  recordReorganised(pool, [{ paymentId, txHash }])
const finalizedAt = async (id: string) => (await findPayment(pool, id))?.finalizedAt

describe('the list of settled payments that are not final contains only payments on the requested chain', () => {
  test('the list of settled payments that are not yet final contains only payments on the requested chain', async () => {
    const [settled, takenBack, final] = [
      await newSettled(pool),
      await newSettled(pool),
      await newSettled(pool),
    ]
    const elsewhere = await newPayment(pool, { chainId: OTHER_CHAIN_ID })
    await settle(pool, elsewhere, newHash())
    await takeBack(takenBack.id, takenBack.txHash)
    await recordFinal(pool, [final.id])
    expect(await unfinalized()).toEqual([settled.id])
    await recordFinal(pool, [settled.id])
  })

  test('settled payments that are not yet final are listed in the order of their blocks', async () => {
    const [late, early] = [await newSettled(pool), await newSettled(pool)]
    const moved = (id: string, txHash: `0x${string}`, blockNumber: bigint) =>
      recordMoved(pool, [{ paymentId: id, txHash, blockNumber, blockHash: newHash(), logIndex: 2 }])
    await moved(late.id, late.txHash, 9n)
    await moved(early.id, early.txHash, 8n)
    expect(await unfinalized()).toEqual([early.id, late.id])
    expect(await findUnfinalized(pool, WALLET.chainId, 1)).toHaveLength(1)
    const newest = async () => (await findSettlementBlocks(pool, WALLET.chainId, 9))[0]?.blockNumber
    const elsewhere = await newPayment(pool, { chainId: OTHER_CHAIN_ID })
    await settle(pool, elsewhere, newHash())
    await pool.query('update payments set block_number = 99 where id = $1', [elsewhere])
    expect(await newest()).toBe(9n)
    await recordFinal(pool, [late.id])
    expect(await newest()).toBe(8n)
    await recordFinal(pool, [early.id])
    expect(await newest()).toBeUndefined()
  })
})

describe('a settled payment is recorded as final only once', () => {
  test('a settled payment is recorded as final only once, and an unsettled payment is never recorded as final', async () => {
    const { id, txHash } = await newSettled(pool)
    const takenBack = await newSettled(pool)
    await takeBack(takenBack.id, takenBack.txHash)
    await recordFinal(pool, [id, takenBack.id])
    const first = await finalizedAt(id)
    expect(first).not.toBeNull()
    expect(await finalizedAt(takenBack.id)).toBeNull()
    await pool.query(`update payments set finalized_at = finalized_at - interval '1 hour'`)
    await recordFinal(pool, [id])
    expect((await finalizedAt(id))?.getTime()).toBe(first!.getTime() - 3_600_000)
    await takeBack(id, txHash)
    expect((await findPayment(pool, id))?.state).toBe('settled')
  })
})

describe('if a payment’s transaction moves to another block, the new block is stored', () => {
  test('the new block of a settled payment is recorded only if the same transaction still settles the payment', async () => {
    const [settled, takenBack] = [await newSettled(pool), await newSettled(pool)]
    await takeBack(takenBack.id, takenBack.txHash)
    const move = (paymentId: string, txHash: `0x${string}`) =>
      recordMoved(pool, [
        { paymentId, txHash, blockNumber: 11n, blockHash: newHash(), logIndex: 2 },
      ])
    const blockOf = async (id: string) => (await findPayment(pool, id))?.blockNumber
    await move(settled.id, newHash())
    expect(await blockOf(settled.id)).toBe(BLOCK.blockNumber)
    await move(settled.id, settled.txHash)
    expect(await blockOf(settled.id)).toBe(11n)
    expect((await findPayment(pool, settled.id))?.logIndex).toBe(2)
    await move(takenBack.id, takenBack.txHash)
    expect(await blockOf(takenBack.id)).toBeNull()
  })
})

describe('a chain reorganisation makes the payments of the removed block pending again', () => {
  const stateOf = async (hash: string) => (await row(pool, 'chain_transactions', hash)).state

  test('a reorganisation makes the transaction of a payment open again, and queues the payment again', async () => {
    const { id, txHash } = await newSettled(pool)
    await takeBack(id, txHash)
    expect(await findPayment(pool, id)).toMatchObject({ state: 'verified', blockNumber: null })
    expect(await stateOf(txHash)).toBe('open')
    expect(await queuedPayments(pool)).toEqual([id])
  })

  test('a reorganisation that another process has already recorded changes nothing', async () => {
    const { id, txHash } = await newSettled(pool)
    await takeBack(id, txHash)
    await recordMisses(pool, { reverted: [], displaced: [txHash] })
    await dropJobs(pool)
    await takeBack(id, txHash)
    expect([await stateOf(txHash), await queuedPayments(pool)]).toEqual(['void', []])
  })

  test('undoing a transaction after a reorganisation changes nothing if another transaction now settles the payment', async () => {
    const id = await newPayment(pool)
    const { hash } = await newTransaction(pool, id)
    await settle(pool, id, hash)
    await takeBack(id, hash)
    const other = newHash()
    await settle(pool, id, other)
    await recordReorganised(pool, [])
    await dropJobs(pool)
    await takeBack(id, hash)
    expect(await findPayment(pool, id)).toMatchObject({ state: 'settled', txHash: other })
    expect(await queuedPayments(pool)).toEqual([])
  })
})
