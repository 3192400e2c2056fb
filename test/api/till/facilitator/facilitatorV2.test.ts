/** Tests the facilitator of x402 version 2 with the requests that seller middleware sends. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { privateKeyToAccount } from 'viem/accounts'
import { DEVNET_ACCOUNTS } from '../../../../shared/till/devnetAccounts.ts'
import { changeProject } from '../../../support/changeProject.ts'
import type { Agent } from '../../../support/service.ts'
import {
  encodeHeader,
  NETWORK,
  payloadV2,
  requirementV2,
} from '../../../support/till/headers/x402v2.ts'
import {
  newPayer,
  pay,
  payer,
  payTo,
  RESOURCE,
  redeem,
  registerEndpoint,
  startTestTill,
  type TestTill,
} from '../../../support/till/till.ts'
import { waitFor } from '../../../support/waitFor.ts'
import '../../../support/long.ts'

let till: TestTill
let seller: Agent

beforeAll(async () => {
  till = await startTestTill()
  seller = await till.newSeller()
})
afterAll(() => till[Symbol.asyncDispose]())

type Changes = Record<string, unknown>

const face = (paymentPayload: unknown, requirements: Changes = {}) => ({
  x402Version: 2,
  paymentPayload,
  paymentRequirements: requirementV2(requirements),
})
const verify = async (body: unknown) => (await seller.post('/v0/x402/verify', body)).body
const settle = async (body: unknown) => (await seller.post('/v0/x402/settle', body)).body
const resource = (url: string) => ({ resource: { url, description: null } })

test('the facilitator’s response to /supported names both x402 versions, concrete networks, extensions and signers', async () => {
  expect((await seller.get('/v0/x402/supported')).body).toEqual({
    kinds: [
      { x402Version: 1, scheme: 'exact', network: 'base-sepolia' },
      { x402Version: 2, scheme: 'exact', network: NETWORK },
    ],
    extensions: ['bazaar', 'offer-receipt', 'payment-identifier'],
    signers: {
      'eip155:*': [privateKeyToAccount(DEVNET_ACCOUNTS.gasWallet.privateKey).address],
    },
  })
})

test('a payment can be verified twice but settled once, and a second settle call is a duplicate with the same transaction hash', async () => {
  const body = face(payloadV2(await pay(), resource(RESOURCE)))
  for (let n = 0; n < 2; n++) {
    expect(await verify(body)).toEqual({ isValid: true, payer: payer.address })
  }
  const settled = await settle(body)
  expect(settled).toEqual({
    success: true,
    transaction: expect.stringMatching(/^0x[0-9a-f]{64}$/),
    network: NETWORK,
    payer: payer.address,
    paymentId: expect.stringMatching(/^pay_/),
    extensions: {
      'offer-receipt': { info: { receipt: { format: 'jws', signature: expect.any(String) } } },
    },
  })
  expect(await settle(body)).toMatchObject({
    success: false,
    errorReason: 'duplicate_settlement',
    errorMessage: expect.stringContaining('used before'),
    transaction: settled.transaction,
    network: NETWORK,
    paymentId: settled.paymentId,
  })
  expect((await verify(body)).invalidReason).toBe('invalid_exact_evm_nonce_already_used')
  const { body: record } = await seller.get(`/v0/payments/${settled.paymentId}`)
  expect(record).toMatchObject({
    status: 'settled',
    x402Version: 2,
    network: 'base-sepolia',
    resourceUrl: RESOURCE,
    resourceSource: 'payer',
    endpoint: { urlPattern: RESOURCE, priceUsdc: '0.01' },
    signedReceipt: { body: { resourceSource: 'payer' } },
  })
})

test('the facilitator refuses a payment whose x402 version differs from the version of the requirements', async () => {
  const signed = await pay()
  const v1 = (await seller.post('/v0/payments/challenge', { amount: '0.01', resource: RESOURCE }))
    .body.accepts[0]
  const mixed = [
    { paymentPayload: payloadV2(signed), paymentRequirements: v1 },
    {
      paymentPayload: JSON.parse(Buffer.from(signed.header, 'base64').toString()),
      paymentRequirements: requirementV2(),
    },
  ]
  for (const body of mixed) {
    expect((await verify(body)).invalidReason).toBe('invalid_payment_requirements')
    expect((await settle(body)).errorReason).toBe('invalid_payment_requirements')
  }
})

test('an invalid payment gets a facilitator response with status 200, a reason and a message', async () => {
  const signed = await pay()
  const nowS = BigInt(Math.floor(Date.now() / 1000))
  const value = 'invalid_exact_evm_payload_authorization_value_mismatch'
  const accepted = (changes: Changes) => payloadV2(signed, { accepted: requirementV2(changes) })
  const extra = (changes: Changes) => ({ extra: { name: 'USDC', version: '2', ...changes } })
  const permit2 = { signature: signed.signature, permit2Authorization: { permitted: {} } }
  const table: [unknown, Changes, string, RegExp][] = [
    [payloadV2(signed), { network: 'eip155:8453' }, 'invalid_network', /eip155:84532/],
    [payloadV2(signed), { network: 'eip155:1' }, 'invalid_network', /eip155:84532/],
    [accepted({ network: 'eip155:8453' }), {}, 'invalid_network', /eip155:84532/],
    [payloadV2(signed), { scheme: 'upto' }, 'unsupported_scheme', /exact/],
    [accepted({ scheme: 'upto' }), {}, 'unsupported_scheme', /exact/],
    [payloadV2(signed, { payload: permit2 }), {}, 'unsupported_payload_type', /EIP-3009/],
    [
      payloadV2(signed),
      extra({ assetTransferMethod: 'permit2' }),
      'unsupported_payload_type',
      /EIP-3009/,
    ],
    [payloadV2(signed), { asset: payTo }, 'invalid_payment_requirements', /USDC/],
    [payloadV2(signed), { payTo: payer.address }, 'invalid_payment_requirements', /payTo/],
    [payloadV2(signed), { amount: 10_000 }, 'invalid_payment_requirements', /version/],
    [payloadV2(signed), { amount: '9999' }, value, /equal the price/],
    [payloadV2(signed), { amount: '10001' }, value, /equal the price/],
    [
      payloadV2(await pay({ validBefore: nowS - 1n })),
      {},
      'invalid_exact_evm_payload_authorization_valid_before',
      /expired/,
    ],
    [
      payloadV2(signed),
      extra({ name: 'USD Coin' }),
      'invalid_exact_evm_token_name_mismatch',
      /"USDC"/,
    ],
    [payloadV2(signed), extra({ version: '1' }), 'invalid_exact_evm_token_version_mismatch', /"2"/],
    [
      payloadV2(signed, { extensions: { 'payment-identifier': { info: { id: 'short' } } } }),
      {},
      'invalid_payload',
      /payment-identifier/,
    ],
    [{ ...payloadV2(signed), x402Version: 3 }, {}, 'invalid_x402_version', /1 or 2/],
    [{}, {}, 'invalid_payment_requirements', /version/],
  ]
  for (const [payload, requirements, reason, message] of table) {
    const { isValid, invalidReason, invalidMessage } = await verify(face(payload, requirements))
    expect([isValid, invalidReason]).toEqual([false, reason])
    expect(invalidMessage).toMatch(message)
    const { success, errorReason, errorMessage } = await settle(face(payload, requirements))
    expect([success, errorReason]).toEqual([false, reason])
    expect(errorMessage).toMatch(message)
  }
})

test('a payment with validAfter "0" is settled', async () => {
  const body = face(payloadV2(await pay({ validAfter: 0n })))
  expect((await settle(body)).success).toBe(true)
})

test('concurrent requests with one authorization in both x402 versions lead to only one payment', async () => {
  const account = await newPayer(till.client)
  for (let round = 0; round < 5; round++) {
    const signed = await pay({}, { account })
    const named = payloadV2(signed, resource(`${RESOURCE}?q=1`))
    const v1 = { x402Version: 1, paymentPayload: JSON.parse(atob(signed.header)) }
    const [requirement] = (
      await seller.post('/v0/payments/challenge', { amount: '0.01', resource: RESOURCE })
    ).body.accepts
    const answers = await Promise.all([
      redeem(seller, signed.header).then(({ body }) => body.ok),
      redeem(seller, encodeHeader(named)).then(({ body }) => body.ok),
      redeem(seller, named).then(({ body }) => body.ok),
      settle(face(named)).then(({ success }) => success),
      settle({ ...v1, paymentRequirements: requirement }).then(({ success }) => success),
    ])
    expect(answers.filter((ok) => ok)).toHaveLength(1)
  }
  const { body } = await seller.get('/v0/payments?limit=100')
  const mine = body.payments.filter((one: any) => one.payerAddress === account.address)
  expect(mine).toHaveLength(5)
})

test('an authorization that has paid for one resource is refused as a duplicate for another resource', async () => {
  const signed = await pay()
  const first = await settle(face(payloadV2(signed, resource('https://a.example/1'))))
  expect(first.success).toBe(true)
  const second = await settle(face(payloadV2(signed, resource('https://a.example/2'))))
  expect(second).toMatchObject({ success: false, errorReason: 'duplicate_settlement' })
})

test('the facilitator settles payments with a null resource, null extensions and unknown members', async () => {
  const more = { extensions: null, resource: null, extra: { deep: [1] }, memo: 'x' }
  const settled = await settle(face(payloadV2(await pay(), more), { extra: null, tags: ['a'] }))
  expect(settled.success).toBe(true)
  const { body: record } = await seller.get(`/v0/payments/${settled.paymentId}`)
  expect(record).toMatchObject({ resourceUrl: 'urn:x402:unspecified', endpoint: null })
  const odd = { extensions: { 'payment-identifier': 7 }, resource: 'https://a.example/1' }
  expect((await settle(face(payloadV2(await pay(), odd)))).success).toBe(true)
})

test('an invalid resource URL from the payer is ignored, whereas an invalid resource URL from the seller is refused', async () => {
  for (const url of ['no URL', '/report', '']) {
    const settled = await settle(face(payloadV2(await pay(), resource(url))))
    expect([url, settled.success]).toEqual([url, true])
    const { body: record } = await seller.get(`/v0/payments/${settled.paymentId}`)
    expect(record.resourceUrl).toBe('urn:x402:unspecified')
    const named = { extra: { name: 'USDC', version: '2', resource: url } }
    const refused = await settle(face(payloadV2(await pay()), named))
    expect(refused.errorReason).toBe('invalid_payment_requirements')
  }
})

test('the facilitator accepts addresses in any case, and the network in the spelling of x402 version 1', async () => {
  const { asset } = requirementV2()
  const accepted = requirementV2({ asset: asset.toLowerCase(), payTo: payTo.toLowerCase() })
  const loud = `0x${payTo.slice(2).toUpperCase()}`
  const body = face(payloadV2(await pay(), { accepted }), { payTo: loud, network: 'base-sepolia' })
  expect((await settle(body)).success).toBe(true)
})

test('if only the payer names a resource and pays another price than the endpoint of this resource asks, the payment belongs to no endpoint', async () => {
  const dear = 'https://api.example.com/dear'
  const id = await registerEndpoint(till.service.database.pool, {
    projectId: seller.project.id,
    resource: dear,
  })
  await seller.patch(`/v0/sellers/endpoints/${id}`, { priceUsdc: '5' })
  const spoofed = await settle(face(payloadV2(await pay(), resource(dear))))
  expect(spoofed.success).toBe(true)
  const { body: record } = await seller.get(`/v0/payments/${spoofed.paymentId}`)
  expect(record).toMatchObject({ endpointId: null, resourceUrl: dear, resourceSource: 'payer' })
  expect(record.signedReceipt.body).toMatchObject({ endpointId: null, resourceSource: 'payer' })

  // The seller names the resource here, so the payment belongs to the endpoint of this resource, even at another price.
  const named = { extra: { name: 'USDC', version: '2', resource: dear } }
  const trusted = await settle(face(payloadV2(await pay(), resource(RESOURCE)), named))
  const { body: sale } = await seller.get(`/v0/payments/${trusted.paymentId}`)
  expect(sale).toMatchObject({ endpointId: id, resourceUrl: dear, resourceSource: 'seller' })
  expect(sale.signedReceipt.body).not.toHaveProperty('resourceSource')
  // The payment record shows the endpoint's price at the time of the sale, not the current price.
  expect(sale.endpoint).toMatchObject({ id, priceUsdc: '0.01' })
})

test('the service stores the payment-identifier of a payment, and a payer can use this identifier only once in a project', async () => {
  const id = `order_${crypto.randomUUID()}`
  const extensions = { 'payment-identifier': { info: { required: false, id } } }
  const named = async () => face(payloadV2(await pay(), { ...resource(RESOURCE), extensions }))
  const [one, other] = [await named(), await named()]
  const answers = await Promise.all([settle(one), settle(other)])
  expect(answers.map(({ success }) => success).toSorted()).toEqual([false, true])
  const refused = answers.find(({ success }) => !success)
  expect(refused).toMatchObject({ errorReason: 'payment_identifier_conflict', transaction: '' })
  expect((await verify(await named())).invalidReason).toBe('payment_identifier_conflict')
  const { paymentId } = answers.find(({ success }) => success)
  const { body: record } = await seller.get(`/v0/payments/${paymentId}`)
  expect(record).toMatchObject({
    paymentIdentifier: id,
    signedReceipt: { body: { paymentIdentifier: id } },
  })
  // Another payer may use the same payment-identifier, so that no payer can block the identifiers of others.
  const stranger = await pay({}, { account: await newPayer(till.client) })
  const theirs = await settle(face(payloadV2(stranger, { ...resource(RESOURCE), extensions })))
  expect(theirs.success).toBe(true)
  // A payment-identifier belongs to a project, so another project may use the same identifier.
  const neighbour = await till.newSeller()
  const { body } = await neighbour.post('/v0/x402/settle', await named())
  expect(body.success).toBe(true)
})

test('if the same payment is presented again while it is being settled, its payment-identifier does not conflict with itself', async () => {
  const id = `order_${crypto.randomUUID()}`
  const extensions = { 'payment-identifier': { info: { required: false, id } } }
  const body = face(payloadV2(await pay(), { ...resource(RESOURCE), extensions }))
  await till.client.setAutomine(false)
  try {
    const settling = settle(body)
    await waitFor('the claim', async () => {
      const { body: page } = await seller.get('/v0/payments?limit=1')
      return page.payments[0].paymentIdentifier === id
    })
    expect(await verify(body)).toMatchObject({ isValid: true })
    await till.client.setAutomine(true)
    await till.client.mine({ blocks: 1 })
    expect((await settling).success).toBe(true)
  } finally {
    await till.client.setAutomine(true)
  }
})

test('concurrent batches that claim (store) the same payments in different orders cause no deadlock', async () => {
  const account = await newPayer(till.client)
  const ids = Array.from({ length: 10 }, () => `order_${crypto.randomUUID()}`)
  const orders = [...ids, ...ids.toReversed(), ...ids].map(async (id) => {
    const extensions = { 'payment-identifier': { info: { required: false, id } } }
    return settle(face(payloadV2(await pay({}, { account }), { extensions })))
  })
  const answers = await Promise.all(orders)
  expect(answers.filter(({ success }) => success)).toHaveLength(10)
  const reasons = new Set(answers.flatMap(({ errorReason }) => errorReason ?? []))
  expect([...reasons]).toEqual(['payment_identifier_conflict'])
})

test('if a project has not enabled payments, the facilitator returns a verdict with the cause, and no HTTP error', async () => {
  const owner = await till.newSeller()
  const body = face(payloadV2(await pay()))
  await changeProject(till.service.database.pool, owner.project.id, { paymentsEnabled: false })
  const message = 'Payments are not enabled for this project'
  const verified = await owner.post('/v0/x402/verify', body)
  expect([verified.status, verified.body]).toEqual([
    200,
    {
      isValid: false,
      invalidReason: 'invalid_payment_requirements',
      invalidMessage: message,
      payer: payer.address,
    },
  ])
  const settled = await owner.post('/v0/x402/settle', body)
  expect([settled.status, settled.body.success, settled.body.errorMessage]).toEqual([
    200,
    false,
    message,
  ])
  // The status 403 prevents the start of the seller's x402 middleware. If the middleware started, it would offer
  // payments that nobody settles.
  expect((await owner.get('/v0/x402/supported')).status).toBe(403)
  expect((await verify({})).invalidReason).toBe('invalid_payment_requirements')
})
