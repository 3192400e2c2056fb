/** Tests the rules for settings that depend on other settings, on production mode, or on the kind of process. */
import { describe, expect, test } from 'bun:test'
import { brokenDemands, holdsDevnetKey } from '../../../shared/config/demands.ts'
import { ALL_SECRETS, type ReadSecret, readBy } from '../../../shared/config/secrets.ts'
import { variables } from '../../../shared/config/variables.ts'
import { DEVNET_ACCOUNTS } from '../../../shared/till/devnetAccounts.ts'

const DEVNET_KEY = DEVNET_ACCOUNTS.gasWallet.privateKey
const OWN_KEY = `0x${'5e'.repeat(32)}`
const SEED = `k1:${Buffer.alloc(32, 7).toString('base64')}`
const PRODUCTION = {
  NODE_ENV: 'production',
  SMTP_RELAY_URL: 'direct',
  RPC_URL: 'https://rpc.example',
  SETTLEMENT_KEYS: OWN_KEY,
  RECEIPT_SIGNING_KEYS: SEED,
  MASTER_KEYS: SEED,
}
const COUNTERPART = 'it is missing, and must be set with its counterpart'

type Settings = Record<string, string | undefined>

/** Returns the rules that the settings break. The name of the environment variable precedes each rule. */
const faults = (settings: Settings, secrets: readonly ReadSecret[] = ALL_SECRETS) =>
  brokenDemands(variables.parse(settings), secrets).map(({ variable, rule }) => [variable, rule])
/** Returns the names of the environment variables that break a rule in production mode. */
const inProduction = (changes: Settings, secrets: readonly ReadSecret[] = ALL_SECRETS) =>
  faults({ ...PRODUCTION, ...changes }, secrets).map(([variable]) => variable)

describe('in production, a process with missing or unsafe settings gets an error for each of them', () => {
  test('the default settings in development break no rule, and neither do production settings with every secret', () => {
    expect(faults({})).toEqual([])
    expect(faults(PRODUCTION)).toEqual([])
  })

  test('in production, each missing secret leads to an error about this setting', () => {
    expect(faults({ NODE_ENV: 'production' })).toEqual([
      [
        'SMTP_RELAY_URL',
        'must name a smarthost or be direct when NODE_ENV is production; capture sends nothing',
      ],
      ['RPC_URL', 'must be set when NODE_ENV is production; the embedded devnet moves no money'],
      [
        'SETTLEMENT_KEYS',
        'must be keys of your own when NODE_ENV is production; those of the devnet are public',
      ],
      [
        'RECEIPT_SIGNING_KEYS',
        'must be set when NODE_ENV is production; one is generated in development only',
      ],
      [
        'MASTER_KEYS',
        'must be set when NODE_ENV is production; one is generated in development only',
      ],
    ])
    for (const NODE_ENV of ['development', 'test']) expect(faults({ NODE_ENV })).toEqual([])
  })

  test('in production, a process needs only those secrets that it reads', () => {
    for (const secret of [
      ...(['SMTP_RELAY_URL', 'RPC_URL', 'SETTLEMENT_KEYS'] as const),
      ...(['RECEIPT_SIGNING_KEYS', 'MASTER_KEYS'] as const),
    ])
      expect(faults({ NODE_ENV: 'production' }, [secret]).map(([name]) => name)).toEqual([secret])
    expect(faults({ NODE_ENV: 'production' }, [])).toEqual([])
  })

  test('in production, mail must be sent through a relay (smarthost) or directly to the recipients’ servers', () => {
    expect(inProduction({ SMTP_RELAY_URL: 'capture' })).toEqual(['SMTP_RELAY_URL'])
    expect(inProduction({ SMTP_RELAY_URL: 'smtp://relay.example:25' })).toEqual([])
  })

  test('in production, at least one settlement key, one receipt signing key and one master key must be set', () => {
    for (const name of ['SETTLEMENT_KEYS', 'RECEIPT_SIGNING_KEYS', 'MASTER_KEYS'])
      for (const none of [undefined, '', ','])
        expect([name, inProduction({ [name]: none })]).toEqual([name, [name]])
  })

  test('in production, a settlement key must not be one of the published devnet keys', () => {
    for (const keys of [DEVNET_KEY, `${OWN_KEY},${DEVNET_KEY}`])
      expect(inProduction({ SETTLEMENT_KEYS: keys })).toEqual(['SETTLEMENT_KEYS'])
    expect(faults({ SETTLEMENT_KEYS: DEVNET_KEY })).toEqual([])
  })
})

test('the service recognises a published devnet private key in upper and lower case', () => {
  const upper = `0x${DEVNET_KEY.slice(2).toUpperCase()}`
  for (const key of [DEVNET_KEY, upper, DEVNET_ACCOUNTS.payer.privateKey])
    expect(holdsDevnetKey([OWN_KEY, key])).toBe(true)
  expect(holdsDevnetKey([OWN_KEY, DEVNET_ACCOUNTS.payTo.address])).toBe(false)
  expect(holdsDevnetKey([])).toBe(false)
})

test('the setting RPC_QUORUM must not exceed the number of chain nodes in RPC_URL', () => {
  const rule = [['RPC_QUORUM', 'must be at most the number of URLs in RPC_URL']]
  const RPC_URL = 'https://a.example,https://b.example'
  expect(faults({ RPC_URL, RPC_QUORUM: '2' })).toEqual([])
  expect(faults({ RPC_URL, RPC_QUORUM: '3' })).toEqual(rule)
  expect(faults({ RPC_QUORUM: '1' })).toEqual([])
  expect(faults({ RPC_QUORUM: '2' })).toEqual(rule)
  // Only the payments workers read RPC_URL. Therefore RPC_QUORUM may be set without RPC_URL for every other process.
  for (const part of ['api', 'smtp', 'migrate', 'outbound', 'purse'] as const)
    expect(faults({ RPC_QUORUM: '2' }, readBy(part))).toEqual([])
  expect(faults({ RPC_URL, RPC_QUORUM: '3' }, readBy('payments'))).toEqual(rule)
})

describe('a setting that needs another setting is refused if the other setting is missing', () => {
  test.each([
    ['SMTP_TLS_CERT_FILE', 'SMTP_TLS_KEY_FILE', 'a.pem', 'b.pem'],
    ['OIDC_ISSUER', 'OIDC_CLIENT_ID', 'https://id.example', 'purser'],
  ])('two settings are valid only together, for example %s and %s', (one, other, first, second) => {
    expect(faults({ [one]: first, [other]: second })).toEqual([])
    expect(faults({ [one]: first })).toEqual([[other, COUNTERPART]])
    expect(faults({ [other]: second })).toEqual([[one, COUNTERPART]])
  })
})

test('if topics of Amazon SES are set, the secrets for mail over HTTP must be set too', () => {
  const topic = { INBOUND_SES_TOPICS: 'arn:aws:sns:eu-west-1:123456789012:mail' }
  const secret = { INBOUND_SECRETS: `one:${Buffer.alloc(32, 7).toString('base64')}` }
  const rule = 'it is missing, and must be set with INBOUND_SES_TOPICS'
  expect(faults(topic)).toEqual([['INBOUND_SECRETS', rule]])
  expect(faults({ ...topic, ...secret })).toEqual([])
  // A process that does not accept mail over HTTP reads no secret for mail over HTTP, so it needs none.
  expect(faults(topic, ['MASTER_KEYS'])).toEqual([])
})

test('if the URL of a mail relay contains a password, SMTP_RELAY_TLS must be required', () => {
  const SMTP_RELAY_URL = 'smtp://ada:secret@relay.example:587'
  const rule =
    'must be required when SMTP_RELAY_URL holds credentials; off is for a relay on this machine'
  for (const SMTP_RELAY_TLS of ['opportunistic', 'off'])
    expect(faults({ SMTP_RELAY_URL, SMTP_RELAY_TLS })).toEqual([['SMTP_RELAY_TLS', rule]])
  expect(faults({ SMTP_RELAY_URL, SMTP_RELAY_TLS: 'required' })).toEqual([])
})

test('in production, the URL of a company’s identity provider must begin with https', () => {
  const plain = { OIDC_ISSUER: 'http://id.example', OIDC_CLIENT_ID: 'purser' }
  expect(faults({ ...PRODUCTION, ...plain })).toEqual([
    ['OIDC_ISSUER', 'must start with https:// when NODE_ENV is production'],
  ])
  expect(faults(plain)).toEqual([])
  expect(inProduction({ ...plain, OIDC_ISSUER: 'https://id.example' })).toEqual([])
})

describe('if an object store bucket is set, its access keys must be set too', () => {
  const rule = 'it is missing, and must be set with BLOB_STORE and INBOUND_SES_BUCKET'
  const id = ['S3_ACCESS_KEY_ID', rule]
  const secret = ['S3_SECRET_ACCESS_KEY', rule]

  test.each(['BLOB_STORE', 'INBOUND_SES_BUCKET'])(
    'the access keys of a bucket are required if %s is set',
    (name) => {
      const bucket = { [name]: 's3://mails' }
      expect(faults(bucket)).toEqual([id, secret])
      expect(faults({ ...bucket, S3_ACCESS_KEY_ID: 'a' })).toEqual([secret])
      expect(faults({ ...bucket, S3_SECRET_ACCESS_KEY: 'a' })).toEqual([id])
      expect(faults({ ...bucket, S3_ACCESS_KEY_ID: 'a', S3_SECRET_ACCESS_KEY: 'b' })).toEqual([])
    },
  )

  test('the access keys of a bucket are required only for a process that reads the bucket', () => {
    const bucket = { BLOB_STORE: 's3://mails' }
    expect(faults(bucket, ['S3_SECRET_ACCESS_KEY'])).toEqual([id, secret])
    expect(faults(bucket, ['MASTER_KEYS'])).toEqual([])
  })
})
