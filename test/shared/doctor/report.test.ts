import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseConfig } from '../../../shared/config/config.ts'
import { type Finding, isAnyBroken, shown } from '../../../shared/doctor/finding.ts'
import { SECTION_RUNNER } from '../../../shared/doctor/report.ts'
import { secretsOf, withoutSecrets } from '../../../shared/doctor/secretsHidden.ts'
import { findingsSummary, findingsTable, inOrder } from '../../../shared/doctor/table.ts'
import {
  addressRecord,
  mxRecord,
  recordsOf,
  reverseName,
  txtRecord,
  zoneLine,
} from '../../../shared/doctor/zone.ts'

const FINDINGS: Finding[] = [
  { area: 'chain', check: 'RPC', found: '12 ms a call', verdict: 'ok' },
  {
    area: 'mail in',
    check: 'MX',
    found: 'no such record',
    verdict: 'broken',
    fix: 'a. IN MX 10 b.',
  },
  { area: 'mail in', check: 'STARTTLS', found: 'none', verdict: 'warning', fix: 'A=1\nB=2' },
]

test('the doctor command prints its sections in order, and prints below each finding the setting or the DNS record to change', () => {
  expect(findingsTable(FINDINGS).split('\n')).toEqual([
    'mail in  BROKEN   MX        no such record',
    '                  change: a. IN MX 10 b.',
    '         WARNING  STARTTLS  none',
    '                  change: A=1',
    '                  change: B=2',
    'chain    ok       RPC       12 ms a call',
    '',
  ])
  expect(findingsSummary(FINDINGS)).toBe('1 broken, 1 warning, 1 ok')
  expect(isAnyBroken(FINDINGS)).toBe(true)
  expect(isAnyBroken(FINDINGS.filter(({ verdict }) => verdict !== 'broken'))).toBe(false)
  expect(inOrder(FINDINGS).map(({ check }) => check)).toEqual(['MX', 'STARTTLS', 'RPC'])
  expect(findingsTable([])).toBe('')
})

test('if the doctor command prints a text from outside, it prints one short line without control characters', () => {
  expect(shown('a\r\nb\u001b[31m')).toBe('"a??b?[31m"')
  expect(shown('x'.repeat(5_000)).length).toBeLessThan(110)
})

test('the doctor command prints no secret in any form', () => {
  const seed = Buffer.alloc(32, 7)
  const env = {
    DATABASE_URL: 'postgres://purser:db%2Fsecret@db/purser',
    SMTP_RELAY_URL: 'smtp://user:relay-secret@relay:587',
    RPC_URL: 'https://rpc.example.com/v2/rpc-secret?key=query-secret',
    SETTLEMENT_KEYS: `0x${'1f'.repeat(32)}`,
    MASTER_KEYS: `a:${seed.toString('base64')}`,
    METRICS_TOKEN: 'metrics-token-of-24-signs',
    INBOUND_SECRETS: `b:${Buffer.alloc(32, 9).toString('base64')}`,
    OIDC_ISSUER: 'https://login.example.com',
    OIDC_CLIENT_ID: 'purser',
    OIDC_CLIENT_SECRET: 'company-secret',
  }
  const secrets = secretsOf(parseConfig(env))
  const forms = [
    'db/secret',
    'db%2Fsecret',
    'relay-secret',
    'rpc-secret',
    'key=query-secret',
    '1f'.repeat(32),
    seed.toString('base64'),
    seed.toString('hex'),
    env.METRICS_TOKEN,
    Buffer.alloc(32, 9).toString('base64'),
    env.OIDC_CLIENT_SECRET,
  ]
  const finding: Finding = {
    area: 'chain',
    check: 'x',
    found: forms.join(' '),
    verdict: 'ok',
    fix: forms.join('|'),
  }
  const text = JSON.stringify(withoutSecrets([finding], secrets))
  for (const form of forms) expect(text).not.toContain(form)
  expect(text).toContain('[hidden]')
})

test('the doctor command writes DNS records as lines of a zone file', () => {
  expect(zoneLine(mxRecord('a.example', 'mx.example'))).toBe('a.example. IN MX 10 mx.example.')
  expect(zoneLine(addressRecord('mx.example', '2001:db8::1'))).toBe(
    'mx.example. IN AAAA 2001:db8::1',
  )
  const long = 'x'.repeat(300)
  expect(zoneLine(txtRecord('t.example', `say "${long}"`))).toBe(
    `t.example. IN TXT "say \\"${'x'.repeat(250)}" "${'x'.repeat(50)}\\""`,
  )
  expect(reverseName('203.0.113.7')).toBe('7.113.0.203.in-addr.arpa')
  // The reverse name of an IPv6 address has one label for each hexadecimal digit, and ends with the domain ip6.arpa
  // (RFC 3596 §2.5).
  expect(reverseName('4321:0:1:2:3:4:567:89ab')).toBe(
    'b.a.9.8.7.6.5.0.4.0.0.0.3.0.0.0.2.0.0.0.1.0.0.0.0.0.0.0.1.2.3.4.ip6.arpa',
  )
  expect(reverseName('2001:db8::1')).toStartWith('1.0.0.0.0.0')
})

test('the service lists all DNS records that its own domain needs, and all DNS records that a project’s domain needs', () => {
  const settings = {
    mailDomain: 'a.example',
    mailHostname: 'mx.a.example',
    webHost: 'www.a.example',
    relayUrl: 'direct',
    mtaSts: 'testing',
  } as const
  const own = {
    domain: 'a.example',
    dkim: [{ selector: 's1', record: 'v=DKIM1; p=A' }],
    claim: null,
  }
  expect(recordsOf(own, settings, 'id1').map(zoneLine)).toEqual([
    'a.example. IN MX 10 mx.a.example.',
    'a.example. IN TXT "v=spf1 a:mx.a.example ~all"',
    'mx.a.example. IN TXT "v=spf1 a -all"',
    's1._domainkey.a.example. IN TXT "v=DKIM1; p=A"',
    '_dmarc.a.example. IN TXT "v=DMARC1; p=none; rua=mailto:dmarc@a.example"',
    '_mta-sts.a.example. IN TXT "v=STSv1; id=id1"',
    'mta-sts.a.example. IN CNAME www.a.example.',
    '_smtp._tls.a.example. IN TXT "v=TLSRPTv1; rua=mailto:tlsrpt@a.example"',
  ])
  const claim = { domain: 't.example', token: 'ab', dkimSelector: 's2', dkimRecord: 'p=B' }
  const tenant = { domain: 't.example', dkim: [{ selector: 's2', record: 'p=B' }], claim }
  expect(recordsOf(tenant, { ...settings, webHost: '203.0.113.7' }, 'id1').map(zoneLine)).toEqual([
    '_purser.t.example. IN TXT "purser-verification=ab"',
    't.example. IN MX 10 mx.a.example.',
    't.example. IN TXT "v=spf1 include:a.example ~all"',
    's2._domainkey.t.example. IN TXT "p=B"',
    '_dmarc.t.example. IN TXT "v=DMARC1; p=none"',
    '_mta-sts.t.example. IN TXT "v=STSv1; id=id1"',
    'mta-sts.t.example. IN A 203.0.113.7',
    '_smtp._tls.t.example. IN TXT "v=TLSRPTv1; rua=mailto:tlsrpt@a.example"',
  ])
  const without = recordsOf(own, { ...settings, mtaSts: 'none' }, 'id1').map(({ name }) => name)
  expect(without.filter((name) => name.includes('mta-sts'))).toEqual([])
})

test('in Docker Compose, the worker that checks mail has the same MTA-STS setting as the API', () => {
  const compose = readFileSync(join(import.meta.dir, '../../../compose.yaml'), 'utf8')
  const { services } = Bun.YAML.parse(compose) as {
    services: Record<string, { environment: Record<string, string> }>
  }
  const policyOf = (part: string) => services[part]!.environment.MTA_STS
  expect(policyOf('api')).toContain('MTA_STS')
  expect(policyOf(SECTION_RUNNER.mail)).toBe(policyOf('api')!)
})
