/** Tests transactions that no block includes, because their fee is too low. */
import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test'
import { type Hex, parseGwei } from 'viem'
import { DEVNET_ACCOUNTS } from '../../../../shared/till/devnetAccounts.ts'
import { queueSettlement } from '../../../../sql/till/settle/settlementQueue.ts'
import type { Agent } from '../../../support/service.ts'
import { pay, redeem, startTestTill, type TestTill } from '../../../support/till/till.ts'
import { inPool } from '../../../support/till/waitingPayments.ts'
import { waitFor } from '../../../support/waitFor.ts'

let till: TestTill
let seller: Agent
const gasWallet = DEVNET_ACCOUNTS.gasWallet.address

beforeAll(async () => {
  till = await startTestTill({ env: { SETTLEMENT_WAIT_MS: '400' } })
  seller = await till.newSeller()
})
afterEach(() => till.client.setAutomine(true))
afterAll(() => till[Symbol.asyncDispose]())

const nonceOf = () => till.client.getTransactionCount({ address: gasWallet })
const statusOf = async (id: string) => (await seller.get(`/v0/payments/${id}`)).body.status
/**
 * Mines an empty block with a base fee above the fee of every transaction, including transactions with a raised fee.
 */
async function passBy(): Promise<void> {
  const { rows } = await till.service.database.pool.query(
    'select coalesce(max(max_fee_wei), 0)::text as dearest from chain_transactions',
  )
  const baseFeePerGas = BigInt(rows[0].dearest) + parseGwei('1')
  await till.client.setNextBlockBaseFeePerGas({ baseFeePerGas })
  await till.client.mine({ blocks: 1 })
}

test('the stuck transaction of a failed payment is replaced by an empty transfer with the same nonce', async () => {
  const before = await nonceOf()
  await till.client.setAutomine(false)
  const { authorization, header } = await pay()
  const { paymentId } = (await redeem(seller, header)).body
  // The test waits for the transaction, because a payment that expires before its transaction exists leaves no
  // transaction to replace.
  await inPool(till, paymentId)
  await till.client.increaseTime({ seconds: 120 })
  await passBy()
  await waitFor('the failure', async () => {
    await queueSettlement(till.service.database.pool, paymentId, null)
    return (await statusOf(paymentId)) === 'failed'
  })
  const isInPool = (hash: Hex) =>
    till.client.getTransaction({ hash }).then(
      () => true,
      () => false,
    )
  const empty = await waitFor('the empty transfer to be in the pool', async () => {
    const { rows } = await till.service.database.pool.query(
      'select hash from chain_transactions where nonce = $1 and payment_id is null',
      [before],
    )
    for (const { hash } of rows) if (await isInPool(hash)) return hash as Hex
    await passBy()
    return null
  })
  await till.client.setNextBlockBaseFeePerGas({ baseFeePerGas: 1n })
  await waitFor('the nonce to be used', async () => {
    await till.client.mine({ blocks: 1 })
    return (await nonceOf()) > before
  })
  expect(await nonceOf()).toBe(before + 1)
  await waitFor('the end of the transaction', async () => {
    const { rowCount } = await till.service.database.pool.query(
      `select from chain_transactions where nonce = $1 and state = 'mined'`,
      [before],
    )
    return rowCount === 1
  })
  // The service may have replaced the empty transfer by another one with a higher fee. Therefore the test accepts any
  // empty transfer, but no transaction with a payment.
  const { rows } = await till.service.database.pool.query(
    `select payment_id from chain_transactions where nonce = $1 and state = 'mined'`,
    [before],
  )
  expect(rows).toEqual([{ payment_id: null }])
  expect(await till.client.getTransaction({ hash: empty })).toMatchObject({
    to: gasWallet.toLowerCase(),
    value: 0n,
    input: '0x',
  })
  expect(authorization.from).not.toBe(gasWallet)
  expect(await statusOf(paymentId)).toBe('failed')
})
