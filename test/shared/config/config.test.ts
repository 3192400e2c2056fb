import { describe, expect, test } from 'bun:test'
import pino from 'pino'
import { ConfigError, parseConfig, readConfig } from '../../../shared/config/config.ts'
import { misspeltVariables } from '../../../shared/config/misspelt.ts'
import { isMcpResource } from '../../../shared/oauth/resource.ts'
import { logOptions } from '../../../shared/process/logOptions.ts'
import { DEVNET_ACCOUNTS } from '../../../shared/till/devnetAccounts.ts'

test('a configuration without variables has the development defaults', () => {
  const config = parseConfig({})
  expect(config).toMatchObject({
    production: false,
    http: { port: 3000, host: '127.0.0.1', baseUrl: 'http://127.0.0.1:3000' },
    smtp: { port: 2525, host: '127.0.0.1' },
    dataDir: '.data',
    mailDomain: 'mail.localhost',
    relayUrl: 'capture',
    limits: { requestsPerMinute: 200, authFailuresPerMinute: 60 },
    trustedProxies: [],
  })
})

test('an empty environment variable counts as absent', () => {
  expect(parseConfig({ PORT: '', DATABASE_URL: '' }).http.port).toBe(3000)
})

test('the service reads its configuration from environment variables and normalises their values', () => {
  const config = parseConfig({
    HOST: '::1',
    PORT: '8080',
    MAIL_DOMAIN: 'Mail.Example.COM',
    TRUSTED_PROXIES: '10.0.0.0/8, ::1',
    RATE_LIMIT_REQUESTS: '0',
    BASE_URL: 'https://agents.example.com/',
  })
  expect(config.http.baseUrl).toBe('https://agents.example.com')
  expect(parseConfig({ HOST: '::1' }).http.baseUrl).toBe('http://[::1]:3000')
  expect(config.mailDomain).toBe('mail.example.com')
  expect(config.trustedProxies).toEqual(['10.0.0.0/8', '::1'])
  expect(config.limits.requestsPerMinute).toBe(0)
})

test('an error about the configuration names the environment variable but hides its value', () => {
  const secret = 'postgers://user:hunter2@db/x'
  const cases: Record<string, string>[] = [
    { PORT: '-1' },
    { PORT: '1.5' },
    { RATE_LIMIT_REQUESTS: 'lots' },
    { DATABASE_URL: secret },
    { SMTP_RELAY_URL: 'directly' },
    { BASE_URL: 'ftp://x' },
    { MAIL_DOMAIN: 'a b' },
    { POSTMASTER: 'ops' },
    { BOOTSTRAP_PROJECT_KEY: 'loid-xyz' },
    { BOOTSTRAP_PROJECT_KEY: `lopk-${'0'.repeat(64)}` },
    { TRUSTED_PROXIES: 'example.com' },
    { LOG_LEVEL: 'loud' },
    // Without this check, a misspelt value of NODE_ENV would start a production service with development keys.
    { NODE_ENV: 'Production' },
    { NODE_ENV: 'prod' },
    { NODE_ENV: 'live' },
    { MASTER_KEYS: Buffer.alloc(32, 7).toString('base64') },
    { MASTER_KEYS: `short:${Buffer.alloc(31, 7).toString('base64')}` },
    {
      MASTER_KEYS: `a:${Buffer.alloc(32, 7).toString('base64')},a:${Buffer.alloc(32, 8).toString('base64')}`,
    },
  ]
  for (const env of cases) {
    const [name, value] = Object.entries(env)[0]!
    let message = ''
    try {
      parseConfig(env)
    } catch (error) {
      expect(error).toBeInstanceOf(ConfigError)
      message = (error as Error).message
    }
    expect(message).toStartWith(`${name}: `)
    expect(message).not.toContain('\n')
    if (value.length > 6) expect(message).not.toContain(value)
  }
})

test('each retention setting is a whole number of days, with a minimum and a maximum of its own', () => {
  const { retention } = parseConfig({ RETENTION_MAIL_DAYS: '30', BACKUP_RETENTION_DAYS: '14' })
  expect([retention.mail, retention.logs, retention.backups]).toEqual([30, null, 14])
  for (const [name, value] of [
    ['RETENTION_MAIL_DAYS', '0'],
    ['RETENTION_RAW_MAIL_DAYS', '1.5'],
    ['RETENTION_DELIVERIES_DAYS', '36501'],
    ['RETENTION_LOGS_DAYS', '29'],
    ['RETENTION_IDEMPOTENCY_KEYS_DAYS', '31'],
    ['RETENTION_PAYMENT_DETAILS_DAYS', '6'],
    ['BACKUP_RETENTION_DAYS', 'x'],
  ] as const) {
    expect(() => parseConfig({ [name]: value })).toThrow(new RegExp(`^${name}: its value must`))
  }
})

test('in production the service refuses the development defaults of its settings', () => {
  expect(() => parseConfig({ NODE_ENV: 'production' })).toThrow(/^SMTP_RELAY_URL: /)
  expect(() => parseConfig({ NODE_ENV: 'production', SMTP_RELAY_URL: 'capture' })).toThrow(
    ConfigError,
  )
  const whole = {
    NODE_ENV: 'production',
    SMTP_RELAY_URL: 'smtp://relay:25',
    RPC_URL: 'https://rpc.example.com',
    SETTLEMENT_KEYS: `0x${'11'.repeat(32)}`,
    RECEIPT_SIGNING_KEYS: `a:${Buffer.alloc(32, 7).toString('base64')}`,
    MASTER_KEYS: `a:${Buffer.alloc(32, 8).toString('base64')}`,
  }
  expect(parseConfig(whole)).toMatchObject({ production: true, allowPrivateNetworks: false })
  for (const name of [
    'SMTP_RELAY_URL',
    'RPC_URL',
    'SETTLEMENT_KEYS',
    'RECEIPT_SIGNING_KEYS',
    'MASTER_KEYS',
  ]) {
    expect(() => parseConfig({ ...whole, [name]: '' })).toThrow(new RegExp(`^${name}: `))
  }
  expect(() =>
    parseConfig({ ...whole, SETTLEMENT_KEYS: DEVNET_ACCOUNTS.gasWallet.privateKey }),
  ).toThrow(/^SETTLEMENT_KEYS: /)
})

test('if a configuration is written as JSON, inspected or logged, its master keys stay hidden', () => {
  const bytes = Buffer.from('0123456789abcdef0123456789ABCDEF')
  const config = parseConfig({ MASTER_KEYS: `new:${bytes.toString('base64')}` })
  expect(config.masterKeys?.map(({ id }) => id)).toEqual(['new'])
  expect(config.masterKeys?.[0]?.key.export()).toEqual(bytes)
  const lines: string[] = []
  pino(logOptions('test', 'info'), { write: (text: string) => lines.push(text) }).info(config)
  const line = lines.join('')
  expect(line).toContain('dataDir')
  for (const shown of [JSON.stringify(config), Bun.inspect(config, { depth: 9 }), line]) {
    for (const form of ['utf8', 'base64', 'hex', 'base64url'] as const) {
      expect(shown).not.toContain(bytes.toString(form).slice(0, 20))
    }
  }
})

test('one error message names every missing or wrong environment variable, each on one line', () => {
  const keys = 'a:short,b:short'
  const failed = () =>
    parseConfig({ NODE_ENV: 'production', PORT: 'x', RECEIPT_SIGNING_KEYS: keys })
  const lines = thrownLines(failed)
  expect(lines.map((line) => line.split(':')[0])).toEqual([
    'PORT',
    'RECEIPT_SIGNING_KEYS',
    'SMTP_RELAY_URL',
    'RPC_URL',
    'SETTLEMENT_KEYS',
    'MASTER_KEYS',
  ])
  expect(lines[0]).toBe('PORT: its value must be a whole number of 0 to 65535')
  const files = thrownLines(() =>
    parseConfig({
      SMTP_TLS_CERT_FILE: 'x.pem',
      BLOB_STORE: 's3://bucket',
      SMTP_RELAY_URL: 'smtp://user:secret@relay:587',
      SMTP_RELAY_TLS: 'opportunistic',
    }),
  )
  expect(files.map((line) => line.split(':')[0])).toEqual([
    'SMTP_TLS_KEY_FILE',
    'SMTP_RELAY_TLS',
    'S3_ACCESS_KEY_ID',
    'S3_SECRET_ACCESS_KEY',
  ])
})

function thrownLines(work: () => unknown): string[] {
  try {
    work()
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError)
    return (error as Error).message.split('\n')
  }
  throw new Error('nothing was thrown')
}

test('if a setting is wrong, the error names the bounds or the choices of this setting', () => {
  for (const value of ['x', '1.5', '-1', '70000', 'Infinity', '1e9']) {
    expect(() => parseConfig({ PORT: value })).toThrow(
      /^PORT: its value must be a whole number of 0 to 65535$/,
    )
  }
  expect(() => parseConfig({ LOG_LEVEL: 'loud' })).toThrow(/must be fatal, error, warn/)
  expect(() => parseConfig({ DATABASE_POOL: '3' })).toThrow(/a whole number of 4 to 200$/)
})

test('for a misspelt environment variable, the error names the nearest setting; variables of the shell are ignored', () => {
  const shell = {
    HOME: '/root',
    PWD: '/',
    SHLVL: '1',
    HOSTNAME: 'a',
    TERM: 'x',
    LANG: 'C',
    PATH: '',
  }
  const npm = { npm_config_port: '1', NODE: 'x', INIT_CWD: '/', HTTP_PROXY: 'x', no_proxy: 'x' }
  expect(misspeltVariables({ ...shell, ...npm, PORT: '1', PURSER_URL: 'x' })).toEqual([])
  expect(
    misspeltVariables({
      SMTP_RELAYURL: 'x',
      MAILDOMAIN: 'x',
      smtp_port: '1',
      RECEIPT_SIGNING_KEY: 'x',
    }),
  ).toEqual([
    { name: 'SMTP_RELAYURL', nearest: 'SMTP_RELAY_URL' },
    { name: 'MAILDOMAIN', nearest: 'MAIL_DOMAIN' },
    { name: 'smtp_port', nearest: 'SMTP_PORT' },
    { name: 'RECEIPT_SIGNING_KEY', nearest: 'RECEIPT_SIGNING_KEYS' },
  ])
  // DATABASE_URL is also set, so DATABASE_URI counts as a variable of another program, and not as a misspelling.
  expect(misspeltVariables({ DATABASE_URL: 'x', DATABASE_URI: 'x' })).toEqual([])
  expect(misspeltVariables({ ['X'.repeat(100_000)]: 'x' })).toEqual([])
  const lines = thrownLines(() =>
    parseConfig({ NODE_ENV: 'production', SMTP_RELAYURL: 'smtp://a' }),
  )
  expect(lines.at(-1)).toBe(
    'SMTP_RELAYURL: it is no setting and has no effect; the nearest setting is SMTP_RELAY_URL',
  )
})

test('if one environment variable is wrong, its setting keeps its default, and the other variables are read', () => {
  const { config, faults } = readConfig({ PORT: 'x', MAIL_DOMAIN: 'mail.example.com' }, [])
  expect(faults.map(({ variable }) => variable)).toEqual(['PORT'])
  expect([config.http.port, config.mailDomain]).toEqual([3000, 'mail.example.com'])
})

const KEY = `0x${'1'.repeat(64)}`
const SEED = Buffer.alloc(32, 1).toString('base64')

test.each([
  ['DAILY_SEND_LIMIT', 'recipientsPerDay', 1],
  ['STORAGE_MB', 'storageBytes', 1024 * 1024],
  ['DAILY_SETTLEMENT_LIMIT', 'dailySettlements', 1],
  ['DAILY_GAS_LIMIT', 'dailyGas', 1],
  ['DAILY_TEXT_MB', 'dailyTextBytes', 1024 * 1024],
  ['DAILY_TEXT_SECONDS', 'dailyTextSeconds', 1],
] as const)(
  'the setting %s limits what one project may use, and 0 means no limit',
  (variable, name, unit) => {
    expect(parseConfig({ [variable]: '0' }).limits[name]).toBeNull()
    expect(parseConfig({ [variable]: '7' }).limits[name]).toBe(7 * unit)
    expect(parseConfig({}).limits[name]).toBeGreaterThan(0)
  },
)

test('the limit for console requests of a person is ten times the general limit, and at least 600', () => {
  const of = (limit: string) =>
    parseConfig({ RATE_LIMIT_REQUESTS: limit }).limits.consoleRequestsPerMinute
  expect(['0', '1', '60', '61'].map(of)).toEqual([0, 600, 600, 610])
})

test('the rate limit for x402 facilitator calls is six times the general limit, unless RATE_LIMIT_FACILITATOR is set', () => {
  const of = (env: Record<string, string>) => parseConfig(env).limits.facilitatorRequestsPerMinute
  expect(of({ RATE_LIMIT_REQUESTS: '10' })).toBe(60)
  expect(of({ RATE_LIMIT_REQUESTS: '10', RATE_LIMIT_FACILITATOR: '5' })).toBe(5)
})

test('the limit on all redeem calls (which take a payment) is twelve times the general limit', () => {
  const of = (limit: string) =>
    parseConfig({ RATE_LIMIT_REQUESTS: limit }).limits.redeemCallsPerMinute
  expect(['0', '200'].map(of)).toEqual([0, 2_400])
})

test('a process opens its health port only if HEALTH_PORT is set, and on the same host address as the service', () => {
  expect(parseConfig({}).health).toBeNull()
  expect(parseConfig({ HEALTH_PORT: '9000', HOST: '0.0.0.0' }).health).toEqual({
    port: 9000,
    host: '0.0.0.0',
  })
})

test('people can sign in with a company account only if both the issuer and the client id of the identity provider are set', () => {
  const issuer = { OIDC_ISSUER: 'https://id.example.com' }
  const client = { OIDC_CLIENT_ID: 'purser' }
  const of = (env: Record<string, string>) => readConfig(env, []).config.company
  expect([of({}), of(issuer), of(client)]).toEqual([null, null, null])
  expect(of({ ...issuer, ...client })).toMatchObject({
    issuer: 'https://id.example.com',
    clientId: 'purser',
    clientSecret: null,
  })
})

describe('the settings decide which chain the service uses', () => {
  const chainOf = (env: Record<string, string>) => readConfig(env, ['SETTLEMENT_KEYS']).config.chain

  test('in development without an RPC URL, the service uses the devnet at its port and allows private networks', () => {
    expect(chainOf({})).toMatchObject({
      embeddedDevnet: true,
      rpcUrls: ['http://127.0.0.1:8545'],
      devnetPort: 8545,
      devnetPortIsGiven: false,
      settlementKeys: [DEVNET_ACCOUNTS.gasWallet.privateKey],
    })
    expect(chainOf({ DEVNET_PORT: '8600' })).toMatchObject({
      rpcUrls: ['http://127.0.0.1:8600'],
      devnetPortIsGiven: true,
    })
    expect(parseConfig({}).allowPrivateNetworks).toBe(true)
    expect(parseConfig({ ALLOW_PRIVATE_NETWORKS: 'false' }).allowPrivateNetworks).toBe(false)
  })

  test('the service uses no devnet if an RPC URL is set, or in production', () => {
    const named = { RPC_URL: 'https://node.example.com' }
    expect(chainOf(named).embeddedDevnet).toBe(false)
    expect(chainOf({ NODE_ENV: 'production' }).embeddedDevnet).toBe(false)
    expect(readConfig(named, []).config.allowPrivateNetworks).toBe(false)
    expect(readConfig({ NODE_ENV: 'production' }, []).config.allowPrivateNetworks).toBe(false)
  })

  test('the service uses each settlement key once, even if it is set twice, and adds no default key in production', () => {
    expect(
      chainOf({ SETTLEMENT_KEYS: `${KEY},${KEY.toUpperCase().replace('0X', '0x')}` }),
    ).toMatchObject({
      settlementKeys: [KEY],
    })
    expect(chainOf({ NODE_ENV: 'production' }).settlementKeys).toEqual([])
  })

  test('if several RPC nodes are set, two of them must agree by default', () => {
    const nodes = (count: number) =>
      Array.from({ length: count }, (_, n) => `https://node${n}.example.com`).join(',')
    expect([1, 2, 3].map((count) => chainOf({ RPC_URL: nodes(count) }).rpcQuorum)).toEqual([
      1, 2, 2,
    ])
    expect(chainOf({ RPC_URL: nodes(3), RPC_QUORUM: '3' }).rpcQuorum).toBe(3)
  })
})

test('mail over HTTP is open only with a secret, and mail of Amazon SES only with its topics', () => {
  const of = (env: Record<string, string>) => readConfig(env, ['INBOUND_SECRETS']).config.smtp.http
  expect(of({})).toBeNull()
  expect(of({ INBOUND_SECRETS: `one:${SEED}` })).toMatchObject({
    secrets: [{ id: 'one' }],
    ses: null,
  })
  const topic = 'arn:aws:sns:eu-west-1:123456789012:mail'
  expect(of({ INBOUND_SECRETS: `one:${SEED}`, INBOUND_SES_TOPICS: topic })?.ses).toMatchObject({
    topics: [topic],
  })
})

test('the service writes BASE_URL in the form that browsers and OAuth clients send', () => {
  const urlOf = (BASE_URL: string) => parseConfig({ BASE_URL }).http.baseUrl
  expect(urlOf('HTTPS://Mail.Example.com:443/')).toBe('https://mail.example.com')
  expect(urlOf('https://mail.example.com:8443/Agents//')).toBe(
    'https://mail.example.com:8443/Agents',
  )
  expect(isMcpResource('https://mail.example.com/mcp', urlOf('https://Mail.example.com'))).toBe(
    true,
  )
  expect(parseConfig({ HOST: '::1' }).http.baseUrl).toBe('http://[::1]:3000')
})
