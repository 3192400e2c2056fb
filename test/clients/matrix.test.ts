/**
 * Pairs real x402 sellers with real x402 buyer clients. In every pair, one payment succeeds, and its receipt and its
 * webhook are valid.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createHmac } from 'node:crypto'
import { PaymentRequirementsSchema } from 'x402/types'
import { DEVNET_ACCOUNTS } from '../../shared/till/devnetAccounts.ts'
import { receiptSchema, verifyReceipt } from '../../shared/till/receipt.ts'
import { createKeyringSource, masterKeys } from '../../sql/keyring/keyring.ts'
import { startPool } from '../../workers/queue/pool.ts'
import { webhooksRunner } from '../../workers/runners/webhooks.ts'
import { testWhole } from '../support/database/extent.ts'
import { type Receiver, startReceiver } from '../support/events/receiver.ts'
import { silentLog } from '../support/logs.ts'
import { freePort, startCommand } from '../support/process/process.ts'
import { type Agent, examineOptions } from '../support/service.ts'
import { decodeHeader, NETWORK } from '../support/till/headers/x402v2.ts'
import { newPayer, payTo, startTestTill, type TestTill } from '../support/till/till.ts'
import { waitFor } from '../support/waitFor.ts'
import { type Account, balanceOf, buyers, versionPaid } from './buyers.ts'
import { type Seller, startSellers } from './sellers.ts'
import '../support/whole.ts'

let till: TestTill
let seller: Agent
let webhooks: Awaited<ReturnType<typeof startPool>>
let receiver: Receiver
let sellers: Record<string, Seller>
const secrets = new Map<string, string>()

beforeAll(async () => {
  // The DID in the receipt contains the base URL, so the test must choose the port before the service starts.
  const env = { ALLOW_PRIVATE_NETWORKS: 'true', PORT: String(await freePort()) }
  till = await startTestTill({ env })
  seller = await till.newSeller()
  receiver = await startReceiver()
  const { config, database } = till.service
  const keyring = createKeyringSource(masterKeys(config))
  const runner = webhooksRunner({
    keyring,
    policy: { allowPrivate: true },
    company: null,
    baseUrl: config.http.baseUrl,
    ...examineOptions(config),
  })
  webhooks = await startPool({ ...runner, databaseUrl: database.url }, silentLog)
  sellers = await startSellers({ service: till.service, seller })
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

const SELLERS: Record<string, readonly (1 | 2)[]> = {
  'our express paywall': [1, 2],
  'our hono paywall': [1, 2],
  'our fetch paywall': [1, 2],
  'our paywall with versions [1]': [1],
  'challenge and redeem': [1, 2],
  '@x402/express': [2],
  '@x402/hono': [2],
  '@x402/next': [2],
  'x402-express': [1],
  'x402-hono': [1],
}

test('the table SELLERS of this test contains every seller with its x402 versions', () => {
  const offered = Object.entries(sellers).map(([name, { offers }]) => [name, offers])
  expect(Object.fromEntries(offered)).toEqual(SELLERS)
})

const paymentsOf = async (account: Account) => {
  const { body } = await seller.get('/v0/payments?limit=100')
  return body.payments.filter((payment: any) => payment.payerAddress === account.address)
}

// `npm test` runs only every fifth pair of a buyer and a seller, because all pairs take long. These pairs contain each
// buyer and each seller at least once.
let pairs = 0
for (const [sellerName, offers] of Object.entries(SELLERS)) {
  for (const [buyerName, buyer] of Object.entries(buyers)) {
    const version = versionPaid(buyer, offers)
    if (version === null) {
      test(`the buyer ${buyerName} does not pay the seller ${sellerName}, and loses no money`, async () => {
        const account = await newPayer(till.client, 1_000_000n)
        const { url, served } = sellers[sellerName]!
        const before = served?.()
        const bought = await buyer.buy(account, url).catch(() => null)
        expect(bought?.status ?? 402).toBe(402)
        expect(await balanceOf(till, account.address)).toBe(1_000_000n)
        expect(await paymentsOf(account)).toEqual([])
        expect(served?.()).toBe(before)
      })
      continue
    }
    const testPair = ++pairs % 5 === 0 ? test : testWhole
    testPair(`${buyerName} pays ${sellerName} in version ${version}`, async () => {
      const account = await newPayer(till.client, 1_000_000n)
      const { url, served } = sellers[sellerName]!
      const times = served?.()
      const before = await balanceOf(till, payTo)
      const { status, v1, v2 } = await buyer.buy(account, url)
      expect(status).toBe(200)
      expect(served?.()).toBe(times === undefined ? undefined : times + 1)
      expect([v1 !== null, v2 !== null]).toEqual([version === 1, version === 2])
      const settled = decodeHeader((v1 ?? v2)!)
      expect(settled).toMatchObject({
        success: true,
        network: version === 2 ? NETWORK : 'base-sepolia',
        payer: account.address,
      })

      expect(await balanceOf(till, account.address)).toBe(990_000n)
      expect((await balanceOf(till, payTo)) - before).toBe(10_000n)

      const mine = await paymentsOf(account)
      expect(mine).toHaveLength(1)
      expect(mine[0]).toMatchObject({
        status: 'settled',
        txHash: settled.transaction,
        amountUsdc: '0.01',
        recipientAddress: payTo,
        x402Version: version,
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

test('the challenge of each seller fits the schema of the x402 reference implementation', async () => {
  const response = await fetch(sellers['challenge and redeem']!.url)
  expect(response.status).toBe(402)
  const challenge = (await response.json()) as any
  expect(challenge.x402Version).toBe(1)
  for (const requirement of challenge.accepts) PaymentRequirementsSchema.parse(requirement)
})

test('a buyer in a separate process pays, and its receipt is valid according to the published DID document', async () => {
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
