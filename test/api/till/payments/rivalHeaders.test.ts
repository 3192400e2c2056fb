/**
 * Tests that only one of several competing payment headers is paid. The headers have the same authorization, or one
 * header reaches two resources at the same time.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Address } from 'viem'
import type { Agent } from '../../../support/service.ts'
import { deployWallet } from '../../../support/till/smartWallet.ts'
import {
  fund,
  headerOf,
  pay,
  payer,
  redeem,
  registerEndpoint,
  startTestTill,
  type TestTill,
} from '../../../support/till/till.ts'
import '../../../support/long.ts'

const OTHER = 'https://api.example.com/other'
let till: TestTill
let seller: Agent
let stranger: Agent
let wallet: Address

beforeAll(async () => {
  till = await startTestTill()
  seller = await till.newSeller()
  stranger = await till.newSeller()
  const { pool } = till.service.database
  await registerEndpoint(pool, { projectId: seller.project.id, resource: OTHER })
  wallet = await deployWallet(till.client, payer.address)
  await fund(till.client, wallet, 1_000_000n)
})
afterAll(() => till[Symbol.asyncDispose]())

test('if a contract wallet’s payment header is presented for two resources concurrently, only one resource is paid', async () => {
  for (let n = 0; n < 5; n++) {
    const { header } = await pay({ from: wallet })
    const answers = await Promise.all([
      redeem(seller, header),
      redeem(seller, header, { resource: OTHER }),
      redeem(stranger, header),
    ])
    const bodies = answers.map(({ body }) => body)
    expect(bodies.filter(({ ok }) => ok)).toHaveLength(1)
    for (const body of bodies.filter(({ ok }) => !ok)) {
      expect(body.reason).toBe('duplicate_settlement')
    }
  }
})

test('a payer who changes a copy of a redeemed payment header is refused, and does not learn the id of the payment', async () => {
  const { authorization, signature, header } = await pay({ from: wallet })
  expect((await redeem(seller, header)).body.ok).toBe(true)
  const a = authorization
  for (const [changed, reason] of [
    [{ ...a, validAfter: a.validAfter - 1n }, 'duplicate_settlement'],
    [{ ...a, validBefore: a.validBefore + 1n }, 'duplicate_settlement'],
    [{ ...a, value: a.value + 1n }, 'invalid_exact_evm_payload_authorization_value'],
    [{ ...a, to: payer.address }, 'invalid_exact_evm_payload_recipient_mismatch'],
  ] as const) {
    const { body } = await redeem(seller, headerOf(changed, signature))
    expect([body.reason, body.paymentId]).toEqual([reason, undefined])
  }
  const { body } = await redeem(seller, headerOf(authorization, `0x${'ab'.repeat(100)}`))
  expect([body.reason, body.paymentId]).toEqual(['duplicate_settlement', undefined])
})

test('if two payment headers have the same nonce, a payment with the first header does not pay the higher amount of the second', async () => {
  const price = '0.02'
  for (const from of [payer.address, wallet]) {
    const cheap = await pay({ from })
    const dear = await pay({ from, nonce: cheap.authorization.nonce, value: 20_000n })
    expect((await redeem(seller, cheap.header)).body.ok).toBe(true)
    const { body } = await redeem(seller, dear.header, { amount: price })
    expect([body.reason, body.paymentId]).toEqual(['duplicate_settlement', undefined])
  }
  for (let n = 0; n < 3; n++) {
    const cheap = await pay({ from: wallet })
    const dear = await pay({ from: wallet, nonce: cheap.authorization.nonce, value: 20_000n })
    const answers = await Promise.all([
      redeem(seller, cheap.header),
      redeem(seller, dear.header, { amount: price }),
    ])
    const bodies = answers.map(({ body }) => body)
    expect(bodies.filter(({ ok }) => ok)).toHaveLength(1)
    expect(bodies.find(({ ok }) => !ok).paymentId).toBeUndefined()
  }
})

test('a payer with a random signature does not learn the id of a payment that an honest caller redeems at the same time', async () => {
  for (let n = 0; n < 5; n++) {
    const { header, authorization } = await pay({ from: wallet })
    const noise = headerOf(authorization, `0x${'ab'.repeat(100)}`)
    const [honest, thief] = await Promise.all([redeem(seller, header), redeem(seller, noise)])
    expect(honest.body.ok).toBe(true)
    expect([thief.body.ok, thief.body.paymentId]).toEqual([false, undefined])
  }
})
