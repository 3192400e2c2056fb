/** Defines the environment variables of the service (docs/settings.md), with the format and the default of each. */
import { isIP } from 'node:net'
import { z } from 'zod'
import { isKey } from '../apiKey.ts'
import { addressKey, parseAddress } from '../mail/address.ts'
import { MTA_STS_MODES } from '../mail/mtaSts.ts'
import { PURSE_CONSENT, type PurseConsent } from '../oauth/oauthScopes.ts'
import { DAYS_MAX, RETENTION_CLASSES, type RetentionClass } from '../retention.ts'
import { BLOB_STORE_RULE, parseBlobStore } from './blobPlace.ts'

/**
 * Creates a schema for a whole number. The schema writes its own error message, because the messages of zod do not name
 * the allowed range. The schema refuses a blank text, because JavaScript reads such a text as 0, and 0 turns a limit
 * off.
 */
const whole = (min: number, max: number) => {
  const error = `must be a whole number of ${min} to ${max}`
  const number = z.number({ error }).int({ error }).min(min, { error }).max(max, { error })
  return z.string().regex(/\S/, { error }).transform(Number).pipe(number)
}
const text = (max: number) =>
  z
    .string()
    .min(1)
    .max(max, { error: `must have at most ${max} characters` })

/** Sets the maximum number of chain nodes in RPC_URL. */
const RPCS_MAX = 10

const port = (fallback: number) => whole(0, 65_535).default(fallback)
const perMinute = (fallback: number) => whole(0, 1_000_000).default(fallback)

const url = (protocols: string[]) =>
  z.string().refine((text) => isUrl(text, protocols), {
    error: `must be a URL that starts with ${protocols.map((name) => `${name}//`).join(' or ')}`,
    abort: true,
  })

const domain = z
  .string()
  .toLowerCase()
  .regex(/^(?=.{1,253}$)[a-z0-9-]{1,63}(\.[a-z0-9-]{1,63})*$/, 'must be a domain name')

const inbox = z
  .string()
  .refine((text) => parseAddress(text) !== null, 'must be the address of an inbox')
  .transform(addressKey)

const proxyRange = z.string().refine((text) => {
  const [address = '', bits, ...rest] = text.split('/')
  const width = isIP(address) === 4 ? 32 : 128
  if (isIP(address) === 0 || rest.length > 0) return false
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= width)
}, 'must be a comma-separated list of IP addresses or CIDR ranges')

const dnsServer = z.string().refine((text) => {
  // The last group of a bare IPv6 address looks like a port. Therefore a port may only follow an IPv4 address or an
  // IPv6 address in brackets.
  if (isIP(text) === 6) return true
  const [, bracketed, plain, port] =
    /^(?:\[([^\]]+)\]|([^\s[\]:]+))(?::(\d{1,5}))?$/.exec(text) ?? []
  return isIP(bracketed ?? plain ?? '') > 0 && Number(port ?? 53) <= 65_535
}, 'must be a comma-separated list of IP addresses, each with an optional port')

const purseConsent = z
  .string()
  .refine(
    (scope) => (PURSE_CONSENT as readonly string[]).includes(scope),
    `must be of ${PURSE_CONSENT.join(' and ')}`,
  )
const list = (item: z.ZodType<string, string>) =>
  z
    .string()
    .transform((text) =>
      text
        .split(',')
        .map((part) => part.trim())
        .filter((part) => part !== ''),
    )
    .pipe(z.array(item))

const bootstrapKey = (kind: 'platform' | 'project', form: string) =>
  z.string().refine((key) => isKey(key, kind), `must be ${form} followed by 64 hexadecimal digits`)

const isUrl = (text: string, protocols: string[]) =>
  URL.canParse(text) && protocols.includes(new URL(text).protocol)

const usdc = z
  .string()
  .regex(
    /^(0|[1-9]\d{0,5})(\.\d{1,6})?$/,
    'must be decimal USDC below 1000000 with at most 6 decimals',
  )

/**
 * Creates a schema for the URL of this service. The service appends paths to the URL, and shows the URL to anybody on
 * the internet.
 */
const ownUrl = url(['http:', 'https:']).refine((text) => {
  const { username, password } = new URL(text)
  return `${username}${password}` === '' && !/[?#]/.test(text)
}, 'must hold no user name, password, query or fragment')

const isRelayWord = (text: string): boolean => text === 'capture' || text === 'direct'

const relayUrl = z
  .string()
  .refine(
    (text) =>
      isRelayWord(text) || (isUrl(text, ['smtp:', 'smtps:']) && new URL(text).hostname !== ''),
    {
      error: 'must be smtp://user:pass@host:port, smtps://user:pass@host:port, direct or capture',
      abort: true,
    },
  )
  .refine(
    (text) => isRelayWord(text) || canDecode(new URL(text)),
    'must write % as %25 in the user name and the password',
  )

function canDecode({ username, password }: URL): boolean {
  try {
    decodeURIComponent(`${username}:${password}`)
    return true
  } catch {
    return false
  }
}

const PRIVATE_KEY = /^0x[0-9a-fA-F]{64}$/
const settlementKey = z
  .string()
  .regex(PRIVATE_KEY, 'must be comma-separated private keys: 0x and 64 hexadecimal digits each')

const evmAddress = z
  .string()
  .regex(
    /^0x[0-9a-fA-F]{40}$/,
    'must be comma-separated addresses: 0x and 40 hexadecimal digits each',
  )

/** Matches a named seed or a named key in the form `id:base64` with 32 bytes. */
export const NAMED_SEED = /^([\w.-]{1,64}):([A-Za-z0-9+/]{43}=)$/
const receiptSeed = z
  .string()
  .regex(NAMED_SEED, 'must be comma-separated id:base64 pairs, each of an Ed25519 seed of 32 bytes')
const namedMasterKey = z
  .string()
  .regex(NAMED_SEED, 'must be comma-separated id:base64 pairs, each of a key of 32 bytes')

const SNS_TOPIC = /^arn:aws(?:-cn|-us-gov)?:sns:[a-z0-9-]{3,40}:\d{12}:[\w-]{1,256}$/

const inboundSecret = z
  .string()
  .regex(NAMED_SEED, 'must be comma-separated id:base64 pairs, each of a secret of 32 bytes')

const days = (name: RetentionClass) => {
  const { min, max } = RETENTION_CLASSES[name]
  return whole(min, max).optional()
}

/**
 * Defines the schema of the environment variables. Each error message begins with `must`, because the message follows
 * the variable's name.
 */
export const variables = z.object({
  NODE_ENV: z
    .enum(['production', 'development', 'test'], {
      error: 'must be production, development or test, in lower case',
    })
    .default('development'),
  PORT: port(3000),
  HOST: z.string().min(1).default('127.0.0.1'),
  HEALTH_PORT: whole(0, 65_535).optional(),
  SMTP_PORT: port(2525),
  SMTP_HOST: z.string().min(1).optional(),
  SMTP_MAX_CONNECTIONS: whole(1, 10_000).default(500),
  SMTP_MAX_CONNECTIONS_PER_IP: whole(1, 10_000).default(50),
  SMTP_MESSAGES_PER_IP: whole(0, 1_000_000).default(3_000),
  SMTP_MESSAGES_PER_INBOX: whole(0, 1_000_000).default(1_200),
  SMTP_LARGE_KB_PER_S: whole(0, 1_000_000).default(1_024),
  SMTP_TLS_CERT_FILE: z.string().min(1).optional(),
  SMTP_TLS_KEY_FILE: z.string().min(1).optional(),
  BASE_URL: ownUrl.optional(),
  DATA_DIR: z.string().min(1).default('.data'),
  DATABASE_URL: url(['postgres:', 'postgresql:']).optional(),
  DATABASE_REPLICA_URL: url(['postgres:', 'postgresql:']).optional(),
  DATABASE_POOL: whole(4, 200).default(16),
  BLOB_STORE: z
    .string()
    .refine((text) => parseBlobStore(text) !== null, BLOB_STORE_RULE)
    .optional(),
  S3_ACCESS_KEY_ID: text(256).optional(),
  S3_SECRET_ACCESS_KEY: text(256).optional(),
  MAIL_DOMAIN: domain.default('mail.localhost'),
  MAIL_HOSTNAME: domain.optional(),
  MTA_STS: z.enum(MTA_STS_MODES, { error: 'must be none, testing or enforce' }).default('none'),
  INBOUND_SECRETS: list(inboundSecret)
    .refine(
      (keys) => new Set(keys.map((key) => key.split(':')[0])).size === keys.length,
      'must name no id twice',
    )
    .optional(),
  INBOUND_SES_TOPICS: list(
    z
      .string()
      .regex(SNS_TOPIC, 'must be comma-separated topics of SNS, arn:aws:sns:REGION:ACCOUNT:NAME'),
  ).optional(),
  INBOUND_SES_BUCKET: z
    .string()
    .refine((text) => parseBlobStore(text) !== null, BLOB_STORE_RULE)
    .optional(),
  INBOUND_PORT: port(2580),
  POSTMASTER: inbox.optional(),
  SMTP_RELAY_URL: relayUrl.optional(),
  SMTP_RELAY_TLS: z
    .enum(['required', 'opportunistic', 'off'], {
      error: 'must be required, opportunistic or off',
    })
    .optional(),
  SMTP_RELAY_CA_FILE: z.string().min(1).optional(),
  RPC_URL: list(url(['http:', 'https:']))
    .refine(
      (urls) => urls.length > 0 && urls.length <= RPCS_MAX && new Set(urls).size === urls.length,
      `must be 1 to ${RPCS_MAX} URLs, comma-separated, each once`,
    )
    .optional(),
  RPC_QUORUM: whole(1, RPCS_MAX).optional(),
  DEVNET_PORT: whole(0, 65_535).optional(),
  SETTLEMENT_KEYS: list(settlementKey).optional(),
  WALLET_FACTORIES: list(evmAddress).default([]),
  DENIED_PAYEES: list(evmAddress).default([]),
  OAUTH_PURSE_SCOPES: list(purseConsent)
    .transform((scopes) => scopes as PurseConsent[])
    .default([]),
  RECEIPT_SIGNING_KEYS: list(receiptSeed).optional(),
  MASTER_KEYS: list(namedMasterKey)
    .refine(
      (keys) => new Set(keys.map((key) => key.split(':')[0])).size === keys.length,
      'must name no id twice',
    )
    .optional(),
  SETTLEMENT_WAIT_MS: whole(0, 120_000).default(25_000),
  BOOTSTRAP_PLATFORM_KEY: bootstrapKey('platform', 'lopk-').optional(),
  BOOTSTRAP_PROJECT_KEY: bootstrapKey('project', 'loid-').optional(),
  RATE_LIMIT_REQUESTS: perMinute(200),
  RATE_LIMIT_AUTH: perMinute(60),
  RATE_LIMIT_FACILITATOR: whole(0, 6_000_000).optional(),
  STORAGE_MB: whole(0, 1_000_000_000).default(10_240),
  MIN_PRICE_USDC: usdc.default('0.001'),
  DAILY_SETTLEMENT_LIMIT: whole(0, 1_000_000_000).default(100_000),
  DAILY_GAS_LIMIT: whole(0, 1e15).default(10_000_000_000),
  DAILY_TEXT_MB: whole(0, 1_000_000_000).default(1_024),
  DAILY_TEXT_SECONDS: whole(0, 1_000_000_000).default(3_600),
  // The default of DAILY_SEND_LIMIT is slightly above 288,000 recipients a day. A project reaches 288,000 with 200
  // requests a minute and one recipient in each request.
  DAILY_SEND_LIMIT: whole(0, 1_000_000_000).default(300_000),
  ALLOW_PRIVATE_NETWORKS: z
    .stringbool({ truthy: ['true', '1'], falsy: ['false', '0'], error: 'must be true or false' })
    .optional(),
  RETENTION_MAIL_DAYS: days('mail'),
  RETENTION_RAW_MAIL_DAYS: days('rawMail'),
  RETENTION_DELIVERIES_DAYS: days('deliveries'),
  RETENTION_LOGS_DAYS: days('logs'),
  RETENTION_IDEMPOTENCY_KEYS_DAYS: days('idempotencyKeys'),
  RETENTION_PAYMENT_DETAILS_DAYS: days('paymentDetails'),
  BACKUP_RETENTION_DAYS: whole(0, DAYS_MAX).optional(),
  ANSWERS: z.enum(['standard', 'full'], { error: 'must be standard or full' }).default('standard'),
  OTEL_EXPORTER_OTLP_ENDPOINT: url(['http:', 'https:']).optional(),
  METRICS_TOKEN: z
    .string()
    .regex(/^[\x21-\x7e]{16,256}$/, 'must be 16 to 256 visible ASCII characters')
    .optional(),
  OIDC_ISSUER: url(['https:', 'http:']).optional(),
  OIDC_CLIENT_ID: text(300).optional(),
  OIDC_CLIENT_SECRET: text(500).optional(),
  OUTSIDE_URL: url(['http:', 'https:']).default('https://www.cloudflare.com/cdn-cgi/trace'),
  DNS_SERVERS: list(dnsServer).default([]),
  TRUSTED_PROXIES: list(proxyRange).default([]),
  LOG_LEVEL: z
    .enum(['fatal', 'error', 'warn', 'info', 'debug', 'silent'], {
      error: 'must be fatal, error, warn, info, debug or silent',
    })
    .default('info'),
})

/**
 * Defines the environment variables of `bun run mcp`. The MCP server runs beside an agent and knows only the URL of the
 * service.
 */
export const mcpVariables = z.object({
  PURSER_URL: url(['http:', 'https:']).default('http://127.0.0.1:3000'),
  PURSER_API_KEY: z
    .string('must be a project key: loid- and 64 hexadecimal digits')
    .refine(
      (key) => isKey(key, 'project'),
      'must be a project key: loid- and 64 hexadecimal digits',
    ),
  PURSER_TOOL_NAMES: z.enum(['dotted', 'underscore']).default('dotted'),
})
