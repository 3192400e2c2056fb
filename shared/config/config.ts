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

/** Holds a named Ed25519 seed of 32 bytes. The private key from a receipt seed signs receipts. */
export type ReceiptSeed = { id: string; seed: Uint8Array }

/** Holds a named secret for the authentication of mail over HTTP. */
type InboundSecret = { id: string; secret: Uint8Array }

/** Holds the settings of a process. Each process reads its settings once when it starts (docs/settings.md). */
export type Config = {
  production: boolean
  http: { port: number; host: string; baseUrl: string }
  /**
   * Holds the address at which every process also serves `/healthz`. Null means that the processes do not serve
   * `/healthz`.
   */
  health: { port: number; host: string } | null
  smtp: {
    port: number
    host: string
    maxConnections: number
    maxConnectionsPerIp: number
    /**
     * Holds the maximum number of messages a minute from one network. The field `messagesPerInbox` holds the maximum to
     * one inbox. The value 0 means no limit.
     */
    messagesPerIp: number
    messagesPerInbox: number
    /** Limits the bytes a second of large messages from one network, and to one inbox. The value 0 means no limit. */
    largeBytesPerS: number
    /** Names the PEM files for STARTTLS. Null means that the SMTP listener offers no STARTTLS. */
    tls: CertificateFiles | null
    /** Holds the address at which mail services deliver mail over HTTP. Null means that mail over HTTP is off. */
    http: {
      port: number
      secrets: readonly InboundSecret[]
      /**
       * Names the topics of Amazon SES that may deliver mail, and the S3 bucket that holds large mail of these topics.
       * Null means that the operator has set no Amazon SES topic.
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
   * or that the process does not use large contents of mail.
   */
  blobStore: BlobStoreSettings | null
  mailDomain: string
  /** Holds the host name of this machine for EHLO and for the MX records of the mail domains. */
  mailHostname: string
  /** Holds the mode of the MTA-STS policy of the service's own domains. */
  mtaSts: MtaStsMode
  /** Holds the inbox that receives the mail of `postmaster@mailDomain` if no inbox has the postmaster address. */
  postmaster: string | undefined
  /**
   * Holds the URL of a smarthost, or one of the two words `capture` and `direct`. With `capture`, the service stores
   * outgoing mail and sends nothing. With `direct`, the service sends mail to the MX hosts of the recipients' domains.
   */
  relayUrl: string
  /**
   * Tells whether the service may send mail to the smarthost without TLS. By default, TLS is `required` if the
   * smarthost's URL holds credentials.
   */
  relayTls: RelayTls
  /**
   * Names a PEM file with the CA of the smarthost, or with the smarthost's own certificate. Undefined means that the
   * service trusts the system's CAs.
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
    /**
     * Tells whether the operator has set `DEVNET_PORT`. If the operator has not set `DEVNET_PORT`, the devnet may use
     * another port.
     */
    devnetPortIsGiven: boolean
    /** Holds the private keys of the gas wallets. */
    settlementKeys: readonly `0x${string}`[]
    /**
     * Lists the factories, in lower case, that may deploy a payer's smart wallet at the gas wallets' expense
     * (ERC-6492).
     */
    walletFactories: readonly string[]
    /** Lists wallet addresses, in lower case, that no purse (a project's spending wallet) may pay. */
    deniedPayees: readonly string[]
  }
  /**
   * Holds the Ed25519 seeds of the receipt keys. The first receipt seed in the list signs the receipts. Undefined means
   * that the process generates one receipt seed (in development only).
   */
  receiptSeeds: readonly ReceiptSeed[] | undefined
  /**
   * Holds the master keys. The first master key encrypts new secrets. Undefined means that the process generates one
   * master key (in development only).
   */
  masterKeys: readonly MasterKey[] | undefined
  /** Holds the lowest price in atomic USDC that a seller may set for an endpoint. The value 0 allows every price. */
  minPriceAtomic: number
  /** Limits the milliseconds for which an API call to redeem a payment waits for the settlement on the chain. */
  settlementWaitMs: number
  /** Lists the OAuth scopes of the purse (a project's spending wallet) that an owner may give to a chat host. */
  oauthPurseScopes: readonly PurseConsent[]
  bootstrap: { platformKey: string | undefined; projectKey: string | undefined }
  /**
   * Describes the company's identity provider (OpenID Connect). Null means that the operator has set no identity
   * provider. A null `clientSecret` means that the service is a public client.
   */
  company: { issuer: string; clientId: string; clientSecret: string | null } | null
  /**
   * Holds the usage limits. The limit on requests counts for each identity, and the limit on failed authentications for
   * each IP address. The value 0 turns a limit off.
   */
  limits: {
    requestsPerMinute: number
    authFailuresPerMinute: number
    /**
     * Holds the maximum number of requests a minute that one identity may send to the x402 facilitator. The service
     * counts requests to the facilitator separately from other requests.
     */
    facilitatorRequestsPerMinute: number
    /** Holds the maximum number of recipients to whom a project may send mail in a UTC day. Null means no limit. */
    recipientsPerDay: number | null
    /** Holds the maximum number of bytes of mail that a project may store. Null means no limit. */
    storageBytes: number | null
    /**
     * Limits the number of payments that a project may claim in a UTC day. The field `dailyGas` limits the gas of their
     * transactions. Null means no limit.
     */
    dailySettlements: number | null
    dailyGas: number | null
    /**
     * Limits the bytes of a project's attachments that the service reads in a UTC day. The field `dailyTextSeconds`
     * limits the seconds of reading. Null means no limit.
     */
    dailyTextBytes: number | null
    dailyTextSeconds: number | null
  }
  /**
   * Holds the number of days for which the service keeps rows of each retention class. Null means that the default
   * number of days applies. Only the retention settings of the worker processes take effect.
   */
  retention: RetentionSettings
  /** Tells whether webhooks and sellers' endpoints may be at private addresses (in development). */
  allowPrivateNetworks: boolean
  trustedProxies: string[]
  /**
   * Lists the DNS servers that look up senders, hosts and domains. With an empty list, the service uses the system's
   * DNS servers.
   */
  dnsServers: string[]
  /**
   * Holds the URL of an internet page that the doctor (the service's self-check) requests. From the response, the
   * doctor learns the time of the page's server and the public address of this service.
   */
  outsideUrl: string
  /**
   * Selects the fields of API responses. The value `full` adds message fields that are not part of the API's
   * specification.
   */
  answers: 'standard' | 'full'
  /**
   * Holds the token that a request of `/metrics` must contain. Undefined means that a request of `/metrics` needs no
   * token.
   */
  metricsToken: string | undefined
  /** Holds the base URL of an OTLP collector. Null means that the service traces no request. */
  traceEndpoint: string | null
  logLevel: string
}

/**
 * Sets the factor between the general limit on requests a minute and the facilitator's limit. The facilitator's limit
 * is higher, because a sale takes two calls to the facilitator and a 429 after the seller's work would lose the sale.
 */
const FACILITATOR_FACTOR = 6

/** Writes `host:port`. An IPv6 address has brackets: `[::1]:3000`. */
const hostPort = (host: string, portNumber: number) =>
  `${isIP(host) === 6 ? `[${host}]` : host}:${portNumber}`

/**
 * Lists the environment variables that hold keys. A process that does not use a key does not even read the key's
 * variable.
 */
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
 * @throws {ConfigError} The error names every variable with an invalid value, and every variable that may be misspelt.
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

/** Reads the environment as {@link parseConfig} does. A variable with an invalid value counts as absent. */
export function readConfig(
  env: Record<string, string | undefined>,
  secrets: readonly ReadSecret[],
): { config: Config; faults: Fault[] } {
  const given = withoutEmpty(env)
  for (const name of KEYS) if (!secrets.includes(name)) delete given[name]
  const unreadable = variables.safeParse(given).error?.issues ?? []
  // The function reports only the first issue of each variable, because a variable with a list has an issue for each
  // item.
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
    // With the embedded devnet, private networks are allowed, because sellers and webhook receivers run on this machine
    // and no money is at risk.
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
 * Sets the default number of chain nodes that must agree. With two agreeing nodes, one lying node cannot make the
 * service grant a payment wrongly.
 */
const QUORUM = 2

/** Sets the default port of the devnet, which is also the default port of Anvil. */
const DEVNET_PORT = 8545

/**
 * Tells whether the process uses the devnet of `npm start`. Production has no devnet, even in a process without an RPC
 * URL.
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

/** Reads a receipt seed from `id:base64`. The configuration schema has already checked the format. */
export function parseReceiptSeed(text: string): ReceiptSeed {
  const [, id = '', base64 = ''] = NAMED_SEED.exec(text) ?? []
  return { id, seed: Uint8Array.from(Buffer.from(base64, 'base64')) }
}

/** Reads a master key from `id:base64`. The configuration schema has already checked the format. */
export function parseMasterKey(text: string): MasterKey {
  const [, id = '', base64 = ''] = NAMED_SEED.exec(text) ?? []
  return masterKey(id, Buffer.from(base64, 'base64'))
}
