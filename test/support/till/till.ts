/**
 * Starts a whole till (the seller’s part of the service) for one test file: devnet, API, payments pool, a seller and
 * payers.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Address, createWalletClient, type Hex, http, toHex } from 'viem'
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import type { Running } from '../../../shared/process/service.ts'
import { authorizationTypedData } from '../../../shared/till/authorization.ts'
import { DEVNET_ACCOUNTS } from '../../../shared/till/devnetAccounts.ts'
import { parseResourceUrl } from '../../../shared/till/resourceUrl.ts'
import { USDC_NETWORKS, type UsdcNetwork } from '../../../shared/till/usdc.ts'
import type { Authorization } from '../../../shared/till/x402.ts'
import type { Pool } from '../../../sql/db.ts'
import { type DevnetClient, devnetClient } from '../../../workers/devnet/contracts.ts'
import { type Devnet, startDevnet } from '../../../workers/devnet/devnet.ts'
import { startPool } from '../../../workers/queue/pool.ts'
import type { PoolSettings } from '../../../workers/queue/runner.ts'
import { paymentsRunner } from '../../../workers/runners/payments.ts'
import type { ObserveNode } from '../../../workers/till/chain/chainRpc.ts'
import type { TillTiming } from '../../../workers/till/chain/chainView.ts'
import { startTill, type Till } from '../../../workers/till/till.ts'
import { changeProject } from '../changeProject.ts'
import { silentLog } from '../logs.ts'
import {
  type Agent,
  examineOptions,
  startTestService,
  type TestService,
  type TestServiceOptions,
} from '../service.ts'
import { waitFor } from '../waitFor.ts'
import { authorize } from './devnetPayment.ts'

export const SEPOLIA = USDC_NETWORKS['base-sepolia']
export const PRICE = '0.01'
export const RESOURCE = 'https://api.example.com/report'
export const payer = privateKeyToAccount(DEVNET_ACCOUNTS.payer.privateKey)
export const payTo = DEVNET_ACCOUNTS.payTo.address

/** Holds the intervals of the payment workers, which are short so that the tests run fast. */
const FAST: Partial<TillTiming> = { idleMs: 150, quietMs: 300, lostMs: 400, displacedMs: 300 }

export type TillWorker = Running & { till: Till }

export type TestTill = AsyncDisposable & {
  service: TestService
  devnet: Devnet
  client: DevnetClient
  /** Holds the RPC URL that the workers use, which may be the URL of a proxy. */
  rpcUrl: string
  newSeller(options?: { resource?: string; webhookUrl?: string }): Promise<Agent>
  startWorker(options?: WorkerOptions): Promise<TillWorker>
}

type WorkerOptions = {
  timing?: Partial<TillTiming>
  rpcUrl?: string
  /** Holds the URLs of several chain nodes. Two of the chain nodes must agree. */
  rpcUrls?: readonly string[]
  observe?: ObserveNode
  settlementKeys?: readonly Hex[]
  receiptSeeds?: { id: string; seed: Uint8Array }[]
  /** Holds the database URL for this worker, which may be the URL of a proxy. */
  databaseUrl?: string
  pool?: Partial<PoolSettings>
}

export type TestTillOptions = {
  blockTimeS?: number
  env?: Record<string, string>
  /**
   * Selects the parts of the service that run besides the API and the payments workers. By default there are none.
   */
  parts?: Pick<TestServiceOptions, 'smtp' | 'pools' | 'pool' | 'dns' | 'through' | 'resolve' | 'ca'>
  /** Puts a proxy between the workers and the devnet. */
  proxy?: (rpcUrl: string) => string
  /**
   * Names another till (the seller’s part of a service) whose chain the new till shares. Each till needs its own gas
   * wallets.
   */
  beside?: TestTill
  /** Tells whether one payments worker starts, which is the default. */
  worker?: boolean | WorkerOptions
}

export async function startTestTill(options: TestTillOptions = {}): Promise<TestTill> {
  const directory = mkdtempSync(join(tmpdir(), 'purser-devnet-'))
  const log = { info() {}, warn() {} }
  const devnet =
    options.beside?.devnet ??
    (await startDevnet({
      port: 0,
      stateFile: join(directory, 'state'),
      log,
      ...(options.blockTimeS === undefined ? {} : { blockTimeS: options.blockTimeS }),
    }))
  const rpcUrl = options.proxy?.(devnet.rpcUrl) ?? devnet.rpcUrl
  const service = await startTestService({
    smtp: false,
    workers: false,
    ...options.parts,
    env: { RPC_URL: rpcUrl, ...options.env },
  })
  const workers: TillWorker[] = []
  const till: TestTill = {
    service,
    devnet,
    client: devnetClient(devnet.rpcUrl),
    rpcUrl,
    newSeller: (seller = {}) => newSeller(service, seller),
    async startWorker(worker = {}) {
      const started = await startWorker(service, { rpcUrl, ...worker })
      workers.push(started)
      return started
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(workers.map((worker) => worker.stop()))
      await service[Symbol.asyncDispose]()
      if (options.beside === undefined) await devnet.stop()
      rmSync(directory, { recursive: true, force: true })
    },
  }
  if (options.worker !== false) {
    await till.startWorker(typeof options.worker === 'object' ? options.worker : {})
  }
  return till
}

async function startWorker(service: TestService, options: WorkerOptions): Promise<TillWorker> {
  const { config } = service
  const databaseUrl = options.databaseUrl ?? service.database.url
  const rpcUrls =
    options.rpcUrls ?? (options.rpcUrl === undefined ? config.chain.rpcUrls : [options.rpcUrl])
  const till = await startTill(
    {
      ...config,
      receiptSeeds: options.receiptSeeds ?? config.receiptSeeds,
      chain: {
        ...config.chain,
        rpcUrls,
        rpcQuorum: Math.min(2, rpcUrls.length),
        settlementKeys: options.settlementKeys ?? config.chain.settlementKeys,
      },
    },
    databaseUrl,
    silentLog,
    {
      timing: { ...FAST, ...options.timing },
      ...(options.observe === undefined ? {} : { observe: options.observe }),
    },
  )
  const runner = paymentsRunner(till, examineOptions(config))
  const pool = await startPool({ ...runner, databaseUrl, ...options.pool }, silentLog)
  let stopped: Promise<void> | undefined
  const stop = async () => {
    await pool.stop()
    await till.stop()
  }
  return {
    till,
    stop() {
      stopped ??= stop()
      return stopped
    },
  }
}

let endpoints = 0

async function newSeller(
  service: TestService,
  { resource = RESOURCE, webhookUrl }: { resource?: string; webhookUrl?: string },
): Promise<Agent> {
  const seller = await service.newAgent()
  await changeProject(service.database.pool, seller.project.id, { payTo, paymentsEnabled: true })
  await registerEndpoint(service.database.pool, {
    projectId: seller.project.id,
    resource,
    webhookUrl: webhookUrl ?? null,
  })
  return seller
}

/** Stores the endpoint of a seller with the columns that the HTTP routes for sellers store. */
export async function registerEndpoint(
  pool: Pool,
  endpoint: { projectId: string; resource: string; webhookUrl?: string | null },
): Promise<string> {
  const { url, matchKey } = parseResourceUrl(endpoint.resource)
  const id = `se_${(++endpoints).toString(16).padStart(24, '0')}`
  await pool.query(
    `insert into seller_endpoints (id, project_id, url_pattern, match_key, price_atomic, network, webhook_url, webhook_secret)
     values ($1, $2, $3, $4, 10000, 'base-sepolia', $5, 'whsec_test')`,
    [id, endpoint.projectId, url, matchKey, endpoint.webhookUrl ?? null],
  )
  return id
}

/** Makes a random account that has USDC. */
export async function newPayer(client: DevnetClient, amountAtomic = 1_000_000n) {
  const account = privateKeyToAccount(generatePrivateKey())
  await fund(client, account.address, amountAtomic)
  return account
}

/** Sends USDC from the funded payer account. */
export async function fund(client: DevnetClient, to: Address, amountAtomic: bigint): Promise<void> {
  const wallet = createWalletClient({
    account: payer.address,
    transport: http(client.transport.url, { fetchOptions: { proxy: false } as never }),
  })
  const { encodeFunctionData, parseAbi } = await import('viem')
  const hash = await wallet.sendTransaction({
    chain: null,
    to: SEPOLIA.usdcAddress,
    gas: 150_000n,
    data: encodeFunctionData({
      abi: parseAbi(['function transfer(address, uint256) returns (bool)']),
      args: [to, amountAtomic],
    }),
  })
  await client.waitForTransactionReceipt({ hash })
}

export type SignedPayment = { authorization: Authorization; signature: Hex; header: string }

/** Signs an authorization as the payer, and makes the payment header from the authorization. */
export async function pay(
  changes: Partial<Authorization> = {},
  {
    account = payer,
    network = SEPOLIA,
  }: { account?: PrivateKeyAccount; network?: UsdcNetwork } = {},
): Promise<SignedPayment> {
  const nonce = toHex(crypto.getRandomValues(new Uint8Array(32)))
  const authorization = authorize({ from: account.address, nonce, ...changes })
  const signature = await account.signTypedData(authorizationTypedData(authorization, network))
  return { authorization, signature, header: headerOf(authorization, signature) }
}

/** Writes a payment in the form of the X-PAYMENT header. */
export function headerOf(
  authorization: Authorization,
  signature: Hex,
  changes: Record<string, unknown> = {},
): string {
  const { from, to, value, validAfter, validBefore, nonce } = authorization
  const json = JSON.stringify({
    x402Version: 1,
    scheme: 'exact',
    network: 'base-sepolia',
    payload: {
      signature,
      authorization: {
        from,
        to,
        value: value.toString(),
        validAfter: validAfter.toString(),
        validBefore: validBefore.toString(),
        nonce,
      },
    },
    ...changes,
  })
  return Buffer.from(json).toString('base64')
}

/** Redeems a payment header for the price of the resource. */
export const redeem = (
  seller: Pick<Agent, 'post'>,
  paymentHeader: unknown,
  changes: Record<string, unknown> = {},
  headers: Record<string, string> = {},
) =>
  seller.post(
    '/v0/payments/redeem',
    { paymentHeader, resource: RESOURCE, amount: PRICE, ...changes },
    headers,
  )

/** Redeems a payment, and repeats the request while the payment is pending. */
export const redeemToEnd = (...order: Parameters<typeof redeem>): ReturnType<typeof redeem> =>
  waitFor('the end of the payment', async () => {
    const answer = await redeem(...order)
    return answer.body.reason === 'settlement_pending' ? null : answer
  })
