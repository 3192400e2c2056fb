/** Transactions that blocks pass by, because they offer too little. */
import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test'
import { parseGwei } from 'viem'
import { DEVNET_ACCOUNTS } from '../../../shared/till/devnetAccounts.ts'
import { queueSettlement } from '../../../sql/till/settlements.ts'
import type { Agent } from '../../support/service.ts'
import { pay, redeem, startTestTill, type TestTill } from '../../support/till.ts'
import { waitFor } from '../../support/waitFor.ts'

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
let baseFeeWei = parseGwei('40')
/** Mines an empty block: its base fee is above every offer, also a raised one. */
async function passBy(): Promise<void> {
  await till.client.setNextBlockBaseFeePerGas({ baseFeePerGas: baseFeeWei })
  await till.client.mine({ blocks: 1 })
  baseFeeWei *= 3n
}

test('one whose payment is over becomes an empty transfer on the same nonce', async () => {
  const before = await nonceOf()
  await till.client.setAutomine(false)
  const { authorization, header } = await pay()
  const { paymentId } = (await redeem(seller, header)).body
  await till.client.increaseTime({ seconds: 120 })
  await passBy()
  await waitFor('the failure', async () => {
    await queueSettlement(till.service.database.pool, paymentId, null)
    return (await statusOf(paymentId)) === 'failed'
  })
  const isOffered = async () => {
    const { rowCount } = await till.service.database.pool.query(
      'select from chain_transactions where nonce = $1 and payment_id is null and sent_at is not null',
      [before],
    )
    return rowCount === 1
  }
  await waitFor('the empty transfer to be offered', async () => {
    if (await isOffered()) return true
    await passBy()
  })
  await till.client.setNextBlockBaseFeePerGas({ baseFeePerGas: 1n })
  await waitFor('the nonce to be used', async () => {
    await till.client.mine({ blocks: 1 })
    return (await nonceOf()) > before
  })
  expect(await nonceOf()).toBe(before + 1)
  const { rows } = await till.service.database.pool.query(
    'select hash, payment_id from chain_transactions where nonce = $1 order by max_fee_wei desc limit 1',
    [before],
  )
  expect(rows[0].payment_id).toBeNull()
  expect(await till.client.getTransaction({ hash: rows[0].hash })).toMatchObject({
    to: gasWallet.toLowerCase(),
    value: 0n,
    input: '0x',
  })
  expect(authorization.from).not.toBe(gasWallet)
  expect(await statusOf(paymentId)).toBe('failed')
})
