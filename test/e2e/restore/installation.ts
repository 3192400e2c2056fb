/** Runs `npm start` with a database that can be backed up and restored in another folder. */
import { generateKey } from '../../../shared/apiKey.ts'
import { createPool, type Pool } from '../../../sql/db.ts'
import {
  runningEmbeddedUrl,
  startEmbeddedPostgres,
} from '../../../sql/embedded/embeddedPostgres.ts'
import {
  freePort,
  printed,
  type ServiceProcess,
  startProcess,
} from '../../support/process/process.ts'
import { type Client, createClient } from '../../support/service.ts'
import { payTo } from '../../support/till/devnetPayment.ts'
import { PRICE } from '../../support/till/till.ts'
import { waitFor } from '../../support/waitFor.ts'
import type { Surroundings } from './surroundings.ts'

/** Holds the settings that an installation keeps when it moves: keys, names and addresses. */
export type Settings = Record<string, string>

const newKey = () => Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString('base64')

export async function newSettings({ rpc, sink, nameServer }: Surroundings): Promise<Settings> {
  return {
    MASTER_KEYS: `2026:${newKey()}`,
    RECEIPT_SIGNING_KEYS: `2026:${newKey()}`,
    BOOTSTRAP_PLATFORM_KEY: generateKey('platform'),
    BOOTSTRAP_PROJECT_KEY: generateKey('project'),
    PORT: String(await freePort()),
    SMTP_PORT: String(await freePort()),
    MAIL_DOMAIN: 'mail.test',
    RPC_URL: rpc.url,
    SMTP_RELAY_URL: sink.url,
    DNS_SERVERS: nameServer,
    ALLOW_PRIVATE_NETWORKS: 'true',
    RATE_LIMIT_REQUESTS: '0',
    SMTP_MESSAGES_PER_IP: '0',
    SMTP_MESSAGES_PER_INBOX: '0',
    SMTP_LARGE_KB_PER_S: '0',
    RATE_LIMIT_AUTH: '0',
    SETTLEMENT_WAIT_MS: '1000',
    LOG_LEVEL: 'warn',
  }
}

export type Installation = AsyncDisposable & {
  service: ServiceProcess
  agent: Client
  url: string
  key: string
  /** Runs the operator's backup command with the settings of the installation. */
  backUp(target: string): Promise<string>
  stop(): Promise<number | string>
}

/** Starts the service with the embedded database of a data directory. */
export async function startInstallation(
  settings: Settings,
  dataDir: string,
): Promise<Installation> {
  const env = { ...settings, DATA_DIR: dataDir }
  const service = startProcess('api/start.ts', env)
  const url = `http://127.0.0.1:${settings.PORT}`
  const key = settings.BOOTSTRAP_PROJECT_KEY!
  await printed(service, /Purser is running/)
  return {
    service,
    url,
    key,
    agent: createClient(url, key),
    async backUp(target) {
      await using backup = startProcess('api/operations/backupMain.ts', env, [target])
      const code = await backup.exited
      if (code !== 0) throw new Error(`the backup ended with ${code}: ${backup.stderr()}`)
      return backup.stdout()
    },
    async stop() {
      service.child.kill('SIGTERM')
      return service.exited
    },
    [Symbol.asyncDispose]: () => service[Symbol.asyncDispose](),
  }
}

/** Makes the first project a seller that gets webhooks for messages and payments. */
export async function setUp(
  { agent, url }: Installation,
  settings: Settings,
  { resource, receiver }: Surroundings,
): Promise<{ inbox: string }> {
  const platform = createClient(url, settings.BOOTSTRAP_PLATFORM_KEY!)
  const { body: me } = await agent.get('/v0/whoami')
  await platform.patch(`/v0/platform/projects/${me.projectId}`, { payTo, paymentsEnabled: true })
  const hooks = `http://127.0.0.1:${receiver.port}`
  const { body: endpoint } = await agent.put('/v0/sellers/endpoints', {
    urlPattern: resource,
    priceUsdc: PRICE,
    webhookUrl: `${hooks}/payments`,
  })
  await agent.post('/v0/webhooks', {
    url: `${hooks}/events`,
    events: ['message.received', 'payment.settled'],
  })
  await waitFor('the endpoint to be verified', async () => {
    const { body } = await agent.get(`/v0/sellers/endpoints/${endpoint.endpointId}`)
    return body.verification?.status === 'verified'
  })
  return { inbox: me.email }
}

/** Opens the database of an installation. Starts the embedded server if no database server runs. */
export async function inDatabase<Result>(
  { DATABASE_URL }: Settings,
  dataDir: string,
  look: (pool: Pool) => Promise<Result>,
): Promise<Result> {
  const running = DATABASE_URL ?? runningEmbeddedUrl(dataDir)
  const server = running === null ? await startEmbeddedPostgres({ dataDir, onLog() {} }) : null
  const pool = createPool({ url: running ?? server!.url, size: 1, name: 'test' })
  try {
    return await look(pool)
  } finally {
    await pool.end()
    await server?.stop()
  }
}
