import { expect, test } from 'bun:test'
import {
  newPayer,
  PRICE,
  pay,
  payTo,
  RESOURCE,
  redeem,
  redeemToEnd,
  SEPOLIA,
  startTestTill,
} from '../../../support/till/till.ts'
import { row } from '../../../support/till/tillRows.ts'
import { callToken, stranger } from '../../../support/till/tokenCalls.ts'
import { waitFor } from '../../../support/waitFor.ts'

const requirements = {
  ...{ scheme: 'exact', network: 'base-sepolia', maxAmountRequired: '10000', resource: RESOURCE },
  ...{ description: '', mimeType: '', maxTimeoutSeconds: 60 },
  ...{ payTo, asset: SEPOLIA.usdcAddress },
}

test('the totals of the payments to an endpoint count only settled payments', async () => {
  await using till = await startTestTill({ env: { SETTLEMENT_WAIT_MS: '400' } })
  const { client, service } = till
  const seller = await till.newSeller()
  expect((await redeemToEnd(seller, (await pay()).header)).body.ok).toBe(true)
  const account = await newPayer(client, 10_000n)
  await client.setBalance({ address: account.address, value: 10n ** 18n })
  await client.impersonateAccount({ address: account.address })
  await client.setAutomine(false)
  const { header } = await pay({}, { account })
  const { body: doomed } = await redeem(seller, header)
  // The payment's transaction must be in the mempool of the chain node before the payer sends a separate transfer.
  // Otherwise the service would refuse to send the payment's transaction.
  await waitFor('the transaction', async () => {
    const { rows } = await service.database.pool.query(
      'select from chain_transactions where payment_id = $1 and sent_at is not null',
      [doomed.paymentId],
    )
    return rows.length > 0
  })
  const transfer = { functionName: 'transfer', args: [stranger, 10_000n] } as const
  await callToken(client, transfer, account.address)
  await client.mine({ blocks: 1 })
  await waitFor('the failure', async () => {
    const { state } = await row(service.database.pool, 'payments', doomed.paymentId)
    return state === 'failed'
  })
  // When the facilitator refuses the payment, its response names the failed payment, so that the seller can find the
  // cause.
  const refused = await seller.post('/v0/x402/settle', {
    x402Version: 1,
    paymentPayload: JSON.parse(Buffer.from(header, 'base64').toString()),
    paymentRequirements: requirements,
  })
  expect(refused.body).toMatchObject({ success: false, paymentId: doomed.paymentId })
  expect((await redeem(seller, (await pay()).header)).body.reason).toBe('settlement_pending')
  const totals = { urlPattern: RESOURCE, priceUsdc: PRICE, callCount: 1, revenueUsdcRaw: '10000' }
  const { body: list } = await seller.get('/v0/sellers/endpoints')
  expect(list.endpoints).toMatchObject([totals])
  const { body: one } = await seller.get(`/v0/sellers/endpoints/${list.endpoints[0].endpointId}`)
  expect(one).toMatchObject(totals)
})
