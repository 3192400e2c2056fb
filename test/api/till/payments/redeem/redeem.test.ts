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
  SEPOLIA,
  startTestTill,
  type TestTill,
} from '../../../../support/till/till.ts'

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

test('redeem reports a payment as settled after the USDC has moved on the chain', async () => {
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

test('an Idempotency-Key gets the grant again after its endpoint was deleted or its project stopped selling', async () => {
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
