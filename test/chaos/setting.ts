import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Address } from 'viem'
import { generateKey } from '../../shared/apiKey.ts'
import { PROJECT_SCOPES } from '../../shared/scopes.ts'
import { decodePaymentHeader } from '../../shared/till/x402.ts'
import { type DevnetClient, devnetClient } from '../../workers/devnet/contracts.ts'
import { type Devnet, startDevnet } from '../../workers/devnet/devnet.ts'
import { type NameServer, startNameServer } from '../support/mail/nameServer.ts'
import { type Sink, startSink } from '../support/mail/sink.ts'
import { freePort } from '../support/process/process.ts'
import { createClient } from '../support/service.ts'
import { payTo } from '../support/till/devnetPayment.ts'
import { startRpcProxy } from '../support/till/rpcProxy.ts'
import { fund } from '../support/till/till.ts'
import { broadcastPayment } from '../support/till/tokenCalls.ts'
import { waitFor } from '../support/waitFor.ts'
import { PATHS } from './audit/auditWebhooks.ts'
import type { Ending } from './ending.ts'
import { type RoughProxy, startRoughProxy } from './harms/roughProxy.ts'
import type { Database } from './postgres.ts'
import { type Service, startService } from './service.ts'
import { type Shop, startShop } from './shop.ts'

const MAIL_DOMAIN = 'mail.test'
const SETTLEMENT_WAIT_MS = 5_000
const BLOCK_TIME_S = 1

/** Lists the network links on which the harness can cut connections. */
export const LINKS = ['database', 'api', 'smtp', 'smarthost', 'receiver', 'rpc'] as const
type Link = (typeof LINKS)[number]

/** Describes the whole service as `npm start` runs it, in an environment that the harness controls. */
export type Setting = {
  service: Service
  database: Database
  devnet: Devnet
  rpc: ReturnType<typeof startRpcProxy>
  sink: Sink
  shop: Shop
  /** Holds the times at which a mail worker was killed, in milliseconds of performance.now(). */
  mailWorkersKilledMs: number[]
  /** Maps each network link to the proxy on this link. */
  links: Record<Link, RoughProxy>
  apiUrl: string
  /** Holds the URL under which the API is reached without the proxy. */
  directApiUrl: string
  resource: string
  seller: { inbox: string; key: string }
  peer: { inbox: string; key: string }
  /** Holds the purse (a project's wallet) that belongs to the second project. */
  purse: { address: Address }
  /** Holds the URL of the resource that the second project buys with its purse. */
  paidResource: string
}

/**
 * Starts the service, its database, its chain and the test’s servers. Each started part adds its stop step to `ending`,
 * so that the part is stopped even if a later start fails.
 */
export async function startSetting(
  ending: Ending,
  startDatabase: (dataDir: string) => Promise<Database>,
  givenLog?: string,
): Promise<Setting> {
  const dataDir = mkdtempSync(join(tmpdir(), 'purser-chaos-'))
  ending.add('the data', () => rmSync(dataDir, { recursive: true, force: true }))
  const database = await startDatabase(dataDir)
  ending.add('the database', () => database.stop())
  const devnet = await startDevnet({
    port: 0,
    stateFile: join(dataDir, 'devnet.state'),
    blockTimeS: BLOCK_TIME_S,
    log: { info() {}, warn() {} },
  })
  ending.add('the devnet', () => devnet.stop())
  const [sink, shop, names] = [await startSink(), await startShop(), await startNameServer([])]
  ending.add('the smarthost', () => sink[Symbol.asyncDispose]())
  ending.add('the receiver', () => shop[Symbol.asyncDispose]())
  ending.add('the name server', () => names[Symbol.asyncDispose]())
  const rpc = startRpcProxy(devnet.rpcUrl)
  ending.add('the RPC proxy', () => rpc.stop())
  const [port, smtpPort] = [await freePort(), await freePort()]
  const behind = {
    api: port,
    smtp: smtpPort,
    smarthost: sink.port,
    receiver: shop.port,
    rpc: Number(new URL(rpc.url).port),
  }
  const links = { database: database.proxy } as Record<Link, RoughProxy>
  for (const [name, target] of Object.entries(behind)) {
    const link = await startRoughProxy(target)
    ending.add(`the proxy of ${name}`, () => link[Symbol.asyncDispose]())
    links[name as Link] = link
  }
  const local = (link: Link) => `http://127.0.0.1:${links[link].port}`
  const keys = { platform: generateKey('platform'), project: generateKey('project') }
  const service = await startService(
    environment({ dataDir, database, links, port, smtpPort, names, keys }),
    givenLog ?? join(dataDir, 'service.log'),
  )
  ending.add('the service', async () => void (await service.stop()))
  const directApiUrl = `http://127.0.0.1:${port}`
  const client = devnetClient(devnet.rpcUrl)
  shop.settle = createSettler(client)
  const projects = await prepare(directApiUrl, keys, { origin: local('receiver'), shop, client })
  return {
    service,
    database,
    devnet,
    rpc,
    sink,
    shop,
    links,
    mailWorkersKilledMs: [],
    apiUrl: local('api'),
    directApiUrl,
    resource: local('receiver') + PATHS.resource,
    paidResource: local('receiver') + PATHS.paid,
    ...projects,
  }
}

function environment(made: {
  dataDir: string
  database: Database
  links: Record<Link, RoughProxy>
  port: number
  smtpPort: number
  names: NameServer
  keys: { platform: string; project: string }
}): Record<string, string> {
  const { dataDir, database, links, port, smtpPort, names, keys } = made
  return {
    DATABASE_URL: database.url,
    RPC_URL: `http://127.0.0.1:${links.rpc.port}`,
    SMTP_RELAY_URL: `smtp://127.0.0.1:${links.smarthost.port}`,
    DNS_SERVERS: names.address,
    ALLOW_PRIVATE_NETWORKS: 'true',
    RATE_LIMIT_REQUESTS: '0',
    SMTP_MESSAGES_PER_IP: '0',
    SMTP_MESSAGES_PER_INBOX: '0',
    SMTP_LARGE_KB_PER_S: '0',
    RATE_LIMIT_AUTH: '0',
    SETTLEMENT_WAIT_MS: String(SETTLEMENT_WAIT_MS),
    PORT: String(port),
    SMTP_PORT: String(smtpPort),
    DATA_DIR: dataDir,
    MAIL_DOMAIN,
    BOOTSTRAP_PLATFORM_KEY: keys.platform,
    BOOTSTRAP_PROJECT_KEY: keys.project,
  }
}

/**
 * Returns the settlement function of a seller. The function broadcasts each payment once, and returns the first
 * transaction for a repeated payment.
 */
function createSettler(client: DevnetClient): Shop['settle'] {
  const settled = new Map<string, Promise<string>>()
  let sending: Promise<unknown> = Promise.resolve()
  return (header) => {
    const decoded = decodePaymentHeader(header)
    if (!decoded.ok) return Promise.reject(new Error(decoded.detail))
    const { authorization, signature } = decoded.payload.payload
    const before = settled.get(authorization.nonce)
    if (before !== undefined) return before
    // The seller sends payments to the chain one after another, because anvil would give two concurrent transactions of
    // an account the same nonce.
    const sent = sending.then(() => broadcastPayment(client, { authorization, signature, header }))
    sending = sent.catch(() => {})
    const done = sent.then(async (hash) => {
      await client.waitForTransactionReceipt({ hash })
      return hash
    })
    settled.set(authorization.nonce, done)
    done.catch(() => settled.delete(authorization.nonce))
    return done
  }
}

/** Sets the limit of the purse's mandate (spending limit) in USDC, which is low enough to be reached in a chaos run. */
const LIMIT = '0.5'

/** Opens and funds the purse (the wallet) of the second project, and gives the project a mandate (spending limit). */
async function openPurse(
  platform: ReturnType<typeof createClient>,
  projectId: string,
  { host, client }: { host: string; client: DevnetClient },
): Promise<{ address: Address }> {
  const path = `/v0/platform/projects/${projectId}`
  const { address } = expect(await platform.post(`${path}/purse`, {}), 201)
  await fund(client, address, 2_000_000n)
  const mandate = { name: 'Chaos', hosts: [host], maxPerPayment: '0.01', maxTotal: LIMIT }
  expect(await platform.post(`${path}/mandates`, { ...mandate, paymentsPerMinute: 10_000 }), 201)
  await waitFor('the balance of the purse', async () => {
    const { body } = await platform.get(`${path}/purse`)
    return body.balanceUsdc === '2'
  })
  return { address }
}

/** Gives the first project a paid endpoint and a webhook. Creates the second project with its purse. */
async function prepare(
  url: string,
  keys: { platform: string; project: string },
  { origin, shop, client }: { origin: string; shop: Shop; client: DevnetClient },
): Promise<Pick<Setting, 'seller' | 'peer' | 'purse'>> {
  const platform = createClient(url, keys.platform)
  const seller = createClient(url, keys.project)
  const whoami = expect(await seller.get('/v0/whoami'), 200)
  expect(
    await platform.patch(`/v0/platform/projects/${whoami.projectId}`, {
      payTo,
      paymentsEnabled: true,
    }),
    200,
  )
  const peer = expect(
    await platform.post('/v0/platform/projects', {
      name: 'Peer',
      emailName: 'peer',
      scopes: [...PROJECT_SCOPES],
    }),
    201,
  )
  const endpoint = expect(
    await seller.put('/v0/sellers/endpoints', {
      urlPattern: origin + PATHS.resource,
      priceUsdc: '0.01',
      webhookUrl: origin + PATHS.payments,
      webhookSecret: shop.secret,
    }),
    201,
  )
  expect(
    await seller.post('/v0/webhooks', {
      url: origin + PATHS.events,
      events: [
        'message.received',
        'message.sent',
        'message.failed',
        'message.bounced',
        'payment.settled',
        'payment.failed',
      ],
      secret: shop.secret,
    }),
    201,
  )
  await waitFor('the endpoint to be verified', async () => {
    const { body } = await seller.get(`/v0/sellers/endpoints/${endpoint.endpointId}`)
    return body.verification?.status === 'verified'
  })
  const { host } = new URL(origin)
  const purse = await openPurse(platform, peer.projectId, { host, client })
  return {
    purse,
    seller: { inbox: whoami.email, key: keys.project },
    peer: { inbox: peer.emailAddress, key: peer.rawKey },
  }
}

function expect({ status, body }: { status: number; body: any }, wanted: number): any {
  if (status !== wanted) throw new Error(`the setting was answered ${status}: ${body?.message}`)
  return body
}
