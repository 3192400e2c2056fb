/**
 * Tests that no fault of the service or of its RPC node makes a payment fail. Every payment in this file must either
 * settle or stay pending.
 */
import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test'
import { DEVNET_ACCOUNTS } from '../../../../shared/till/devnetAccounts.ts'
import { some, testWhole } from '../../../support/database/extent.ts'
import type { Agent } from '../../../support/service.ts'
import { type RpcProxy, startRpcProxy } from '../../../support/till/rpcProxy.ts'
import {
  pay,
  redeem,
  redeemToEnd,
  startTestTill,
  type TestTill,
} from '../../../support/till/till.ts'
import { waitFor } from '../../../support/waitFor.ts'

let till: TestTill
let seller: Agent
let proxy: RpcProxy
const gasWallet = DEVNET_ACCOUNTS.gasWallet.address

beforeAll(async () => {
  till = await startTestTill({
    env: { SETTLEMENT_WAIT_MS: '700' },
    proxy: (rpcUrl) => {
      proxy = startRpcProxy(rpcUrl)
      return proxy.url
    },
  })
  seller = await till.newSeller()
})
afterEach(() => {
  proxy.fault = null
  proxy.errors.clear()
  proxy.answers.clear()
})
afterAll(async () => {
  await till[Symbol.asyncDispose]()
  await proxy.stop()
})

const record = async (id: string) => (await seller.get(`/v0/payments/${id}`)).body
const settled = (id: string) =>
  waitFor('the settlement', async () => {
    const payment = await record(id)
    expect(payment.status).not.toBe('failed')
    return payment.status === 'settled' ? payment : null
  })
const transfersOf = async () =>
  (await till.client.getTransactionCount({ address: gasWallet })) as number

/**
 * Redeems a payment during a fault of the RPC node, and ends the fault by calling `mend`. Expects exactly one
 * transaction on the chain, and exactly one redeem request that got access.
 */
async function outlives(mend: () => unknown): Promise<void> {
  const before = await transfersOf()
  const { header } = await pay()
  const first = await redeem(seller, header)
  expect(first.body).toMatchObject({ ok: false, stage: 'settle', reason: 'settlement_pending' })
  expect(first.body.requirement.error).toBe('settlement_pending')
  await mend()
  const { txHash } = await settled(first.body.paymentId)
  const second = await redeem(seller, header)
  expect(second.body).toMatchObject({ ok: true, txHash, paymentId: first.body.paymentId })
  expect((await redeem(seller, header)).body.reason).toBe('duplicate_settlement')
  expect(await transfersOf()).toBe(before + 1)
}

for (const [name, fault] of some([
  ['an RPC that answers 503', { status: 503 }],
  ['an RPC that answers 429', { status: 429 }],
  ['a slow RPC', { delayMs: 900 }],
] as const)) {
  test(`a payment settles exactly once after ${name} has ended`, async () => {
    proxy.fault = fault
    await outlives(() => {
      proxy.fault = null
    })
  })
}

testWhole(
  'if the chain node cannot simulate for a time, a payment still settles later',
  async () => {
    proxy.errors.set('eth_call', () => ({ code: -32000, message: 'header not found' }))
    await outlives(() => proxy.errors.clear())
  },
)

test('a payment settles even if the chain node reports an error for a transaction that the node accepted', async () => {
  proxy.errors.set('eth_sendRawTransaction', () => ({ code: 1, message: 'lost', after: true }))
  const { header } = await pay()
  expect((await redeemToEnd(seller, header)).body.ok).toBe(true)
})

testWhole(
  'if the chain node refuses transactions for a time, a payment still settles later',
  async () => {
    proxy.errors.set('eth_sendRawTransaction', () => ({ code: 1, message: 'internal' }))
    await outlives(() => proxy.errors.clear())
  },
)

testWhole(
  'if the chain node returns no receipts for a time, a payment still settles later',
  async () => {
    proxy.answers.set('eth_getTransactionReceipt', () => null)
    const { header } = await pay()
    const first = await redeem(seller, header)
    expect(first.body).toMatchObject({ ok: false, reason: 'settlement_pending' })
    proxy.answers.clear()
    await settled(first.body.paymentId)
  },
)

test('a payment is not refused if a chain node that lags behind reports that the payer has no money', async () => {
  // A chain node that lags behind answers a request for the block "latest" from an old state. But if a request states
  // the number of the newest block, the node answers that it does not have this block.
  proxy.errors.set('eth_call', ([, block]) =>
    block === 'latest'
      ? { code: 3, message: 'execution reverted: ERC20: transfer amount exceeds balance' }
      : { code: -32000, message: 'header not found' },
  )
  await outlives(() => proxy.errors.clear())
})

testWhole('if the gas wallet has no gas for a time, a payment still settles later', async () => {
  const balance = await till.client.getBalance({ address: gasWallet })
  await till.client.setBalance({ address: gasWallet, value: 1n })
  await outlives(() => till.client.setBalance({ address: gasWallet, value: balance }))
})

test('the service does not start with an RPC node of an unsupported chain', async () => {
  proxy.answers.set('eth_chainId', () => '0x1')
  await expect(till.startWorker()).rejects.toThrow(
    'RPC_URL: its chain id must be 8453 (base) or 84532 (base-sepolia), not 1',
  )
})

test('the service does not start with the publicly known private keys of the devnet if the chain is Base', async () => {
  proxy.answers.set('eth_chainId', () => '0x2105')
  await expect(till.startWorker()).rejects.toThrow('SETTLEMENT_KEYS: must be keys of your own')
})

testWhole(
  'a worker that was started without a reachable RPC node works as soon as the node is available',
  async () => {
    proxy.fault = { status: 503 }
    const worker = await till.startWorker()
    expect(worker.till.view.network).toBeNull()
    const ready = () => fetch(`${till.service.url}/readyz`)
    await waitFor('/readyz to report the outage', async () => (await ready()).status === 503)
    proxy.fault = null
    await waitFor('the worker to connect', () => worker.till.view.network !== null)
    await waitFor('/readyz to report the recovery', async () => (await ready()).status === 200)
    const { header } = await pay()
    expect((await redeemToEnd(seller, header)).body.ok).toBe(true)
    await worker.stop()
  },
)
