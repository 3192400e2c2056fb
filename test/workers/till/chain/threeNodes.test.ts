/**
 * Tests payments with three chain nodes, of which one is silent, slow, behind or on another chain, or gives false
 * answers to one RPC method.
 */
import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Hex, numberToHex, pad, toHex } from 'viem'
import { type Devnet, startDevnet } from '../../../../workers/devnet/devnet.ts'
import { AUTHORIZATION_USED } from '../../../../workers/till/chain/transfer.ts'
import { shortestMs } from '../../../support/process/shortestMs.ts'
import type { Agent } from '../../../support/service.ts'
import { type RpcProxy, startRpcProxy } from '../../../support/till/rpcProxy.ts'
import {
  pay,
  payTo,
  redeem,
  redeemToEnd,
  SEPOLIA,
  startTestTill,
  type TestTill,
} from '../../../support/till/till.ts'
import { inPool } from '../../../support/till/waitingPayments.ts'
import { waitFor } from '../../../support/waitFor.ts'
import '../../../support/long.ts'

/**
 * Sets the maximum number of milliseconds until a payment gives access to the paid resource while one of three nodes is
 * faulty.
 */
const GRANT_MAX_MS = 5_000
const TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef'

let till: TestTill
let seller: Agent
let bad: RpcProxy
/** Holds a second anvil chain with the same contracts and another history. */
let other: Devnet
let folder: string
const observed: string[] = []

beforeAll(async () => {
  till = await startTestTill({ worker: false, env: { SETTLEMENT_WAIT_MS: '3000' } })
  folder = mkdtempSync(join(tmpdir(), 'purser-other-'))
  const log = { info() {}, warn() {} }
  other = await startDevnet({ port: 0, stateFile: join(folder, 'state'), log })
  bad = startRpcProxy(till.devnet.rpcUrl)
  const second = `${till.devnet.rpcUrl}/`
  await till.startWorker({
    rpcUrls: [bad.url, till.devnet.rpcUrl, second],
    observe: (name, outcome) => void observed.push(`${name} ${outcome}`),
  })
  seller = await till.newSeller()
})
afterEach(() => {
  bad.fault = null
  for (const changes of [bad.errors, bad.answers, bad.edits]) changes.clear()
  observed.length = 0
})
afterAll(async () => {
  await till[Symbol.asyncDispose]()
  await bad.stop()
  await other.stop()
  rmSync(folder, { recursive: true, force: true })
})

const HEIGHT = 10_000_000
const FAULTS: Record<string, () => void> = {
  silent: () => {
    bad.fault = { delayMs: 60_000 }
  },
  slow: () => {
    bad.fault = { delayMs: 1_000 }
  },
  'refusing with 503': () => {
    bad.fault = { status: 503 }
  },
  'far ahead': () =>
    void bad.edits.set('eth_getBlockByNumber', (block, [tag]) =>
      tag === 'latest' ? { ...block, number: numberToHex(HEIGHT) } : block,
    ),
  'jumping back': () =>
    void bad.edits.set('eth_getBlockByNumber', (block, [tag]) =>
      tag === 'latest' ? { ...block, number: '0x1' } : block,
    ),
  'without receipts': () => void bad.answers.set('eth_getTransactionReceipt', () => null),
  'lying in receipts': () =>
    void bad.edits.set(
      'eth_getTransactionReceipt',
      (receipt) => receipt && { ...receipt, status: '0x0', logs: [] },
    ),
  'lying in block hashes': () =>
    void bad.edits.set(
      'eth_getBlockByNumber',
      (block) => block && { ...block, hash: `0x${'ab'.repeat(32)}` },
    ),
  'lying in calls': () => void bad.answers.set('eth_call', () => pad('0x1')),
  'lying in counts': () => void bad.answers.set('eth_getTransactionCount', () => '0xffff'),
  'lying in balances': () => void bad.answers.set('eth_getBalance', () => '0x0'),
  'lying in fees': () =>
    void bad.answers.set('eth_maxPriorityFeePerGas', () => numberToHex(10n ** 18n)),
  'lying in code': () => void bad.answers.set('eth_getCode', () => '0x6001'),
  'keeping transactions for itself': () =>
    void bad.answers.set('eth_sendRawTransaction', () => `0x${'cd'.repeat(32)}`),
  'refusing calls': () =>
    void bad.errors.set('eth_call', () => ({ code: 3, message: 'execution reverted' })),
  // After a 429 response the service sends the chain node no requests for some time, so the test does not wait for a
  // changed response of this node.
  'refusing with 429': () => {
    bad.fault = { status: 429 }
  },
}

/** Counts the responses that the faulty chain node has changed. */
function tellHits(): { hits: number } {
  const told = { hits: 0 }
  for (const changes of [bad.errors, bad.answers, bad.edits] as Map<string, any>[]) {
    for (const [method, change] of changes) {
      changes.set(method, (...given: unknown[]) => {
        told.hits++
        return change(...given)
      })
    }
  }
  return told
}

test.each(Object.entries(FAULTS))('payments settle while one node is %s', async (_, breakIt) => {
  breakIt()
  const told = tellHits()
  // The service requests the fee tip only from time to time, so the test waits for this request. All other values are
  // requested for each payment.
  if (bad.answers.has('eth_maxPriorityFeePerGas')) {
    await waitFor('the fees to be read', () => told.hits > 0)
  }
  let [txHash, nonce] = ['0x', '0x'] as Hex[]
  const grantMs = await shortestMs(GRANT_MAX_MS, async () => {
    const startedMs = performance.now()
    const { authorization, header } = await pay()
    const answer = await redeemToEnd(seller, header)
    expect(answer.body).toMatchObject({ ok: true })
    txHash = answer.body.txHash
    nonce = authorization.nonce
    return performance.now() - startedMs
  })
  expect(grantMs).toBeLessThan(GRANT_MAX_MS)
  // The test waits until the faulty chain node has changed at least one response, because the two other nodes can agree
  // before the response of the faulty node arrives.
  if (bad.fault === null) await waitFor('the faulty node to change an answer', () => told.hits > 0)
  // The payment gave access, so the test expects that the chain contains its transfer.
  const receipt = await till.client.getTransactionReceipt({ hash: txHash! })
  expect(receipt.status).toBe('success')
  expect(receipt.logs.some(({ topics }) => topics[2] === nonce)).toBe(true)
})

test('a transaction receipt that a single chain node invents does not give a payer access to the resource', async () => {
  await till.client.setAutomine(false)
  try {
    const { authorization, header } = await pay()
    const { from, nonce, value } = authorization
    bad.answers.set('eth_getTransactionReceipt', ([transactionHash]) => ({
      transactionHash,
      status: '0x1',
      blockNumber: '0x1',
      blockHash: `0x${'ee'.repeat(32)}`,
      gasUsed: '0x1',
      logs: [
        {
          address: SEPOLIA.usdcAddress,
          topics: [AUTHORIZATION_USED, pad(from), nonce],
          data: '0x',
          logIndex: '0x0',
        },
        {
          address: SEPOLIA.usdcAddress,
          topics: [TRANSFER, pad(from), pad(payTo)],
          data: pad(toHex(value)),
          logIndex: '0x1',
        },
      ],
    }))
    bad.answers.set('eth_getTransactionCount', () => '0xffff')
    const answer = await redeem(seller, header)
    expect(answer.body).toMatchObject({ ok: false, reason: 'settlement_pending' })
    await inPool(till, answer.body.paymentId)
    await till.client.mine({ blocks: 1 })
    expect((await redeemToEnd(seller, header)).body.ok).toBe(true)
  } finally {
    await till.client.setAutomine(true)
  }
})

test('a chain node on another chain does not stop payments, and the service reports that the answers of the node differ', async () => {
  await using strange = await startTestTill({ worker: false })
  await strange.startWorker({
    rpcUrls: [other.rpcUrl, strange.devnet.rpcUrl, `${strange.devnet.rpcUrl}/`],
    observe: (name, outcome) => void observed.push(`${name} ${outcome}`),
  })
  const shop = await strange.newSeller()
  for (let sale = 0; sale < 3; sale++) {
    const { header } = await pay()
    const { body } = await redeemToEnd(shop, header)
    expect(body.ok).toBe(true)
    expect((await strange.client.getTransactionReceipt({ hash: body.txHash })).status).toBe(
      'success',
    )
  }
  const { host } = new URL(other.rpcUrl)
  await waitFor('the node to be named', () => observed.includes(`${host} differs`))
})

test('payments wait while fewer chain nodes than the quorum respond, and settle when a second node responds again', async () => {
  await using lone = await startTestTill({ worker: false, env: { SETTLEMENT_WAIT_MS: '500' } })
  const [one, two] = [startRpcProxy(lone.devnet.rpcUrl), startRpcProxy(lone.devnet.rpcUrl)]
  await lone.startWorker({ rpcUrls: [lone.devnet.rpcUrl, one.url, two.url] })
  const shop = await lone.newSeller()
  one.fault = { status: 503 }
  two.fault = { status: 503 }
  const { header } = await pay()
  expect((await redeem(shop, header)).body).toMatchObject({
    ok: false,
    reason: 'settlement_pending',
  })
  await waitFor('the trouble to be on record', async () => {
    const { rows } = await lone.service.database.pool.query('select rpc_error from chain_status')
    return /fewer than 2 of 3 RPCs agree/.test(rows[0]?.rpc_error ?? '')
  })
  two.fault = null
  expect((await redeemToEnd(shop, header)).body.ok).toBe(true)
  await one.stop()
  await two.stop()
})
