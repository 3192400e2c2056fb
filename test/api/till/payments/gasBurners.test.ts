/** Tests contract wallets that try to waste the gas of the service's gas wallet. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Address } from 'viem'
import { DEVNET_ACCOUNTS } from '../../../../shared/till/devnetAccounts.ts'
import type { Agent } from '../../../support/service.ts'
import {
  acceptAll,
  acceptBelow,
  burnInBlock,
  creationOf,
  deployCode,
  FREE_CALL_ONLY,
  payFromContract,
} from '../../../support/till/burnerWallet.ts'
import { FACTORY, futureCode } from '../../../support/till/smartWallet.ts'
import {
  fund,
  headerOf,
  pay,
  redeem,
  redeemToEnd,
  startTestTill,
  type TestTill,
} from '../../../support/till/till.ts'
import { waitFor } from '../../../support/waitFor.ts'
import '../../../support/long.ts'

let till: TestTill
let seller: Agent

beforeAll(async () => {
  till = await startTestTill({ env: { WALLET_FACTORIES: FACTORY.toLowerCase() } })
  seller = await till.newSeller()
})
afterAll(() => till[Symbol.asyncDispose]())

const sentByGasWallet = () =>
  till.client.getTransactionCount({ address: DEVNET_ACCOUNTS.gasWallet.address })

test('if a contract wallet pays only when gas costs nothing, the service spends no gas and does not claim (store) the payment', async () => {
  const wallet = await deployCode(till.client, FREE_CALL_ONLY)
  const before = await sentByGasWallet()
  const { body } = await redeem(seller, await payFromContract(wallet))
  expect(body).toMatchObject({ ok: false, stage: 'verify' })
  expect(body.paymentId).toBeUndefined()
  expect(await sentByGasWallet()).toBe(before)
})

test('the gas limit of a contract wallet’s payment is only slightly above the gas it needs, although the maximum is higher', async () => {
  const wallet = await deployCode(till.client, acceptAll(1))
  const { body } = await redeemToEnd(seller, await payFromContract(wallet))
  expect(body).toMatchObject({ ok: true })
  const { gas } = await till.client.getTransaction({ hash: body.txHash })
  const { gasUsed } = await till.client.getTransactionReceipt({ hash: body.txHash })
  expect(gas).toBeLessThan((gasUsed * 14n) / 10n)
  expect(gas).toBeGreaterThan(gasUsed)
})

test('if a contract wallet wastes gas when it gets much gas, the service refuses its payment', async () => {
  const wallet = await deployCode(till.client, acceptBelow(400_000))
  const before = await sentByGasWallet()
  const { body } = await redeem(seller, await payFromContract(wallet))
  expect(body.ok).toBe(false)
  expect(await sentByGasWallet()).toBe(before)
})

async function burn(wallet: Address) {
  const before = await sentByGasWallet()
  const header = await payFromContract(wallet)
  const { body } = await burnInBlock(till, wallet, () => redeemToEnd(seller, header))
  return { body, sent: (await sentByGasWallet()) - before }
}

test('if a contract wallet’s payment reverts, the service sends it only once, and suspends wallets with the same code for a time', async () => {
  const code = acceptAll(2)
  const wallet = await deployCode(till.client, code)
  const { body, sent } = await burn(wallet)
  expect(body).toMatchObject({ ok: false, stage: 'settle', reason: 'invalid_transaction_state' })
  expect(body.detail).toBe('the contract wallet reverted on chain, and is not tried again')
  expect(sent).toBe(1)

  const before = await sentByGasWallet()
  const twin = await deployCode(till.client, code)
  for (const suspended of [wallet, twin]) {
    const again = await redeem(seller, await payFromContract(suspended))
    expect(again.body).toMatchObject({
      ok: false,
      stage: 'verify',
      reason: 'smart_wallet_suspended',
    })
    expect(again.body.paymentId).toBeUndefined()
  }
  expect(await sentByGasWallet()).toBe(before)
  const other = await deployCode(till.client, acceptAll(3))
  expect((await redeemToEnd(seller, await payFromContract(other))).body.ok).toBe(true)
})

test('a contract wallet that is not deployed yet must wait while a wallet with the same code is suspended', async () => {
  const code = acceptAll(4)
  const wallet = await deployCode(till.client, code)
  await burn(wallet)
  const future = futureCode(creationOf(code))
  await fund(till.client, future.address, 1_000_000n)
  const { authorization } = await pay({ from: future.address })
  const header = headerOf(authorization, future.wrap(`0x${'ab'.repeat(66)}`))
  const before = await sentByGasWallet()
  const { body } = await redeem(seller, header)
  expect(body).toMatchObject({ ok: false, stage: 'verify', reason: 'smart_wallet_suspended' })
  expect(await sentByGasWallet()).toBe(before)
})

test('the owner of one contract wallet cannot cause the suspension of other owners’ wallets with the same code', async () => {
  const code = acceptAll(5)
  const honest = [await deployCode(till.client, code), await deployCode(till.client, code)]
  for (const wallet of honest) {
    expect((await redeemToEnd(seller, await payFromContract(wallet))).body.ok).toBe(true)
  }
  const bad = await deployCode(till.client, code)
  expect((await burn(bad)).body.ok).toBe(false)
  expect((await redeem(seller, await payFromContract(bad))).body.reason).toBe(
    'smart_wallet_suspended',
  )
  expect((await redeemToEnd(seller, await payFromContract(honest[0]!))).body.ok).toBe(true)
})

test('all contract wallets with the same code may together have only one payment in progress until this code has paid once', async () => {
  const wallet = await deployCode(till.client, acceptAll(6))
  const headers = await Promise.all([1, 2, 3].map(() => payFromContract(wallet)))
  await till.client.setAutomine(false)
  try {
    const answers = Promise.all(headers.map((header) => redeemToEnd(seller, header)))
    await waitFor('the claims, one sent, and a payment that waits for it', async () => {
      if ((await till.client.getTxpoolStatus()).pending === 0) return null
      const { rows } = await till.service.database.pool.query(
        `select count(*)::int as claimed, count(*) filter (where trouble like 'the first payment%')::int as held
         from payments where lower(payer) = lower($1)`,
        [wallet],
      )
      return rows[0].claimed === 3 && rows[0].held > 0 ? true : null
    })
    expect((await till.client.getTxpoolStatus()).pending).toBe(1)
    await till.client.setAutomine(true)
    await till.client.mine({ blocks: 1 })
    expect((await answers).map(({ body }) => body.ok)).toEqual([true, true, true])
  } finally {
    await till.client.setAutomine(true)
  }
})
