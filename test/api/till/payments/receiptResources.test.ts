/**
 * Tests that a payment receipt names only a resource that its project may sell, in a spelling that all programs read in
 * the same way.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { changeProject } from '../../../support/changeProject.ts'
import { type Receiver, startReceiver, status } from '../../../support/events/receiver.ts'
import type { Agent } from '../../../support/service.ts'
import {
  newPayer,
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
  till = await startTestTill({
    env: { ALLOW_PRIVATE_NETWORKS: 'true' },
    parts: { pools: ['webhooks'] },
  })
  seller = await till.newSeller()
})
afterAll(() => till[Symbol.asyncDispose]())

const facilitate = (agent: Agent, face: 'verify' | 'settle', header: string, changes: object) =>
  agent.post(`/v0/x402/${face}`, {
    x402Version: 1,
    paymentPayload: JSON.parse(Buffer.from(header, 'base64').toString()),
    paymentRequirements: {
      scheme: 'exact',
      network: 'base-sepolia',
      maxAmountRequired: '10000',
      resource: RESOURCE,
      description: '',
      mimeType: '',
      payTo,
      maxTimeoutSeconds: 60,
      asset: SEPOLIA.usdcAddress,
      ...changes,
    },
  })

describe('the service signs no receipt for a resource that is not a well-formed web address or MCP tool', () => {
  test.each([
    'javascript:alert(1)',
    'data:text/html,x',
    'file:///etc/passwd',
    'urn:x',
    'mcp://tool/',
    'mcp://tool/a b',
    'mcp://tool/a?b',
    'mcp://server/report',
    `mcp://tool/${'a'.repeat(129)}`,
    'mcp://tool/a\r\nPaid-To: me',
    'https://api.example.com/a\r\nX: y',
    'https://api.example.com/\u0001',
    'https://user@api.example.com/a',
  ])('no receipt is signed for the resource %j', async (resource) => {
    const { header } = await pay()
    expect((await facilitate(seller, 'verify', header, { resource })).body).toMatchObject({
      isValid: false,
      invalidReason: 'invalid_payment_requirements',
    })
    expect((await facilitate(seller, 'settle', header, { resource })).body).toMatchObject({
      success: false,
      errorReason: 'invalid_payment_requirements',
    })
  })
})

const claimsOf = (jws: string) =>
  JSON.parse(Buffer.from(jws.split('.')[1]!, 'base64url').toString('utf8'))

test('the signed receipt (JWS) contains the ids of the project and the endpoint', async () => {
  const { body } = await redeemToEnd(seller, (await pay()).header)
  const { endpointId } = body.signedReceipt.body
  expect(endpointId).toStartWith('se_')
  expect(claimsOf(body.signedReceipt.jws)).toMatchObject({
    projectId: seller.project.id,
    endpointId,
    resourceUrl: RESOURCE,
  })
  const tool = await facilitate(seller, 'settle', (await pay()).header, {
    resource: 'mcp://tool/report',
  })
  const { body: payment } = await seller.get(`/v0/payments/${tool.body.paymentId}`)
  expect(claimsOf(payment.signedReceipt.jws)).toMatchObject({
    projectId: seller.project.id,
    endpointId: null,
    resourceUrl: 'mcp://tool/report',
  })
})

describe('of two projects that want to sell the same resource, only a project that has proved its right may sell it', () => {
  /** Registers the URL for a project, and waits until the endpoint is verified. */
  async function register(agent: Agent, urlPattern: string): Promise<void> {
    const { body } = await agent.put('/v0/sellers/endpoints', { urlPattern, priceUsdc: '0.01' })
    await waitFor('a verdict', async () => {
      const { body: endpoint } = await agent.get(`/v0/sellers/endpoints/${body.endpointId}`)
      return endpoint.verification.status === 'verified' ? true : null
    })
  }
  const shopOf = (...payees: string[]): Promise<Receiver> => {
    const accepts = payees.map((payee) => ({
      scheme: 'exact',
      network: 'base-sepolia',
      maxAmountRequired: '10000',
      resource: RESOURCE,
      payTo: payee,
      asset: SEPOLIA.usdcAddress,
      maxTimeoutSeconds: 60,
    }))
    return startReceiver(status(402, JSON.stringify({ x402Version: 1, accepts })))
  }

  async function newThief() {
    const thief = await till.newSeller()
    const own = await newPayer(till.client, 0n)
    await changeProject(till.service.database.pool, thief.project.id, { payTo: own.address })
    return { thief, address: own.address }
  }
  const REFUSED = /^resource must not be that of another project/

  test('once a project has proved that it sells a resource, a project without proof gets no challenge for the resource, and cannot redeem or settle its payments', async () => {
    await using shop = await shopOf(payTo)
    const resource = `http://127.0.0.1:${shop.port}/x`
    const { thief, address } = await newThief()
    // In this test, a thief registers the seller's URL before the seller does. The check of the URL finds a 402
    // response with the seller's address, which does not prove that the thief sells at the URL.
    await register(thief, resource)
    await register(seller, resource)
    const { header } = await pay({ to: address })
    const changes = { resource, payTo: address }
    const challenge = { amount: '0.01', resource }
    const challenged = await thief.post('/v0/payments/challenge', challenge)
    expect(challenged).toMatchObject({
      status: 400,
      body: { message: expect.stringMatching(REFUSED) },
    })
    const redeemed = await redeem(thief, header, { resource })
    expect(redeemed).toMatchObject({
      status: 400,
      body: { message: expect.stringMatching(REFUSED) },
    })
    expect((await facilitate(thief, 'verify', header, changes)).body).toMatchObject({
      isValid: false,
      invalidReason: 'resource_of_another_project',
    })
    expect((await facilitate(thief, 'settle', header, changes)).body).toMatchObject({
      success: false,
      errorReason: 'resource_of_another_project',
    })
    expect((await thief.get('/v0/payments')).body.count).toBe(0)
    expect((await redeemToEnd(seller, (await pay()).header, { resource })).body.ok).toBe(true)
  })

  test.each(['/%78', '//x', '/x/', '/X'])(
    'a project without proof cannot sell the path %s if the server of the seller of /x also answers at this path',
    async (path) => {
      await using shop = await shopOf(payTo)
      const resource = `http://127.0.0.1:${shop.port}${path}`
      const { thief, address } = await newThief()
      await register(seller, `http://127.0.0.1:${shop.port}/x`)
      await register(thief, resource)
      const { header } = await pay({ to: address })
      const challenged = await thief.post('/v0/payments/challenge', { amount: '0.01', resource })
      const redeemed = await redeem(thief, header, { resource })
      for (const { status, body } of [challenged, redeemed]) {
        expect([status, body.message]).toEqual([400, expect.stringMatching(REFUSED)])
      }
      const changes = { resource, payTo: address }
      expect((await facilitate(thief, 'verify', header, changes)).body).toMatchObject({
        isValid: false,
        invalidReason: 'resource_of_another_project',
      })
      expect((await facilitate(thief, 'settle', header, changes)).body).toMatchObject({
        success: false,
        errorReason: 'resource_of_another_project',
      })
      expect((await thief.get('/v0/payments')).body.count).toBe(0)
    },
  )

  test('a project may sell a resource whose 402 response names a payTo address that belongs to no other project', async () => {
    const { thief: agent } = await newThief()
    const stranger = await newPayer(till.client, 0n)
    await using shop = await shopOf(stranger.address)
    const resource = `http://127.0.0.1:${shop.port}/x`
    await register(agent, resource)
    const challenge = { amount: '0.01', resource }
    expect((await agent.post('/v0/payments/challenge', challenge)).status).toBe(200)
  })

  test('two projects may sell the same resource if the resource’s 402 response names both projects’ addresses', async () => {
    const { thief: partner, address } = await newThief()
    await using shop = await shopOf(payTo, address.toLowerCase())
    const resource = `http://127.0.0.1:${shop.port}/both`
    await register(seller, resource)
    await register(partner, resource)
    for (const agent of [seller, partner]) {
      const challenge = { amount: '0.01', resource }
      expect((await agent.post('/v0/payments/challenge', challenge)).status).toBe(200)
    }
  })

  test('after the first project is deleted, another project may sell its resource', async () => {
    const { thief: first, address } = await newThief()
    const { thief: next } = await newThief()
    await using shop = await shopOf(address)
    const resource = `http://127.0.0.1:${shop.port}/gone`
    await register(first, resource)
    await register(next, resource)
    const challenge = { amount: '0.01', resource }
    expect((await next.post('/v0/payments/challenge', challenge)).status).toBe(400)
    await till.service.platform.delete(`/v0/platform/projects/${first.project.id}`)
    expect((await next.post('/v0/payments/challenge', challenge)).status).toBe(200)
  })
})
