/**
 * Tests how the service compares stored settlements with the chain and corrects them, one check of the chain at a time.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import type { Hex } from 'viem'
import { newCheckId } from '../../../../shared/ids.ts'
import { createCheck, findCheck } from '../../../../sql/till/payments/paymentChecks.ts'
import { newReconciler, type Reconciler } from '../../../../workers/till/watch/reconcile.ts'
import { type HandTill, startHandTill } from '../../../support/till/handTill.ts'
import { pay } from '../../../support/till/till.ts'
import { newClaim, queuedPayments, row, settle, WALLET } from '../../../support/till/tillRows.ts'
import '../../../support/long.ts'

let till: HandTill
let memory: Reconciler
beforeAll(async () => {
  till = await startHandTill()
})
beforeEach(async () => {
  await till.reset()
  memory = newReconciler()
})
afterAll(() => till[Symbol.asyncDispose]())

const look = (times?: number) => till.reconcile(memory, times)

/** Sends a payment, and records the settlement of the payment in the block of its transaction. */
async function sendAndSettle(): Promise<{ id: string; txHash: Hex }> {
  const payment = await till.send()
  await settle(till.pool, payment.id, payment.txHash)
  const { blockNumber, blockHash } = await till.client.waitForTransactionReceipt({
    hash: payment.txHash,
  })
  await till.pool.query('update payments set block_number = $2, block_hash = $3 where id = $1', [
    payment.id,
    blockNumber,
    blockHash,
  ])
  return payment
}
const stateOf = async (id: string) => (await till.payment(id)).state
const reorganise = () => till.client.request({ method: 'anvil_reorg', params: [1, []] } as never)
const transactionOf = (hash: Hex) => row(till.pool, 'chain_transactions', hash)

describe('if the chain node cannot send a receipt, the hash of the block decides whether the settlement stays', () => {
  const tooLarge = (large: Hex) =>
    till.proxy.errors.set('eth_getTransactionReceipt', ([hash]) =>
      hash === large ? { code: -32003, message: 'response too large' } : null,
    )

  test('a settlement in a final block with an unchanged hash becomes final, even if the chain node cannot send the receipt', async () => {
    const large = await sendAndSettle()
    const other = await sendAndSettle()
    await till.client.mine({ blocks: 100, interval: 0 })
    tooLarge(large.txHash)
    await look(2)
    const payments = await Promise.all([large, other].map(({ id }) => till.payment(id)))
    expect(payments.map(({ state, finalizedAt }) => [state, finalizedAt !== null])).toEqual([
      ['settled', true],
      ['settled', true],
    ])
    expect(memory.suspicious).toBe(false)
    till.proxy.errors.clear()
  })

  test('if the block of a settlement was replaced, the settlement does not become final while the chain node cannot send the receipt', async () => {
    const large = await sendAndSettle()
    await till.pool.query('update payments set block_hash = $2 where id = $1', [
      large.id,
      `0x${'ab'.repeat(32)}`,
    ])
    await till.client.mine({ blocks: 100, interval: 0 })
    tooLarge(large.txHash)
    await look(3)
    const payment = await till.payment(large.id)
    expect([payment.state, payment.finalizedAt, memory.suspicious]).toEqual(['settled', null, true])
    till.proxy.errors.clear()
    await look(2)
    expect((await till.payment(large.id)).finalizedAt).not.toBeNull()
    expect(memory.suspicious).toBe(false)
  })

  test('a check of the chain continues after a step that fails each time, and reports the error of this step', async () => {
    till.proxy.errors.set('eth_getBlockByNumber', ([tag]) =>
      tag === 'finalized' ? { code: -32000, message: 'finalized block not found' } : null,
    )
    const { id } = await sendAndSettle()
    const gaps = memory.gapsBefore
    await expect(look()).rejects.toThrow('finalized block not found')
    expect(memory.gapsBefore).not.toBe(gaps)
    expect(await stateOf(id)).toBe('settled')
    till.proxy.errors.clear()
  })
})

describe('a settlement that the chain no longer shows is undone after two checks', () => {
  test('a settlement is undone if two checks miss its transaction, even if its block reappeared between the two checks', async () => {
    await look()
    const { id } = await sendAndSettle()
    await till.client.setAutomine(false)
    await reorganise()
    await look()
    expect(await stateOf(id)).toBe('settled')
    await look()
    expect(await stateOf(id)).toBe('verified')
    expect(till.chain.head.hash).toBe((await till.client.getBlock()).hash)
  })

  test('a settlement is never undone if every second check finds its transaction', async () => {
    const { id } = await sendAndSettle()
    for (let n = 0; n < 3; n++) {
      memory.suspicious = true
      till.proxy.answers.set('eth_getTransactionReceipt', () => null)
      await look()
      till.proxy.answers.clear()
      await look()
    }
    expect(await stateOf(id)).toBe('settled')
  })

  test('a settlement is undone if its transaction failed in its new block', async () => {
    const { id } = await sendAndSettle()
    till.proxy.edits.set('eth_getTransactionReceipt', (receipt) => ({ ...receipt, status: '0x0' }))
    await look(2)
    expect(await stateOf(id)).toBe('verified')
  })

  test('the first check of a process undoes a lost settlement, even if the chain still has a later settlement', async () => {
    const { id, txHash } = await sendAndSettle()
    const later = await sendAndSettle()
    till.proxy.answers.set('eth_getTransactionReceipt', ([hash]) =>
      hash === txHash ? null : undefined,
    )
    await look(2)
    expect([await stateOf(id), await stateOf(later.id)]).toEqual(['verified', 'settled'])
  })

  test('a settlement is undone if the chain has become so short that it ends before the block of the settlement', async () => {
    const { id } = await sendAndSettle()
    await look()
    await till.client.setAutomine(false)
    await till.client.request({ method: 'anvil_rollback', params: [1] } as never)
    await look(2)
    expect(await stateOf(id)).toBe('verified')
    expect(till.chain.head.number).toBe(await till.client.getBlockNumber({ cacheTime: 0 }))
  })

  test('a settlement is not undone if its block is missing only because a chain node lags behind', async () => {
    await look()
    const { id } = await sendAndSettle()
    till.proxy.answers.set('eth_getTransactionReceipt', () => null)
    till.proxy.answers.set('eth_getBlockByNumber', () => null)
    await look(3)
    expect(await stateOf(id)).toBe('settled')
  })
})

test('a settlement that moved to another block becomes final in the other block', async () => {
  const { id } = await sendAndSettle()
  await look()
  const stored = (await row(till.pool, 'payments', id)).block_hash
  const store = (hash: string) =>
    till.pool.query('update payments set block_hash = $2 where id = $1', [id, hash])
  await store(stored.replace(/.{4}$/, 'dead'))
  await look()
  expect(await row(till.pool, 'payments', id)).toMatchObject({
    block_hash: stored,
    finalized_at: null,
  })
  await till.client.mine({ blocks: 200 })
  till.proxy.edits.set('eth_getTransactionReceipt', (receipt) => ({ ...receipt, status: '0x0' }))
  await look()
  expect((await row(till.pool, 'payments', id)).finalized_at).toBeNull()
  till.proxy.edits.clear()
  await look()
  expect((await row(till.pool, 'payments', id)).finalized_at).not.toBeNull()
})

test('a settlement with a wrong block hash becomes final only after one more check has corrected the hash', async () => {
  const { id } = await sendAndSettle()
  await sendAndSettle()
  await look()
  const { block_hash } = await row(till.pool, 'payments', id)
  await till.pool.query(`update payments set block_hash = '0xdead' where id = $1`, [id])
  await till.client.mine({ blocks: 200 })
  // The watch for reorganisations examines only the ten newest blocks with settlements, so the settlement with the
  // wrong hash must be older than these.
  for (let n = 0; n < 10; n++) await sendAndSettle()
  await look()
  expect((await row(till.pool, 'payments', id)).finalized_at).toBeNull()
  await look()
  const { finalized_at, block_hash: final } = await row(till.pool, 'payments', id)
  expect([final, finalized_at === null]).toEqual([block_hash, false])
})

test('if the number of the chain’s newest block becomes lower, the service accepts it after eight consecutive checks', async () => {
  const { head } = till.chain
  await look(7)
  till.chain.head = { ...head, number: head.number + 100n }
  await look(1)
  till.chain.head = head
  await look(1)
  till.chain.head = { ...head, number: head.number + 100n }
  await look(7)
  expect(till.chain.head.number).toBe(head.number + 100n)
  await look()
  expect(till.chain.head.number).toBe(head.number)
})

test('the first check of the chain in a process queues payments that have no job, and deletes stale payment checks', async () => {
  const id = await till.claim(await pay())
  const check = newCheckId()
  await createCheck(till.pool, {
    id: check,
    claim: newClaim(till.projectId),
    claims: true,
    reasonWithoutCode: null,
  })
  await till.pool.query(`update payment_checks set created_at = created_at - interval '2 hours'`)
  await look()
  expect(await queuedPayments(till.pool)).toEqual([id])
  expect(await findCheck(till.pool, check)).toBeNull()
})

describe('the service fills a gap in the nonces of a gas wallet, so that later transactions can be mined', () => {
  const next = () =>
    till.client.getTransactionCount({ address: WALLET.address, blockTag: 'pending' })

  test('if two checks of the chain find a gap at an unused nonce of the gas wallet, the service fills the gap', async () => {
    await till.pool.query('update gas_wallets set next_nonce = next_nonce + 1')
    const before = await next()
    await look()
    expect(await next()).toBe(before)
    await look()
    expect(await next()).toBe(before + 1)
  })

  test('if a reorganisation removed the transaction of a nonce, the same transaction is sent again to fill the gap', async () => {
    const { txHash } = await sendAndSettle()
    await till.client.setAutomine(false)
    await reorganise()
    memory.suspicious = false
    await till.pool.query(`update payments set finalized_at = now()`)
    await look(2)
    expect((await transactionOf(txHash)).state).toBe('open')
    const { rows } = await till.pool.query('select hash from chain_transactions')
    expect(rows).toEqual([{ hash: txHash }])
  })
})
