import { expect, test } from 'bun:test'
import {
  newPayer,
  PRICE,
  pay,
  RESOURCE,
  redeem,
  redeemToEnd,
  startTestTill,
} from '../../support/till.ts'
import { row } from '../../support/tillRows.ts'
import { callToken, stranger } from '../../support/tokenCalls.ts'
import { waitFor } from '../../support/waitFor.ts'

test('an endpoint counts settled payments alone', async () => {
  await using till = await startTestTill({ env: { SETTLEMENT_WAIT_MS: '400' } })
  const { client, service } = till
  const seller = await till.newSeller()
  expect((await redeemToEnd(seller, (await pay()).header)).body.ok).toBe(true)
  const account = await newPayer(client, 10_000n)
  await client.setBalance({ address: account.address, value: 10n ** 18n })
  await client.impersonateAccount({ address: account.address })
  await client.setAutomine(false)
  const { body: doomed } = await redeem(seller, (await pay({}, { account })).header)
  // The payer's own transfer must find it in the pool, or it would be refused before it is sent.
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
  expect((await redeem(seller, (await pay()).header)).body.reason).toBe('settlement_pending')
  const totals = { urlPattern: RESOURCE, priceUsdc: PRICE, callCount: 1, revenueUsdcRaw: '10000' }
  const { body: list } = await seller.get('/v0/sellers/endpoints')
  expect(list.endpoints).toMatchObject([totals])
  const { body: one } = await seller.get(`/v0/sellers/endpoints/${list.endpoints[0].endpointId}`)
  expect(one).toMatchObject(totals)
})
