/**
 * Starts a service with a funded purse (a wallet that pays), and a seller on the same chain. The test chooses the
 * responses of the seller.
 */
import { type Address, type Hex, parseAbiItem } from 'viem'
import type { PaymentPayload } from '../../../shared/till/x402.ts'
import { decodePaymentHeader } from '../../../shared/till/x402.ts'
import { encodeHeader } from '../../../shared/till/x402v2.ts'
import type { Agent, Client } from '../service.ts'
import {
  fund,
  payTo,
  SEPOLIA,
  startTestTill,
  type TestTill,
  type TestTillOptions,
} from '../till/till.ts'
import { broadcastPayment } from '../till/tokenCalls.ts'
import { waitFor } from '../waitFor.ts'

const FUNDS_ATOMIC = 100_000_000n

type Json = Record<string, unknown>

/** Describes the purchase of an agent in the form of the REST API. */
export type PurchaseView = {
  purchaseId: string
  state: string
  reason: string | null
  detail: string | null
  status: number | null
  response: { status: number; body: string | null; untrusted: true } | null
  terms: { amountUsdc: string; payTo: string } | null
  payment: {
    state: 'open' | 'spent' | 'released'
    final: boolean
    paidWithoutContent: boolean
    txHash: string | null
    nonce: string
    validBefore: number
    mandateIds: string[]
  } | null
}

export type Buyer = Agent & {
  address: Address
  giveMandate(terms?: Json): Promise<string>
  mandate(id: string): Promise<Record<string, string>>
  /** Requests a purchase, with `key` as its Idempotency-Key. By default each purchase has a new idempotency key. */
  pay(
    url: string,
    more?: Json & { key?: string; timeout?: number },
  ): Promise<{ status: number; body: PurchaseView }>
  purchase(id: string): Promise<PurchaseView>
  /** Waits until the payment of a purchase is in the given state. */
  settled(id: string, state: 'spent' | 'released'): Promise<PurchaseView>
}

let keys = 0

/** Opens and funds the purse (the wallet) of a project. Waits until the service has read the balance of the purse. */
export async function fundPurse(
  { service, client }: TestTill,
  projectId: string,
  fundsAtomic = FUNDS_ATOMIC,
): Promise<Address> {
  const path = `/v0/platform/projects/${projectId}/purse`
  const { address } = (await service.platform.post(path, {})).body as { address: Address }
  if (fundsAtomic > 0n) await fund(client, address, fundsAtomic)
  await waitFor('the balance of the purse', async () => {
    const { balanceUsdc } = (await service.platform.get(path)).body as Json
    return balanceUsdc !== null && (fundsAtomic === 0n || balanceUsdc !== '0')
  })
  return address
}

/** Makes a project with a funded purse (the wallet that pays). */
export async function newBuyer(
  till: TestTill,
  { fundsAtomic }: { fundsAtomic?: bigint } = {},
): Promise<Buyer> {
  const agent = await till.service.newAgent()
  const address = await fundPurse(till, agent.project.id, fundsAtomic)
  return { ...agent, address, ...ofAgent(till, agent) }
}

/**
 * Returns two API clients: for the agent, which pays from the purse (wallet) of its project, and for the owner, who
 * sets the mandates (limits on payments).
 */
export function ofAgent({ service }: TestTill, agent: Agent): Omit<Buyer, keyof Agent | 'address'> {
  const base = `/v0/platform/projects/${agent.project.id}`
  const read = async <Found>(client: Client, path: string): Promise<Found> =>
    waitFor(`a response of ${path}`, async () => {
      const { status, body } = await client.get(path)
      // A busy service refuses a request with status 503. Without this check, the error would be treated as a purchase.
      if (status === 503) return null
      // The status 202 marks a purchase that has not ended after the wait.
      if (status !== 200 && status !== 202) throw new Error(JSON.stringify(body))
      return body
    })
  const purchase = (id: string) => read<PurchaseView>(agent, `/v0/purse/payments/${id}?timeout=40`)
  return {
    async giveMandate(terms = {}) {
      const given = await service.platform.post(`${base}/mandates`, {
        name: 'Test',
        hosts: [],
        maxPerPayment: '1',
        maxTotal: '10',
        paymentsPerMinute: 10_000,
        ...terms,
      })
      if (given.status !== 201) throw new Error(JSON.stringify(given.body))
      return (given.body as { mandateId: string }).mandateId
    },
    mandate: (id) => read(service.platform, `${base}/mandates/${id}`),
    async pay(url, { key = `key-${++keys}`, timeout = 40, ...more } = {}) {
      const answer = await agent.post(
        `/v0/purse/pay?timeout=${timeout}`,
        { url, maxAmount: '1', ...more },
        { 'idempotency-key': key },
      )
      return { status: answer.status, body: answer.body as PurchaseView }
    },
    purchase,
    settled: (id, state) =>
      waitFor(`the payment of ${id} as ${state}`, async () => {
        const found = await purchase(id)
        return found.payment?.state === state ? found : null
      }),
  }
}

/** Describes a signed payment that reached the seller of the test. */
export type Received = { header: string; payload: PaymentPayload['payload']; x402Version: 1 | 2 }

export type Terms = {
  amount: string
  payTo: string
  network: string
  asset: string
  maxTimeoutSeconds: number
  extra: Json
  scheme: string
}

export type Seller = AsyncDisposable & {
  url: string
  host: string
  /** Lists the payments that the seller received, in the order of arrival and with repeats. */
  received: Received[]
  /** Lists the requests that came to the seller without a payment. */
  asked: Request[]
  terms: Terms
  version: 1 | 2
  resource: string | null
  /**
   * Makes the seller's response to a request that contains a payment. By default the payment is settled on the chain,
   * and the content is served.
   */
  serve: (payment: Received, request: Request) => Promise<Response>
  /**
   * Makes the seller's response to a request without a payment. The default response is a 402 with the given `terms`.
   */
  ask: (request: Request) => Promise<Response> | Response
  /** Broadcasts a payment from an account that the service does not know. */
  settle(payment: Received): Promise<Hex>
  challenge(changes?: Partial<Terms>[], body?: Json): Response
}

const CONTENT = JSON.stringify({ tempC: 7 })

/** Starts a seller that settles the received payments itself. */
export function startSeller({ client }: TestTill): Seller {
  const terms: Terms = {
    scheme: 'exact',
    network: 'base-sepolia',
    amount: '10000',
    payTo,
    asset: SEPOLIA.usdcAddress,
    maxTimeoutSeconds: 60,
    extra: { name: 'USDC', version: '2' },
  }
  let sending: Promise<unknown> = Promise.resolve()
  // If a payment is repeated with the same nonce, the seller responds with the first settlement, as an honest seller
  // does.
  const settlements = new Map<string, Promise<Hex>>()
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 120,
    async fetch(request) {
      const header = request.headers.get('payment-signature') ?? request.headers.get('x-payment')
      if (header === null) {
        seller.asked.push(request)
        return seller.ask(request)
      }
      const decoded = decodePaymentHeader(header)
      if (!decoded.ok) return new Response(decoded.detail, { status: 400 })
      const { payload, x402Version } = decoded.payload
      const payment = { header, payload, x402Version }
      seller.received.push(payment)
      return seller.serve(payment, request)
    },
  })
  const seller: Seller = {
    url: `http://127.0.0.1:${server.port}/weather`,
    host: `127.0.0.1:${server.port}`,
    received: [],
    asked: [],
    terms,
    version: 2,
    resource: null,
    async serve(payment) {
      const { nonce } = payment.payload.authorization
      const before = settlements.get(nonce) ?? seller.settle(payment)
      settlements.set(nonce, before)
      return served(payment, await before)
    },
    ask: () => seller.challenge(),
    async settle({ payload: { authorization, signature } }) {
      // The seller sends transactions one after the other, because anvil gives concurrent transactions of an account
      // the same nonce.
      const sent = sending.then(() =>
        broadcastPayment(client, { authorization, signature, header: '' }),
      )
      sending = sent.catch(() => {})
      const hash = await sent
      const { status } = await client.waitForTransactionReceipt({ hash })
      if (status !== 'success') throw new Error('the settlement was reverted')
      return hash
    },
    challenge(changes = [{}], more = {}) {
      const { version, url } = seller
      const resource = seller.resource ?? url
      const offers = changes.map((change) => ({ ...seller.terms, ...change }))
      if (version === 1) {
        const accepts = offers.map(({ amount, ...offer }) => ({
          ...offer,
          maxAmountRequired: amount,
          resource,
          description: 'The weather',
          mimeType: 'application/json',
        }))
        return Response.json({ x402Version: 1, error: 'pay', accepts, ...more }, { status: 402 })
      }
      const accepts = offers.map((offer) => ({
        ...offer,
        network: offer.network === 'base-sepolia' ? 'eip155:84532' : offer.network,
      }))
      const body = {
        x402Version: 2,
        error: 'pay',
        resource: { url: resource, description: 'The weather' },
        accepts,
        ...more,
      }
      return new Response('{}', {
        status: 402,
        headers: { 'payment-required': encodeHeader(body) },
      })
    },
    async [Symbol.asyncDispose]() {
      await server.stop(true)
    },
  }
  return seller
}

/** Returns the response of a seller that has settled the payment. */
export function served({ x402Version }: Received, transaction: string): Response {
  const said = encodeHeader({ success: true, transaction, network: 'base-sepolia', payer: '0x' })
  const name = x402Version === 1 ? 'x-payment-response' : 'payment-response'
  return new Response(CONTENT, {
    headers: { 'content-type': 'application/json', [name]: said },
  })
}

/**
 * Starts a till (the seller’s part of the service), and a worker that makes payments from a purse (the wallet of a
 * project).
 */
export const startPurseTill = (options: TestTillOptions = {}): Promise<TestTill> =>
  startTestTill({
    ...options,
    env: { ALLOW_PRIVATE_NETWORKS: 'true', ...options.env },
    parts: { pools: ['purse'], ...options.parts },
  })

const TRANSFER = parseAbiItem(
  'event Transfer(address indexed from, address indexed to, uint256 value)',
)

/** Returns the total that an address has paid on the chain, in atomic units. */
export async function paidBy({ client }: TestTill, address: Address): Promise<bigint> {
  const logs = await client.getLogs({
    address: SEPOLIA.usdcAddress,
    event: TRANSFER,
    args: { from: address },
    fromBlock: 0n,
  })
  return logs.reduce((sum, { args }) => sum + args.value!, 0n)
}
