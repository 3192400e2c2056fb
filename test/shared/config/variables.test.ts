/** Tests the format and the default value of each environment variable. */
import { describe, expect, test } from 'bun:test'
import { mcpVariables, variables } from '../../../shared/config/variables.ts'

type Name = keyof typeof variables.shape

/** Reads the value of one environment variable. */
const read = (name: Name, text?: string) => variables.parse({ [name]: text })[name]
/** Returns the rule that the value of an environment variable breaks, or null if it breaks no rule. */
const rule = (name: Name, text: string) =>
  variables.safeParse({ [name]: text }).error?.issues[0]?.message ?? null
/** Expects that a variable accepts the values of one list and refuses the values of another list. */
function expectRule(name: Name, message: string, right: string[], wrong: string[]): void {
  for (const text of right) expect([name, text, rule(name, text)]).toEqual([name, text, null])
  for (const text of wrong) expect([name, text, rule(name, text)]).toEqual([name, text, message])
}

const NAMED_KEY = `${Buffer.alloc(32, 7).toString('base64')}`
const HEX_64 = 'a0'.repeat(32)

describe('if a setting is a number, the service accepts only a number within the bounds of this setting', () => {
  test.each([
    ['PORT', 0, 65_535, 3000],
    ['HEALTH_PORT', 0, 65_535, undefined],
    ['SMTP_PORT', 0, 65_535, 2525],
    ['INBOUND_PORT', 0, 65_535, 2580],
    ['DEVNET_PORT', 0, 65_535, undefined],
    ['SMTP_MAX_CONNECTIONS', 1, 10_000, 500],
    ['SMTP_MAX_CONNECTIONS_PER_IP', 1, 10_000, 50],
    ['SMTP_MESSAGES_PER_IP', 0, 1_000_000, 3_000],
    ['SMTP_MESSAGES_PER_INBOX', 0, 1_000_000, 1_200],
    ['SMTP_LARGE_KB_PER_S', 0, 1_000_000, 1_024],
    ['DATABASE_POOL', 4, 200, 16],
    ['RPC_QUORUM', 1, 10, undefined],
    ['SETTLEMENT_WAIT_MS', 0, 120_000, 25_000],
    ['RATE_LIMIT_REQUESTS', 0, 1_000_000, 200],
    ['RATE_LIMIT_AUTH', 0, 1_000_000, 60],
    ['RATE_LIMIT_FACILITATOR', 0, 6_000_000, undefined],
    ['STORAGE_MB', 0, 1_000_000_000, 10_240],
    ['DAILY_SETTLEMENT_LIMIT', 0, 1_000_000_000, 100_000],
    ['DAILY_GAS_LIMIT', 0, 1e15, 10_000_000_000],
    ['DAILY_TEXT_MB', 0, 1_000_000_000, 1_024],
    ['DAILY_TEXT_SECONDS', 0, 1_000_000_000, 3_600],
    ['DAILY_SEND_LIMIT', 0, 1_000_000_000, 300_000],
    ['RETENTION_MAIL_DAYS', 1, 36_500, undefined],
    ['RETENTION_RAW_MAIL_DAYS', 1, 36_500, undefined],
    ['BACKUP_RETENTION_DAYS', 0, 36_500, undefined],
  ] as const)(
    'the setting %s is a whole number of %d to %d, and by default %p',
    (name, min, max, usual) => {
      const message = `must be a whole number of ${min} to ${max}`
      expectRule(
        name,
        message,
        [`${min}`, `${max}`],
        [`${min - 1}`, `${max + 1}`, '4.5', 'ten', ' '],
      )
      expect(read(name, `${max}`)).toBe(max)
      expect(read(name)).toBe(usual as never)
    },
  )
})

describe('if a setting is a choice, the service accepts only the listed values', () => {
  test.each([
    [
      'NODE_ENV',
      ['production', 'development', 'test'],
      'development',
      'must be production, development or test, in lower case',
    ],
    ['MTA_STS', ['none', 'testing', 'enforce'], 'none', 'must be none, testing or enforce'],
    [
      'SMTP_RELAY_TLS',
      ['required', 'opportunistic', 'off'],
      undefined,
      'must be required, opportunistic or off',
    ],
    ['ANSWERS', ['standard', 'full'], 'standard', 'must be standard or full'],
    [
      'LOG_LEVEL',
      ['fatal', 'error', 'warn', 'info', 'debug', 'silent'],
      'info',
      'must be fatal, error, warn, info, debug or silent',
    ],
  ] as const)('the setting %s is one of %p, and by default %p', (name, words, usual, message) => {
    expectRule(name, message, [...words], [words[0].toUpperCase(), 'other'])
    expect(read(name)).toBe(usual as never)
  })

  test('the setting ALLOW_PRIVATE_NETWORKS is true or false, and may also be written as 1 or 0', () => {
    for (const text of ['true', '1']) expect(read('ALLOW_PRIVATE_NETWORKS', text)).toBe(true)
    for (const text of ['false', '0']) expect(read('ALLOW_PRIVATE_NETWORKS', text)).toBe(false)
    expectRule('ALLOW_PRIVATE_NETWORKS', 'must be true or false', [], ['yes', 'on', '2'])
    expect(read('ALLOW_PRIVATE_NETWORKS')).toBeUndefined()
  })
})

describe('if a setting is a URL, the service accepts only a valid URL', () => {
  test.each([
    ['BASE_URL', 'http://a.example', 'https://a.example/b', 'http:// or https://'],
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'http://a.example', 'https://a.example', 'http:// or https://'],
    ['OIDC_ISSUER', 'https://a.example', 'http://a.example', 'https:// or http://'],
    ['OUTSIDE_URL', 'https://a.example', 'http://a.example', 'http:// or https://'],
    ['DATABASE_URL', 'postgres://a/b', 'postgresql://a/b', 'postgres:// or postgresql://'],
    ['DATABASE_REPLICA_URL', 'postgres://a/b', 'postgresql://a', 'postgres:// or postgresql://'],
  ] as const)('the setting %s accepts, for example, %s and %s', (name, one, other, starts) => {
    const message = `must be a URL that starts with ${starts}`
    expectRule(name, message, [one, other], ['ftp://a.example', 'a.example', 'https://'])
  })

  test('the setting for the mail relay is a URL with the scheme smtp or smtps, or the word `direct` or `capture`', () => {
    expectRule(
      'SMTP_RELAY_URL',
      'must be smtp://user:pass@host:port, smtps://user:pass@host:port, direct or capture',
      ['smtp://a.example', 'smtps://ada:secret@a.example:465', 'direct', 'capture'],
      ['https://a.example', 'a.example', 'Direct', 'captured', 'smtp://a b'],
    )
  })

  test('the URL of a mail relay names a host, and its user name and password can be decoded', () => {
    expectRule(
      'SMTP_RELAY_URL',
      'must be smtp://user:pass@host:port, smtps://user:pass@host:port, direct or capture',
      ['smtp://ada:50%25off@a.example', 'smtp://[2001:db8::25]:25'],
      ['smtp:a.example:25', 'smtp://', 'smtp:///a.example', 'smtps:'],
    )
    expectRule(
      'SMTP_RELAY_URL',
      'must write % as %25 in the user name and the password',
      ['smtp://ada%40a.example:p%C3%A4ss@a.example'],
      ['smtp://ada:50%off@a.example', 'smtp://50%off:secret@a.example', 'smtp://a:%E4@a.example'],
    )
  })

  test('the setting BASE_URL has no user name, password, query or fragment, because the service appends paths to this URL', () => {
    expectRule(
      'BASE_URL',
      'must hold no user name, password, query or fragment',
      ['https://a.example/b/', 'https://[::1]:3000'],
      ['https://ada:secret@a.example', 'https://ada@a.example', 'https://a.example/?b=1'].concat([
        'https://a.example/#b',
      ]),
    )
  })

  test('a list of chain node URLs contains 1 to 10 URLs, and each of them only once', () => {
    const urls = Array.from({ length: 11 }, (_, n) => `https://rpc${n}.example`)
    const ten = urls.slice(0, 10).join(', ')
    const message = 'must be 1 to 10 URLs, comma-separated, each once'
    const wrong = [urls.join(','), `${urls[0]},${urls[0]}`, ',', ' ']
    expectRule('RPC_URL', message, [urls[0]!, ten], wrong)
    expect(read('RPC_URL', ` ${urls[0]} ,, ${urls[1]},`)).toEqual(urls.slice(0, 2))
    expect(rule('RPC_URL', 'ws://a.example')).toBe(
      'must be a URL that starts with http:// or https://',
    )
  })

  test.each(['BLOB_STORE', 'INBOUND_SES_BUCKET'] as const)(
    'the setting %s is a URL that names a bucket',
    (name) => {
      expect(rule(name, 's3://mails/prefix')).toBeNull()
      expect(rule(name, 's3://mails/a/b?endpoint=http://127.0.0.1:9000&style=host')).toBeNull()
      for (const wrong of [
        'https://mails.example',
        's3://mails?region=a&region=b',
        's3://mails?zone=a',
        's3://mails?style=dots',
        's3://mails?endpoint=nowhere',
        's3://mails?endpoint=ftp://s3.example',
        's3://mails?endpoint=https://key:secret@s3.example',
        's3://mails?endpoint=https://s3.example%3Fa=b',
      ]) {
        expect([wrong, rule(name, wrong)]).toEqual([
          wrong,
          expect.stringMatching(/^must be s3:\/\/bucket/),
        ])
      }
    },
  )
})

describe('if a setting is a host name, the service accepts only a valid host name', () => {
  test.each(['MAIL_DOMAIN', 'MAIL_HOSTNAME'] as const)(
    'the host name in %s must be a domain, and is converted to lower case',
    (name) => {
      const label = 'x'.repeat(63)
      const longest = `${label}.${label}.${label}.${'x'.repeat(61)}`
      expectRule(
        name,
        'must be a domain name',
        ['localhost', 'mail-1.example', longest],
        [`${longest}x`, `x${label}.example`, 'a b', 'a..b', '.a', 'a.', 'a_b', 'é.example'],
      )
      expect(read(name, 'Mail.EXAMPLE')).toBe('mail.example')
    },
  )

  test('the host name for mail is `mail.localhost` by default', () => {
    expect(read('MAIL_DOMAIN')).toBe('mail.localhost')
    expect(read('MAIL_HOSTNAME')).toBeUndefined()
  })
})

describe('if a setting is a list of IP addresses, the service accepts nothing but IP addresses', () => {
  test('the list of proxy addresses may contain CIDR ranges', () => {
    expectRule(
      'TRUSTED_PROXIES',
      'must be a comma-separated list of IP addresses or CIDR ranges',
      ['', '10.0.0.1', '10.0.0.0/8, ::1', '10.0.0.0/0', '10.0.0.0/32', '::/128', 'fd00::/33'],
      ['10.0.0.0/33', '::/129', '10.0.0.0/', '10.0.0.0/8/8', '10.0.0.0/-1', '10.0.0.0/0008'].concat(
        ['10.0.0.0/x', 'a.example', 'a.example/8', '/8', '10.0.0.1:80'],
      ),
    )
    expect(read('TRUSTED_PROXIES', '10.0.0.0/8, ::1')).toEqual(['10.0.0.0/8', '::1'])
    expect(read('TRUSTED_PROXIES')).toEqual([])
  })

  test('the list of DNS server addresses may contain ports', () => {
    expectRule(
      'DNS_SERVERS',
      'must be a comma-separated list of IP addresses, each with an optional port',
      ['', '10.0.0.1', '10.0.0.1:65535, 10.0.0.2:0', '[::1]', '[::1]:53', '::1, 2001:db8::8888'],
      ['10.0.0.1:65536', '[::1]:65536', '10.0.0.1:', '10.0.0.1:x', 'a.example', '[a.example]:53'],
    )
    expect(rule('DNS_SERVERS', '10.0.0.1:000053')).not.toBeNull()
    expect(read('DNS_SERVERS')).toEqual([])
  })
})

describe('if a setting is a key, the service accepts only a key in the right format', () => {
  test.each([
    ['RECEIPT_SIGNING_KEYS', 'an Ed25519 seed'],
    ['MASTER_KEYS', 'a key'],
    ['INBOUND_SECRETS', 'a secret'],
  ] as const)(
    'the setting %s is a list of keys, each with an id and 32 bytes in base64, of %s',
    (name, what) => {
      expectRule(
        name,
        `must be comma-separated id:base64 pairs, each of ${what} of 32 bytes`,
        [`k1:${NAMED_KEY}`, `${'x'.repeat(64)}:${NAMED_KEY},a.b-c_d:${NAMED_KEY}`],
        [NAMED_KEY, `:${NAMED_KEY}`, `${'x'.repeat(65)}:${NAMED_KEY}`, `a b:${NAMED_KEY}`].concat([
          `k1:${NAMED_KEY.slice(1)}`,
          `k1:${NAMED_KEY}=`,
          'k1:',
        ]),
      )
    },
  )

  test.each(['MASTER_KEYS', 'INBOUND_SECRETS'] as const)(
    'in the setting %s, each key has a different id',
    (name) => {
      const other = Buffer.alloc(32, 8).toString('base64')
      expect(rule(name, `k1:${NAMED_KEY},k2:${NAMED_KEY}`)).toBeNull()
      expect(rule(name, `k1:${NAMED_KEY},k1:${other}`)).toBe('must name no id twice')
    },
  )

  test('a settlement key consists of 0x and 64 hexadecimal digits', () => {
    expectRule(
      'SETTLEMENT_KEYS',
      'must be comma-separated private keys: 0x and 64 hexadecimal digits each',
      [`0x${HEX_64}`, `0x${HEX_64.toUpperCase()}, 0x${HEX_64}`],
      [HEX_64, `0x${HEX_64}0`, `0x${HEX_64.slice(1)}`, `0x${'g'.repeat(64)}`],
    )
  })

  test('a bootstrap key (set at the first start) is a platform key or a project key, depending on the setting’s name', () => {
    expectRule(
      'BOOTSTRAP_PLATFORM_KEY',
      'must be lopk- followed by 64 hexadecimal digits',
      [`lopk-${HEX_64}`],
      [`loid-${HEX_64}`, `lopk-${HEX_64}0`, `lopk-${HEX_64.slice(1)}`, HEX_64],
    )
    expectRule(
      'BOOTSTRAP_PROJECT_KEY',
      'must be loid- followed by 64 hexadecimal digits',
      [`loid-${HEX_64}`],
      [`lopk-${HEX_64}`, 'loid-'],
    )
  })
})

describe('if a setting is a text, the service accepts only a text in the right format', () => {
  test.each(['WALLET_FACTORIES', 'DENIED_PAYEES'] as const)(
    'the setting %s is a list of addresses',
    (name) => {
      const address = `0x${'aB'.repeat(20)}`
      const message = 'must be comma-separated addresses: 0x and 40 hexadecimal digits each'
      expectRule(name, message, ['', `${address},${address}`], [`${address}0`, address.slice(2)])
      expect(read(name)).toEqual([])
    },
  )

  test('the setting OAUTH_PURSE_SCOPES is a list of scopes of the purse (wallet)', () => {
    const message = 'must be of purse:read and purse:pay'
    expectRule('OAUTH_PURSE_SCOPES', message, ['', 'purse:read, purse:pay'], ['mail:read', 'purse'])
    expect(read('OAUTH_PURSE_SCOPES')).toEqual([])
  })

  test('the setting INBOUND_SES_TOPICS is a list of SNS topics', () => {
    const topic = 'arn:aws:sns:eu-west-1:123456789012:mails'
    expectRule(
      'INBOUND_SES_TOPICS',
      'must be comma-separated topics of SNS, arn:aws:sns:REGION:ACCOUNT:NAME',
      [topic, `${topic},${topic.replace('aws', 'aws-cn')}`, topic.replace('aws', 'aws-us-gov')],
      [topic.replace('sns', 'sqs'), topic.replace('12', '1'), `${topic}/x`, 'mails'],
    )
  })

  test('the setting POSTMASTER is an email address, and is converted to lower case', () => {
    expectRule('POSTMASTER', 'must be the address of an inbox', ['ops@a.example'], ['ops', '@a.b'])
    expect(read('POSTMASTER', 'Ops@A.example')).toBe('ops@a.example')
  })

  test('the setting MIN_PRICE_USDC is a number below 1,000,000 with at most 6 decimals', () => {
    expectRule(
      'MIN_PRICE_USDC',
      'must be decimal USDC below 1000000 with at most 6 decimals',
      ['0', '0.000001', '999999.999999'],
      ['1000000', '0.0000001', '01', '.5', '1.', '-1', '1e3'],
    )
    expect(read('MIN_PRICE_USDC')).toBe('0.001')
  })

  test('the setting METRICS_TOKEN has 16 to 256 visible ASCII characters', () => {
    expectRule(
      'METRICS_TOKEN',
      'must be 16 to 256 visible ASCII characters',
      ['x'.repeat(16), 'x'.repeat(256), '!~'.repeat(8)],
      ['x'.repeat(15), 'x'.repeat(257), `${'x'.repeat(15)} `, 'é'.repeat(16)],
    )
  })

  test.each([
    ['S3_ACCESS_KEY_ID', 256],
    ['S3_SECRET_ACCESS_KEY', 256],
    ['OIDC_CLIENT_ID', 300],
    ['OIDC_CLIENT_SECRET', 500],
  ] as const)('the setting %s has 1 to %d characters', (name, max) => {
    const message = `must have at most ${max} characters`
    expectRule(name, message, ['x', 'x'.repeat(max)], ['x'.repeat(max + 1)])
    expect(rule(name, '')).not.toBeNull()
  })
})

describe('the MCP server over stdio reads its API key and its URL from environment variables', () => {
  const key = `loid-${HEX_64}`

  test('the MCP server needs only one variable, the API key of a project', () => {
    expect(mcpVariables.parse({ PURSER_API_KEY: key })).toEqual({
      PURSER_URL: 'http://127.0.0.1:3000',
      PURSER_API_KEY: key,
      PURSER_TOOL_NAMES: 'dotted',
    })
    for (const PURSER_API_KEY of [undefined, `lopk-${HEX_64}`, 'loid-'])
      expect(mcpVariables.safeParse({ PURSER_API_KEY }).error?.issues[0]?.message).toBe(
        'must be a project key: loid- and 64 hexadecimal digits',
      )
  })

  test('two environment variables of the MCP server set the URL of the service and the form of the tool names', () => {
    const isRight = (more: object) =>
      mcpVariables.safeParse({ PURSER_API_KEY: key, ...more }).success
    expect(isRight({ PURSER_URL: 'https://a.example', PURSER_TOOL_NAMES: 'underscore' })).toBe(true)
    expect(isRight({ PURSER_URL: 'ftp://a.example' })).toBe(false)
    expect(isRight({ PURSER_TOOL_NAMES: 'dashed' })).toBe(false)
  })
})
