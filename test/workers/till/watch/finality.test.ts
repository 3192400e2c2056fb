import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { type Hex, pad } from 'viem'
import { findPayment } from '../../../../sql/till/payments/payments.ts'
import { storeSigned, syncWallet } from '../../../../sql/till/settle/gasWallets.ts'
import {
  finalize,
  type ReorganisationMemory,
  watchForReorganisation,
} from '../../../../workers/till/watch/finality.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import { blockAt, type HandChain, startHandChain } from '../../../support/till/handChain.ts'
import {
  BLOCK,
  newPayment,
  newSettled,
  OTHER_CHAIN_ID,
  row,
  settle,
  signedFor,
  WALLET,
} from '../../../support/till/tillRows.ts'
import '../../../support/long.ts'

const SETTLED_IN = blockAt(BLOCK.blockNumber, { hash: BLOCK.blockHash })
const OTHER_HASH = pad('0xdead')
const HEAD = blockAt(12n)

let database: TestDatabase
let pool: TestDatabase['pool']
let hand: HandChain
let memory: ReorganisationMemory
beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
  hand = startHandChain(pool)
})
beforeEach(async () => {
  await pool.query('truncate payments, chain_transactions, gas_wallets cascade')
  hand.reset()
  hand.chain.head = blockAt(10n)
  memory = { lastNumber: null, suspicious: false, goneLooks: new Map() }
})
afterAll(async () => {
  hand[Symbol.dispose]()
  await database[Symbol.asyncDispose]()
})

const watch = (head = HEAD) => watchForReorganisation(hand.chain, memory, head)
const payment = async (id: string) => (await findPayment(pool, id))!
const stateOf = async (id: string) => (await payment(id)).state
const placeOf = async (id: string) => {
  const { state, block_number, block_hash, log_index } = await row(pool, 'payments', id)
  return [state, block_number, block_hash, log_index]
}
const hasFinality = async (id: string) => (await payment(id)).finalizedAt !== null
const readReceipts = () => hand.asked.includes('eth_getTransactionReceipt')

/** Puts a transaction for several payments into a block, with a token transfer for each payment. */
async function mine(txHash: Hex, ids: string[], block = SETTLED_IN, status: 0 | 1 = 1) {
  hand.mine(txHash, block, await Promise.all(ids.map(payment)), status)
}

/** Replaces the block of the settlements, so that the next check of the chain suspects a reorganisation. */
const replaceBlock = () => hand.blocks.set(7n, blockAt(7n, { hash: OTHER_HASH }))

/** Settles several payments by one transaction. */
async function newGroup(count: number): Promise<{ ids: string[]; txHash: Hex }> {
  const ids: string[] = []
  for (let n = 0; n < count; n++) ids.push(await newPayment(pool))
  await syncWallet(pool, WALLET, 0n)
  const [signed] = await storeSigned(pool, WALLET, [ids], new Map(), async (of, nonce) =>
    signedFor(of, nonce),
  )
  for (const id of ids) await settle(pool, id, signed!.hash)
  return { ids, txHash: signed!.hash }
}

describe('the watch for chain reorganisations undoes settlements that the chain no longer contains', () => {
  test('the watch for reorganisations sends no request to the chain node while no settlement on its chain waits for finality', async () => {
    await settle(pool, await newPayment(pool, { chainId: OTHER_CHAIN_ID }), OTHER_HASH)
    await watch()
    expect(hand.asked).toEqual([])
    expect(memory).toMatchObject({ lastNumber: 12n, suspicious: false })
  })

  test('the watch for reorganisations reads no receipts while the block of the newest settlement is unchanged', async () => {
    await newSettled(pool)
    hand.blocks.set(7n, SETTLED_IN)
    await watch()
    expect([readReceipts(), memory.suspicious]).toEqual([false, false])
  })

  test('if the chain node lacks the block of a settlement, the watch for reorganisations reads receipts only after the newest block number has become lower', async () => {
    const { id } = await newSettled(pool)
    for (const [number, isSuspicious] of [
      [12n, false],
      [12n, false],
      [13n, false],
      [12n, true],
    ] as const) {
      await watch(blockAt(number))
      expect([number, readReceipts(), memory.suspicious]).toEqual([
        number,
        isSuspicious,
        isSuspicious,
      ])
    }
    expect(await stateOf(id)).toBe('settled')
  })

  test('the watch for reorganisations undoes a lost settlement, although a later settlement is still in its block', async () => {
    const [gone, newer] = [await newSettled(pool), await newSettled(pool)]
    const block = blockAt(9n)
    await pool.query('update payments set block_number = 9, block_hash = $2 where id = $1', [
      ...[newer.id, block.hash],
    ])
    await mine(newer.txHash, [newer.id], block)
    hand.blocks.set(9n, block)
    replaceBlock()
    await watch()
    await watch()
    expect(await Promise.all([gone.id, newer.id].map(stateOf))).toEqual(['verified', 'settled'])
  })

  test('the watch for reorganisations undoes the newest settlement, even if thousands of older settlements wait for finality', async () => {
    const older = await newSettled(pool)
    await mine(older.txHash, [older.id])
    const newest = await newSettled(pool)
    await pool.query('update payments set block_number = 8 where id = $1', [newest.id])
    await pool.query(
      `insert into payments (id, project_id, resource_url, network, chain_id, asset, payer, recipient, amount_atomic,
         valid_after, valid_before, authorization_nonce, signature, state, tx_hash, block_number, block_hash,
         signed_receipt, settled_at)
       select 'pay_' || n, project_id, resource_url, network, chain_id, asset, payer, recipient, amount_atomic,
         valid_after, valid_before, 'nonce ' || n, signature, state, tx_hash, block_number, block_hash,
         signed_receipt, settled_at
       from payments, generate_series(1, 2000) n where id = $1`,
      [older.id],
    )
    hand.blocks.set(8n, blockAt(8n, { hash: OTHER_HASH }))
    await watch()
    await watch()
    expect(await Promise.all([older.id, newest.id].map(stateOf))).toEqual(['settled', 'verified'])
    expect(memory.suspicious).toBe(false)
  })

  test('the watch for reorganisations records the new block if the transaction of a settlement moved to another block', async () => {
    const { ids, txHash } = await newGroup(2)
    const moved = blockAt(8n)
    await mine(txHash, ids, moved)
    replaceBlock()
    await watch()
    expect(await Promise.all(ids.map(placeOf))).toEqual([
      ['settled', '8', moved.hash, 1],
      ['settled', '8', moved.hash, 3],
    ])
    expect(memory.suspicious).toBe(false)
    expect(hand.chain.head.number).toBe(10n)
  })

  test('the watch for reorganisations keeps a settlement that is still in its block, even if another settlement caused the check', async () => {
    const stays = await newSettled(pool)
    await mine(stays.txHash, [stays.id])
    memory.suspicious = true
    await watch()
    expect(await placeOf(stays.id)).toEqual(['settled', '7', BLOCK.blockHash, 1])
    expect([memory.suspicious, hand.asked]).toEqual([false, ['eth_getTransactionReceipt']])
  })

  test('the watch for reorganisations undoes a settlement if two checks do not find its transaction, and then accepts the newest block of the chain', async () => {
    const { id } = await newSettled(pool)
    replaceBlock()
    await watch()
    expect([await stateOf(id), memory.suspicious]).toEqual(['settled', true])
    expect(hand.chain.head.number).toBe(10n)
    hand.blocks.set(7n, SETTLED_IN)
    await watch(blockAt(9n))
    expect([await stateOf(id), memory.suspicious]).toEqual(['verified', false])
    expect(hand.chain.head.number).toBe(9n)
    expect(memory.goneLooks.size).toBe(0)
  })

  test('if a settlement is missing in two checks of the chain but was found in a check between them, the watch for reorganisations keeps it', async () => {
    const settlements = [await newSettled(pool), await newSettled(pool)]
    const missing = async (n: number) => {
      for (const [m, { id, txHash }] of settlements.entries()) {
        if (m === n) hand.drop(txHash)
        else await mine(txHash, [id])
      }
      await watch()
    }
    memory.suspicious = true
    for (const n of [0, 1, 0]) await missing(n)
    expect(await Promise.all(settlements.map(({ id }) => stateOf(id)))).toEqual([
      'settled',
      'settled',
    ])
    await missing(0)
    expect(await stateOf(settlements[0]!.id)).toBe('verified')
  })

  test('the watch for reorganisations undoes a settlement if its transaction failed, in the same block or in another block', async () => {
    for (const block of [SETTLED_IN, blockAt(8n)]) {
      const { id, txHash } = await newSettled(pool)
      await mine(txHash, [id], block, 0)
      memory.suspicious = true
      await watch()
      await watch()
      expect([block.hash, await stateOf(id)]).toEqual([block.hash, 'verified'])
    }
  })

  test('after a reorganisation, a payment of a payment group is undone if the new block lacks the transfer of this payment', async () => {
    const { ids, txHash } = await newGroup(2)
    await mine(txHash, ids.slice(0, 1), blockAt(8n))
    replaceBlock()
    await watch()
    await watch()
    expect(await Promise.all(ids.map(stateOf))).toEqual(['settled', 'verified'])
  })

  test('if a chain check undoes one settlement and misses another for the first time, the watch still suspects a reorganisation', async () => {
    const [first, second] = [await newSettled(pool), await newSettled(pool)]
    await mine(second.txHash, [second.id])
    memory.suspicious = true
    await watch()
    hand.drop(second.txHash)
    await watch()
    expect([await stateOf(first.id), await stateOf(second.id)]).toEqual(['verified', 'settled'])
    expect(memory.suspicious).toBe(true)
    await watch()
    expect([await stateOf(second.id), memory.suspicious]).toEqual(['verified', false])
  })

  test('a check of the chain that finds every settlement resets the count of checks with a missing settlement', async () => {
    const { id, txHash } = await newSettled(pool)
    for (let n = 0; n < 3; n++) {
      hand.drop(txHash)
      memory.suspicious = true
      await watch()
      await mine(txHash, [id])
      await watch()
    }
    expect([await stateOf(id), memory.suspicious]).toEqual(['settled', false])
  })
})

describe('a settlement becomes final when its block is final', () => {
  const setFinal = (number: bigint) => hand.blocks.set('finalized', blockAt(number))
  const look = () => finalize(hand.chain, memory)

  test('the service does not ask the chain node for the final block while no settlement waits for finality', async () => {
    await look()
    expect(hand.asked).toEqual([])
  })

  test('a settlement becomes final when the final block number reaches its block, and not one block earlier', async () => {
    const { id, txHash } = await newSettled(pool)
    await mine(txHash, [id])
    await look()
    setFinal(6n)
    await look()
    expect([await hasFinality(id), readReceipts()]).toEqual([false, false])
    setFinal(7n)
    await look()
    expect([await hasFinality(id), memory.suspicious]).toEqual([true, false])
  })

  test('a settlement becomes final only if its transaction succeeded in the stored block; otherwise the next check covers all settlements', async () => {
    setFinal(8n)
    const { id, txHash } = await newSettled(pool)
    const wrong: [name: string, change: () => unknown][] = [
      ['no transaction', () => hand.drop(txHash)],
      ['another block', () => mine(txHash, [id], blockAt(8n))],
      ['a failed transaction', () => mine(txHash, [id], SETTLED_IN, 0)],
    ]
    for (const [name, change] of wrong) {
      memory.suspicious = false
      await change()
      await look()
      expect([name, await hasFinality(id), memory.suspicious]).toEqual([name, false, true])
    }
  })

  test('one settlement becomes final even if another settlement in the same final block is missing', async () => {
    setFinal(8n)
    const [sound, gone] = [await newSettled(pool), await newSettled(pool)]
    await mine(sound.txHash, [sound.id])
    await look()
    expect([await hasFinality(sound.id), await hasFinality(gone.id)]).toEqual([true, false])
    expect(memory.suspicious).toBe(true)
  })

  test('one finality check covers hundreds of settlements, and a missing settlement does not delay later settlements', async () => {
    setFinal(8n)
    const { ids, txHash } = await newGroup(401)
    await mine(txHash, ids)
    await look()
    expect(new Set(await Promise.all(ids.map(hasFinality)))).toEqual(new Set([true]))
    const gone = await newGroup(200)
    const later = await newSettled(pool)
    await pool.query('update payments set block_number = 8, block_hash = $2 where id = $1', [
      later.id,
      blockAt(8n).hash,
    ])
    await mine(later.txHash, [later.id], blockAt(8n))
    await look()
    expect([await hasFinality(gone.ids[0]!), await hasFinality(later.id)]).toEqual([false, true])
  })

  test('a reorganisation that an earlier check suspected stays suspected when one settlement becomes final', async () => {
    setFinal(8n)
    const { id, txHash } = await newSettled(pool)
    await mine(txHash, [id])
    memory.suspicious = true
    await look()
    expect([await hasFinality(id), memory.suspicious]).toEqual([true, true])
  })
})
