import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import nodemailer, { type SendMailOptions } from 'nodemailer'
import type { LoopTime } from '../../api/http/limits/loopTime.ts'
import { type ApiServer, startApi } from '../../api/http/server.ts'
import type { AskSns } from '../../api/smtp/http/ses.ts'
import { type SmtpServer, startSmtp } from '../../api/smtp/server.ts'
import { generateKey } from '../../shared/apiKey.ts'
import { approvalTokens } from '../../shared/approvalLink.ts'
import { openStoreOf } from '../../shared/blobs/objectStore.ts'
import { type Config, parseConfig } from '../../shared/config/config.ts'
import { bounceKeys } from '../../shared/mail/compose/bounceAddress.ts'
import { signInTokens } from '../../shared/people/signInLink.ts'
import type { Running } from '../../shared/process/service.ts'
import { PROJECT_SCOPES } from '../../shared/scopes.ts'
import type { RunnerName } from '../../shared/tasks.ts'
import { insertPlatformKey } from '../../sql/account/keys/keys.ts'
import { createProject, type Project } from '../../sql/account/projects/projects.ts'
import { createKeyringSource, masterKeys } from '../../sql/keyring/keyring.ts'
import type { Resolve } from '../../workers/http/guardedRequest.ts'
import { createDns, type Dns } from '../../workers/mail/dns.ts'
import type { LookUp } from '../../workers/mail/lookUp.ts'
import { createTransport } from '../../workers/mail/outbound/createTransport.ts'
import { createMtaSts } from '../../workers/mail/outbound/direct/mtaSts.ts'
import type { ExamineOptions } from '../../workers/operations/doctor/examine.ts'
import { freshDns } from '../../workers/operations/doctor/look.ts'
import { startPool } from '../../workers/queue/pool.ts'
import type { PoolSettings } from '../../workers/queue/runner.ts'
import { inboundRunner, textLimits } from '../../workers/runners/inbound.ts'
import { outboundRunner } from '../../workers/runners/outbound.ts'
import { purseRunner } from '../../workers/runners/purse.ts'
import { vaultRunner } from '../../workers/runners/vault.ts'
import { webhooksRunner } from '../../workers/runners/webhooks.ts'
import { createTestDatabase, type TestDatabase } from './database/database.ts'
import { undocumented } from './documentedAnswers.ts'
import { silentLog } from './logs.ts'
import { trustingLookUp } from './mail/fakeLookUp.ts'
import { startTcpProxy, type TcpProxy } from './process/tcpProxy.ts'
import { waitFor } from './waitFor.ts'

/** Describes an HTTP response of the API with its JSON body. */
export type Answer = { status: number; headers: Headers; body: any }

/** Describes an API client that uses one API key. */
export type Client = {
  get(path: string): Promise<Answer>
  post(path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>
  put(path: string, body?: unknown): Promise<Answer>
  patch(path: string, body?: unknown): Promise<Answer>
  delete(path: string): Promise<Answer>
}

/** Describes a project with an API client that uses a key of the project. */
export type Agent = Client & { key: string; address: string; project: Project }

/** Describes the whole service, which runs in the process of the test with its own database. */
export type TestService = AsyncDisposable & {
  config: Config
  database: TestDatabase
  api: ApiServer
  smtp: SmtpServer | null
  url: string
  platform: Client & { key: string }
  /** Holds the proxy between the service and PostgreSQL, or null if the option `proxied` is not set. */
  proxy: TcpProxy | null
  newAgent(options?: { scopes?: readonly string[]; emailName?: string }): Promise<Agent>
  /** Delivers a mail to the service over real SMTP. */
  deliver(mail: SendMailOptions): Promise<void>
}

export type TestServiceOptions = {
  /** Puts a proxy between the service and PostgreSQL, so that the test can cut off the database. */
  proxied?: boolean
  /**
   * Maps a part of the service to a function that replaces the part’s database URL, for example by the URL of a proxy.
   */
  through?: Partial<Record<'api' | 'smtp' | 'workers', (databaseUrl: string) => Promise<string>>>
  env?: Record<string, string>
  /** Selects the parts of the service that run besides the API. By default the SMTP listener and the workers run. */
  smtp?: boolean
  workers?: boolean
  /** Lists the job runners that the test starts. By default the runners of the mail pool start. */
  pools?: readonly Exclude<RunnerName, 'payments'>[]
  /** Changes the settings of the worker pools. */
  pool?: Partial<PoolSettings>
  /** Holds a resolver for the host names in the URLs that projects have set. */
  resolve?: Resolve
  /** Holds additional certificate authorities in PEM form, for requests to URLs that projects have set. */
  ca?: string
  /**
   * Holds a DNS lookup for the checks of mail senders. By default the DNS records allow this machine to send for every
   * domain.
   */
  lookUp?: LookUp
  /**
   * Holds a resolver for the DNS queries about mail domains. By default, the resolver of the operating system answers
   * these queries.
   */
  dns?: Dns
  /** Holds the SMTP port for mail that the service delivers directly. The default SMTP port is 25. */
  directPort?: number
  /** Limits the costly reads of each project. By default the service's own limit applies. */
  loopTime?: LoopTime
  /** Holds a function that responds in place of Amazon SNS. */
  askSns?: AskSns
  /**
   * Holds the port of the hosts that serve MTA-STS policies. If it is set, MTA-STS is on, and a mail host may have a
   * certificate that `ca` signed.
   */
  policyPort?: number
}

/**
 * Waits until all running jobs have ended, before the proxy cuts the database connections. Graphile Worker does not
 * await the deletion of a finished job’s row, so a cut during the deletion would reject a promise and make the test
 * fail. In production, workers/main.ts handles this rejection.
 */
function cutBetweenJobs(proxy: TcpProxy, pool: TestDatabase['pool']): void {
  const { cut } = proxy
  proxy.cut = async () => {
    await waitFor('the end of running jobs', async () => {
      const { rows } = await pool.query(
        'select count(*)::int as n from graphile_worker.jobs where locked_at is not null',
      )
      return rows[0].n === 0
    })
    await cut()
  }
}

const objectStoreOf = ({ blobStore }: Config) => openStoreOf(blobStore, fetch, silentLog)

/**
 * Returns the parts that the job runner for outbound mail needs. The mail transport of this runner records mail and
 * sends none.
 */
export const outboundOptions = (config: Config): Parameters<typeof outboundRunner>[0] => ({
  mailDomain: config.mailDomain,
  baseUrl: config.http.baseUrl,
  approvalTokens: approvalTokens(masterKeys(config)),
  signInTokens: signInTokens(masterKeys(config)),
  transport: createTransport(
    { ...config, relayUrl: 'capture' },
    { dns: createDns(), ownName: config.mailHostname, allowPrivate: false },
    silentLog,
  ),
  keyring: createKeyringSource(masterKeys(config)),
  objectStore: objectStoreOf(config),
  bounceKeys: bounceKeys(masterKeys(config)),
  postmaster: config.postmaster,
  storageBytes: config.limits.storageBytes,
  ...examineOptions(config),
})

/** Returns the options for the doctor (the self-check) of a service without a public port. */
export const examineOptions = (config: Config): ExamineOptions => ({
  examine: () => ({ config, ...freshDns(config), ports: { smtp: 1, https: 1 } }),
})

/** Starts the service on free ports and without rate limits. */
export async function startTestService(options: TestServiceOptions = {}): Promise<TestService> {
  const database = await createTestDatabase()
  const dataDir = mkdtempSync(join(tmpdir(), 'purser-data-'))
  const config = parseConfig({
    PORT: '0',
    SMTP_PORT: '0',
    DATA_DIR: dataDir,
    MAIL_DOMAIN: 'mail.test',
    RATE_LIMIT_REQUESTS: '0',
    RATE_LIMIT_AUTH: '0',
    SMTP_MESSAGES_PER_IP: '0',
    SMTP_MESSAGES_PER_INBOX: '0',
    SMTP_LARGE_KB_PER_S: '0',
    ...options.env,
  })
  const direct = new URL(database.url)
  const proxy = options.proxied ? await startTcpProxy(Number(direct.port)) : null
  if (proxy !== null) cutBetweenJobs(proxy, database.pool)
  const databaseUrl =
    proxy === null ? database.url : database.url.replace(`:${direct.port}/`, `:${proxy.port}/`)
  const api = startApi(
    config,
    (await options.through?.api?.(databaseUrl)) ?? databaseUrl,
    silentLog,
    options.loopTime === undefined ? {} : { loopTime: options.loopTime },
  )
  const workersUrl = (await options.through?.workers?.(databaseUrl)) ?? databaseUrl
  const smtpUrl = (await options.through?.smtp?.(databaseUrl)) ?? databaseUrl
  const smtp =
    options.smtp === false
      ? null
      : await startSmtp(
          config,
          smtpUrl,
          silentLog,
          options.askSns === undefined ? {} : { askSns: options.askSns },
        )
  const { mailDomain, mailHostname, allowPrivateNetworks: allowPrivate } = config
  const dns = options.dns ?? createDns()
  const { resolve, ca } = options
  const policy = {
    allowPrivate,
    ...(resolve === undefined ? {} : { resolve }),
    ...(ca === undefined ? {} : { ca }),
  }
  const transport = createTransport(
    config,
    {
      dns,
      ownName: mailHostname,
      allowPrivate,
      ...(options.directPort === undefined ? {} : { port: options.directPort }),
      ...(options.policyPort === undefined
        ? {}
        : {
            findPolicy: createMtaSts({
              ...policy,
              pool: database.pool,
              dns,
              port: options.policyPort,
              log: silentLog,
            }),
            ca: ca ?? '',
          }),
    },
    silentLog,
  )
  const keyring = createKeyringSource(masterKeys(config))
  const keys = bounceKeys(masterKeys(config))
  const lookUp = options.lookUp ?? trustingLookUp
  const runners = {
    inbound: () =>
      inboundRunner({
        mailDomain,
        mailHostname,
        dns,
        lookUp,
        bounceKeys: keys,
        objectStore: objectStoreOf(config),
        postmaster: config.postmaster,
        textLimits: textLimits(config),
      }),
    outbound: () => outboundRunner({ ...outboundOptions(config), transport }),
    webhooks: () =>
      webhooksRunner({
        keyring,
        policy,
        company: config.company,
        baseUrl: config.http.baseUrl,
        ...examineOptions(config),
      }),
    vault: () => vaultRunner({ keyring, policy }),
    purse: () =>
      purseRunner({
        keyring,
        policy,
        deniedPayees: new Set(config.chain.deniedPayees),
        dailyGas: config.limits.dailyGas,
      }),
  }
  const pools =
    options.pools ?? (options.workers === false ? [] : (['inbound', 'outbound'] as const))
  const workers: Running[] = await Promise.all(
    pools.map((name) =>
      startPool({ ...runners[name](), databaseUrl: workersUrl, ...options.pool }, silentLog),
    ),
  )
  const url = `http://127.0.0.1:${api.port}`
  const platformKey = generateKey('platform')
  await insertPlatformKey(database.pool, platformKey)
  let agents = 0
  return {
    config,
    database,
    api,
    smtp,
    url,
    proxy,
    platform: { ...createClient(url, platformKey), key: platformKey },
    async newAgent({ scopes = PROJECT_SCOPES, emailName } = {}) {
      const address = `${emailName ?? `agent${++agents}`}@${config.mailDomain}`
      const { project, rawKey } = await createProject(database.pool, {
        name: `Agent ${address}`,
        purpose: 'SELLER',
        emailAddress: address,
        scopes,
      })
      return { ...createClient(url, rawKey), key: rawKey, address, project }
    },
    async deliver(mail) {
      await deliverMail(smtp!.port, mail)
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([api.stop(), smtp?.stop(), ...workers.map((pool) => pool.stop())])
      transport.close()
      await proxy?.[Symbol.asyncDispose]()
      await database[Symbol.asyncDispose]()
      rmSync(dataDir, { recursive: true, force: true })
    },
  }
}

/**
 * Makes an API client for one API key. Without a key, the client sends no Authorization header. The client compares
 * each response with the OpenAPI document, unless the service is of another release.
 */
export function createClient(
  url: string,
  key: string | null,
  { isOtherRelease = false } = {},
): Client {
  const call = async (
    method: string,
    path: string,
    body?: unknown,
    headers = {},
  ): Promise<Answer> => {
    const response = await fetch(url + path, {
      method,
      headers: {
        'content-type': 'application/json',
        ...(key === null ? {} : { authorization: `Bearer ${key}` }),
        ...headers,
      },
      ...(body === undefined
        ? {}
        : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    const text = await response.text()
    const { status } = response
    const answer = text === '' ? null : JSON.parse(text)
    const answered = { method, path, status, body: answer }
    const differences = isOtherRelease ? [] : await undocumented(url, answered)
    if (differences.length > 0) throw new Error(`undocumented: ${differences.join('; ')}`)
    return { status, headers: response.headers, body: answer }
  }
  return {
    get: (path) => call('GET', path),
    post: (path, body, headers) => call('POST', path, body, headers),
    put: (path, body) => call('PUT', path, body),
    patch: (path, body) => call('PATCH', path, body),
    delete: (path) => call('DELETE', path),
  }
}

/** Delivers one message to the service with a real SMTP client. */
export async function deliverMail(port: number, mail: SendMailOptions): Promise<void> {
  const transport = nodemailer.createTransport({ host: '127.0.0.1', port, ignoreTLS: true })
  try {
    await transport.sendMail(mail)
  } finally {
    transport.close()
  }
}

/** Waits until the inbox contains `count` messages. @returns the messages, newest first */
export function waitForMessages(agent: Client, count: number, query = ''): Promise<any[]> {
  return waitFor(`${count} messages`, async () => {
    const { body } = await agent.get(`/v0/messages?limit=100${query}`)
    return body.count >= count ? body.messages : null
  })
}

/** Returns the API path of a message. */
export const messagePath = (messageId: string): string =>
  `/v0/messages/${encodeURIComponent(messageId)}`
