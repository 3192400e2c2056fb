import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Agent } from '../../../support/service.ts'
import {
  newPayer,
  pay,
  payer,
  payTo,
  RESOURCE,
  startTestTill,
  type TestTill,
} from '../../../support/till/till.ts'

let till: TestTill
let seller: Agent

beforeAll(async () => {
  till = await startTestTill()
  seller = await till.newSeller()
})
afterAll(() => till[Symbol.asyncDispose]())

async function ask(header: string, changes: Record<string, unknown> = {}) {
  const resource = (changes.resource as string | undefined) ?? RESOURCE
  const { body } = await seller.post('/v0/payments/challenge', {
    amount: '0.01',
    resource: RESOURCE,
  })
  return {
    x402Version: 1,
    paymentPayload: JSON.parse(Buffer.from(header, 'base64').toString()),
    paymentRequirements: { ...body.accepts[0], ...changes, resource },
  }
}

test('the facilitator’s verify call checks a payment on the chain and spends nothing, and its settle call pays once', async () => {
  const { header } = await pay()
  const body = await ask(header)
  for (let n = 0; n < 2; n++) {
    expect((await seller.post('/v0/x402/verify', body)).body).toEqual({
      isValid: true,
      payer: payer.address,
    })
  }
  const { body: settled } = await seller.post('/v0/x402/settle', body)
  expect(settled).toMatchObject({ success: true, network: 'base-sepolia', payer: payer.address })
  expect((await seller.post('/v0/x402/settle', body)).body).toEqual({
    success: false,
    errorReason: 'duplicate_settlement',
    errorMessage: expect.stringContaining('used before'),
    transaction: settled.transaction,
    network: 'base-sepolia',
    payer: payer.address,
    paymentId: settled.paymentId,
  })
  expect((await seller.post('/v0/x402/verify', body)).body).toMatchObject({
    isValid: false,
    invalidReason: 'invalid_exact_evm_nonce_already_used',
  })
  const { body: list } = await seller.get('/v0/payments?limit=1')
  expect(list.payments[0]).toMatchObject({ txHash: settled.transaction, status: 'settled' })
})

test('if a payment was settled after its caller disconnected, a repeated facilitator call finds it valid and reports it as settled', async () => {
  const { header } = await pay()
  const body = await ask(header)
  const { body: settled } = await seller.post('/v0/x402/settle', body)
  await till.service.database.pool.query('update payments set granted_at = null where id = $1', [
    settled.paymentId,
  ])
  expect((await seller.post('/v0/x402/verify', body)).body).toEqual({
    isValid: true,
    payer: payer.address,
  })
  expect((await seller.post('/v0/x402/settle', body)).body).toEqual(settled)
})

test('for a resource that is not registered, the facilitator settles a payment only to the project’s own address', async () => {
  const resource = 'mcp://tool/report'
  const { header } = await pay()
  const { body } = await seller.post('/v0/x402/settle', await ask(header, { resource }))
  expect(body.success).toBe(true)
  const { body: record } = await seller.get(`/v0/payments/${body.paymentId}`)
  expect(record).toMatchObject({ endpointId: null, endpoint: null, resourceUrl: resource })
  expect(record.signedReceipt.body).toMatchObject({ endpointId: null, resource })
  const elsewhere = await ask((await pay({ to: payer.address })).header, { payTo: payer.address })
  expect((await seller.post('/v0/x402/settle', elsewhere)).body).toMatchObject({
    success: false,
    errorReason: 'invalid_payment_requirements',
  })
})

test('a payment that cannot succeed gets a facilitator response with status 200 and a reason', async () => {
  const good = await ask((await pay()).header)
  const poor = await ask((await pay({}, { account: await newPayer(till.client, 1n) })).header)
  const table: [unknown, string][] = [
    [poor, 'insufficient_funds'],
    [{ ...good, paymentPayload: {} }, 'invalid_payload'],
    [{ ...good, paymentRequirements: null }, 'invalid_payment_requirements'],
    [
      { ...good, paymentRequirements: { ...good.paymentRequirements, network: 'base' } },
      'invalid_network',
    ],
    [
      { ...good, paymentRequirements: { ...good.paymentRequirements, scheme: 'upto' } },
      'unsupported_scheme',
    ],
    [
      { ...good, paymentRequirements: { ...good.paymentRequirements, resource: 'report' } },
      'invalid_payment_requirements',
    ],
    [
      { ...good, paymentRequirements: { ...good.paymentRequirements, asset: payTo } },
      'invalid_payment_requirements',
    ],
    [
      { ...good, paymentRequirements: { ...good.paymentRequirements, maxAmountRequired: '20000' } },
      'invalid_exact_evm_payload_authorization_value',
    ],
  ]
  for (const [body, reason] of table) {
    const verified = await seller.post('/v0/x402/verify', body)
    expect([verified.status, verified.body.isValid, verified.body.invalidReason]).toEqual([
      200,
      false,
      reason,
    ])
    const settled = await seller.post('/v0/x402/settle', body)
    expect([settled.status, settled.body.success, settled.body.errorReason]).toEqual([
      200,
      false,
      reason,
    ])
  }
})
