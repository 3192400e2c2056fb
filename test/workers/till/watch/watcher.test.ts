/** Tests that a transaction receipt settles its payment only if the transaction transferred the USDC. */
import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test'
import { DEVNET_ACCOUNTS } from '../../../../shared/till/devnetAccounts.ts'
import type { Agent } from '../../../support/service.ts'
import { type RpcProxy, startRpcProxy } from '../../../support/till/rpcProxy.ts'
import { pay, redeem, startTestTill, type TestTill } from '../../../support/till/till.ts'
import { row } from '../../../support/till/tillRows.ts'
import { waitFor } from '../../../support/waitFor.ts'

let till: TestTill
let seller: Agent
let proxy: RpcProxy

beforeAll(async () => {
  till = await startTestTill({
    env: { SETTLEMENT_WAIT_MS: '400' },
    proxy: (rpcUrl) => {
      proxy = startRpcProxy(rpcUrl)
      return proxy.url
    },
  })
  seller = await till.newSeller()
})
afterEach(() => {
  for (const faults of [proxy.answers, proxy.edits, proxy.errors, proxy.delays]) faults.clear()
  return till.client.setAutomine(true)
})
afterAll(async () => {
  await till[Symbol.asyncDispose]()
  await proxy.stop()
})

const pool = () => till.service.database.pool
const statusOf = async (id: string) => (await seller.get(`/v0/payments/${id}`)).body.status
const sent = () => till.client.getTransactionCount({ address: DEVNET_ACCOUNTS.gasWallet.address })

for (const [name, edit] of [
  ['without the transfer', (receipt: any) => receipt && { ...receipt, logs: [] }],
  [
    'that failed, though it logged the transfer',
    (receipt: any) => receipt && { ...receipt, status: '0x0' },
  ],
] as const) {
  test(`a settlement transaction ${name} settles no payment`, async () => {
    proxy.edits.set('eth_getTransactionReceipt', edit)
    // The proxy hides the true Transfer events until the watcher (which polls the chain) has decided about the changed
    // transaction receipt.
    proxy.answers.set('eth_getLogs', () => [])
    const { body } = await redeem(seller, (await pay()).header)
    expect(body).toMatchObject({ ok: false, reason: 'settlement_pending' })
    await waitFor('the receipt to be judged', async () => {
      const { state, revert_count } = await row(pool(), 'payments', body.paymentId)
      expect(state).toBe('verified')
      return revert_count > 0
    })
    for (const faults of [proxy.edits, proxy.answers]) faults.clear()
    await waitFor('the settlement', async () => (await statusOf(body.paymentId)) === 'settled')
  })
}

test('while the chain node answers a check of the chain slowly, payments settle at the usual speed', async () => {
  const slowMs = 4_000
  let askedMs = 0
  proxy.delays.set('eth_getBlockByNumber', ([tag]) => {
    if (tag !== 'finalized') return 0
    askedMs = performance.now()
    return slowMs
  })
  await waitFor('the check', () => askedMs > 0)
  const checkMs = askedMs
  const { body } = await redeem(seller, (await pay()).header)
  await waitFor('the settlement', async () => (await statusOf(body.paymentId)) === 'settled')
  expect(performance.now() - checkMs).toBeLessThan(slowMs)
})

test('if the chain node shows a receipt late, the receipt settles the payment, and no second transaction is sent', async () => {
  const before = await sent()
  const asked = new Set<string>()
  proxy.edits.set('eth_getTransactionReceipt', (receipt, [hash]) => {
    if (asked.has(hash)) return receipt
    asked.add(hash)
    return null
  })
  const { header } = await pay()
  const { body } = await redeem(seller, header)
  const { paymentId } = body
  await waitFor('the settlement', async () => (await statusOf(paymentId)) === 'settled')
  expect(asked.size).toBeGreaterThan(0)
  const { rows } = await pool().query(
    'select state from chain_transactions where payment_id = $1',
    [paymentId],
  )
  expect(rows).toEqual([{ state: 'mined' }])
  expect((await row(pool(), 'payments', paymentId)).revert_count).toBe(0)
  expect(await sent()).toBe(before + 1)
})

test('a transaction counts as displaced (replaced) if another transaction used its nonce, and its payment then gets a new transaction', async () => {
  await till.client.setAutomine(false)
  const before = await sent()
  const { header } = await pay()
  const { body } = await redeem(seller, header)
  const first = await waitFor('the transaction', async () => {
    const { rows } = await pool().query(
      'select hash from chain_transactions where payment_id = $1 and sent_at is not null',
      [body.paymentId],
    )
    return rows[0]?.hash
  })
  await till.client.dropTransaction({ hash: first })
  await till.client.setNonce({
    address: DEVNET_ACCOUNTS.gasWallet.address,
    nonce: before + 1,
  })
  await till.client.setAutomine(true)
  await waitFor('the settlement', async () => (await statusOf(body.paymentId)) === 'settled')
  expect((await row(pool(), 'chain_transactions', first)).state).toBe('void')
  const { tx_hash } = await row(pool(), 'payments', body.paymentId)
  expect((await till.client.getTransaction({ hash: tx_hash })).nonce).toBe(before + 1)
  expect((await redeem(seller, header)).body.ok).toBe(true)
})

test('a transaction without a payment, which only fills a nonce, ends when a block contains the transaction', async () => {
  const { rows } = await pool().query(
    'update gas_wallets set next_nonce = next_nonce + 1 returning *',
  )
  const nonce = Number(rows[0].next_nonce) - 1
  const filled = await waitFor('the nonce to be filled', async () => {
    const found = await pool().query(
      `select state, payment_id from chain_transactions where nonce = $1 and state = 'mined'`,
      [nonce],
    )
    return found.rows[0]
  })
  expect(filled.payment_id).toBeNull()
})
