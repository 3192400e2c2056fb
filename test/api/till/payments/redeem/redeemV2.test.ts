/** Tests x402 version 2 in the challenge call and in the redeem call (which takes a payment). */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Agent } from '../../../../support/service.ts'
import {
  decodeHeader,
  encodeHeader,
  NETWORK,
  payloadV2,
} from '../../../../support/till/headers/x402v2.ts'
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
import { waitFor } from '../../../../support/waitFor.ts'

let till: TestTill
let seller: Agent

beforeAll(async () => {
  till = await startTestTill()
  seller = await till.newSeller()
})
afterAll(() => till[Symbol.asyncDispose]())

const challenge = async (body: Record<string, unknown> = {}) => {
  const { status, body: answer } = await seller.post('/v0/payments/challenge', {
    amount: PRICE,
    resource: RESOURCE,
    ...body,
  })
  expect(status).toBe(200)
  return answer
}

describe('if a seller requests a challenge of x402 version 2, the response has the terms for both versions', () => {
  test('the challenge call accepts the network in both x402 spellings, and returns the terms for both x402 versions', async () => {
    for (const network of ['base-sepolia', NETWORK]) {
      const { accepts, headers } = await challenge({ network, description: 'Ein Bericht für 1 ct' })
      expect(accepts[0].network).toBe('base-sepolia')
      const required = decodeHeader(headers['PAYMENT-REQUIRED'])
      expect(required).toMatchObject({
        x402Version: 2,
        error: 'PAYMENT-SIGNATURE header is required',
        resource: { url: RESOURCE, description: 'Ein Bericht für 1 ct' },
        accepts: [
          {
            scheme: 'exact',
            network: NETWORK,
            amount: '10000',
            asset: SEPOLIA.usdcAddress,
            payTo,
            maxTimeoutSeconds: 120,
            extra: { name: 'USDC', version: '2', paymentFlow: 'upfront' },
          },
        ],
        extensions: { 'payment-identifier': { info: { required: false } } },
      })
      expect(headers['PAYMENT-REQUIRED'].length).toBeLessThan(3_000)
    }
  })

  test('the challenge header stays below 3 kB even for a long description, and the body has the full description', async () => {
    const description = 'ü'.repeat(500)
    const { accepts, headers } = await challenge({ description })
    expect(accepts[0].description).toBe(description)
    expect(headers['PAYMENT-REQUIRED'].length).toBeLessThan(3_000)
    expect(decodeHeader(headers['PAYMENT-REQUIRED']).accepts).toHaveLength(1)
  })
})

describe('a seller can redeem a payment of x402 version 2, and gets the result in the version of the payment', () => {
  test('the redeem call accepts a payment of x402 version 2 as header and as object, and responds in version 2', async () => {
    for (const form of [encodeHeader, (value: unknown) => value]) {
      const { body } = await redeem(seller, form(payloadV2(await pay())), { network: NETWORK })
      expect(body).toMatchObject({ ok: true, payer: payer.address })
      expect(body.headers).toEqual({ 'PAYMENT-RESPONSE': body.paymentResponse })
      expect(decodeHeader(body.paymentResponse)).toEqual({
        success: true,
        transaction: body.txHash,
        network: NETWORK,
        payer: payer.address,
        extensions: {
          'offer-receipt': {
            info: { receipt: { format: 'jws', signature: body.signedReceipt.jws } },
          },
        },
      })
      const { body: record } = await seller.get(`/v0/payments/${body.paymentId}`)
      expect(record).toMatchObject({ x402Version: 2, resourceSource: 'seller' })
    }
  })

  test('the redeem call answers a payment of x402 version 1 in version 1', async () => {
    const { body } = await redeem(seller, (await pay()).header)
    expect(body.headers).toEqual({ 'X-PAYMENT-RESPONSE': body.paymentResponse })
    expect(decodeHeader(body.paymentResponse).network).toBe('base-sepolia')
  })

  test('the redeem call ignores the resource that the payer names, and uses the resource of the seller', async () => {
    const resource = { url: 'https://elsewhere.example/dear' }
    const { body } = await redeem(seller, payloadV2(await pay(), { resource }))
    expect(body).toMatchObject({ ok: true, signedReceipt: { body: { resource: RESOURCE } } })
  })

  test('the redeem call states the reason for a refused payment in both x402 versions', async () => {
    const { body } = await redeem(seller, encodeHeader(payloadV2(await pay({ value: 9_999n }))))
    expect(body).toMatchObject({
      ok: false,
      stage: 'verify',
      reason: 'invalid_exact_evm_payload_authorization_value',
      message: expect.stringContaining('must equal the price'),
      requirement: {
        x402Version: 1,
        error: 'invalid_exact_evm_payload_authorization_value',
        accepts: [{ network: 'base-sepolia', maxAmountRequired: '10000' }],
      },
    })
    expect(Object.keys(body.headers)).toEqual(['PAYMENT-REQUIRED'])
    expect(decodeHeader(body.headers['PAYMENT-REQUIRED'])).toMatchObject({
      x402Version: 2,
      error: 'invalid_exact_evm_payload_authorization_value_mismatch',
    })
  })

  test('for a payment that was redeemed before, the redeem call returns the settlement in the x402 version of the call', async () => {
    const signed = await pay()
    const { body: paid } = await redeem(seller, signed.header)
    expect(paid.ok).toBe(true)
    const { body } = await redeem(seller, payloadV2(signed))
    expect(body).toMatchObject({ ok: false, reason: 'duplicate_settlement', txHash: paid.txHash })
    expect(Object.keys(body.headers).toSorted()).toEqual(['PAYMENT-REQUIRED', 'PAYMENT-RESPONSE'])
    expect(decodeHeader(body.headers['PAYMENT-RESPONSE'])).toMatchObject({
      success: false,
      errorReason: 'duplicate_settlement',
      transaction: paid.txHash,
      network: NETWORK,
    })
    const { body: again } = await redeem(seller, signed.header)
    expect(Object.keys(again.headers).toSorted()).toEqual([
      'PAYMENT-REQUIRED',
      'X-PAYMENT-RESPONSE',
    ])
  })

  test('the redeem call returns the transaction of a payment that is still being settled, and requests no new signature from the payer', async () => {
    const slow = await startTestTill({ env: { SETTLEMENT_WAIT_MS: '50' } })
    await using _ = slow
    const shop = await slow.newSeller()
    await slow.client.setAutomine(false)
    const payment = payloadV2(await pay())
    const { body } = await redeem(shop, payment)
    expect(body).toMatchObject({
      ok: false,
      stage: 'settle',
      reason: 'settlement_pending',
      message: expect.stringContaining('sign no new one'),
      paymentId: expect.stringMatching(/^pay_/),
    })
    expect(Object.keys(body.headers)).toEqual(['PAYMENT-RESPONSE'])
    expect(decodeHeader(body.headers['PAYMENT-RESPONSE'])).toMatchObject({
      success: false,
      errorReason: 'settlement_pending',
      network: NETWORK,
    })
    const named = await waitFor('the hash', async () => {
      const answer = await redeem(shop, payment)
      return answer.body.txHash === undefined ? null : answer.body
    })
    expect(named).toMatchObject({ reason: 'settlement_pending', paymentId: body.paymentId })
    expect(decodeHeader(named.headers['PAYMENT-RESPONSE']).transaction).toBe(named.txHash)
  })
})
