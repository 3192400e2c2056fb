/** Tests that one payment header pays for only one resource, in every state of the payment. */
import { afterAll, afterEach, beforeAll, expect, setSystemTime, test } from 'bun:test'
import type { Address } from 'viem'
import type { Agent } from '../../../support/service.ts'
import { deployWallet } from '../../../support/till/smartWallet.ts'
import {
  fund,
  pay,
  payer,
  redeem,
  redeemToEnd,
  registerEndpoint,
  startTestTill,
  type TestTill,
} from '../../../support/till/till.ts'
import { waitFor } from '../../../support/waitFor.ts'

const OTHER = 'https://api.example.com/other'
let till: TestTill
let seller: Agent
let stranger: Agent
let wallet: Address

beforeAll(async () => {
  till = await startTestTill({ env: { SETTLEMENT_WAIT_MS: '400' } })
  seller = await till.newSeller()
  stranger = await till.newSeller()
  const { pool } = till.service.database
  await registerEndpoint(pool, { projectId: seller.project.id, resource: OTHER })
  wallet = await deployWallet(till.client, payer.address)
  await fund(till.client, wallet, 1_000_000n)
})
afterEach(async () => {
  setSystemTime()
  await till.client.setAutomine(true)
})
afterAll(() => till[Symbol.asyncDispose]())

const before = 'invalid_exact_evm_payload_authorization_valid_before'
for (const { name, from, isLate, reason } of [
  { name: 'of an account', from: () => payer.address, isLate: false, reason: null },
  { name: 'of a contract wallet', from: () => wallet, isLate: false, reason: null },
  { name: 'that has expired', from: () => payer.address, isLate: true, reason: before },
]) {
  test(`a payment header ${name} pays only for the first resource, both while its payment is pending and after the payment has ended`, async () => {
    await till.client.setAutomine(false)
    const { header } = await pay({ from: from() })
    // On a busy machine the check of the contract wallet may end only after the deadline of the redeem call (which
    // takes a payment). In that case no payment is claimed, so the test repeats the redeem call.
    const first = await waitFor('the payment to be on its way', async () => {
      const answer = await redeem(seller, header)
      return answer.body.reason === 'settlement_pending' ? answer : null
    })
    if (isLate) setSystemTime(Date.now() + 120_000)
    const elsewhere = async () => {
      for (const answer of [
        await redeem(seller, header, { resource: OTHER }),
        await redeem(stranger, header),
      ]) {
        expect(answer.body).toMatchObject({
          ok: false,
          stage: 'verify',
          reason: reason ?? 'duplicate_settlement',
        })
        expect(answer.body).not.toHaveProperty('paymentId')
      }
      const { body } = await redeem(seller, header, { amount: '0.02' })
      expect(body.reason).toBe('invalid_exact_evm_payload_authorization_value')
      expect(body).not.toHaveProperty('paymentId')
    }
    await elsewhere()
    await till.client.setAutomine(true)
    await till.client.mine({ blocks: 1 })
    await elsewhere()
    const { paymentId } = first.body
    expect((await redeemToEnd(seller, header)).body).toMatchObject({ ok: true, paymentId })
    await elsewhere()
  })
}
