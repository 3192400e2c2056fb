/** Tests that an expired payment fails only if the chain proves that its authorization was not used. */
import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test'
import { DEVNET_ACCOUNTS } from '../../../../shared/till/devnetAccounts.ts'
import type { Agent } from '../../../support/service.ts'
import { type RpcProxy, startRpcProxy } from '../../../support/till/rpcProxy.ts'
import {
  pay,
  redeem,
  startTestTill,
  type TestTill,
  type TillWorker,
} from '../../../support/till/till.ts'
import { row } from '../../../support/till/tillRows.ts'
import { waitFor } from '../../../support/waitFor.ts'

let till: TestTill
let worker: TillWorker
let seller: Agent
let proxy: RpcProxy

beforeAll(async () => {
  till = await startTestTill({
    worker: false,
    env: { SETTLEMENT_WAIT_MS: '400' },
    proxy: (rpcUrl) => {
      proxy = startRpcProxy(rpcUrl)
      return proxy.url
    },
  })
  worker = await till.startWorker()
  seller = await till.newSeller()
})
afterEach(() => proxy.answers.clear())
afterAll(async () => {
  await till[Symbol.asyncDispose]()
  await proxy.stop()
})

test('a payment whose transfer is in a block does not fail, even if the chain node shows the receipt only after the expiry', async () => {
  const { pool } = till.service.database
  proxy.answers.set('eth_getTransactionReceipt', () => null)
  const { address } = DEVNET_ACCOUNTS.gasWallet
  const sent = await till.client.getTransactionCount({ address })
  const { header, authorization } = await pay()
  const { body } = await redeem(seller, header)
  expect(body).toMatchObject({ ok: false, reason: 'settlement_pending' })
  await waitFor('the transfer to be mined', async () => {
    return (await till.client.getTransactionCount({ address })) > sent
  })
  await till.client.increaseTime({ seconds: 120 })
  await till.client.mine({ blocks: 1 })
  await waitFor(
    'the worker to see the time',
    () => (worker.till.view.head?.timestamp ?? 0n) > authorization.validBefore,
  )
  const { trouble_count: before } = await row(pool, 'payments', body.paymentId)
  await waitFor('the job to run twice more', async () => {
    const payment = await row(pool, 'payments', body.paymentId)
    expect(payment.state).toBe('verified')
    return payment.trouble_count >= before + 2
  })
  proxy.answers.clear()
  await waitFor('the settlement', async () => {
    const { body: payment } = await seller.get(`/v0/payments/${body.paymentId}`)
    expect(payment.status).not.toBe('failed')
    return payment.status === 'settled'
  })
  expect((await redeem(seller, header)).body).toMatchObject({
    ok: true,
    paymentId: body.paymentId,
  })
})
