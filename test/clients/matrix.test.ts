/** Real sellers and real wallets: in every pair one payment succeeds, and its receipt and webhook verify. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createHmac } from 'node:crypto'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import express from 'express'
import { Hono } from 'hono'
import { PaymentRequirementsSchema } from 'x402/types'
import { paymentMiddleware as expressMiddleware } from 'x402-express'
import { decodeXPaymentResponse } from 'x402-fetch'
import { paymentMiddleware as honoMiddleware } from 'x402-hono'
import { DEVNET_ACCOUNTS } from '../../shared/till/devnetAccounts.ts'
import { receiptSchema, verifyReceipt } from '../../shared/till/receipt.ts'
import { createKeyringSource, masterKeys } from '../../sql/keyring/keyring.ts'
import { startPool } from '../../workers/queue/pool.ts'
import { webhooksRunner } from '../../workers/runners.ts'
import {
  freePort,
  printed,
  type ServiceProcess,
  startCommand,
  startProcess,
} from '../support/process.ts'
import { type Receiver, startReceiver } from '../support/receiver.ts'
import { type Agent, silentLog } from '../support/service.ts'
import { newPayer, payTo, startTestTill, type TestTill } from '../support/till.ts'
import { waitFor } from '../support/waitFor.ts'
import { balanceOf, buyers } from './buyers.ts'

let till: TestTill
let seller: Agent
let webhooks: Awaited<ReturnType<typeof startPool>>
let receiver: Receiver
const secrets = new Map<string, string>()
const sellers: Record<string, { url: string; stop: () => Promise<unknown> }> = {}

beforeAll(async () => {
  // The receipt's DID contains the base URL, so the port is fixed beforehand.
  const env = { ALLOW_PRIVATE_NETWORKS: 'true', PORT: String(await freePort()) }
  till = await startTestTill({ env })
  seller = await till.newSeller()
  receiver = await startReceiver()
  const { config, database } = till.service
  const keyring = createKeyringSource(masterKeys(config))
  const runner = webhooksRunner({ keyring, policy: { allowPrivate: true } })
  webhooks = await startPool({ ...runner, databaseUrl: database.url }, silentLog)
  sellers['x402-express'] = await startExpress()
  sellers['x402-hono'] = await startHono()
  sellers['challenge and redeem'] = await startOurs()
  for (const { url } of Object.values(sellers)) {
    const { status, body } = await seller.put('/v0/sellers/endpoints', {
      urlPattern: url,
      priceUsdc: '0.01',
      webhookUrl: receiver.url,
    })
    expect(status).toBe(201)
    secrets.set(body.endpointId, body.webhookSecret)
  }
})

afterAll(async () => {
  await Promise.all(Object.values(sellers).map(({ stop }) => stop()))
  await webhooks.stop()
  await receiver[Symbol.asyncDispose]()
  await till[Symbol.asyncDispose]()
})

/** This service as the facilitator of unmodified middleware. */
const facilitator = () => {
  const headers = { Authorization: `Bearer ${seller.key}` }
  return {
    url: `${till.service.url}/v0/x402` as const,
    createAuthHeaders: async () => ({ verify: headers, settle: headers, supported: headers }),
  }
}

const routes = { 'GET /joke': { price: '$0.01', network: 'base-sepolia' as const } }

async function startExpress() {
  const app = express()
  app.use(expressMiddleware(payTo, routes, facilitator() as never))
  app.get('/joke', (_request, response) => void response.send('ha'))
  const server = await new Promise<Server>((done) => {
    const started = app.listen(0, '127.0.0.1', () => done(started))
  })
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}/joke`, stop: async () => server.close() }
}

async function startHono() {
  const app = new Hono()
  app.use(honoMiddleware(payTo, routes, facilitator() as never))
  app.get('/joke', (context) => context.text('ha'))
  const server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: app.fetch })
  return { url: `http://127.0.0.1:${server.port}/joke`, stop: () => server.stop(true) }
}

async function startOurs() {
  const process: ServiceProcess = startProcess('examples/seller.ts', {
    KEY: seller.key,
    API: till.service.url,
    PORT: '0',
  })
  const [, url = ''] = await printed(process, /selling at (\S+)/)
  return { url, stop: async () => process[Symbol.asyncDispose]() }
}

for (const sellerName of ['x402-express', 'x402-hono', 'challenge and redeem']) {
  for (const [buyerName, buy] of Object.entries(buyers)) {
    test(`${buyerName} pays ${sellerName}`, async () => {
      const account = await newPayer(till.client, 1_000_000n)
      const { url } = sellers[sellerName]!
      const before = await balanceOf(till, payTo)
      const { status, header } = await buy(account, url)
      expect(status).toBe(200)
      const settled = decodeXPaymentResponse(header!) as any
      expect(settled).toMatchObject({
        success: true,
        network: 'base-sepolia',
        payer: account.address,
      })

      expect(await balanceOf(till, account.address)).toBe(990_000n)
      expect((await balanceOf(till, payTo)) - before).toBe(10_000n)

      const { body: page } = await seller.get('/v0/payments?limit=100')
      const mine = page.payments.filter((payment: any) => payment.payerAddress === account.address)
      expect(mine).toHaveLength(1)
      expect(mine[0]).toMatchObject({
        status: 'settled',
        txHash: settled.transaction,
        amountUsdc: '0.01',
        recipientAddress: payTo,
      })

      const hook = await waitFor('the webhook', () =>
        receiver.requests.find(({ body }) => body.toString().includes(mine[0].id)),
      )
      const receipt = receiptSchema.parse(JSON.parse(hook.body.toString()))
      expect(receipt.body).toMatchObject({
        paymentId: mine[0].id,
        txHash: settled.transaction,
        resource: url,
      })
      const { keys } = (await (
        await fetch(`${till.service.url}/.well-known/jwks.json`)
      ).json()) as any
      const trustedKeys = keys.map((key: any) => ({
        publicKeyHex: Buffer.from(key.x, 'base64url').toString('hex'),
      }))
      expect(verifyReceipt({ receipt, trustedKeys })).toMatchObject({ ok: true })
      expect(mine[0].signedReceipt).toEqual(JSON.parse(hook.body.toString()))
      const secret = secrets.get(receipt.body.endpointId!)!
      expect(hook.headers['x-service-signature']).toBe(
        `sha256=${createHmac('sha256', secret).update(hook.body).digest('hex')}`,
      )
      expect(hook.headers['x-service-event']).toBe('payment.received')
      expect(
        receiver.requests.filter(({ body }) => body.toString().includes(mine[0].id)),
      ).toHaveLength(1)
    })
  }
}

test('the challenge passes the schema of the reference implementation', async () => {
  const response = await fetch(sellers['challenge and redeem']!.url)
  expect(response.status).toBe(402)
  const challenge = (await response.json()) as any
  expect(challenge.x402Version).toBe(1)
  for (const requirement of challenge.accepts) PaymentRequirementsSchema.parse(requirement)
})

test('a buyer in a separate process pays, and its receipt verifies with the published DID document', async () => {
  const { payer } = DEVNET_ACCOUNTS
  await using buyer = startCommand(['node', 'test/clients/buyer.mjs'], {
    PAYER_KEY: payer.privateKey,
    URL: sellers['challenge and redeem']!.url,
  })
  expect([await buyer.exited, buyer.stderr()]).toEqual([0, ''])
  expect(buyer.stdout()).toStartWith('200 The weather is fine.')
  expect(buyer.stdout()).toMatch(
    /receipt verified: \{[^}]*payer: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'/i,
  )
})
