import { afterAll, beforeAll, expect, test } from 'bun:test'
import { parseAbi } from 'viem'
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
