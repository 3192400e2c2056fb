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
/** Mines an empty block: its base fee is above what was offered. */
async function passBy(): Promise<void> {
  // Empty blocks lower the fee; after some dozen of them the first offer would do.
  await till.client.setNextBlockBaseFeePerGas({ baseFeePerGas: parseGwei('40') })
  await till.client.mine({ blocks: 1 })
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
  await waitFor('the nonce to be used', async () => {
    if ((await nonceOf()) > before) return true
    await passBy()
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
