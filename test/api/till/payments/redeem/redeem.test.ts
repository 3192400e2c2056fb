import { afterAll, beforeAll, expect, test } from 'bun:test'
import { parseAbi } from 'viem'
import { changeProject } from '../../../../support/changeProject.ts'
import type { Agent } from '../../../../support/service.ts'
import {
  PRICE,
  pay,
  payer,
  payTo,
  RESOURCE,
  redeem,
  redeemToEnd,
  SEPOLIA,
  startTestTill,
  type TestTill,
} from '../../../../support/till/till.ts'
import { waitFor } from '../../../../support/waitFor.ts'

let till: TestTill
let seller: Agent

beforeAll(async () => {
  till = await startTestTill()
  seller = await till.newSeller({ webhookUrl: 'http://127.0.0.1:9/hook' })
})
afterAll(() => till[Symbol.asyncDispose]())

const balance = (address: `0x${string}`) =>
  till.client.readContract({
    address: SEPOLIA.usdcAddress,
    abi: parseAbi(['function balanceOf(address) view returns (uint256)']),
    functionName: 'balanceOf',
    args: [address],
  })

test('a redeem call (which takes a payment) reports the payment as settled after the USDC has moved on the chain', async () => {
  const before = await balance(payTo)
  const { header, authorization } = await pay()
  const { status, headers, body } = await redeem(seller, header)
  expect(status).toBe(200)
  expect(body).toMatchObject({ ok: true, payer: payer.address })
  expect(headers.get('cache-control')).toBe('no-store')
  expect(await balance(payTo)).toBe(before + 10_000n)
  const response = JSON.parse(atob(body.paymentResponse))
  expect(response).toMatchObject({
    success: true,
    transaction: body.txHash,
    network: 'base-sepolia',
    payer: payer.address,
  })
  const { body: record } = await seller.get(`/v0/payments/${body.paymentId}`)
  expect(record).toMatchObject({
    id: body.paymentId,
    status: 'settled',
    txHash: body.txHash,
    amountUsdc: PRICE,
    amountUsdcRaw: '10000',
    resourceUrl: RESOURCE,
    authorizationNonce: authorization.nonce,
    failureReason: null,
    signedReceipt: body.signedReceipt,
    deliveries: [{ status: 'pending', attempts: 0 }],
  })
})

test.each<[string, (owner: Agent, slow: TestTill) => Promise<unknown>]>([
  [
    'its endpoint was deleted',
    async (owner) => {
      const { body } = await owner.get('/v0/sellers/endpoints')
      await owner.delete(`/v0/sellers/endpoints/${body.endpoints[0].endpointId}`)
    },
  ],
  [
    'its project stopped selling',
    (owner, slow) =>
      changeProject(slow.service.database.pool, owner.project.id, { paymentsEnabled: false }),
  ],
])('a pending payment is granted once it settles, even if %s meanwhile', async (_, end) => {
  await using slow = await startTestTill({ env: { SETTLEMENT_WAIT_MS: '50' } })
  const owner = await slow.newSeller()
  await slow.client.setAutomine(false)
  const { header } = await pay()
  const { body: pending } = await redeem(owner, header)
  expect(pending).toMatchObject({ ok: false, reason: 'settlement_pending' })
  await end(owner, slow)
  // The response about a pending payment contains no new challenge, because the payer would otherwise pay twice.
  expect((await redeem(owner, header)).body).toMatchObject({ reason: 'settlement_pending' })
  const other = await redeem(owner, header, { amount: '0.02' })
  expect(other.status).toBeOneOf([400, 403])
  await slow.client.setAutomine(true)
  const granted = await redeemToEnd(owner, header, {}, { 'idempotency-key': 'late' })
  expect(granted.body).toMatchObject({ ok: true, paymentId: pending.paymentId })
  const again = await redeem(owner, header, {}, { 'idempotency-key': 'late' })
  expect(again.body).toEqual(granted.body)
  expect((await redeem(owner, header)).status).toBeOneOf([400, 403])
})

test('a repeated redeem call with the same Idempotency-Key succeeds again, even if its endpoint was deleted or payments were disabled in between', async () => {
  const owner = await till.newSeller()
  const { pool } = till.service.database
  const { header } = await pay()
  const keyed = { 'idempotency-key': 'kept' }
  const { body: granted } = await redeem(owner, header, {}, keyed)
  expect(granted.ok).toBe(true)
  const { body: listed } = await owner.get('/v0/sellers/endpoints')
  await owner.delete(`/v0/sellers/endpoints/${listed.endpoints[0].endpointId}`)
  expect((await redeem(owner, header, {}, keyed)).body).toEqual(granted)
  expect((await redeem(owner, header)).status).toBe(400)
  expect((await redeem(owner, header, { amount: '0.02' }, keyed)).status).toBe(400)
  expect((await redeem(owner, header, {}, { 'idempotency-key': 'other' })).status).toBe(400)
  await changeProject(pool, owner.project.id, { paymentsEnabled: false })
  expect((await redeem(owner, header, {}, keyed)).body).toEqual(granted)
  expect((await redeem(owner, header)).status).toBe(403)
})

test('a refused payment header stores no Idempotency-Key, so that strangers cannot fill the table of keys', async () => {
  const owner = await till.newSeller()
  const { header } = await pay()
  expect((await redeem(owner, header, {}, { 'idempotency-key': 'paid' })).body.ok).toBe(true)
  for (const [key, given] of [
    ['unreadable', 'abc'],
    ['wrong amount', (await pay({ value: 9_999n })).header],
    ['expired', (await pay({ validBefore: 1n })).header],
    ['already paid', header],
  ] as const) {
    const { body } = await redeem(owner, given, {}, { 'idempotency-key': key.replace(' ', '-') })
    expect([key, body.ok]).toEqual([key, false])
  }
  const { rows } = await till.service.database.pool.query(
    'select key from idempotency_keys where project_id = $1',
    [owner.project.id],
  )
  expect(rows).toEqual([{ key: 'paid' }])
})

test('a repeated redeem call gets the first response again, although the payment header expired before the settlement', async () => {
  await using slow = await startTestTill({ env: { SETTLEMENT_WAIT_MS: '50' } })
  const owner = await slow.newSeller()
  await slow.client.setAutomine(false)
  const validBefore = BigInt(Math.floor(Date.now() / 1000) + 10)
  const { header } = await pay({ validBefore })
  expect((await redeem(owner, header)).body).toMatchObject({ reason: 'settlement_pending' })
  await slow.client.setAutomine(true)
  await waitFor('the end of the header', () => Date.now() / 1000 > Number(validBefore))
  const keyed = { 'idempotency-key': 'expired' }
  const granted = await redeemToEnd(owner, header, {}, keyed)
  expect(granted.body.ok).toBe(true)
  expect((await redeem(owner, header, {}, keyed)).body).toEqual(granted.body)
})

test('a payment header that cannot be decoded is refused with status 403 while the project does not sell', async () => {
  const owner = await till.newSeller()
  await changeProject(till.service.database.pool, owner.project.id, { paymentsEnabled: false })
  expect(await redeem(owner, 'no payment')).toMatchObject({ status: 403 })
})
