/**
 * Tests the fees, the gas and the calls of the transactions that a gas wallet (which pays the fees) signs, stores and
 * sends.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { type Hex, keccak256, pad, parseTransaction } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { DEVNET_ACCOUNTS } from '../../../../shared/till/devnetAccounts.ts'
import { findPayments, type Payment } from '../../../../sql/till/payments/payments.ts'
import { storeCall, syncWallet } from '../../../../sql/till/settle/gasWallets.ts'
import type { OpenTransaction } from '../../../../sql/till/watch/openTransactions.ts'
import type { KnownChain } from '../../../../workers/till/chain/chainView.ts'
import { createRpc } from '../../../../workers/till/chain/rpc.ts'
import {
  broadcast,
  fillGap,
  marketFees,
  reprice,
  sendCall,
  sendGroup,
  sendPayments,
} from '../../../../workers/till/settle/gasWallet.ts'
import { MULTICALL3_ADDRESS } from '../../../../workers/till/wallets/walletDeployment.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import { startNode } from '../../../support/till/fakeNode.ts'
import { blockAt, type HandChain, startHandChain } from '../../../support/till/handChain.ts'
import { newPayment, row, signedFor, WALLET } from '../../../support/till/tillRows.ts'

const account = privateKeyToAccount(DEVNET_ACCOUNTS.gasWallet.privateKey)
const GWEI = 1_000_000_000n
const CAP = 100n * GWEI
const CODE = pad('0xc0de')
const GROUP = MULTICALL3_ADDRESS.toLowerCase() as Hex

let database: TestDatabase
let pool: TestDatabase['pool']
let hand: HandChain
let chain: KnownChain
let node: ReturnType<typeof startNode>
/** Lists the raw transactions that the chain node received. */
const sent: Hex[] = []
let answer: (raw: Hex) => unknown
let nudges = 0

beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
  hand = startHandChain(pool)
  node = startNode((_method, [raw]) => {
    sent.push(raw)
    return answer(raw)
  })
})
beforeEach(async () => {
  sent.length = 0
  nudges = 0
  answer = (raw) => keccak256(raw)
  await pool.query('truncate chain_transactions, gas_wallets cascade')
  await syncWallet(pool, WALLET, 7n)
  chain = {
    ...hand.chain,
    rpc: createRpc({ url: node.url }),
    head: blockAt(10n, { baseFeePerGas: 3n * GWEI }),
    tipWei: GWEI,
    nudge: () => {
      nudges++
    },
  }
})
afterAll(async () => {
  node[Symbol.dispose]()
  hand[Symbol.dispose]()
  await database[Symbol.asyncDispose]()
})

const payments = async (count: number, changes: Parameters<typeof newPayment>[1] = {}) => {
  const ids: string[] = []
  for (let n = 0; n < count; n++) ids.push(await newPayment(pool, changes))
  const found = await findPayments(pool, ids)
  return ids.map((id) => found.find((one) => one.id === id)!)
}
const onePayment = async () => (await payments(1))[0]!
const sentCalls = () => sent.map((raw) => parseTransaction(raw))
const stored = async () => {
  const { rows } = await pool.query('select * from chain_transactions order by nonce, max_fee_wei')
  return rows
}

test.each([
  ['twice the base fee and the tip', 3n * GWEI, GWEI, 7n * GWEI, GWEI],
  ['the tip alone without a base fee', undefined, GWEI, GWEI, GWEI],
  ['nothing on a chain without fees', 0n, 0n, 0n, 0n],
  ['exactly 100 gwei', 49n * GWEI, 2n * GWEI, CAP, 2n * GWEI],
  ['at most 100 gwei for a high base fee', 49n * GWEI + 1n, 2n * GWEI, CAP, 2n * GWEI],
  ['at most 100 gwei for a high tip', 1n, CAP + 1n, CAP, CAP],
])(
  'the gas wallet’s offered fee for a new transaction is %s',
  (_name, baseFeePerGas, tipWei, maxFeeWei, tip) => {
    const { baseFeePerGas: _, ...block } = blockAt(1n)
    const head = baseFeePerGas === undefined ? block : { ...block, baseFeePerGas }
    expect(marketFees({ head, tipWei })).toEqual({ maxFeeWei, tipWei: tip })
  },
)

describe('a gas wallet sends each payment in one transaction, with the next nonce', () => {
  test('the gas wallet sends payments one by one, each with the next nonce, the given gas limit and the market fee', async () => {
    const [one, two] = (await payments(2)) as [Payment, Payment]
    await sendPayments(chain, account, [
      { payment: one, gas: 90_000n, code: null },
      { payment: two, gas: 91_000n, code: CODE },
    ])
    const fees = { maxFeePerGas: 7n * GWEI, maxPriorityFeePerGas: GWEI }
    const { chainId, usdcAddress: to } = chain.network
    expect(sentCalls()).toMatchObject([
      { chainId, to: to.toLowerCase(), nonce: 7, gas: 90_000n, ...fees },
      { chainId, to: to.toLowerCase(), nonce: 8, gas: 91_000n, ...fees },
    ])
    expect(await stored()).toMatchObject([
      { hash: keccak256(sent[0]!), payment_id: one.id, payer_code: null, gas_limit: '90000' },
      { hash: keccak256(sent[1]!), payment_id: two.id, payer_code: CODE, send_error: null },
    ])
    expect(nudges).toBe(1)
  })

  test('the gas wallet does not send a payment again while its transaction is open', async () => {
    const payment = await onePayment()
    const sending = { payment, gas: 90_000n, code: null }
    await Promise.all([
      sendPayments(chain, account, [sending]),
      sendPayments(chain, account, [sending]),
    ])
    expect(sent).toHaveLength(1)
    expect(nudges).toBe(1)
  })

  test('payments from wallets with the same contract code are sent one at a time until a wallet with this code has paid', async () => {
    const [one, two, three] = (await payments(3)) as [Payment, Payment, Payment]
    const sending = { gas: 90_000n, code: CODE }
    await sendPayments(chain, account, [{ ...sending, payment: one, isLone: true }])
    await sendPayments(chain, account, [{ ...sending, payment: two, isLone: true }])
    expect(sent).toHaveLength(1)
    await sendPayments(chain, account, [{ ...sending, payment: three }])
    await sendPayments(chain, account, [{ payment: two, gas: 1n, code: null, isLone: true }])
    expect((await stored()).map((one) => one.payment_id)).toEqual([one.id, three.id, two.id])
  })

  test('the gas wallet sends a batch of payments only after the previous batch, even if the previous batch failed', async () => {
    const broken = { ...chain, pool: null } as unknown as KnownChain
    const failed = sendPayments(broken, account, [
      { payment: await onePayment(), gas: 90_000n, code: null },
    ])
    const payment = await onePayment()
    const next = sendPayments(chain, account, [{ payment, gas: 90_000n, code: null }])
    await expect(failed).rejects.toThrow()
    await next
    expect(sent).toHaveLength(1)
  })

  test('a group of payments shares one transaction, and the group leaves out payments that already have a transaction', async () => {
    const [one, two, three] = (await payments(3)) as [Payment, Payment, Payment]
    await sendPayments(chain, account, [{ payment: two, gas: 90_000n, code: null }])
    await sendGroup(chain, account, [one, two, three])
    expect(sentCalls()[1]).toMatchObject({ to: GROUP, nonce: 8, gas: 240_000n })
    const { rows } = await pool.query(
      'select payment_id from chain_transaction_payments where hash = $1 order by payment_id',
      [keccak256(sent[1]!)],
    )
    expect(rows.map((one) => one.payment_id)).toEqual([one.id, three.id].toSorted())
  })

  test('if only one payment of a payment group still needs a transaction, this payment is sent as a single transfer with the maximum gas limit', async () => {
    const [one, two] = (await payments(2)) as [Payment, Payment]
    await sendPayments(chain, account, [{ payment: two, gas: 90_000n, code: null }])
    await sendGroup(chain, account, [one, two])
    const to = chain.network.usdcAddress.toLowerCase() as Hex
    expect(sentCalls()[1]).toMatchObject({ to, gas: 160_000n })
    expect((await stored())[1]).toMatchObject({ payment_id: one.id, payer_code: null })
  })

  test('if a payment with a long signature needs a transaction of more than 120,000 bytes, the gas wallet does not store it', async () => {
    const sign = async (bytes: number) => {
      const payment: Payment = { ...(await onePayment()), signature: `0x${'11'.repeat(bytes)}` }
      await sendPayments(chain, account, [{ payment, gas: 90_000n, code: null }])
    }
    await sign(119_400)
    await expect(sign(120_000)).rejects.toThrow(/^a transaction of 12\d{4} bytes$/)
    expect(await stored()).toHaveLength(1)
  })
})

describe('a gas wallet can also send a transaction that belongs to no payment', () => {
  test('the gas wallet sends a contract call that settles no payment with the next nonce and with the gas limit of the call', async () => {
    const call = { to: GROUP, data: '0x1234', gas: 55_000n } as const
    await sendCall(chain, account, call)
    await sendCall(chain, account, call)
    expect(sentCalls()).toMatchObject([
      { nonce: 7, ...call, maxFeePerGas: 7n * GWEI },
      { nonce: 8, ...call },
    ])
    expect((await stored())[0]).toMatchObject({ payment_id: null, payer_code: null })
  })

  test('if an assigned nonce has no transaction, the gas wallet fills the nonce with an empty transfer to itself', async () => {
    await syncWallet(pool, WALLET, 9n)
    await fillGap(chain, account, 8n)
    const [filler] = sentCalls()
    const to = account.address.toLowerCase() as Hex
    expect(filler).toMatchObject({ nonce: 8, to, gas: 21_000n, maxFeePerGas: 7n * GWEI })
    expect([filler!.data, filler!.value]).toEqual([undefined, undefined])
    await fillGap(chain, account, 8n)
    await fillGap(chain, account, 9n)
    expect(sent).toHaveLength(1)
  })
})

describe('a gas wallet broadcasts its transactions, and stores the result of each broadcast', () => {
  const newStored = () => storeCall(pool, WALLET, async (nonce) => signedFor(null, nonce))

  test('a broadcast records that a transaction was sent, and records the refusal of the chain node if there is one', async () => {
    const [one, two] = [await newStored(), await newStored()]
    const raws = [
      { hash: one.hash, raw: '0x01' },
      { hash: two.hash, raw: '0x02' },
    ] as const
    answer = (raw) => (raw === '0x02' ? { error: { code: -32000, message: 'no gas' } } : '0x')
    expect(await broadcast(chain, raws)).toEqual(
      new Map([
        [one.hash, null],
        [two.hash, 'no gas'],
      ]),
    )
    const sends = { send_count: 1, sent_head: '10' }
    expect(await row(pool, 'chain_transactions', one.hash)).toMatchObject({
      ...sends,
      send_error: null,
    })
    expect(await row(pool, 'chain_transactions', two.hash)).toMatchObject({
      ...{ ...sends, send_error: 'no gas' },
    })
    expect(nudges).toBe(1)
  })

  test('if the chain node does not respond, a broadcast records this and throws no error', async () => {
    const { hash } = await newStored()
    answer = () => new Response('', { status: 503 })
    const errors = await broadcast(chain, [{ hash, raw: '0x01' }])
    expect(errors.get(hash)).toContain('503')
    expect((await row(pool, 'chain_transactions', hash)).send_error).toContain('503')
  })

  test('if an error does not come from the chain node, a broadcast throws it and records nothing', async () => {
    const { hash } = await newStored()
    const batch = () => Promise.reject(new TypeError('a fault of ours'))
    const faulty: KnownChain = { ...chain, rpc: { ...chain.rpc, batch } }
    await expect(broadcast(faulty, [{ hash, raw: '0x01' }])).rejects.toThrow('a fault of ours')
    expect((await row(pool, 'chain_transactions', hash)).send_count).toBe(0)
  })

  test('a broadcast of no transactions sends no request to the chain node', async () => {
    expect(await broadcast(chain, [])).toEqual(new Map())
    expect([sent.length, nudges]).toEqual([0, 0])
  })
})

describe('a gas wallet replaces a stuck transaction by a transaction with a higher fee', () => {
  /** Stores a transaction with nonce 7, with the given fees and payments. */
  async function newStuck(
    paymentIds: readonly string[],
    changes: Partial<OpenTransaction> = {},
  ): Promise<OpenTransaction> {
    const fees = { maxFeeWei: 8n * GWEI, tipWei: 2n * GWEI }
    const signed = await storeCall(pool, WALLET, async (nonce) => {
      return { ...signedFor([...paymentIds], nonce), ...fees, ...changes }
    })
    return { ...signed, wallet: WALLET.address, sendCount: 2, sentHead: 1n, isUnsent: false }
  }
  const fees = (maxFeePerGas: bigint, maxPriorityFeePerGas: bigint) => ({
    maxFeePerGas,
    maxPriorityFeePerGas,
  })

  test('the replacement of a stuck transaction offers a fee that is a quarter higher than before, or the market fee if the market fee is higher', async () => {
    const payment = await onePayment()
    const stuck = await newStuck([payment.id])
    expect(await reprice(chain, account, { stuck, payments: [payment] })).toBe(true)
    const raised = fees(10n * GWEI + 1n, (5n * GWEI) / 2n + 1n)
    expect(sentCalls()[0]).toMatchObject({ nonce: 7, gas: 100_000n, ...raised })
    chain.head = blockAt(11n, { baseFeePerGas: 20n * GWEI })
    chain.tipWei = 4n * GWEI
    const next = { ...stuck, hash: keccak256(sent[0]!) }
    expect(await reprice(chain, account, { stuck: next, payments: [payment] })).toBe(true)
    expect(sentCalls()[1]).toMatchObject({ nonce: 7, ...fees(44n * GWEI, 4n * GWEI) })
  })

  test('a stuck transaction is not replaced if another transaction has already taken its nonce', async () => {
    const payment = await onePayment()
    const stuck = await newStuck([payment.id])
    const other = { ...stuck, hash: pad('0x77') }
    expect(await reprice(chain, account, { stuck: other, payments: [payment] })).toBe(false)
    expect(sent).toHaveLength(0)
  })

  test('a replacement offers at most 100 gwei, and a stuck transaction that already offers 100 gwei is not replaced', async () => {
    const payment = await onePayment()
    const stuck = await newStuck([payment.id], { maxFeeWei: CAP - 1n, tipWei: CAP - 1n })
    expect(await reprice(chain, account, { stuck, payments: [payment] })).toBe(true)
    expect(sentCalls()[0]).toMatchObject(fees(CAP, CAP))
    const next = { ...stuck, hash: keccak256(sent[0]!), maxFeeWei: CAP }
    expect(await reprice(chain, account, { stuck: next, payments: [payment] })).toBe(false)
    expect(sent).toHaveLength(1)
  })

  test.each([
    ['the measured gas', 159_999n, 159_999n],
    ['the highest gas of its transfer if more was measured', 160_001n, 160_000n],
    ['the highest gas of its transfer if none is known', null, 160_000n],
  ])(
    'the replacement for the stuck transaction of one payment has as gas limit %s, and keeps the stored contract code of the payer',
    async (_name, gasLimit, gas) => {
      const payment = await onePayment()
      const stuck = await newStuck([payment.id], { gasLimit, payerCode: CODE })
      await reprice(chain, account, { stuck, payments: [payment] })
      expect(sentCalls()[0]!.gas).toBe(gas)
      expect((await stored())[1]).toMatchObject({ payment_id: payment.id, payer_code: CODE })
    },
  )

  test('the replacement of a stuck transaction is an empty transfer if no payment of the transaction still waits', async () => {
    const payment = { ...(await onePayment()), state: 'failed' } as Payment
    const stuck = await newStuck([payment.id])
    await reprice(chain, account, { stuck, payments: [payment] })
    const to = account.address.toLowerCase() as Hex
    expect(sentCalls()[0]).toMatchObject({ nonce: 7, to, gas: 21_000n })
    expect((await stored())[1].payment_id).toBeNull()
  })

  test('the replacement for the stuck transaction of a payment group contains only the payments that still wait, with a matching gas limit', async () => {
    const [one, two, three] = (await payments(3)) as [Payment, Payment, Payment]
    const stuck = await newStuck([one.id, two.id, three.id])
    const gone = { ...two, state: 'settled' } as Payment
    await reprice(chain, account, { stuck, payments: [one, gone, three] })
    expect(sentCalls()[0]).toMatchObject({ to: GROUP, nonce: 7, gas: 240_000n })
    const next = { ...stuck, hash: keccak256(sent[0]!), maxFeeWei: 11n * GWEI }
    await reprice(chain, account, { stuck: next, payments: [one, gone] })
    expect(sentCalls()[1]).toMatchObject({ nonce: 7, gas: 160_000n })
  })
})
