/**
 * Tests the limits on the operator's daily costs for one project: a minimum price, a number of settlements, and gas.
 */
import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { updateLimits } from '../../../../sql/account/projects/projectLimits.ts'
import type { Agent } from '../../../support/service.ts'
import {
  acceptAll,
  burnInBlock,
  deployCode,
  payFromContract,
} from '../../../support/till/burnerWallet.ts'
import {
  pay,
  payTo,
  RESOURCE,
  redeem,
  redeemToEnd,
  SEPOLIA,
  startTestTill,
  type TestTill,
} from '../../../support/till/till.ts'
import { waitFor } from '../../../support/waitFor.ts'

let till: TestTill
let seller: Agent

beforeAll(async () => {
  till = await startTestTill({ env: { DAILY_SETTLEMENT_LIMIT: '3', DAILY_GAS_LIMIT: '10000000' } })
})
beforeEach(async () => {
  seller = await till.newSeller()
})
afterAll(() => till[Symbol.asyncDispose]())

const project = async (agent = seller) =>
  (await till.service.platform.get(`/v0/platform/projects/${agent.project.id}`)).body
const gasOf = async (txHash: `0x${string}`) =>
  Number((await till.client.getTransactionReceipt({ hash: txHash })).gasUsed)
const payments = async (agent = seller) => (await agent.get('/v0/payments')).body.count

const requirements = (maxAmountRequired: string) => ({
  scheme: 'exact',
  network: 'base-sepolia',
  maxAmountRequired,
  resource: RESOURCE,
  description: '',
  mimeType: '',
  payTo,
  maxTimeoutSeconds: 60,
  asset: SEPOLIA.usdcAddress,
})
const facilitate = (face: 'verify' | 'settle', header: string, amount = '10000') =>
  seller.post(`/v0/x402/${face}`, {
    x402Version: 1,
    paymentPayload: JSON.parse(Buffer.from(header, 'base64').toString()),
    paymentRequirements: requirements(amount),
  })

test('the service refuses a payment below the minimum price, and does not store it', async () => {
  const dust = await pay({ value: 1n })
  const message = 'amount must be at least 0.001 USDC on this service'
  const redeemed = await redeem(seller, dust.header, { amount: '0.000001' })
  expect(redeemed).toMatchObject({ status: 400, body: { message } })
  const challenge = { amount: '0.000999', resource: RESOURCE }
  expect((await seller.post('/v0/payments/challenge', challenge)).body.message).toBe(message)
  const endpoint = { urlPattern: 'https://api.example.com/dust', priceUsdc: '0.0001' }
  expect((await seller.put('/v0/sellers/endpoints', endpoint)).body.message).toBe(
    'priceUsdc must be at least 0.001 USDC on this service',
  )
  expect((await facilitate('verify', dust.header, '1')).body).toMatchObject({
    isValid: false,
    invalidReason: 'invalid_payment_requirements',
  })
  expect((await facilitate('settle', dust.header, '1')).body).toMatchObject({
    success: false,
    errorReason: 'invalid_payment_requirements',
  })
  expect(await payments()).toBe(0)
  const least = await pay({ value: 1_000n })
  expect((await redeemToEnd(seller, least.header, { amount: '0.001' })).body.ok).toBe(true)
})

test('after the daily number of settlements is used up, no payment is claimed (stored), and the same header can pay on the next day', async () => {
  const headers = await Promise.all(Array.from({ length: 6 }, async () => (await pay()).header))
  const answers = await Promise.all(headers.map((header) => redeemToEnd(seller, header)))
  expect(answers.filter(({ body }) => body.ok)).toHaveLength(3)
  const refused = answers.findIndex(({ body }) => !body.ok)
  for (const { body } of answers.filter((one) => !one.body.ok)) {
    expect(body).toMatchObject({ stage: 'verify', reason: 'settlement_limit_reached' })
    expect(body.paymentId).toBeUndefined()
  }
  const late = headers[refused]!
  expect((await facilitate('verify', late)).body).toMatchObject({
    isValid: false,
    invalidReason: 'settlement_limit_reached',
  })
  expect((await facilitate('settle', late)).body).toMatchObject({
    success: false,
    errorReason: 'settlement_limit_reached',
  })
  expect(await payments()).toBe(3)
  // A payment header that was redeemed before still gets its outcome, although the project has reached its daily limit
  // in the meantime.
  const paid = headers[answers.findIndex(({ body }) => body.ok)]!
  expect((await redeem(seller, paid)).body.reason).toBe('duplicate_settlement')
  expect(await project()).toMatchObject({
    usage: { dailySettlements: 3 },
    limits: { dailySettlements: 3, dailyGas: 10_000_000 },
  })
  // Another project has its own daily limit on settlements, so its payment still succeeds.
  const neighbour = await till.newSeller()
  expect((await redeemToEnd(neighbour, (await pay()).header)).body.ok).toBe(true)

  await till.service.database.pool.query(
    'update settlement_budgets set day = day - 1 where project_id = $1',
    [seller.project.id],
  )
  expect((await redeemToEnd(seller, late)).body.ok).toBe(true)
  expect((await project()).usage.dailySettlements).toBe(1)
})

test('the daily gas count includes reverted transactions, and counts each transaction receipt once even if two workers record it', async () => {
  const second = await till.startWorker()
  const paid = await redeemToEnd(seller, (await pay()).header)
  const wallet = await deployCode(till.client, acceptAll(1))
  const burned = await burnInBlock(till, wallet, async () =>
    redeemToEnd(seller, await payFromContract(wallet)),
  )
  const spent = (await gasOf(paid.body.txHash)) + (await gasOf(burned.txHash))
  await waitFor('the gas', async () => (await project()).usage.dailyGas === spent || null)
  expect((await project()).usage).toMatchObject({ dailySettlements: 2, dailyGas: spent })
  await second.stop()
})

test('a project’s own daily gas limit replaces the service’s limit, whether it is higher or lower', async () => {
  const { pool } = till.service.database
  const given = async (gas: number) => {
    await pool.query('delete from settlement_budgets where project_id = $1', [seller.project.id])
    await pool.query(
      `insert into settlement_budgets (project_id, day, gas)
       values ($1, (clock_timestamp() at time zone 'UTC')::date, $2)`,
      [seller.project.id, gas],
    )
  }
  await given(10_000_000)
  const { header } = await pay()
  expect((await redeem(seller, header)).body.reason).toBe('settlement_limit_reached')
  await updateLimits(pool, seller.project.id, { dailyGas: 20_000_000 })
  expect((await redeemToEnd(seller, header)).body.ok).toBe(true)
  await updateLimits(pool, seller.project.id, { dailyGas: 5_000 })
  await given(5_000)
  expect((await redeem(seller, (await pay()).header)).body.reason).toBe('settlement_limit_reached')
})

test('after the daily gas limit is used up, no payment is claimed (stored), and the operator can raise the limit', async () => {
  const set = (limits: object) =>
    till.service.platform.patch(`/v0/platform/projects/${seller.project.id}`, { limits })
  expect((await redeemToEnd(seller, (await pay()).header)).body.ok).toBe(true)
  await waitFor('the gas', async () => (await project()).usage.dailyGas > 0 || null)
  expect((await set({ dailyGas: 1 })).body.limits).toMatchObject({
    dailyGas: 1,
    dailySettlements: 3,
  })
  const { header } = await pay()
  expect((await redeem(seller, header)).body.reason).toBe('settlement_limit_reached')
  const wallet = await deployCode(till.client, acceptAll(2))
  const contract = await redeem(seller, await payFromContract(wallet))
  expect(contract.body.reason).toBe('settlement_limit_reached')
  const metrics = await (await fetch(`${till.service.url}/metrics`)).text()
  expect(metrics).toMatch(/^purser_settlement_budgets_used_up [1-9]/m)
  expect(metrics).toMatch(/^purser_settlement_refusals_total [1-9]/m)
  expect((await set({ dailyGas: null, dailySettlements: 100 })).body.limits).toMatchObject({
    dailyGas: 10_000_000,
    dailySettlements: 100,
  })
  expect((await redeemToEnd(seller, header)).body.ok).toBe(true)
  expect((await set({ dailyGas: -1 })).body.message).toBe(
    "limits.dailyGas must be an amount of gas, or null for the service's limit",
  )
})

test('an operator can change one limit of a project without changing its other limits', async () => {
  const { pool } = till.service.database
  const { id } = seller.project
  await updateLimits(pool, id, { storageBytes: 5, dailyGas: 7 })
  await updateLimits(pool, id, { dailyGas: null })
  expect((await project()).limits).toMatchObject({
    storageBytes: 5,
    dailySettlements: 3,
    dailyGas: 10_000_000,
  })
})
