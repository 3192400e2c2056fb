/** Tests the outcome of a payment whose authorization is already used on the chain. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { examineUsed } from '../../../../workers/till/watch/usedAuthorization.ts'
import { type HandTill, startHandTill } from '../../../support/till/handTill.ts'
import { pay, payer } from '../../../support/till/till.ts'
import { newTransaction, row } from '../../../support/till/tillRows.ts'
import { broadcastPayment, cancelPayment, stranger } from '../../../support/till/tokenCalls.ts'
import '../../../support/long.ts'

let till: HandTill
beforeAll(async () => {
  till = await startHandTill()
})
afterEach(() => {
  till.proxy.errors.clear()
  till.proxy.answers.clear()
  till.proxy.edits.clear()
})
afterAll(() => till[Symbol.asyncDispose]())

const examine = async (id: string) => examineUsed(till.chain, await till.payment(id))
const used = async (payment: Awaited<ReturnType<typeof pay>>) =>
  till.client.waitForTransactionReceipt({ hash: await broadcastPayment(till.client, payment) })
const refusedBefore = (txHash: string) => ({
  state: 'failed',
  failureStage: 'verify',
  failureReason: 'invalid_exact_evm_nonce_already_used',
  failureDetail: `the authorization was used before, by ${txHash}`,
})

/** Makes the chain node forget the state of the chain in all blocks up to the given block. */
const forgetUpTo = (head: bigint) =>
  till.proxy.errors.set('eth_call', ([, block]) =>
    /^0x/.test(block) && BigInt(block) <= head
      ? { code: -32000, message: 'missing trie node' }
      : null,
  )
/**
 * Sets the time of the next block to a number of seconds after the present time and after the newest block. A time in
 * the past would set back the clock of the chain for all later tests.
 */
const blockIn = async (seconds: number) => {
  const { timestamp } = await till.client.getBlock()
  const latest = Math.max(Number(timestamp), Math.ceil(Date.now() / 1000))
  return till.client.setNextBlockTimestamp({ timestamp: BigInt(latest + seconds) })
}

describe('a payment is refused if its authorization was used before the claim (storing) of the payment', () => {
  test('a payment is refused if its authorization was used many blocks before the service claimed (stored) the payment', async () => {
    const payment = await pay()
    const { transactionHash } = await used(payment)
    await till.client.mine({ blocks: 20, interval: 0 })
    const id = await till.claim(payment)
    await examine(id)
    expect(await till.payment(id)).toMatchObject(refusedBefore(transactionHash))
  })

  test('a payment whose authorization was used before the claim (storing) is refused, even if the chain node cannot search for the transaction', async () => {
    const payment = await pay()
    await used(payment)
    const id = await till.claim(payment)
    till.proxy.errors.set('eth_getLogs', () => ({ code: -32000, message: 'too many blocks' }))
    await examine(id)
    expect(await till.payment(id)).toMatchObject({
      ...refusedBefore(''),
      failureDetail: 'the authorization was used before',
    })
  })

  for (const blocks of [1, 5]) {
    test(`an authorization that was used ${blocks} block(s) before the claim (storing) of its payment is refused, even if the chain node no longer has the old state`, async () => {
      const payment = await pay()
      await blockIn(3)
      const { transactionHash } = await used(payment)
      if (blocks > 1) await till.client.mine({ blocks: blocks - 1 })
      const id = await till.claim(payment)
      forgetUpTo(till.chain.head.number)
      await examine(id)
      expect(await till.payment(id)).toMatchObject(refusedBefore(transactionHash))
    })
  }

  test('a later attempt refuses a payment whose authorization was used before the claim (storing), even if the chain node lacks the state at the claim', async () => {
    const payment = await pay()
    const { transactionHash } = await used(payment)
    // The test mines the 2,500 blocks in parts. In one request, a chain node on a busy machine would need more than the
    // ten seconds that a request may take.
    for (let n = 0; n < 10; n++) await till.client.mine({ blocks: 250, interval: 0 })
    const id = await till.claim(payment)
    forgetUpTo(till.chain.head.number)
    await expect(examine(id)).rejects.toThrow('its event is not found yet')
    await till.pool.query('update payments set trouble_count = 1 where id = $1', [id])
    await examine(id)
    expect(await till.payment(id)).toMatchObject(refusedBefore(transactionHash))
  })

  test('an authorization that was used after the claim (storing) of its payment is never refused while the chain node lacks the event of this use', async () => {
    const payment = await pay()
    const id = await till.claim(payment)
    forgetUpTo(till.chain.head.number)
    const { transactionHash } = await used(payment)
    await till.client.mine({ blocks: 100, interval: 0 })
    till.proxy.edits.set('eth_getLogs', () => [])
    for (const troubles of [0, 10, 499, 500, 100_000]) {
      await till.pool.query('update payments set trouble_count = $2 where id = $1', [id, troubles])
      await expect(examine(id)).rejects.toThrow('its event is not found yet')
    }
    till.proxy.edits.clear()
    await examine(id)
    expect(await till.payment(id)).toMatchObject({ state: 'settled', txHash: transactionHash })
  })

  test('a payment is refused if its authorization was used before the service stored it, in a block after the stored newest block', async () => {
    const payment = await pay()
    const id = await till.claim(payment)
    const { transactionHash } = await used(payment)
    await till.pool.query(
      `update payments set created_at = created_at + interval '1 hour' where id = $1`,
      [id],
    )
    await examine(id)
    expect(await till.payment(id)).toMatchObject(refusedBefore(transactionHash))
  })
})

describe('a payment with an already used authorization is refused, even if a chain node that lagged behind made the service sign a transaction', () => {
  for (const blocks of [1, 8]) {
    test(`an authorization that another service used ${blocks} block(s) before the claim (storing) of its payment is refused`, async () => {
      const payment = await pay()
      const { transactionHash } = await used(payment)
      await till.client.mine({ blocks, interval: 0 })
      const id = await till.claim(payment)
      await newTransaction(till.pool, id)
      await examine(id)
      expect(await till.payment(id)).toMatchObject({
        ...refusedBefore(transactionHash),
        failureStage: 'settle',
      })
    })
  }

  test('an authorization that another service used in the block in which this service stored it is refused, even if the chain node has no old state', async () => {
    const payment = await pay()
    const { transactionHash } = await used(payment)
    const id = await till.claim(payment)
    await newTransaction(till.pool, id)
    forgetUpTo(till.chain.head.number)
    await examine(id)
    expect((await till.payment(id)).failureDetail).toBe(
      `the authorization was used before, by ${transactionHash}`,
    )
  })

  test('a payment is settled if a stranger broadcast its transfer after the claim (storing) of the payment', async () => {
    const payment = await pay()
    const id = await till.claim(payment)
    await newTransaction(till.pool, id)
    const { transactionHash } = await used(payment)
    await examine(id)
    expect(await till.payment(id)).toMatchObject({ state: 'settled', txHash: transactionHash })
  })
})

describe('if an authorization was used after the claim (storing) of its payment, the chain decides whether the payment is settled or fails', () => {
  test('a payment is not refused while the chain node lacks the event of the payment’s own transaction, even in a block before the claim (storing)', async () => {
    const payment = await pay()
    const id = await till.claim(payment)
    const { hash } = await newTransaction(till.pool, id)
    const { transactionHash } = await used(payment)
    await till.pool.query('update chain_transactions set hash = $2 where hash = $1', [
      hash,
      transactionHash,
    ])
    await till.pool.query('update payments set claim_head = claim_head + 3 where id = $1', [id])
    await till.client.mine({ blocks: 3, interval: 0 })
    till.proxy.edits.set('eth_getLogs', () => [])
    await expect(examine(id)).rejects.toThrow('its event is not found yet')
    till.proxy.edits.clear()
    await examine(id)
    expect(await till.payment(id)).toMatchObject({ state: 'settled', txHash: transactionHash })
  })

  test('if a stranger broadcasts the transfer of a payment in a block that the service has not seen, the payment is settled', async () => {
    const payment = await pay()
    const id = await till.claim(payment)
    const { transactionHash } = await used(payment)
    await examine(id)
    expect(await till.payment(id)).toMatchObject({ state: 'settled', txHash: transactionHash })
  })

  test('a payment is settled by a transfer in the same second in which the service claimed (stored) the payment', async () => {
    const payment = await pay()
    const id = await till.claim(payment)
    const { transactionHash, blockNumber } = await used(payment)
    const { timestamp } = await till.client.getBlock({ blockNumber })
    await till.pool.query(
      'update payments set created_at = to_timestamp($2::float8 + 0.9) where id = $1',
      [id, String(timestamp)],
    )
    await examine(id)
    expect(await till.payment(id)).toMatchObject({ state: 'settled', txHash: transactionHash })
  })

  test('after a reorganisation, a sent payment can settle in a lower block than the newest block at its claim (storing)', async () => {
    const payment = await pay()
    const id = await till.claim(payment)
    const { hash } = await newTransaction(till.pool, id)
    const { transactionHash } = await used(payment)
    await till.pool.query(`update chain_transactions set hash = $2 where hash = $1`, [
      hash,
      transactionHash,
    ])
    await till.pool.query(
      `update payments set claim_head = claim_head + 3, created_at = created_at + interval '1 hour' where id = $1`,
      [id],
    )
    await till.client.mine({ blocks: 3, interval: 0 })
    await examine(id)
    expect(await till.payment(id)).toMatchObject({ state: 'settled', txHash: transactionHash })
    expect((await row(till.pool, 'chain_transactions', transactionHash)).state).toBe('mined')
  })

  test('a payment fails if its authorization was used to pay another recipient', async () => {
    const payment = await pay()
    const id = await till.claim(payment)
    await used(await pay({ nonce: payment.authorization.nonce, to: stranger }))
    await examine(id)
    expect(await till.payment(id)).toMatchObject({
      state: 'failed',
      failureDetail: 'the authorization was used without this transfer',
    })
  })

  test('a payment fails if its authorization was used for a smaller amount', async () => {
    const payment = await pay()
    const id = await till.claim(payment)
    await used(await pay({ nonce: payment.authorization.nonce, value: 9_999n }))
    await examine(id)
    expect((await till.payment(id)).state).toBe('failed')
  })

  test('a payment fails if its payer cancelled the authorization on the chain', async () => {
    const payment = await pay()
    const id = await till.claim(payment)
    const hash = await cancelPayment(till.client, payer, payment.authorization.nonce)
    await till.client.waitForTransactionReceipt({ hash })
    await examine(id)
    expect(await till.payment(id)).toMatchObject({
      state: 'failed',
      failureDetail: 'the authorization was canceled',
    })
  })

  for (const [method, answer] of [
    ['eth_getLogs', []],
    ['eth_getTransactionReceipt', null],
    ['eth_getBlockByNumber', null],
  ] as const) {
    test(`while the chain node call ${method} finds nothing, a payment with a used authorization is neither settled nor failed`, async () => {
      const payment = await pay()
      const id = await till.claim(payment)
      await used(payment)
      till.proxy.answers.set(method, ([block]) =>
        method === 'eth_getBlockByNumber' && block === 'latest' ? undefined : answer,
      )
      await expect(examine(id)).rejects.toThrow('not found yet')
      expect((await till.payment(id)).state).toBe('verified')
    })
  }
})

test('a payment that another sender settled is settled by the events of the token contract if the chain node cannot send the receipt', async () => {
  const payment = await pay()
  const id = await till.claim(payment)
  await blockIn(2)
  const { transactionHash, blockHash } = await used(payment)
  till.proxy.errors.set('eth_getTransactionReceipt', () => ({
    code: -32003,
    message: 'response too large',
  }))
  await examine(id)
  const stored = await till.payment(id)
  expect(stored).toMatchObject({ state: 'settled', txHash: transactionHash })
  expect((await row(till.pool, 'payments', id)).block_hash).toBe(blockHash)
  expect(stored.signedReceipt).toContain(transactionHash)
})
