/** Tests unmodified sellers of x402 version 2 that use this service as their facilitator. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { HTTPFacilitatorClient } from '@x402/core/server'
import { ExactEvmScheme } from '@x402/evm'
import { paymentMiddleware } from '@x402/express'
import {
  extractReceiptFromResponse,
  verifyReceiptSignatureJWS,
} from '@x402/extensions/offer-receipt'
import { wrapFetchWithPayment, x402Client } from '@x402/fetch'
import type { Agent } from '../support/service.ts'
import { decodeHeader, NETWORK } from '../support/till/headers/x402v2.ts'
import { deployWallet, FACTORY, futureWallet } from '../support/till/smartWallet.ts'
import {
  fund,
  newPayer,
  payer,
  startTestTill,
  type TestTill,
  type TillWorker,
} from '../support/till/till.ts'
import { waitFor } from '../support/waitFor.ts'
import { balanceOf } from './buyers.ts'
import { facilitatorOf, onExpress, resourceServer, routesV2, type Seller } from './sellers.ts'
import '../support/long.ts'

let till: TestTill
let seller: Agent
let worker: TillWorker
const sellers: Seller[] = []

beforeAll(async () => {
  const env = { SETTLEMENT_WAIT_MS: '5000', WALLET_FACTORIES: FACTORY.toLowerCase() }
  till = await startTestTill({ env, worker: false })
  worker = await till.startWorker()
  seller = await till.newSeller()
})
afterAll(async () => {
  await Promise.all(sellers.map(({ stop }) => stop()))
  await till[Symbol.asyncDispose]()
})

/** Acts as a facilitator client of the x402 SDK, and also counts its calls. */
class CountingClient extends HTTPFacilitatorClient {
  verified = 0
  settled = 0
  onSettle: ((n: number) => Promise<unknown>) | null = null
  override verify(...call: Parameters<HTTPFacilitatorClient['verify']>) {
    this.verified++
    return super.verify(...call)
  }
  override async settle(...call: Parameters<HTTPFacilitatorClient['settle']>) {
    this.settled++
    const settling = super.settle(...call)
    await this.onSettle?.(this.settled)
    return settling
  }
}

async function open(extra?: Record<string, unknown>) {
  const shop = { service: till.service, seller }
  const client = new CountingClient(facilitatorOf(shop))
  const middleware = paymentMiddleware(routesV2(extra) as never, resourceServer(shop, client))
  const opened = await onExpress(middleware, [2])
  sellers.push(opened)
  return { ...opened, client }
}

const walletOf = (account: unknown) =>
  wrapFetchWithPayment(
    fetch,
    new x402Client().register('eip155:*', new ExactEvmScheme(account as never)),
  )

const settlementIn = (response: Response) => decodeHeader(response.headers.get('payment-response')!)

test('@x402/express starts with this service as its facilitator, and answers an unpaid request with status 402', async () => {
  const { url, client } = await open()
  const response = await fetch(url)
  expect(response.status).toBe(402)
  expect(decodeHeader(response.headers.get('payment-required')!)).toMatchObject({
    x402Version: 2,
    accepts: [{ scheme: 'exact', network: NETWORK, amount: '10000' }],
  })
  expect(await client.getSupported()).toMatchObject({
    kinds: [{ x402Version: 1 }, { x402Version: 2, network: NETWORK }],
  })
})

test('if a pending settlement has a transaction hash, the x402 SDK repeats its call, and the payer pays only once', async () => {
  const { url, client, served } = await open()
  const account = await newPayer(till.client)
  await till.client.setAutomine(false)
  client.onSettle = async (n) => {
    if (n < 2) return
    await till.client.setAutomine(true)
    await till.client.mine({ blocks: 1 })
  }
  const response = await walletOf(account)(url)
  expect([response.status, client.settled, served!()]).toEqual([200, 2, 1])
  expect(settlementIn(response)).toMatchObject({ success: true, network: NETWORK })
  expect(await balanceOf(till, account.address)).toBe(990_000n)
})

test('if a pending settlement has no transaction hash, the x402 SDK does not repeat its call, and the payment settles later', async () => {
  const { url, client } = await open({ paymentFlow: 'upfront' })
  const account = await newPayer(till.client)
  expect((await fetch(url)).status).toBe(402)
  await worker.stop()
  const response = await walletOf(account)(url)
  expect([response.status, client.settled]).toEqual([402, 1])
  expect(settlementIn(response)).toMatchObject({
    success: false,
    errorReason: 'settlement_pending',
    errorMessage: expect.stringContaining('sign no new one'),
    transaction: '',
  })
  // No worker runs yet, so the payment stays pending until the next worker starts.
  worker = await till.startWorker()
  await waitFor('the settlement', async () => {
    return (await balanceOf(till, account.address)) === 990_000n
  })
})

test('a seller with the payment flow `upfront` settles a payment without a verify call before it', async () => {
  const { url, client, served } = await open({ paymentFlow: 'upfront' })
  const account = await newPayer(till.client)
  const response = await walletOf(account)(url)
  expect([response.status, client.verified, served!()]).toEqual([200, 0, 1])
  // The SDK repeats the call while a settlement is pending, so there may be more than one call.
  expect(client.settled).toBeGreaterThanOrEqual(1)
  expect(await balanceOf(till, account.address)).toBe(990_000n)
})

test('a contract wallet (ERC-1271) can pay a seller of x402 version 2', async () => {
  const { url } = await open()
  const address = await deployWallet(till.client, payer.address)
  await fund(till.client, address, 1_000_000n)
  const response = await walletOf({ ...payer, address })(url)
  expect([response.status, settlementIn(response).payer.toLowerCase()]).toEqual([200, address])
  expect(await balanceOf(till, address)).toBe(990_000n)
})

test('a contract wallet of an allowed factory (ERC-6492) is deployed by its first payment, which also pays the seller', async () => {
  const { url } = await open()
  const wallet = futureWallet(payer.address)
  await fund(till.client, wallet.address, 1_000_000n)
  const signTypedData = async (data: Parameters<typeof payer.signTypedData>[0]) =>
    wallet.wrap(await payer.signTypedData(data))
  const response = await walletOf({ address: wallet.address, signTypedData })(url)
  expect([response.status, settlementIn(response).payer]).toEqual([200, wallet.address])
  expect(await till.client.getCode({ address: wallet.address })).toBeString()
  expect(await balanceOf(till, wallet.address)).toBe(990_000n)
})

test('a buyer who pays a seller of x402 version 2 gets a receipt with a valid signature', async () => {
  const { url } = await open()
  const account = await newPayer(till.client)
  const response = await walletOf(account)(url)
  const receipt = extractReceiptFromResponse(response)
  const { keys } = (await (await fetch(`${till.service.url}/.well-known/jwks.json`)).json()) as any
  expect(await verifyReceiptSignatureJWS(receipt as never, keys[0])).toMatchObject({
    payer: account.address,
    network: NETWORK,
    resourceUrl: url,
    transaction: settlementIn(response).transaction,
  })
})
