import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { type Address, getAddress, type Hex, pad } from 'viem'
import type { Keyring } from '../../../../shared/vault/envelope.ts'
import { findStaleBalances } from '../../../../sql/purse/balances.ts'
import { findPurse } from '../../../../sql/purse/purses.ts'
import { checkAnew } from '../../../../sql/purse/refunds/handRefunds.ts'
import { takeCancellations } from '../../../../sql/purse/stop.ts'
import { type PurseMemory, tendPurses } from '../../../../workers/till/watch/purses.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import { BALANCE, newKeyring, newPurse } from '../../../support/purse/purseRows.ts'
import { blockAt, type HandChain, startHandChain } from '../../../support/till/handChain.ts'
import { newHash, newPayment, newProject, newSettled, row } from '../../../support/till/tillRows.ts'
import '../../../support/long.ts'

const VALID_BEFORE = 5_000n
const HEAD = blockAt(1_000n)
const PRICE = 700n

let database: TestDatabase
let pool: TestDatabase['pool']
let keyring: Keyring
let hand: HandChain
let memory: PurseMemory
let purse: Awaited<ReturnType<typeof newPurse>>
beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
  keyring = await newKeyring(pool)
  hand = startHandChain(pool)
})
beforeEach(async () => {
  await pool.query('truncate purchases, purses, purse_keys, hand_refunds cascade')
  hand.reset()
  hand.chain.head = HEAD
  memory = {
    lastOpenRow: 0n,
    lastOpenProject: '',
    lastClaimRow: 0n,
    replacedLooks: 0,
    searchFrom: new Map(),
    searchedBack: new Map(),
  }
  purse = await newPurse(pool, keyring)
  hand.balances.set(await addressOf(purse), BALANCE)
})
afterAll(async () => {
  hand[Symbol.dispose]()
  await database[Symbol.asyncDispose]()
})

const addressOf = async ({ projectId }: { projectId: string }) =>
  (await findPurse(pool, projectId))!.address
/** Returns the total of the signed payments that sellers can still collect. */
const openSum = async () => (await purse.reserved())[1]
const look = () => tendPurses(hand.chain, memory)
const purchase = (id: string) => row(pool, 'purchases', id)
const moneyOf = async (id: string) => (await purchase(id)).money
const setFinal = (number: bigint, timestamp = 0n) =>
  hand.blocks.set('finalized', blockAt(number, { timestamp }))

type Payment = { id: string; nonce: Hex; payer: Address }

/** Signs a payment of the purse (the wallet that pays sellers). */
async function sign(signedBlock: bigint | null = 100n): Promise<Payment> {
  const wanted = await purse.wanted(PRICE)
  expect(await purse.reserve([wanted])).toEqual(['signed'])
  const { rows } = await pool.query<Payment>(
    'update purchases set valid_before = $2, signed_block = $3 where id = $1 returning id, nonce, payer',
    [wanted.id, VALID_BEFORE, signedBlock],
  )
  return rows[0]!
}

/** Returns the token transfer that a payment authorizes. */
async function transferOf({ id }: Payment) {
  const { asset, payer, pay_to: recipient, amount_atomic, nonce } = await purchase(id)
  return { asset, payer, recipient, amountAtomic: BigInt(amount_atomic), nonce }
}

function addEvent(payment: Payment, block: bigint, kind: 'used' | 'canceled' = 'used'): Hex {
  const txHash = newHash()
  hand.events.set(payment.nonce, { kind, payer: payment.payer, txHash, block })
  return txHash
}

/** Puts the token transfer of a payment into a block. */
async function take(payment: Payment, block: bigint): Promise<Hex> {
  const txHash = addEvent(payment, block)
  hand.mine(txHash, blockAt(block), [await transferOf(payment)])
  return txHash
}

describe('an open payment of a purse (the wallet that pays sellers) is watched until it is spent or its amount is available again', () => {
  test('the amount of a buyer’s unused payment becomes available again when a final block reaches the expiry, and not one second earlier', async () => {
    const { id } = await sign()
    expect(await openSum()).toBe(PRICE)
    await look()
    setFinal(900n, VALID_BEFORE - 1n)
    await look()
    expect(await moneyOf(id)).toBe('open')
    hand.blocks.set('finalized', blockAt(901n, { timestamp: VALID_BEFORE }))
    await look()
    expect(await moneyOf(id)).toBe('released')
    expect(await openSum()).toBe(0n)
  })

  test('a buyer’s open payment counts as spent when the chain shows its transfer, before or after its expiry', async () => {
    for (const timestamp of [0n, VALID_BEFORE]) {
      const payment = await sign()
      const txHash = await take(payment, 850n)
      setFinal(849n, 0n)
      if (timestamp > 0n) setFinal(850n, timestamp)
      await look()
      expect(await purchase(payment.id)).toMatchObject({
        money: 'spent',
        tx_hash: txHash,
        block_number: '850',
        block_hash: blockAt(850n).hash,
        log_index: 1,
      })
    }
  })

  test('a buyer’s open payment counts as spent when its transfer is in a block, even if no block is final', async () => {
    const payment = await sign()
    await take(payment, HEAD.number)
    await look()
    expect(await moneyOf(payment.id)).toBe('spent')
  })

  test('the search for a buyer’s payment finds a transfer after its signature or before it, also if the signing block is unknown', async () => {
    const cases = [
      [100n, 94n, 'spent'],
      [100n, 95n, 'spent'],
      [3n, 0n, 'spent'],
      [null, 0n, 'spent'],
    ] as const
    for (const [signedBlock, block, money] of cases) {
      await pool.query(`delete from purchases`)
      const payment = await sign(signedBlock)
      await take(payment, block)
      await look()
      expect([signedBlock, block, await moneyOf(payment.id)]).toEqual([signedBlock, block, money])
    }
  })

  test('the search for an old transfer is spread over several polls of the chain, so that no poll and no new payment is delayed', async () => {
    const old = await sign(100n)
    hand.chain.head = blockAt(120_000n)
    await take(old, 90_000n)
    const polls: [searches: number, money: string][] = []
    for (let n = 0; n < 7 && polls.at(-1)?.[1] !== 'spent'; n++) {
      const recent = await sign(119_990n)
      await take(recent, 119_995n)
      hand.asked.length = 0
      await look()
      const searches = hand.asked.filter((method) => method === 'eth_getLogs').length
      expect(await moneyOf(recent.id)).toBe('spent')
      polls.push([searches, await moneyOf(old.id)])
    }
    expect(polls).toEqual([
      ...Array.from({ length: 4 }, () => [12, 'open'] as [number, string]),
      [12, 'spent'],
    ])
  })

  test('a transfer long before the signature, which a restored database no longer knows, is found part by part', async () => {
    const [early, never] = [await sign(119_000n), await sign(119_000n)]
    hand.chain.head = blockAt(120_000n)
    await take(early, 50_000n)
    addEvent(never, 200_000n)
    let polls = 0
    while ((await moneyOf(early.id)) === 'open' && polls < 100) {
      hand.asked.length = 0
      await look()
      polls++
      expect(hand.asked.filter((method) => method === 'eth_getLogs').length).toBeLessThan(13)
    }
    expect([polls < 100, await moneyOf(early.id), await moneyOf(never.id)]).toEqual([
      ...[true, 'spent', 'open'],
    ])
  })

  test('the search for buyers’ payments begins at the earliest signature of all payments whose authorizations are used', async () => {
    const payments = [await sign(900n), await sign(99n), await sign(100n)]
    await take(payments[0]!, 900n)
    await take(payments[1]!, 95n)
    await take(payments[2]!, 101n)
    await look()
    const states = await Promise.all(payments.map(({ id }) => moneyOf(id)))
    expect(states).toEqual(['spent', 'spent', 'spent'])
  })

  test('a buyer’s payment stays open until a successful transaction contains the transfer of this payment', async () => {
    const payment = await sign()
    const other = await transferOf(await sign())
    const own = await transferOf(payment)
    const txHash = addEvent(payment, 850n)
    const cases: [name: string, change: () => void][] = [
      ['no receipt', () => {}],
      ['a failed transaction', () => hand.mine(txHash, blockAt(850n), [own], 0)],
      ['the transfer of another payment', () => hand.mine(txHash, blockAt(850n), [other])],
      [
        'another amount',
        () => hand.mine(txHash, blockAt(850n), [{ ...own, amountAtomic: PRICE - 1n }]),
      ],
    ]
    for (const [name, change] of cases) {
      change()
      await look()
      expect([name, await moneyOf(payment.id)]).toEqual([name, 'open'])
    }
  })

  test('if the chain node reports a payment of a purse (wallet) as used but does not return its event, the purse’s other payments are not delayed', async () => {
    const [hidden, shown] = [await sign(500n), await sign(500n)]
    addEvent(hidden, 10n)
    await take(shown, 850n)
    await look()
    expect([await moneyOf(hidden.id), await moneyOf(shown.id)]).toEqual(['open', 'spent'])
  })

  test('the amount of a buyer’s cancelled payment becomes available again only when the block of the cancellation is final', async () => {
    const payment = await sign()
    addEvent(payment, 850n, 'canceled')
    const seen = async () => (await purchase(payment.id)).cancel_seen_at !== null
    expect(await seen()).toBe(false)
    await look()
    expect([await moneyOf(payment.id), await seen()]).toEqual(['open', true])
    setFinal(849n)
    await look()
    expect(await moneyOf(payment.id)).toBe('open')
    setFinal(850n)
    await look()
    expect(await moneyOf(payment.id)).toBe('released')
    expect(await openSum()).toBe(0n)
  })

  test('if a reorganisation removed the cancellation of a buyer’s payment, the cancellation is sent again', async () => {
    const payment = await sign()
    await pool.query(
      `update purchases set cancel_signature = '0x00', valid_before = 9000000000 where id = $1`,
      [payment.id],
    )
    const due = async () => (await takeCancellations(pool, 'base-sepolia', 10)).map(({ id }) => id)
    addEvent(payment, 850n, 'canceled')
    await look()
    expect(await due()).toEqual([])
    hand.events.clear()
    await look()
    expect(await due()).toEqual([payment.id])
  })

  test('a check of one chain leaves a buyer’s open payment on another chain unchanged', async () => {
    const payment = await sign()
    await take(payment, 850n)
    await pool.query(`update purchases set network = 'base'`)
    await look()
    expect(await moneyOf(payment.id)).toBe('open')
  })
})

describe('if more than 200 payments are open, the service checks them in several parts', () => {
  let copied = 0
  /** Makes copies of an open payment. The copies come after the payment in the list of payments. */
  async function copy({ id }: Payment, count: number, projectId = ''): Promise<Payment[]> {
    const { rows: columns } = await pool.query<{ name: string }>(
      `select quote_ident(column_name) as name from information_schema.columns
       where table_name = 'purchases' and column_name not in ('row', 'id', 'project_id', 'nonce', 'idempotency_key')`,
    )
    const same = columns.map(({ name }) => name).join(', ')
    const { rows } = await pool.query<Payment>(
      `insert into purchases (id, project_id, nonce, ${same})
       select 'copy_' || n, coalesce(nullif($4, ''), project_id), '0x' || lpad(to_hex(n), 64, '0'), ${same}
       from purchases, generate_series($3::int + 1, $3::int + $2::int) n where id = $1 order by n
       returning id, nonce, payer`,
      [id, count, copied, projectId],
    )
    copied += count
    return rows
  }

  test('a long list of buyers’ open payments is checked in parts, one part in each check of the chain, and then from the start again', async () => {
    const first = await sign()
    const copies = await copy(first, 300)
    const [middle, newest] = [copies[150]!, copies.at(-1)!]
    await take(middle, 850n)
    await take(newest, 850n)
    await look()
    expect([await moneyOf(middle.id), await moneyOf(newest.id)]).toEqual(['open', 'spent'])
    await take(first, 850n)
    await look()
    expect([await moneyOf(middle.id), await moneyOf(first.id)]).toEqual(['spent', 'open'])
    for (let n = 0; n < 3; n++) await look()
    expect(await moneyOf(first.id)).toBe('spent')
  })

  test('many open payments of one project do not delay the check of another project’s newest payments', async () => {
    await copy(await sign(), 2_000)
    purse = await newPurse(pool, keyring)
    const [older, newer] = [await sign(), await sign()]
    await take(older, 850n)
    await take(newer, 850n)
    await look()
    expect([await moneyOf(older.id), await moneyOf(newer.id)]).toEqual(['spent', 'spent'])
  })

  test('if more than 100 projects have open payments, each check of the chain examines some projects, and the next check the next ones', async () => {
    const crowded = await sign()
    await copy(crowded, 1_000)
    const payments: Payment[] = []
    for (let n = 0; n < 102; n++) {
      const projectId = await newProject(pool)
      const [payment] = await copy(crowded, 1, projectId)
      payments.push(payment!)
    }
    for (const payment of payments) await take(payment, 850n)
    const spent = async () => {
      const { rows } = await pool.query<{ n: number }>(
        `select count(*)::int as n from purchases where money = 'spent'`,
      )
      return rows[0]!.n
    }
    await look()
    expect(await spent()).toBeWithin(99, 101)
    await look()
    expect(await spent()).toBe(102)
  })
})

describe('a transfer of a purse (the wallet that pays sellers) is watched until it is final', () => {
  let payment: Payment
  let txHash: Hex
  beforeEach(async () => {
    payment = await sign()
    txHash = await take(payment, 850n)
    await look()
    hand.blocks.set(850n, blockAt(850n))
  })
  const isFinal = async () => (await purchase(payment.id)).final_at !== null
  const vanish = () => {
    hand.events.clear()
    hand.drop(txHash)
  }
  const replaceBlock = () => hand.blocks.set(850n, blockAt(850n, { hash: pad('0xdead') }))

  test('a transfer from a purse (agent’s wallet) becomes final when its block is final, and not one block earlier', async () => {
    setFinal(849n)
    await look()
    expect(await isFinal()).toBe(false)
    setFinal(850n)
    await look()
    expect([await moneyOf(payment.id), await isFinal()]).toEqual(['spent', true])
  })

  test('a transfer from a purse (wallet) becomes final by a comparison of block hashes if the chain node cannot send the transfer’s receipt', async () => {
    hand.withholdReceipt(txHash)
    replaceBlock()
    setFinal(851n)
    await look()
    expect([await moneyOf(payment.id), await isFinal()]).toEqual(['spent', false])
    hand.blocks.set(850n, blockAt(850n))
    await look()
    expect([await moneyOf(payment.id), await isFinal()]).toEqual(['spent', true])
  })

  test('a payment from a purse (wallet) counts as open again if the block of its transfer is final, but does not contain the transfer', async () => {
    setFinal(850n)
    vanish()
    await look()
    expect([await moneyOf(payment.id), await isFinal()]).toEqual(['open', false])
  })

  test('a transfer from a purse (agent’s wallet) counts as open again if its transaction failed in its block', async () => {
    setFinal(850n)
    hand.mine(txHash, blockAt(850n), [], 0)
    await look()
    expect([await moneyOf(payment.id), await isFinal()]).toEqual(['open', false])
  })

  test('if a transfer from a purse (wallet) moved to another block, the new block is recorded', async () => {
    setFinal(850n)
    hand.drop(txHash)
    await take(payment, 851n)
    await look()
    expect(await moneyOf(payment.id)).toBe('open')
    await look()
    expect(await purchase(payment.id)).toMatchObject({ money: 'spent', block_number: '851' })
  })

  test('a transfer from a purse (wallet) is open again after two consecutive checks find another block at the same height', async () => {
    vanish()
    replaceBlock()
    await look()
    hand.blocks.set(850n, blockAt(850n))
    await look()
    replaceBlock()
    await look()
    hand.blocks.delete(850n)
    await look()
    replaceBlock()
    await look()
    expect(await moneyOf(payment.id)).toBe('spent')
    await look()
    expect(await moneyOf(payment.id)).toBe('open')
  })

  test('if a reorganisation removed a transfer, it is open again, even if a later transfer is still in its block', async () => {
    const [gone, newer] = [await sign(), await sign()]
    await take(gone, 860n)
    await take(newer, 870n)
    await look()
    hand.blocks.set(870n, blockAt(870n))
    hand.blocks.set(860n, blockAt(860n, { hash: pad('0xdead') }))
    hand.drop((await purchase(gone.id)).tx_hash)
    await look()
    await look()
    expect([await moneyOf(gone.id), await moneyOf(newer.id)]).toEqual(['open', 'spent'])
  })

  test('the newest transfer is open again after a reorganisation, even if many older transfers wait for finality', async () => {
    const [older, newest] = [await sign(), await sign()]
    await take(older, 850n)
    await take(newest, 860n)
    await look()
    await pool.query(
      `insert into purchases (id, project_id, kind, request_hash, method, host, path, max_atomic, asked_by, network, asset,
         payer, pay_to, amount_atomic, money, nonce, valid_before, tx_hash, log_index, block_number, block_hash, spent_at)
       select 'pur_' || n, project_id, kind, request_hash, method, host, path, max_atomic, asked_by, network, asset,
         payer, pay_to, amount_atomic, money, 'nonce ' || n, valid_before, tx_hash, log_index, block_number, block_hash,
         spent_at
       from purchases, generate_series(1, 200) n where id = $1`,
      [older.id],
    )
    hand.blocks.set(860n, blockAt(860n, { hash: pad('0xdead') }))
    hand.drop((await purchase(newest.id)).tx_hash)
    await look()
    await look()
    expect([await moneyOf(older.id), await moneyOf(newest.id)]).toEqual(['spent', 'open'])
  })

  test('if a later block was replaced, a transfer in an unchanged block stays recorded, but does not become final', async () => {
    const later = await sign()
    await take(later, 860n)
    await look()
    hand.events.delete(later.nonce)
    hand.blocks.set(860n, blockAt(860n, { hash: pad('0xdead') }))
    hand.drop((await purchase(later.id)).tx_hash)
    await look()
    await look()
    expect(await moneyOf(later.id)).toBe('open')
    expect([await moneyOf(payment.id), await isFinal()]).toEqual(['spent', false])
  })
})

describe('a refund that a seller paid by hand is watched until it is final', () => {
  /** Records that a refund by a seller is in a block. */
  async function newRefund(block: bigint): Promise<{ id: string; txHash: Hex }> {
    const paid = await newSettled(pool)
    const id = `ref_${paid.id}`
    const { asset, payer, recipient, project_id } = await row(pool, 'payments', paid.id)
    const txHash = newHash()
    await pool.query(
      `insert into hand_refunds (id, project_id, payment_id, idempotency_key, request_hash, created_by, network, asset,
         payer, pay_to, amount_atomic, state, tx_hash, log_index, block_number, block_hash)
       values ($1, $2, $3, $1, '', 'test', 'base-sepolia', $4, $5, $6, 500, 'spent', $7, 1, $8, $9)`,
      [
        ...[id, project_id, paid.id, asset, recipient.toLowerCase(), payer.toLowerCase()],
        ...[txHash, block, blockAt(block).hash],
      ],
    )
    return { id, txHash }
  }
  const refund = ({ id }: { id: string }) => row(pool, 'hand_refunds', id)
  async function mine(made: { id: string; txHash: Hex }, block: bigint) {
    const { asset, payer, pay_to: recipient } = await refund(made)
    const transfer = { asset, payer, recipient, amountAtomic: 500n, nonce: newHash() }
    hand.mine(made.txHash, blockAt(block), [transfer])
  }

  test('a refund that the seller paid by hand becomes final when its block is final', async () => {
    const made = await newRefund(850n)
    await mine(made, 850n)
    setFinal(849n)
    await look()
    expect((await refund(made)).final_at).toBeNull()
    setFinal(850n)
    await look()
    expect(await refund(made)).toMatchObject({ state: 'spent', final_at: expect.any(Date) })
  })

  test('a refund that the seller paid by hand becomes final by a comparison of block hashes if the chain node cannot send the receipt', async () => {
    const made = await newRefund(850n)
    hand.withholdReceipt(made.txHash)
    hand.blocks.set(850n, blockAt(850n))
    setFinal(850n)
    await look()
    expect(await refund(made)).toMatchObject({ state: 'spent', final_at: expect.any(Date) })
  })

  test('if sellers have named many refund transactions that no chain node knows, the proof of another refund is not delayed', async () => {
    const made: Awaited<ReturnType<typeof newRefund>>[] = []
    for (let n = 0; n < 51; n++) made.push(await newRefund(850n))
    await pool.query(
      `update hand_refunds set state = 'claimed', claimed_at = clock_timestamp(), log_index = null, block_number = null,
         block_hash = null`,
    )
    await pool.query('update payments set block_number = 1')
    await mine(made[50]!, 850n)
    await look()
    await look()
    expect((await refund(made[50]!)).state).toBe('spent')
    await mine(made[0]!, 850n)
    await look()
    expect((await refund(made[0]!)).state).toBe('spent')
  })

  test.each(['sale', 'purchase'])(
    'a transfer does not prove a refund by hand if the transfer may belong to a %s whose settlement is not yet recorded',
    async (kind) => {
      const made = await newRefund(850n)
      await checkAnew(pool, [made.id])
      await pool.query('update payments set block_number = 1')
      const { asset, payer, pay_to: recipient } = await refund(made)
      const nonce = newHash()
      if (kind === 'sale') {
        await newPayment(pool, { payer: getAddress(payer), recipient, amountAtomic: 500n, nonce })
      } else {
        const { id } = await sign()
        await pool.query('update purchases set payer = $2, nonce = $3 where id = $1', [
          ...[id, payer, nonce],
        ])
      }
      hand.mine(made.txHash, blockAt(850n), [
        { asset, payer, recipient, amountAtomic: 500n, nonce },
      ])
      await look()
      expect(await refund(made)).toMatchObject({
        state: 'expected',
        reason: 'the transfers of the transaction count for other refunds, sales or purchases',
      })
    },
  )

  test.each<[string, bigint, 0 | 1, object]>([
    ['in the block of the payment', 850n, 1, { state: 'spent', reason: null }],
    [
      'before the payment',
      849n,
      1,
      { state: 'expected', reason: 'the transaction is older than the payment' },
    ],
    ['that reverted', 850n, 0, { state: 'expected', reason: 'the transaction was reverted' }],
  ])('the service judges a claimed refund transaction %s', async (_when, block, success, end) => {
    const made = await newRefund(block)
    await checkAnew(pool, [made.id])
    await pool.query('update payments set block_number = 850')
    const { asset, payer, pay_to: recipient } = await refund(made)
    const transfer = { asset, payer, recipient, amountAtomic: 500n, nonce: newHash() }
    hand.mine(made.txHash, blockAt(block), [transfer], success)
    await look()
    expect(await refund(made)).toMatchObject(end)
  })

  test('if a refund by hand moved to another block, the new block is recorded, and a refund that disappeared is checked again', async () => {
    const [moved, gone] = [await newRefund(850n), await newRefund(850n)]
    await mine(moved, 851n)
    setFinal(850n)
    await look()
    expect(await refund(moved)).toMatchObject({ state: 'spent', block_number: '851' })
    expect(await refund(gone)).toMatchObject({ state: 'claimed', block_number: null })
  })

  test('a refund by hand in the newest block with transfers is checked again after two checks find a different block at this height', async () => {
    const made = await newRefund(850n)
    hand.blocks.set(850n, blockAt(850n, { hash: pad('0xdead') }))
    await look()
    expect((await refund(made)).state).toBe('spent')
    await look()
    expect((await refund(made)).state).toBe('claimed')
  })
})

describe('the service reads the balance of each purse (the wallet that pays sellers) when the stored balance is outdated', () => {
  const balance = async () => {
    const { balanceAtomic, balanceBlock } = (await findPurse(pool, purse.projectId))!
    return [balanceAtomic, balanceBlock]
  }

  test('the balance of a purse (agent’s wallet) is read at the newest block, and is read again only if the stored balance is outdated', async () => {
    const address = await addressOf(purse)
    hand.balances.set(address, 42n)
    await look()
    expect(await balance()).toEqual([42n, 1_000n])
    hand.balances.set(address, 43n)
    hand.asked.length = 0
    await look()
    expect(await balance()).toEqual([42n, 1_000n])
    expect(hand.asked).toEqual(['eth_getBlockByNumber'])
    await pool.query(`update purses set balance_at = balance_at - interval '11 seconds'`)
    await look()
    expect(await balance()).toEqual([43n, 1_000n])
  })

  test('each purse (agent’s wallet) has a separate balance', async () => {
    const other = await newPurse(pool, keyring)
    hand.balances.set(await addressOf(purse), 1n)
    hand.balances.set(await addressOf(other), 2n)
    await look()
    expect((await balance())[0]).toBe(1n)
    expect((await findPurse(pool, other.projectId))!.balanceAtomic).toBe(2n)
  })
})

test('of several purses (wallets), the one whose balance was read longest ago is read first', async () => {
  const others = [await newPurse(pool, keyring), await newPurse(pool, keyring)]
  const [recent, old, never] = [purse, ...others]
  for (const [{ projectId }, age] of [
    [recent, '10 minutes'],
    [old!, '2 hours'],
  ] as const) {
    await pool.query(
      `update purses set balance_at = now() - $2::interval, created_at = now() - interval '1 day' where project_id = $1`,
      [projectId, age],
    )
  }
  const order = await Promise.all([never!, old!, recent].map(addressOf))
  for (const limit of [1, 2, 3]) {
    expect<string[]>(await findStaleBalances(pool, limit)).toEqual(order.slice(0, limit))
  }
})

test('many idle purses (wallets) of others do not delay the balance of a purse with an open payment, nor the other way round', async () => {
  const idle = await Promise.all(Array.from({ length: 60 }, () => newPurse(pool, keyring)))
  const busy = await Promise.all(Array.from({ length: 60 }, () => newPurse(pool, keyring)))
  for (const one of busy) await one.reserve([await one.wanted(PRICE)])
  const age = (purses: typeof idle, seconds: number) =>
    pool.query(
      `update purses set created_at = now() - interval '1 day', balance_at = now() - make_interval(secs => $2)
       where project_id = any ($1)`,
      [purses.map(({ projectId }) => projectId), seconds],
    )
  const readOf = async (purses: typeof idle) => {
    const found = await Promise.all(purses.map(({ projectId }) => findPurse(pool, projectId)))
    return found.filter((one) => one!.balanceBlock === HEAD.number).length
  }
  await age([purse], 0)
  await age(idle, 3_600)
  await age(busy, 5)
  await look()
  expect([await readOf(idle), await readOf(busy)]).toEqual([25, 25])
})
