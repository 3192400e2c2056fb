/** Tests when a payment that could not be sent fails, and when it waits for another attempt. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { RpcTrouble } from '../../../../workers/till/chain/rpc.ts'
import {
  fail,
  judgeRefusal,
  orPostpone,
  postpone,
  settleExpired,
} from '../../../../workers/till/settle/verdict.ts'
import type { ChainRefusal } from '../../../../workers/till/trial/simulation.ts'
import { type HandTill, startHandTill } from '../../../support/till/handTill.ts'
import { newPayer, pay } from '../../../support/till/till.ts'
import { newTransaction, row } from '../../../support/till/tillRows.ts'

let till: HandTill
beforeAll(async () => {
  till = await startHandTill()
})
afterEach(() => till.proxy.errors.clear())
afterAll(() => till[Symbol.asyncDispose]())

const stored = (id: string) => row(till.pool, 'payments', id)
const claimed = async () => till.claim(await pay())
const poor = async () => till.claim(await pay({}, { account: await newPayer(till.client, 1n) }))
const judge = async (id: string, refusal: ChainRefusal) =>
  judgeRefusal(till.chain, await till.payment(id), refusal)

/** Holds the selector of `authorizationState(address,bytes32)` (EIP-3009). */
const AUTHORIZATION_STATE = '0xe94a0102'
const NO_MONEY: ChainRefusal = {
  kind: 'final',
  reason: 'insufficient_funds',
  detail: 'ERC20: transfer amount exceeds balance',
}

describe('a payment that must wait for its settlement is tried again at growing intervals', () => {
  test('a payment that must wait for settlement waits twice as long after each attempt, and at most five seconds', async () => {
    const id = await claimed()
    const outside: unknown[] = []
    for (const [troubles, delayMs] of [
      [0, 250],
      [1, 500],
      [2, 1_000],
      [3, 2_000],
      [4, 4_000],
      [5, 5_000],
      [12, 5_000],
      [2_000, 5_000],
    ] as const) {
      await till.pool.query('update payments set trouble_count = $2 where id = $1', [id, troubles])
      const startMs = Date.now()
      await postpone(till.chain, [await till.payment(id)], 'the node is away')
      const endMs = Date.now()
      const dueMs = (await stored(id)).settle_after.getTime() - delayMs
      if (dueMs < startMs || dueMs > endMs) outside.push({ troubles, dueMs, startMs, endMs })
    }
    expect(outside).toEqual([])
  })

  test('a payment that must wait for settlement stays in the state verified and stores the reason of the last failure', async () => {
    const id = await claimed()
    await postpone(till.chain, [await till.payment(id)], 'the node is away')
    expect(await stored(id)).toMatchObject({
      state: 'verified',
      trouble: 'the node is away',
      trouble_count: 1,
    })
  })

  test('a payment must wait if the chain node gives no answer, and any other error is thrown to the caller', async () => {
    const id = await claimed()
    const payment = await till.payment(id)
    const work = (error: Error) => () => Promise.reject(error)
    await orPostpone(till.chain, payment, work(new RpcTrouble('timed out')))
    expect(await stored(id)).toMatchObject({ state: 'verified', trouble: 'timed out' })
    await expect(orPostpone(till.chain, payment, work(new Error('a bug')))).rejects.toThrow('a bug')
  })
})

describe('a payment that the chain refuses fails only if the refusal is certain', () => {
  test('a payment that the chain refuses fails if the newest block confirms the refusal', async () => {
    const id = await poor()
    await judge(id, NO_MONEY)
    expect(await stored(id)).toMatchObject({
      state: 'failed',
      failure_reason: 'insufficient_funds',
    })
  })

  test('a payment that the chain refuses waits if the newest block does not confirm the refusal', async () => {
    const id = await claimed()
    await judge(id, NO_MONEY)
    expect(await stored(id)).toMatchObject({ state: 'verified', trouble: NO_MONEY.detail })
  })

  test('if the simulations of a contract wallet’s payment contradict each other, the payment gets a separate transaction, and fails after twenty contradictions', async () => {
    const id = await claimed()
    const again = async () =>
      judgeRefusal(till.chain, await till.payment(id), NO_MONEY, { isContract: true })
    await again()
    const { goesAlone, contradictionCount } = await till.payment(id)
    expect([goesAlone, contradictionCount]).toEqual([true, 1])
    await till.pool.query('update payments set contradiction_count = 19 where id = $1', [id])
    await again()
    expect(await stored(id)).toMatchObject({ state: 'verified', contradiction_count: 20 })
    await again()
    expect(await stored(id)).toMatchObject({
      state: 'failed',
      failure_reason: 'invalid_transaction_state',
      failure_detail: expect.stringContaining(NO_MONEY.detail),
    })
  })

  test('a payment of an ordinary account waits after each refusal that the newest block does not confirm, because only a node that lags behind causes this', async () => {
    const id = await claimed()
    await till.pool.query('update payments set contradiction_count = 20 where id = $1', [id])
    await judge(id, NO_MONEY)
    expect(await stored(id)).toMatchObject({ state: 'verified', goes_alone: false })
  })

  test('a refusal does not end a payment if another job run has already sent the payment’s transaction', async () => {
    const id = await poor()
    const payment = await till.payment(id)
    // This gas wallet signs no other transaction, so its nonces have no gap.
    const wallet = { chainId: till.chain.network.chainId, address: payment.payer }
    await newTransaction(till.pool, id, wallet)
    await judgeRefusal(till.chain, payment, NO_MONEY)
    expect((await stored(id)).state).toBe('verified')
  })

  test.each(['early', 'expired'] as const)(
    'a payment waits if its settlement is refused with the reason %s',
    async (kind) => {
      const id = await poor()
      await judge(id, { ...NO_MONEY, kind })
      expect(await stored(id)).toMatchObject({ state: 'verified', trouble: NO_MONEY.detail })
    },
  )

  test('a payment of a suspended payer fails without a request to the chain', async () => {
    const id = await claimed()
    till.proxy.errors.set('eth_call', () => ({ code: -32000, message: 'no calls' }))
    await judge(id, {
      kind: 'suspended',
      reason: 'smart_wallet_suspended' as never,
      detail: 'wait',
    })
    expect((await stored(id)).state).toBe('failed')
  })

  test('if a payment is refused because its authorization was used, it is settled by the transaction that used the authorization', async () => {
    const { id, txHash } = await till.send()
    await till.client.waitForTransactionReceipt({ hash: txHash })
    await judge(id, { ...NO_MONEY, kind: 'used' })
    expect(await stored(id)).toMatchObject({ state: 'settled', tx_hash: txHash })
  })

  test('if the payer was blacklisted only after the transfer, the payment is settled', async () => {
    const { id, txHash } = await till.send()
    await till.client.waitForTransactionReceipt({ hash: txHash })
    await till.look()
    const detail = 'Blacklistable: account is blacklisted'
    till.proxy.errors.set('eth_call', ([{ data }]) =>
      data.startsWith(AUTHORIZATION_STATE)
        ? null
        : { code: 3, message: `execution reverted: ${detail}` },
    )
    await judge(id, { ...NO_MONEY, detail })
    expect(await stored(id)).toMatchObject({ state: 'settled', tx_hash: txHash })
  })
})

describe('a payment whose authorization has expired is settled if the authorization was used in time, and otherwise fails', () => {
  test('a payment with an expired authorization fails if no transaction used the authorization', async () => {
    const id = await claimed()
    await settleExpired(till.chain, await till.payment(id))
    expect(await stored(id)).toMatchObject({
      state: 'failed',
      failure_stage: 'verify',
      failure_reason: 'invalid_exact_evm_payload_authorization_valid_before',
    })
  })

  test('a payment with an expired authorization is settled if a transaction used the authorization in time', async () => {
    const { id, txHash } = await till.send()
    await till.client.waitForTransactionReceipt({ hash: txHash })
    await till.look()
    await settleExpired(till.chain, await till.payment(id))
    expect(await stored(id)).toMatchObject({ state: 'settled', tx_hash: txHash })
  })
})

test('the failure stage of a failed payment is `settle` if a transaction was sent for the payment, and otherwise `verify`', async () => {
  const before = await claimed()
  await fail(till.chain, await till.payment(before), NO_MONEY)
  const { id: after } = await till.send()
  await fail(till.chain, await till.payment(after), NO_MONEY, { cannotPay: true })
  const stages = [await stored(before), await stored(after)].map((one) => one.failure_stage)
  expect(stages).toEqual(['verify', 'settle'])
})
