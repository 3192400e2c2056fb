import { expect, test } from 'bun:test'
import { deployWallet } from '../../../../support/till/smartWallet.ts'
import { fund, pay, payer, redeem, startTestTill } from '../../../../support/till/till.ts'
import { waitFor } from '../../../../support/waitFor.ts'

test('if redeem refused a payment because no worker checked its wallet, the service does not claim (store) the payment later', async () => {
  await using till = await startTestTill({ worker: false, env: { SETTLEMENT_WAIT_MS: '300' } })
  // The worker stops as soon as the service knows the chain. Therefore no worker can check the contract wallet's
  // payment on the chain.
  await (await till.startWorker()).stop()
  const seller = await till.newSeller()
  const wallet = await deployWallet(till.client, payer.address)
  await fund(till.client, wallet, 10_000n)
  const { body } = await redeem(seller, (await pay({ from: wallet })).header)
  expect(body).toMatchObject({ ok: false, stage: 'verify', reason: 'unexpected_verify_error' })
  await till.startWorker()
  await waitFor('the check to be over', async () => {
    const { rows } = await till.service.database.pool.query(
      `select from graphile_worker.jobs where key like 'check_payment:%'`,
    )
    return rows.length === 0
  })
  expect((await seller.get('/v0/payments')).body.payments).toEqual([])
})
