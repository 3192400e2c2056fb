/**
 * Kills a worker process at every step of the settlement of a group of payments. Another process must finish the group,
 * and must make each payment only once.
 */
import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { some, testWhole } from '../../../support/database/extent.ts'
import type { Agent } from '../../../support/service.ts'
import { type RpcProxy, startRpcProxy } from '../../../support/till/rpcProxy.ts'
import { redeem, startTestTill, type TestTill } from '../../../support/till/till.ts'
import {
  claimAll,
  inPool,
  reaches,
  transactionsOf,
  type WaitingPayment,
} from '../../../support/till/waitingPayments.ts'
import { waitFor } from '../../../support/waitFor.ts'
import '../../../support/long.ts'

let till: TestTill
let seller: Agent
let proxy: RpcProxy
const workers: Bun.Subprocess[] = []

beforeAll(async () => {
  till = await startTestTill({
    worker: false,
    env: { SETTLEMENT_WAIT_MS: '50' },
    proxy: (rpcUrl) => {
      proxy = startRpcProxy(rpcUrl)
      return proxy.url
    },
  })
  seller = await till.newSeller({ webhookUrl: 'http://127.0.0.1:9/hook' })
  await (await till.startWorker()).stop()
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
async function startWorkerProcess(): Promise<Bun.Subprocess> {
  const { promise: ready, resolve } = Promise.withResolvers<void>()
  const child = Bun.spawn(
    [process.execPath, join(import.meta.dir, '../../../../workers/main.ts'), '--pool', 'payments'],
    {
      env: {
        ...process.env,
        DATABASE_URL: till.service.database.url,
        DATA_DIR: till.service.config.dataDir,
        RPC_URL: proxy.url,
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

for (const { step, hold } of some(
  [
    { step: 'before the trial of the group', hold: { method: 'eth_call', when: 'before' } },
    {
      step: 'between storing and sending',
      hold: { method: 'eth_sendRawTransaction', when: 'before' },
    },
    {
      step: 'between sending and the answer',
      hold: { method: 'eth_sendRawTransaction', when: 'after' },
    },
  ] as const,
  0,
)) {
  test(`a group of payments (one shared transaction) settles once, even if its worker is killed ${step}`, async () => {
    const payments = await claimAll(seller, 6)
    proxy.held = 0
    proxy.hold = hold
    const doomed = await startWorkerProcess()
    await waitFor('the step', () => proxy.held > 0)
    await replace(doomed)
    const records = await Promise.all(payments.map(({ id }) => reaches(seller, id, 'settled')))
    await expectOnce(payments, records)
  })
}

test('a group of payments (one shared transaction) settles once, even if its worker is killed before it reads the receipt', async () => {
  await till.client.setAutomine(false)
  const payments = await claimAll(seller, 6)
  const doomed = await startWorkerProcess()
  await inPool(till, payments[0]!.id)
  proxy.held = 0
  proxy.hold = { method: 'eth_getTransactionReceipt', when: 'before' }
  await till.client.mine({ blocks: 1 })
  await till.client.setAutomine(true)
  await waitFor('the step', () => proxy.held > 0)
  await replace(doomed)
  const records = await Promise.all(payments.map(({ id }) => reaches(seller, id, 'settled')))
  await expectOnce(payments, records)
})

async function replace(doomed: Bun.Subprocess): Promise<void> {
  doomed.kill('SIGKILL')
  await doomed.exited
  proxy.hold = null
  await startWorkerProcess()
}

/**
 * Expects that one shared transaction settled all payments of the group, and that each payment is announced once and
 * gives access once.
 */
async function expectOnce(payments: readonly WaitingPayment[], records: readonly any[]) {
  expect(await transactionsOf(till, payments)).toEqual([
    { hash: records[0].txHash, members: payments.length, state: 'mined' },
  ])
  expect(new Set(records.map(({ txHash }) => txHash)).size).toBe(1)
  for (const record of records) expect(record.deliveries).toHaveLength(1)
  for (const { header } of payments) {
    expect((await redeem(seller, header)).body.ok).toBe(true)
    expect((await redeem(seller, header)).body.reason).toBe('duplicate_settlement')
  }
}

testWhole(
  'two worker processes divide the waiting payments, and pay each payment once',
  async () => {
    const payments = await claimAll(seller, 150)
    await Promise.all([startWorkerProcess(), startWorkerProcess()])
    const records = await Promise.all(payments.map(({ id }) => reaches(seller, id, 'settled')))
    const groups = await transactionsOf(till, payments)
    expect(groups.every(({ state }) => state === 'mined')).toBe(true)
    expect(groups.reduce((sum, { members }) => sum + members, 0)).toBe(150)
    const transfers = new Set(records.map(({ txHash, logIndex }) => `${txHash}:${logIndex}`))
    expect(transfers.size).toBe(150)
  },
)
