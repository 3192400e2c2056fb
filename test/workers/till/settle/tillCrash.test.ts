/**
 * Kills a worker process at every step of the settlement of a payment. Another process must finish the settlement
 * exactly once.
 */
import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
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
import '../../../support/long.ts'

let till: TestTill
let seller: Agent
let proxy: RpcProxy
const workers: Bun.Subprocess[] = []

beforeAll(async () => {
  till = await startTestTill({
    worker: false,
    env: { SETTLEMENT_WAIT_MS: '20000' },
    proxy: (rpcUrl) => {
      proxy = startRpcProxy(rpcUrl)
      return proxy.url
    },
  })
  seller = await till.newSeller({ webhookUrl: 'http://127.0.0.1:9/hook' })
})
afterEach(async () => {
  proxy.hold = null
  for (const worker of workers.splice(0)) {
    worker.kill('SIGKILL')
    await worker.exited
  }
})
afterAll(async () => {
  await till[Symbol.asyncDispose]()
  await proxy.stop()
})

/** Starts a worker as an operator does, and resolves when the worker is ready. */
async function startWorkerProcess(rpcUrl = proxy.url): Promise<Bun.Subprocess> {
  const { promise: ready, resolve } = Promise.withResolvers<void>()
  const child = Bun.spawn(
    [process.execPath, join(import.meta.dir, '../../../../workers/main.ts'), '--pool', 'payments'],
    {
      env: {
        ...process.env,
        DATABASE_URL: till.service.database.url,
        DATA_DIR: till.service.config.dataDir,
        RPC_URL: rpcUrl,
        LOG_LEVEL: 'silent',
      },
      stdio: ['ignore', 'ignore', 'inherit'],
      ipc: () => resolve(),
    },
  )
  workers.push(child)
  await ready
  return child
}

const sent = () => till.client.getTransactionCount({ address: DEVNET_ACCOUNTS.gasWallet.address })

for (const { step, hold } of some([
  { step: 'before the simulation', hold: { method: 'eth_call', when: 'before' } },
  {
    step: 'between storing and sending',
    hold: { method: 'eth_sendRawTransaction', when: 'before' },
  },
  {
    step: 'between sending and the answer',
    hold: { method: 'eth_sendRawTransaction', when: 'after' },
  },
  {
    step: 'before the receipt is read',
    hold: { method: 'eth_getTransactionReceipt', when: 'before' },
  },
] as const)) {
  test(`a payment settles only once, even if the worker process is killed ${step}`, async () => {
    const before = await sent()
    const doomed = await startWorkerProcess()
    proxy.held = 0
    proxy.hold = hold
    const { header } = await pay()
    // The payer repeats the redeem request as long as the payment is pending.
    const answer = redeemToEnd(seller, header)
    await waitFor('the step', () => proxy.held > 0)
    doomed.kill('SIGKILL')
    await doomed.exited
    proxy.hold = null
    await startWorkerProcess()
    const { body } = await answer
    expect(body.ok).toBe(true)
    expect(await sent()).toBe(before + 1)
    const { body: record } = await seller.get(`/v0/payments/${body.paymentId}`)
    expect(record.deliveries).toHaveLength(1)
    expect((await redeem(seller, header)).body.reason).toBe('duplicate_settlement')
  })
}

testWhole(
  'two worker processes on the same wallets use every nonce once, and pay each payment once',
  async () => {
    const before = await sent()
    await Promise.all([startWorkerProcess(), startWorkerProcess()])
    const payments = await Promise.all(Array.from({ length: 120 }, () => pay()))
    const answers = await Promise.all(payments.map(({ header }) => redeem(seller, header)))
    expect(answers.filter(({ body }) => !body.ok).map(({ body }) => body.reason)).toEqual([])
    const { rows } = await till.service.database.pool.query(
      `select count(*)::int as transactions, count(distinct nonce)::int as nonces,
            count(*) filter (where state = 'mined' and succeeded)::int as paid
     from chain_transactions where nonce >= $1`,
      [before],
    )
    // Payments share settlement transactions, so the 120 payments need fewer than 120 transactions.
    const transactions = (await sent()) - before
    expect(transactions).toBeLessThan(120)
    expect(rows[0]).toEqual({ transactions, nonces: transactions, paid: transactions })
    const settlements = new Set(answers.map(({ body }) => `${body.txHash}:${body.logIndex}`))
    expect(settlements.size).toBe(120)
  },
)

test('if the API process stops during a redeem request, the response says that the payment is pending, and the payment still settles', async () => {
  await startWorkerProcess()
  await till.client.setAutomine(false)
  const { header } = await pay()
  const { startApi } = await import('../../../../api/http/server.ts')
  const { silentLog } = await import('../../../support/logs.ts')
  const { config, database } = till.service
  const other = startApi(config, database.url, silentLog)
  const answer = fetch(`http://127.0.0.1:${other.port}/v0/payments/redeem`, {
    method: 'POST',
    headers: { authorization: `Bearer ${seller.key}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      paymentHeader: header,
      resource: 'https://api.example.com/report',
      amount: '0.01',
    }),
  })
  await waitFor('the transaction', async () => {
    const { rows } = await database.pool.query(
      `select from chain_transactions where state = 'open' and sent_at is not null`,
    )
    return rows.length > 0
  })
  await other.stop()
  expect(await (await answer).json()).toMatchObject({ ok: false, reason: 'settlement_pending' })
  await till.client.setAutomine(true)
  await till.client.mine({ blocks: 1 })
  expect((await redeem(seller, header)).body.ok).toBe(true)
})
