import { isIP } from 'node:net'
import type { z } from 'zod'
import type { MtaStsMode } from '../mail/mtaSts.ts'
import type { PurseConsent } from '../oauth/oauthScopes.ts'
import { DEVNET_ACCOUNTS } from '../till/devnetAccounts.ts'
import { type MasterKey, masterKey } from '../vault/envelope.ts'
import { type BlobStoreSettings, blobStoreSettings } from './blobStoreSettings.ts'
import { ConfigError, type Fault, faultLine } from './configError.ts'
import { brokenDemands } from './demands.ts'
import { describeIssue } from './describeIssue.ts'
import { type CertificateFiles, type RelayTls, relayTls, smtpTls } from './mailTls.ts'
import { misspeltLine, misspeltVariables } from './misspelt.ts'
import { type RetentionSettings, retentionSettings } from './retentionSettings.ts'
import {
  ALL_SECRETS,
  BLOB_SECRET,
  COMPANY_SECRET,
  INBOUND_SECRET,
  type ReadSecret,
} from './secrets.ts'
import { NAMED_SEED, variables } from './variables.ts'

export { ConfigError }

/** Returns the environment variables that have a value. An empty variable counts as absent. */
export const withoutEmpty = (env: Record<string, string | undefined>) =>
  Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ''))

/** Holds a named Ed25519 seed of 32 bytes. The key of this seed signs receipts. */
export type ReceiptSeed = { id: string; seed: Uint8Array }

/** Holds a named secret for mail over HTTP. Mail that arrives over HTTP is authenticated with this secret. */
type InboundSecret = { id: string; secret: Uint8Array }

/** Holds the settings of a process. Each process reads its settings once when it starts (docs/settings.md). */
export type Config = {
  production: boolean
  http: { port: number; host: string; baseUrl: string }
  /**
   * Holds the address at which every process also serves `/healthz`. Null means that no process has such an address.
   */
  health: { port: number; host: string } | null
  smtp: {
    port: number
    host: string
    maxConnections: number
    maxConnectionsPerIp: number
    /** Holds the maximum number of messages a minute from one network, and to one inbox. 0 means no limit. */
    messagesPerIp: number
    messagesPerInbox: number
    /** Limits the bytes a second of large messages from one network, and to one inbox. 0 means no limit. */
    largeBytesPerS: number
    /** Names the PEM files for STARTTLS. Null means that the SMTP listener offers no STARTTLS. */
    tls: CertificateFiles | null
    /** Holds the address at which mail services deliver mail over HTTP. Null means that mail over HTTP is off. */
    http: {
      port: number
      secrets: readonly InboundSecret[]
      /**
       * Names the topics of Amazon SES that may deliver mail, and the S3 bucket that holds large mail of these topics.
       * Null means that the operator has set no topic of Amazon SES.
       */
      ses: { topics: readonly string[]; bucket: BlobStoreSettings | null } | null
    } | null
  }
  dataDir: string
  databaseUrl: string | undefined
  /**
   * Holds the streaming replica of the database from which the API reads. Null means that the API reads from the
   * primary.
   */
  databaseReplicaUrl: string | null
  databasePoolSize: number
  /**
   * Holds the object store for large contents of mail. Null means that the database holds the large contents of mail,
   * or that this process does not use them.
   */
  blobStore: BlobStoreSettings | null
  mailDomain: string
  /** Holds the host name of this machine in EHLO and in the MX records of its domains. */
  mailHostname: string
  /** Holds the mode of the MTA-STS policy of the service's own domains. */
  mtaSts: MtaStsMode
  /** Holds the inbox that receives the mail of `postmaster@mailDomain` if no inbox has this address. */
  postmaster: string | undefined
  /**
   * Holds the URL of a smarthost, or one of the two words `capture` and `direct`. `capture` stores outgoing mail and
   * sends nothing. `direct` sends mail to the MX hosts of the recipients' domains.
   */
  relayUrl: string
  /** Tells whether mail may reach the smarthost without TLS. The value is `required` if the URL holds credentials. */
  relayTls: RelayTls
  /**
   * Names a PEM file with the CA of the smarthost, or with the smarthost's own certificate. Undefined means that the
   * system's CAs are trusted.
   */
  relayCaFile: string | undefined
  chain: {
    /** Lists the URLs of one chain node, or of several chain nodes that must agree. */
    rpcUrls: readonly string[]
    /** Holds the number of chain nodes that must give the same result before the service moves money. */
    rpcQuorum: number
    /** Tells whether the chain node is the devnet that `npm start` runs. */
    embeddedDevnet: boolean
    devnetPort: number
    /** Tells whether the operator has set `DEVNET_PORT`. Otherwise the devnet may listen on another port. */
    devnetPortIsGiven: boolean
    /** Holds the private keys of the gas wallets. */
    settlementKeys: readonly `0x${string}`[]
    /**
     * Lists the factories, in lower case, that may deploy a payer's smart wallet at the gas wallets' expense
     * (ERC-6492).
     */
    walletFactories: readonly string[]
    /** Lists wallet addresses, in lower case, that no project's purse (its spending wallet) pays. */
    deniedPayees: readonly string[]
  }
  /**
   * Holds the Ed25519 seeds of the receipt keys. The first receipt seed in the list signs the receipts. Undefined means
   * that the process generates one receipt seed (in development only).
   */
  receiptSeeds: readonly ReceiptSeed[] | undefined
  /** Holds the master keys. The first key encrypts. Undefined means that one key is generated (in development only). */
  masterKeys: readonly MasterKey[] | undefined
  /**
   * Holds the lowest price in atomic USDC that a seller may set for an endpoint. 0 means that every price is allowed.
   */
  minPriceAtomic: number
  /** Limits the milliseconds that an API call to redeem a payment waits for the settlement on the chain. */
  settlementWaitMs: number
  /** Lists the OAuth scopes of the purse (a project's spending wallet) that an owner may give to a chat host. */
  oauthPurseScopes: readonly PurseConsent[]
  bootstrap: { platformKey: string | undefined; projectKey: string | undefined }
  /**
   * Describes the company's identity provider (OpenID Connect). Null means that the company has no identity provider.
   * The client secret is null for a public client.
   */
  company: { issuer: string; clientId: string; clientSecret: string | null } | null
  /**
   * Holds the usage limits of each identity, such as its requests a minute. Requests a minute are counted per identity,
   * and failed authentications a minute per IP address. 0 turns a limit off.
   */
  limits: {
    requestsPerMinute: number
    authFailuresPerMinute: number
    /**
     * Holds the maximum number of requests a minute that one identity may send to the x402 facilitator. Requests to the
     * facilitator are counted apart from all other requests.
     */
    facilitatorRequestsPerMinute: number
    /** Holds the maximum number of recipients that a project may write to in a UTC day. Null means no limit. */
    recipientsPerDay: number | null
    /** Holds the maximum number of bytes of mail that a project may store. Null means no limit. */
    storageBytes: number | null
    /**
     * Limits how many payments a project may claim in a UTC day, and how much gas their transactions may use. Null
     * means no limit.
     */
    dailySettlements: number | null
    dailyGas: number | null
    /**
     * Limits how many bytes and how many seconds the service spends on reading a project's attachments in a UTC day.
     * Null means no limit.
     */
    dailyTextBytes: number | null
    dailyTextSeconds: number | null
  }
  /**
   * Holds the number of days for which rows of each retention class are kept. Null means that the default number of
   * days applies. Only the retention settings of the worker processes take effect.
   */
  retention: RetentionSettings
  /** Tells whether webhooks and sellers' endpoints may be at private addresses (in development). */
  allowPrivateNetworks: boolean
  trustedProxies: string[]
  /**
   * Lists the DNS servers that look up senders, hosts and domains. If the list is empty, the system's DNS servers are
   * asked.
   */
  dnsServers: string[]
  /**
   * Holds the URL of an internet page that the doctor (the service's self-check) requests. From the page's response,
   * the doctor learns the clock of the page's server, and this service's public address.
   */
  outsideUrl: string
  /** Selects the fields of API responses. `full` adds message fields that are not part of the API's specification. */
  answers: 'standard' | 'full'
  /**
   * Holds the token that requests of `/metrics` must carry. Undefined means that requests of `/metrics` need no token.
   */
  metricsToken: string | undefined
  /** Holds the base URL of an OTLP collector. Null means that no request is traced. */
  traceEndpoint: string | null
  logLevel: string
}

/**
 * Sets the factor between the general limit on requests a minute and the facilitator's limit. A sale takes two calls to
 * the facilitator, and a 429 after the seller's work would lose the sale.
 */
const FACILITATOR_FACTOR = 6

/** Writes `host:port`. An IPv6 address has brackets: `[::1]:3000`. */
const hostPort = (host: string, portNumber: number) =>
  `${isIP(host) === 6 ? `[${host}]` : host}:${portNumber}`

/** Lists the variables that hold keys. A process that does not use a key does not even read its variable. */
const KEYS = [
  'MASTER_KEYS',
  'RECEIPT_SIGNING_KEYS',
  'SETTLEMENT_KEYS',
  BLOB_SECRET,
  INBOUND_SECRET,
  COMPANY_SECRET,
] as const

/**
 * Reads the settings of a process from the environment variables. An empty variable counts as absent.
 * @param secrets lists the secrets that the process uses. In production the operator must set all of these secrets.
 * @throws {ConfigError} The error names every variable whose value is invalid, and every variable that may be misspelt.
 */
export function parseConfig(
  env: Record<string, string | undefined>,
  secrets: readonly ReadSecret[] = ALL_SECRETS,
): Config {
  const { config, faults } = readConfig(env, secrets)
  if (faults.length === 0) return config
  const misspelt = misspeltVariables(env)
  throw new ConfigError([...faults.map(faultLine), ...misspelt.map(misspeltLine)].join('\n'))
}

/** Reads the environment as {@link parseConfig} does. A variable whose value is invalid counts as absent. */
export function readConfig(
  env: Record<string, string | undefined>,
  secrets: readonly ReadSecret[],
): { config: Config; faults: Fault[] } {
  const given = withoutEmpty(env)
  for (const name of KEYS) if (!secrets.includes(name)) delete given[name]
  const unreadable = variables.safeParse(given).error?.issues ?? []
  // Only the first issue of each variable is reported, because a variable that holds a list has an issue for each item.
  const faults = Map.groupBy(unreadable, (issue) => String(issue.path[0]))
    .values()
    .map(([first]) => describeIssue(first!, given))
    .toArray()
  for (const { variable } of faults) delete given[variable]
  const values = variables.parse(given)
  const broken = brokenDemands(values, secrets).filter(
    ({ variable }) => !faults.some((fault) => fault.variable === variable),
  )
  return { config: configOf(values, secrets), faults: [...faults, ...broken] }
}

function configOf(values: z.output<typeof variables>, secrets: readonly ReadSecret[]): Config {
  const production = values.NODE_ENV === 'production'
  return {
    production,
    http: {
      port: values.PORT,
      host: values.HOST,
      baseUrl: (values.BASE_URL ?? `http://${hostPort(values.HOST, values.PORT)}`).replace(
        /\/+$/,
        '',
      ),
    },
    health:
      values.HEALTH_PORT === undefined ? null : { port: values.HEALTH_PORT, host: values.HOST },
    smtp: {
      port: values.SMTP_PORT,
      host: values.SMTP_HOST ?? values.HOST,
      maxConnections: values.SMTP_MAX_CONNECTIONS,
      maxConnectionsPerIp: values.SMTP_MAX_CONNECTIONS_PER_IP,
      messagesPerIp: values.SMTP_MESSAGES_PER_IP,
      messagesPerInbox: values.SMTP_MESSAGES_PER_INBOX,
      largeBytesPerS: values.SMTP_LARGE_KB_PER_S * 1024,
      tls: smtpTls(values),
      http: inboundHttp(values),
    },
    dataDir: values.DATA_DIR,
    databaseUrl: values.DATABASE_URL,
    databaseReplicaUrl: values.DATABASE_REPLICA_URL ?? null,
    databasePoolSize: values.DATABASE_POOL,
    blobStore: secrets.includes(BLOB_SECRET) ? blobStoreSettings(values) : null,
    mailDomain: values.MAIL_DOMAIN,
    mailHostname: values.MAIL_HOSTNAME ?? values.MAIL_DOMAIN,
    mtaSts: values.MTA_STS,
    postmaster: values.POSTMASTER,
    relayUrl: values.SMTP_RELAY_URL ?? (production ? 'direct' : 'capture'),
    relayTls: relayTls(values),
    relayCaFile: values.SMTP_RELAY_CA_FILE,
    chain: chainSettings(values),
    receiptSeeds: keysOf(values.RECEIPT_SIGNING_KEYS, parseReceiptSeed),
    masterKeys: keysOf(values.MASTER_KEYS, parseMasterKey),
    minPriceAtomic: Math.round(Number(values.MIN_PRICE_USDC) * 1_000_000),
    settlementWaitMs: values.SETTLEMENT_WAIT_MS,
    oauthPurseScopes: values.OAUTH_PURSE_SCOPES,
    bootstrap: {
      platformKey: values.BOOTSTRAP_PLATFORM_KEY,
      projectKey: values.BOOTSTRAP_PROJECT_KEY,
    },
    company:
      values.OIDC_ISSUER === undefined || values.OIDC_CLIENT_ID === undefined
        ? null
        : {
            issuer: values.OIDC_ISSUER,
            clientId: values.OIDC_CLIENT_ID,
            clientSecret: values.OIDC_CLIENT_SECRET ?? null,
          },
    limits: {
      requestsPerMinute: values.RATE_LIMIT_REQUESTS,
      authFailuresPerMinute: values.RATE_LIMIT_AUTH,
      facilitatorRequestsPerMinute:
        values.RATE_LIMIT_FACILITATOR ?? values.RATE_LIMIT_REQUESTS * FACILITATOR_FACTOR,
      recipientsPerDay: values.DAILY_SEND_LIMIT === 0 ? null : values.DAILY_SEND_LIMIT,
      storageBytes: values.STORAGE_MB === 0 ? null : values.STORAGE_MB * 1024 * 1024,
      dailySettlements: values.DAILY_SETTLEMENT_LIMIT === 0 ? null : values.DAILY_SETTLEMENT_LIMIT,
      dailyGas: values.DAILY_GAS_LIMIT === 0 ? null : values.DAILY_GAS_LIMIT,
      dailyTextBytes: values.DAILY_TEXT_MB === 0 ? null : values.DAILY_TEXT_MB * 1024 * 1024,
      dailyTextSeconds: values.DAILY_TEXT_SECONDS === 0 ? null : values.DAILY_TEXT_SECONDS,
    },
    retention: retentionSettings(values),
    // With the embedded devnet, sellers and webhook receivers run on this machine. No money is at risk.
    allowPrivateNetworks: values.ALLOW_PRIVATE_NETWORKS ?? isDevnet(values),
    trustedProxies: values.TRUSTED_PROXIES,
    dnsServers: values.DNS_SERVERS,
    outsideUrl: values.OUTSIDE_URL,
    answers: values.ANSWERS,
    metricsToken: values.METRICS_TOKEN,
    traceEndpoint: values.OTEL_EXPORTER_OTLP_ENDPOINT ?? null,
    logLevel: values.LOG_LEVEL,
  }
}

/**
 * Sets the default number of chain nodes that must agree. If one of several nodes lies, no payment is granted wrongly.
 */
const QUORUM = 2

/** Sets the default port of the devnet, which is also the default port of Anvil. */
const DEVNET_PORT = 8545

/**
 * Tells whether the process uses the devnet of `npm start`. Production has no devnet, even in a process that gets no
 * RPC URL.
 */
const isDevnet = ({ RPC_URL, NODE_ENV }: z.output<typeof variables>): boolean =>
  RPC_URL === undefined && NODE_ENV !== 'production'

function chainSettings(values: z.output<typeof variables>): Config['chain'] {
  const keys = (values.SETTLEMENT_KEYS ?? []).map((key) => key.toLowerCase())
  const devnetPort = values.DEVNET_PORT ?? DEVNET_PORT
  const rpcUrls = values.RPC_URL ?? [`http://127.0.0.1:${devnetPort}`]
  return {
    rpcUrls,
    rpcQuorum: values.RPC_QUORUM ?? Math.min(rpcUrls.length, QUORUM),
    embeddedDevnet: isDevnet(values),
    devnetPort,
    devnetPortIsGiven: values.DEVNET_PORT !== undefined,
    settlementKeys:
      keys.length > 0
        ? ([...new Set(keys)] as `0x${string}`[])
        : values.NODE_ENV === 'production'
          ? []
          : [DEVNET_ACCOUNTS.gasWallet.privateKey],
    walletFactories: values.WALLET_FACTORIES.map((address) => address.toLowerCase()),
    deniedPayees: values.DENIED_PAYEES.map((address) => address.toLowerCase()),
  }
}

const keysOf = <Key>(given: string[] | undefined, parse: (text: string) => Key) =>
  given === undefined || given.length === 0 ? undefined : given.map(parse)

function inboundHttp(values: z.output<typeof variables>): Config['smtp']['http'] {
  const secrets = keysOf(values.INBOUND_SECRETS, parseReceiptSeed)
  if (secrets === undefined) return null
  return {
    port: values.INBOUND_PORT,
    secrets: secrets.map(({ id, seed }) => ({ id, secret: seed })),
    ses:
      values.INBOUND_SES_TOPICS === undefined
        ? null
        : {
            topics: values.INBOUND_SES_TOPICS,
            bucket: blobStoreSettings(values, 'INBOUND_SES_BUCKET'),
          },
  }
}

/** Reads a receipt seed from `id:base64`. The schema has checked the format. */
export function parseReceiptSeed(text: string): ReceiptSeed {
  const [, id = '', base64 = ''] = NAMED_SEED.exec(text) ?? []
  return { id, seed: Uint8Array.from(Buffer.from(base64, 'base64')) }
}

/** Reads a master key from `id:base64`. The schema has checked the format. */
export function parseMasterKey(text: string): MasterKey {
  const [, id = '', base64 = ''] = NAMED_SEED.exec(text) ?? []
  return masterKey(id, Buffer.from(base64, 'base64'))
}
