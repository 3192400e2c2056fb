import { isIP } from 'node:net'
import type { z } from 'zod'
import { DEVNET_ACCOUNTS } from '../till/devnetAccounts.ts'
import { type MasterKey, masterKey } from '../vault/envelope.ts'
import { blobStoreSettings } from './blobStoreSettings.ts'
import { ConfigError, type Fault, faultLine } from './configError.ts'
import { brokenDemands } from './demands.ts'
import { describeIssue } from './describeIssue.ts'
import { relayTls, smtpTls } from './mailTls.ts'
import { misspeltLine, misspeltVariables } from './misspelt.ts'
import { retentionSettings } from './retentionSettings.ts'
import {
  ALL_SECRETS,
  BLOB_SECRET,
  COMPANY_SECRET,
  INBOUND_SECRET,
  type ReadSecret,
} from './secrets.ts'
import type { Config, ReceiptSeed } from './settings.ts'
import { NAMED_SEED, variables } from './variables.ts'

export type { Config, ReceiptSeed }
export { ConfigError }

/** Returns the environment variables that have a value. An empty variable counts as absent. */
export const withoutEmpty = (env: Record<string, string | undefined>) =>
  Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ''))

/**
 * Sets how many times higher the facilitator's limit on requests per minute is than the general limit, because a sale
 * takes two calls to the facilitator. If the second call got 429 after the seller's work, the seller would lose the
 * sale.
 */
const FACILITATOR_FACTOR = 6
/**
 * Sets how many times higher the limit on all redeem calls is than the limit on new payments. By default, this allows
 * 40 redeem calls a second. They take only an eighth of a core, because a call with a worthless payment header costs 2
 * to 3 ms of CPU, including the seller's client. The service refuses the payments of others only if an attacker sends
 * more calls than this to a seller's paywall.
 */
const REDEEM_FACTOR = 12
/**
 * Sets how many times higher the limit on console requests of one person is than the general limit. One page of the
 * console sends several requests, and repeats some of them every few seconds.
 */
const CONSOLE_FACTOR = 10
/**
 * Sets the lowest limit on console requests of one person. With this minimum, the console works even if the operator
 * sets a low limit for agents.
 */
const CONSOLE_LEAST = 600

/** Writes `host:port`. An IPv6 address has brackets: `[::1]:3000`. */
const hostPort = (host: string, portNumber: number) =>
  `${isIP(host) === 6 ? `[${host}]` : host}:${portNumber}`

/**
 * Returns the base URL without a slash at its end. The host is in lower case, because browsers and OAuth clients send
 * the host in lower case, and OAuth compares URLs as texts.
 */
const baseUrl = ({ BASE_URL: given, HOST, PORT }: z.output<typeof variables>): string =>
  given === undefined ? `http://${hostPort(HOST, PORT)}` : new URL(given).href.replace(/\/+$/, '')

/** Lists the environment variables that hold keys. A process reads the variable of a key only if it uses the key. */
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

/**
 * Reads the settings from the environment as {@link parseConfig} does. A variable with an invalid value counts as
 * absent.
 */
export function readConfig(
  env: Record<string, string | undefined>,
  secrets: readonly ReadSecret[],
): { config: Config; faults: Fault[] } {
  const given = withoutEmpty(env)
  for (const name of KEYS) if (!secrets.includes(name)) delete given[name]
  const unreadable = variables.safeParse(given).error?.issues ?? []
  // The function reports only the first issue of each variable, because a variable that holds a list has an issue for
  // each item.
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
      baseUrl: baseUrl(values),
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
      redeemCallsPerMinute: values.RATE_LIMIT_REQUESTS * REDEEM_FACTOR,
      consoleRequestsPerMinute:
        values.RATE_LIMIT_REQUESTS === 0
          ? 0
          : Math.max(CONSOLE_LEAST, values.RATE_LIMIT_REQUESTS * CONSOLE_FACTOR),
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
 * Sets the default number of chain nodes that must agree. If two nodes must agree, a single lying node cannot make the
 * service accept a payment that does not exist.
 */
const QUORUM = 2

/** Sets the default port of the devnet, which is also the default port of Anvil. */
const DEVNET_PORT = 8545

/**
 * Tells whether the process uses the devnet of `npm start`. Production never uses the devnet, even if no RPC URL is
 * set.
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
