/** Tests the outcomes of transactions whose nonce is already used on the chain. The test itself writes the receipts. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { type Address, type Hex, pad, toHex } from 'viem'
import { findPayment, type Payment } from '../../../../sql/till/payments/payments.ts'
import { storeForNonce, storeSigned, syncWallet } from '../../../../sql/till/settle/gasWallets.ts'
import type { OpenTransaction } from '../../../../sql/till/watch/openTransactions.ts'
import type { KnownChain } from '../../../../workers/till/chain/chainView.ts'
import { resolveUsed } from '../../../../workers/till/watch/minedTransactions.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import { blockAt, type HandChain, startHandChain } from '../../../support/till/handChain.ts'
import {
  dropJobs,
  newHash,
  newPayment,
  queuedPayments,
  row,
  signedFor,
  WALLET,
} from '../../../support/till/tillRows.ts'

const BLOCK = blockAt(9n)
let database: TestDatabase
let pool: TestDatabase['pool']
let hand: HandChain
let payers = 0
beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
  hand = startHandChain(pool)
})
beforeEach(async () => {
  await pool.query('truncate payments, chain_transactions, gas_wallets, lone_payers cascade')
  await syncWallet(pool, WALLET, 0n)
  hand.reset()
})
afterAll(async () => {
  hand[Symbol.dispose]()
  await database[Symbol.asyncDispose]()
})

const payment = async (id: string): Promise<Payment> => (await findPayment(pool, id))!
const outcomeOf = async (id: string) => {
  const { state, revertCount } = await payment(id)
  const { goes_alone } = await row(pool, 'payments', id)
  return [state, revertCount, goes_alone]
}
const stateOf = async (hash: Hex) => {
  const { state, succeeded } = await row(pool, 'chain_transactions', hash)
  return [state, succeeded]
}
const newPayer = (): Address => toHex(++payers, { size: 20 })

const asOpen = (signed: Awaited<ReturnType<typeof storeSigned>>[number]): OpenTransaction => ({
  ...signed,
  ...{ wallet: WALLET.address, sendCount: 1, sentHead: 1n, isUnsent: false },
})
/**
 * Stores one transaction for several payments. Each payment has a different payer unless `payerOf` returns the payer.
 */
async function stored(count: number, payerOf = newPayer) {
  const ids: string[] = []
  for (let n = 0; n < count; n++) ids.push(await newPayment(pool, { payer: payerOf() }))
  const [signed] = await storeSigned(pool, WALLET, [ids], new Map(), async (members, nonce) =>
    signedFor(members, nonce),
  )
  return { ids, open: asOpen(signed!) }
}
/** Puts a transaction into a block, with token transfers for the given payments. */
const mine = async ({ hash }: OpenTransaction, paid: string[], status: 0 | 1 = 1) =>
  hand.mine(hash, BLOCK, await Promise.all(paid.map(payment)), status)
const resolve = (open: OpenTransaction[], chain: KnownChain = hand.chain) =>
  resolveUsed(chain, open)
const loners = async () => {
  const { rows } = await pool.query('select payer from lone_payers order by payer')
  return rows.map(({ payer }) => payer)
}
const payersOf = async (ids: string[]) =>
  (await Promise.all(ids.map(payment))).map(({ payer }) => payer.toLowerCase())

describe('the transaction of a single payment settles the payment when a block contains it', () => {
  test('the transaction of a single payment settles the payment if the receipt contains the transfer', async () => {
    const { ids, open } = await stored(1)
    await mine(open, ids)
    expect(await resolve([open])).toBe(true)
    expect(await payment(ids[0]!)).toMatchObject({
      ...{ state: 'settled', txHash: open.hash, logIndex: 1, blockNumber: 9n },
    })
    expect(await stateOf(open.hash)).toEqual(['mined', true])
  })

  test.each<[name: string, succeeded: boolean, paid: boolean]>([
    ['reverted, although it logged its transfer', false, true],
    ['succeeded without its transfer', true, false],
  ])('a transaction of one payment that %s counts as a revert', async (_, succeeded, paid) => {
    const { ids, open } = await stored(1)
    await mine(open, paid ? ids : [], succeeded ? 1 : 0)
    expect(await resolve([open])).toBe(true)
    expect(await outcomeOf(ids[0]!)).toEqual(['verified', 1, false])
    expect(await stateOf(open.hash)).toEqual(['mined', succeeded])
    expect(await loners()).toEqual([])
  })
})

describe('a transaction that pays a group of payments settles only the payments whose transfers are in its block', () => {
  test('the transaction of a payment group settles its payments, and a payment without a transfer later gets a separate transaction', async () => {
    const { ids, open } = await stored(3)
    await mine(open, ids.slice(1))
    await dropJobs(pool)
    expect(await resolve([open])).toBe(true)
    expect(await outcomeOf(ids[0]!)).toEqual(['verified', 0, true])
    for (const id of ids.slice(1)) expect(await outcomeOf(id)).toEqual(['settled', 0, false])
    expect(await stateOf(open.hash)).toEqual(['mined', true])
    expect(await queuedPayments(pool)).toEqual([ids[0]!])
    expect(await loners()).toEqual([])
  })

  test('if a payer’s transfer in a payment group fails and the payer has contract code, the payer’s later payments get separate transactions', async () => {
    const { ids, open } = await stored(3)
    const [coded] = await payersOf(ids)
    hand.codes.set(coded!, '0x60')
    await mine(open, ids.slice(2))
    await resolve([open])
    expect(await loners()).toEqual([coded!])
  })

  test('after the transaction of a payment group reverts, its payments get separate transactions, and so do later payments of payers with contract code', async () => {
    const { ids, open } = await stored(3)
    const [, coded] = await payersOf(ids)
    hand.codes.set(coded!, '0x60')
    await mine(open, ids, 0)
    expect(await resolve([open])).toBe(true)
    for (const id of ids) expect(await outcomeOf(id)).toEqual(['verified', 0, true])
    expect(await stateOf(open.hash)).toEqual(['mined', false])
    expect(await loners()).toEqual([coded!])
  })

  test('if a payment group reverts in a block that the chain watcher has not read yet, only payers with code in it get separate transactions', async () => {
    const { ids, open } = await stored(3)
    const [, coded] = await payersOf(ids)
    const unread = hand.chain.head.number + 1n
    hand.codes.set(coded!, (block) => (block < unread ? '0x' : '0x60'))
    hand.mine(open.hash, blockAt(unread), [], 0)
    expect(await resolve([open])).toBe(true)
    expect(await loners()).toEqual([coded!])
  })

  test('if a payer removes the contract code after its payment group reverted, only this payer gets separate transactions', async () => {
    const { ids, open } = await stored(3)
    const [, coded] = await payersOf(ids)
    hand.codes.set(coded!, (block) => (block === BLOCK.number ? '0x60' : '0x'))
    await mine(open, [], 0)
    expect(await resolve([open])).toBe(true)
    expect(await loners()).toEqual([coded!])
  })

  test('if the chain node no longer has the contract code at the block of a reverted payment group, the code at the newest block counts', async () => {
    const { ids, open } = await stored(3)
    const [, coded] = await payersOf(ids)
    const pruned = { error: { code: -32000, message: 'missing trie node' } }
    hand.codes.set(coded!, (block) => (block === BLOCK.number ? pruned : '0x60'))
    await mine(open, [], 0)
    expect(await resolve([open])).toBe(true)
    expect(await loners()).toEqual([coded!])
  })

  for (const [place, ahead] of [
    ['at the newest block', 0n],
    ['at a block that the watcher has not read yet', 1n],
  ] as const) {
    test(`if the chain node does not return the contract code ${place}, a reverted payment group is recorded only by a later check`, async () => {
      const { ids, open } = await stored(3)
      const [, coded] = await payersOf(ids)
      const number = hand.chain.head.number + ahead
      let code: Hex | { error: { code: number; message: string } } = {
        error: { code: -32000, message: 'the node sleeps' },
      }
      hand.codes.set(coded!, (block) => (block < number ? '0x' : code))
      hand.mine(open.hash, blockAt(number), [], 0)
      await expect(resolve([open])).rejects.toThrow('the node sleeps')
      expect(await stateOf(open.hash)).toEqual(['open', null])
      code = '0x60'
      expect(await resolve([open])).toBe(true)
      expect(await loners()).toEqual([coded!])
    })
  }

  test('if a payment group reverts and no payer has contract code, all its payers get separate transactions for later payments', async () => {
    const { ids, open } = await stored(2)
    await mine(open, [], 0)
    await resolve([open])
    expect(await loners()).toEqual((await payersOf(ids)).toSorted())
  })

  test('a reverted payment group is recorded even if many payments of the group have the same payer', async () => {
    const payer = newPayer()
    const { ids, open } = await stored(20, () => payer)
    await mine(open, [], 0)
    expect(await resolve([open])).toBe(true)
    expect(await stateOf(open.hash)).toEqual(['mined', false])
    expect(await outcomeOf(ids[0]!)).toEqual(['verified', 0, true])
    expect(await loners()).toEqual([payer])
  })

  test('if a payment group settles all its payments, none of its payers must use separate transactions later', async () => {
    const { ids, open } = await stored(2)
    for (const payer of await payersOf(ids)) hand.codes.set(payer, '0x60')
    await mine(open, ids)
    await resolve([open])
    expect(await loners()).toEqual([])
  })
})

describe('a transaction without a receipt counts as displaced (replaced by another transaction) only after a waiting time', () => {
  const patient = (displacedMs: number): KnownChain => ({
    ...hand.chain,
    missingSinceMs: new Map(),
    timing: { ...hand.chain.timing, displacedMs },
  })

  test('a transaction counts as displaced (replaced by another transaction) if its receipt is missing for too long', async () => {
    const { ids, open } = await stored(1)
    const chain = patient(60_000)
    expect(await resolve([open], chain)).toBe(false)
    expect(await resolve([open], chain)).toBe(false)
    expect(await stateOf(open.hash)).toEqual(['open', null])
    chain.missingSinceMs.set(open.hash, performance.now() - 60_000)
    expect(await resolve([open], chain)).toBe(false)
    expect(await stateOf(open.hash)).toEqual(['void', null])
    expect(await outcomeOf(ids[0]!)).toEqual(['verified', 1, false])
    expect(chain.missingSinceMs.size).toBe(0)
  })

  test('a late receipt settles the payment, and ends the waiting time after which the transaction would count as displaced (replaced)', async () => {
    const { ids, open } = await stored(1)
    const chain = patient(60_000)
    await resolve([open], chain)
    expect(chain.missingSinceMs.size).toBe(1)
    await mine(open, ids)
    expect(await resolve([open], chain)).toBe(true)
    expect(chain.missingSinceMs.size).toBe(0)
    expect((await payment(ids[0]!)).state).toBe('settled')
  })

  test('if a block contains another transaction with the same nonce, a transaction without a receipt does not count as missing', async () => {
    const { ids, open } = await stored(1)
    const rival = { ...signedFor(ids, open.nonce), maxFeeWei: 200n }
    await storeForNonce(pool, WALLET, rival, open.hash)
    await mine(asOpen(rival), ids)
    const other = await stored(1)
    const chain = patient(0)
    expect(await resolve([open, asOpen(rival), other.open], chain)).toBe(true)
    expect(await payment(ids[0]!)).toMatchObject({ state: 'settled', txHash: rival.hash })
    expect((await payment(ids[0]!)).revertCount).toBe(0)
    expect(await stateOf(open.hash)).toEqual(['void', null])
    expect(await outcomeOf(other.ids[0]!)).toEqual(['verified', 1, false])
  })
})

test('one request reads the receipts of transactions with at most 256 payments, but transactions with the same nonce are never split', async () => {
  const reads: number[] = []
  const { rpc } = hand.chain
  const counting: KnownChain = {
    ...hand.chain,
    rpc: {
      ...rpc,
      batch: (calls) => {
        reads.push(calls.length)
        return rpc.batch(calls)
      },
    },
  }
  const unknown = (nonce: number, count: number): OpenTransaction =>
    asOpen({
      ...signedFor(
        Array.from({ length: count }, () => pad('0x1')),
        BigInt(nonce),
      ),
      hash: newHash(),
    })
  const sizes = async (...open: OpenTransaction[]) => {
    reads.length = 0
    await resolve(open, counting)
    return [...reads]
  }
  expect(await sizes()).toEqual([])
  expect(await sizes(unknown(1, 200), unknown(2, 56))).toEqual([2])
  expect(await sizes(unknown(1, 200), unknown(2, 57))).toEqual([1, 1])
  expect(await sizes(unknown(1, 200), unknown(2, 57), unknown(3, 199), unknown(4, 1))).toEqual([
    1, 2, 1,
  ])
  expect(await sizes(unknown(1, 200), unknown(1, 57), unknown(2, 1))).toEqual([2, 1])
  expect(await sizes(unknown(1, 300), unknown(2, 1))).toEqual([1, 1])
})
