/**
 * Tests how `bun run doctor` judges DNS records, the listener, the relay and policies, and which changes the command
 * proposes.
 */
import { describe, expect, test } from 'bun:test'
import {
  judgeListener,
  judgeMailHost,
  judgeMx,
  judgeReportAddresses,
  judgeReservedNames,
  judgeStartTls,
} from '../../../shared/doctor/mailInFindings.ts'
import {
  judgeDkim,
  judgeDmarc,
  judgeEhlo,
  judgePort25,
  judgeRelay,
  judgeReverse,
  judgeSpf,
  missingDkim,
} from '../../../shared/doctor/mailOutFindings.ts'
import { judgeCaa, judgeSts, judgeTlsReports } from '../../../shared/doctor/policyFindings.ts'

const MX = 'mx.example.com'
const D = 'a.example.com'
const MX_LINE = 'a.example.com. IN MX 10 mx.example.com.'

describe('the doctor command checks that the MX records lead to the service’s mail host', () => {
  const mx = (...records: [number, string][]) =>
    judgeMx(
      D,
      MX,
      records.map(([priority, exchange]) => ({ priority, exchange })),
    )

  test('the doctor command accepts an MX record if the service’s host is first, in upper or lower case, with or without a final dot', () => {
    expect(mx([10, 'MX.example.com.'])).toMatchObject({ verdict: 'ok', found: '10 mx.example.com' })
    expect(mx([10, MX], [20, 'backup.example.com']).verdict).toBe('ok')
  })

  test.each([
    ['an absent record', [], 'no such record'],
    ['a null MX', [[0, '.']], 'a null MX: the domain takes no mail'],
    [
      'an address in place of a name',
      [[10, '203.0.113.7']],
      '"203.0.113.7" is an address, and must be a name',
    ],
    ['another host', [[10, 'mail.other.com']], '"mail.other.com" instead of mx.example.com'],
  ] as [string, [number, string][], string][])(
    'the command `bun run doctor` calls an MX record with %s broken',
    (_what, records, found) => {
      expect(mx(...records)).toMatchObject({ verdict: 'broken', found, fix: MX_LINE })
    },
  )

  test('the doctor command warns of an MX record with another host before the service’s host, because the other host gets the mail', () => {
    expect(mx([10, MX], [5, 'old.example.com'])).toMatchObject({ verdict: 'warning', fix: MX_LINE })
  })
})

describe('the doctor command checks that the mail host has a public address', () => {
  const host = (change: Partial<Parameters<typeof judgeMailHost>[0]>) =>
    judgeMailHost({
      mailHostname: MX,
      addresses: ['8.8.4.4'],
      alias: null,
      seenAddress: '9.9.9.9',
      allowPrivate: false,
      ...change,
    })
  test('the doctor command accepts a mail host with a public address, and reports no address, a private address or an alias as broken', () => {
    expect(host({})).toMatchObject({ verdict: 'ok', found: '8.8.4.4' })
    const fix = 'mx.example.com. IN A 9.9.9.9'
    expect(host({ addresses: [] })).toMatchObject({ verdict: 'broken', fix })
    expect(host({ addresses: ['8.8.4.4', '10.0.0.5'] })).toMatchObject({
      verdict: 'broken',
      found: '10.0.0.5 is not public',
      fix,
    })
    expect(host({ alias: 'x.example.net' })).toMatchObject({ verdict: 'broken', fix })
    expect(host({ addresses: ['10.0.0.5'], allowPrivate: true }).verdict).toBe('warning')
    expect(host({ addresses: [], seenAddress: '2606:4700::1' }).fix).toBe(
      'mx.example.com. IN AAAA 2606:4700::1',
    )
  })
})

describe('the doctor command checks that other hosts can reach the SMTP listener', () => {
  const at = (reached: 'answered' | 'refused' | 'silent' | 'unreachable', local: boolean) =>
    judgeListener({
      address: '8.8.4.4',
      port: 25,
      reached,
      local: { at: '127.0.0.1:2525', reached: local ? 'answered' : 'refused' },
    })
  test('the doctor command reports an SMTP listener that only its own machine can reach as broken, and says how to open it to others', () => {
    expect(at('answered', true).verdict).toBe('ok')
    expect(at('refused', true)).toMatchObject({
      verdict: 'broken',
      found: 'nothing listens on port 25; the listener is at 127.0.0.1:2525',
      fix: expect.stringContaining('SMTP_HOST=0.0.0.0 SMTP_PORT=25'),
    })
    expect(at('refused', false).found).toBe('nothing listens on port 25')
  })
  test('the doctor command reports an SMTP listener that does not answer from outside as a warning if it answers locally, and otherwise as broken', () => {
    expect(at('silent', true)).toMatchObject({
      verdict: 'warning',
      found: expect.stringContaining('a firewall drops it'),
      fix: expect.stringContaining('nc -vz 8.8.4.4 25'),
    })
    expect(at('silent', false).verdict).toBe('broken')
    expect(at('unreachable', false).verdict).toBe('broken')
    expect(judgeStartTls(true).verdict).toBe('ok')
    expect(judgeStartTls(false)).toMatchObject({
      verdict: 'warning',
      fix: expect.stringContaining('SMTP_TLS_CERT_FILE='),
    })
  })
})

test('the doctor command warns of an address for DMARC reports that refuses mail, and names the setting to change', () => {
  expect(judgeReportAddresses([], 'a.example.com').verdict).toBe('ok')
  expect(judgeReportAddresses(['dmarc@a.example.com'], 'a.example.com')).toMatchObject({
    found: 'mail to dmarc@a.example.com is refused',
    verdict: 'warning',
    fix: 'POSTMASTER=operator@a.example.com   # an inbox of yours',
  })
})

test('the doctor command warns of a project with a reserved inbox name, and shows how to delete this project', () => {
  expect(judgeReservedNames([]).map(({ verdict }) => verdict)).toEqual(['ok'])
  const holder = { address: 'abuse@a.example.com', projectId: 'prj_1', name: 'Shop' }
  expect(judgeReservedNames([holder])).toEqual([
    {
      area: 'mail in',
      check: 'abuse@a.example.com',
      found: 'the inbox of the project "Shop" (prj_1)',
      verdict: 'warning',
      fix: 'curl -X DELETE -H "Authorization: Bearer $PLATFORM_KEY" $BASE_URL/v0/platform/projects/prj_1',
    },
  ])
})

describe('the doctor command checks that the machine can connect to port 25 of other hosts', () => {
  const seen = (...reached: ('answered' | 'refused' | 'silent' | 'unreachable')[]) =>
    judgePort25(reached.map((one, n) => ({ host: `h${n}`, reached: one })))
  test('if port 25 is closed, the doctor command distinguishes a provider that drops packets from a firewall that refuses connections', () => {
    expect(seen('silent', 'answered')).toMatchObject({ verdict: 'ok', found: 'h1 answers' })
    expect(seen('silent', 'silent')).toMatchObject({
      verdict: 'broken',
      found: expect.stringContaining('the provider shuts the port'),
      fix: 'SMTP_RELAY_URL=smtp://USER:PASSWORD@RELAY:587',
    })
    expect(seen('refused', 'refused')).toMatchObject({
      verdict: 'broken',
      found: expect.stringContaining('a firewall near this machine'),
      fix: expect.stringContaining('nft list ruleset'),
    })
    expect(seen('refused', 'silent').verdict).toBe('broken')
  })
})

test('the reverse DNS name must be the host name of the service, and must resolve to the address', () => {
  const line =
    '7.113.0.203.in-addr.arpa. IN PTR mx.example.com.   ; ask the provider of the address'
  const judged = (...names: { name: string; forward: string[] }[]) =>
    judgeReverse('203.0.113.7', MX, names)
  expect(judged({ name: MX, forward: ['203.0.113.7'] }).verdict).toBe('ok')
  expect(judged()).toMatchObject({ verdict: 'broken', found: 'it has none', fix: line })
  expect(judged({ name: MX, forward: ['203.0.113.8'] })).toMatchObject({
    verdict: 'broken',
    fix: line,
  })
  expect(judged({ name: 'vps-203-0-113-7.host.net', forward: ['203.0.113.7'] })).toMatchObject({
    verdict: 'warning',
    found: expect.stringContaining("the provider's name"),
  })
  expect(judged({ name: 'other.example.com', forward: ['203.0.113.7'] })).toMatchObject({
    verdict: 'warning',
    fix: line,
  })
  expect(judgeEhlo('203.0.113.7', MX, ['203.0.113.7']).verdict).toBe('ok')
  expect(judgeEhlo('203.0.113.7', MX, ['203.0.113.9']).fix).toBe('mx.example.com. IN A 203.0.113.7')
})

test('SPF needs exactly one record, and this record must allow the addresses from which the service sends', () => {
  const settings = {
    mailDomain: D,
    mailHostname: MX,
    webHost: D,
    relayUrl: 'direct',
    mtaSts: 'none',
  } as const
  const judged = (change: Partial<Parameters<typeof judgeSpf>[0]>) =>
    judgeSpf({
      domain: D,
      records: ['v=spf1 a:mx.example.com -all'],
      results: [{ address: '203.0.113.7', result: 'pass', comment: '' }],
      isDirect: true,
      settings,
      ...change,
    })
  const fix = 'a.example.com. IN TXT "v=spf1 a:mx.example.com ~all"'
  expect(judged({}).verdict).toBe('ok')
  expect(judged({ records: [] })).toMatchObject({ verdict: 'broken', fix })
  expect(judged({ records: ['v=spf1 -all', 'v=spf1 ~all'] })).toMatchObject({
    verdict: 'broken',
    found: '2 records instead of one',
  })
  const result = (text: string, comment = '') => [{ address: '203.0.113.7', result: text, comment }]
  expect(judged({ results: result('permerror', 'Too many DNS requests') })).toMatchObject({
    verdict: 'broken',
    found: 'it cannot be read: "Too many DNS requests"',
    fix,
  })
  expect(judged({ results: result('temperror') }).verdict).toBe('warning')
  expect(judged({ results: result('softfail') })).toMatchObject({
    verdict: 'broken',
    found: 'it says softfail for 203.0.113.7',
  })
  expect(judged({ results: result('softfail'), isDirect: false }).verdict).toBe('warning')
  expect(judged({ records: [], domain: 'tenant.example' }).fix).toBe(
    'tenant.example. IN TXT "v=spf1 include:a.example.com ~all"',
  )
  const relayUrl = 'smtp://user@email-smtp.eu-west-1.amazonaws.com:587'
  expect(judged({ records: [], settings: { ...settings, relayUrl } }).fix).toContain(
    'include:amazonses.com',
  )
})

test('DKIM needs exactly one record, which must contain the service’s public key', () => {
  const key = `v=DKIM1; k=rsa; p=${'A'.repeat(392)}`
  const judged = (...found: string[]) =>
    judgeDkim({ domain: D, selector: 's1', record: key }, found)
  expect(judged(key).verdict).toBe('ok')
  // If an operator enters a DNS record on the web page of a provider, the page may add spaces and omit the version tag.
  // The check must accept such a record.
  expect(judged(`p=${'A'.repeat(200)} ${'A'.repeat(192)}`).verdict).toBe('ok')
  const fix = `s1._domainkey.a.example.com. IN TXT "v=DKIM1; k=rsa; p=${'A'.repeat(237)}" "${'A'.repeat(155)}"`
  expect(judged()).toMatchObject({ verdict: 'broken', found: 'no such record', fix })
  expect(judged(key.replace('AAAA', 'BAAA'))).toMatchObject({
    verdict: 'broken',
    found: 'its key is not ours',
  })
  expect(judged(key, key).verdict).toBe('broken')
  expect(judged(`${key}; t=y`)).toMatchObject({ verdict: 'warning' })
  expect(missingDkim(D)).toMatchObject({ verdict: 'broken', fix: 'bun run dkim:new a.example.com' })
})

test('DMARC needs one record with a known policy, and the hosts that receive its reports must have agreed', () => {
  const judged = (record: string | null, change: Partial<Parameters<typeof judgeDmarc>[0]> = {}) =>
    judgeDmarc({
      domain: D,
      found: record === null ? null : { at: D, records: [record] },
      unconfirmed: [],
      mailDomain: D,
      ...change,
    })
  const fix = '_dmarc.a.example.com. IN TXT "v=DMARC1; p=none; rua=mailto:dmarc@a.example.com"'
  expect(judged('v=DMARC1; p=reject')).toMatchObject({ verdict: 'ok', found: 'p=reject' })
  expect(judged(null)).toMatchObject({ verdict: 'broken', fix })
  expect(judged('', { found: { at: D, records: ['v=DMARC1', 'v=DMARC1; p=none'] } })).toMatchObject(
    {
      verdict: 'broken',
      found: '2 records instead of one',
    },
  )
  expect(judged('v=DMARC1; p=drop').verdict).toBe('broken')
  expect(judged('v=DMARC1; p=none; pct=50')).toMatchObject({
    verdict: 'warning',
    found: 'pct= has no meaning since RFC 9989',
  })
  expect(judged('v=DMARC1; p=none', { unconfirmed: ['other.net'] })).toMatchObject({
    verdict: 'warning',
    fix: 'a.example.com._report._dmarc.other.net. IN TXT "v=DMARC1"',
  })
  const parent = { at: 'example.com', records: ['v=DMARC1; p=quarantine'] }
  expect(judged('', { found: parent }).found).toBe('p=quarantine, by example.com')
})

test('the mail relay must accept the service’s login, and should offer TLS and accept the largest mail', () => {
  const facts = { host: 'relay.net', login: 'accepted', isEncrypted: true, sizeMax: null } as const
  const judged = (change: object) =>
    judgeRelay({ ...facts, ...change }, 35 * 1024 * 1024).map(({ verdict }) => verdict)
  expect(judged({})).toEqual(['ok', 'ok', 'ok'])
  expect(judged({ isEncrypted: false, sizeMax: 10 * 1024 * 1024 })).toEqual([
    'ok',
    'warning',
    'warning',
  ])
  for (const login of ['refused', 'untrusted', 'silent', 'unreachable']) {
    expect(judged({ login })).toEqual(['broken'])
  }
})

test('MTA-STS needs one DNS record and a policy that names the service’s host', () => {
  const policy = { mode: 'enforce', maxAgeS: 604_800, coversUs: true }
  const judged = (
    records: string[],
    seen: object | null = policy,
    mtaSts: 'none' | 'enforce' = 'enforce',
  ) =>
    judgeSts({
      domain: D,
      records,
      policy: seen as never,
      settings: { mailHostname: MX, mtaSts },
      stsId: 'abc1',
    })
  const record = 'v=STSv1; id=20261123;'
  const fix = '_mta-sts.a.example.com. IN TXT "v=STSv1; id=abc1"'
  expect(judged([record]).map(({ verdict }) => verdict)).toEqual(['ok', 'ok'])
  expect(judged([])).toMatchObject([{ verdict: 'warning', fix }])
  expect(judged([record, record])).toMatchObject([{ verdict: 'broken', fix }])
  expect(judged(['v=STSv1; id=20-26'])).toMatchObject([{ verdict: 'broken', fix }])
  const broken = (change: object) => judged([record], { ...policy, ...change })[1]
  expect(broken({ coversUs: false })).toMatchObject({
    verdict: 'broken',
    found: 'it does not name mx.example.com',
    fix: expect.stringContaining('mx: mx.example.com'),
  })
  expect(broken({ coversUs: false, mode: 'testing' })).toMatchObject({ verdict: 'warning' })
  expect(broken({ maxAgeS: 3600 })).toMatchObject({ verdict: 'warning' })
  expect(judged([record], { failure: 'its host answers 404 instead of 200' })[1]).toMatchObject({
    verdict: 'broken',
    found: 'its host answers 404 instead of 200',
  })
  // With the setting MTA_STS=none, the service does not publish a policy yet, so the finding also proposes to publish
  // one.
  const publish = 'MTA_STS=testing   # publishes the policy'
  expect(judged([], null, 'none')[0]!.fix).toBe(`${publish}\n${fix}`)
  expect(judged([record], { failure: 'x' }, 'none')[1]!.fix).toBe(publish)
})

test('TLS-RPT needs one DNS record with an address for reports', () => {
  const judged = (...records: string[]) => judgeTlsReports(D, records, D)
  const fix = '_smtp._tls.a.example.com. IN TXT "v=TLSRPTv1; rua=mailto:tlsrpt@a.example.com"'
  expect(judged('v=TLSRPTv1; rua=mailto:a@b.example,https://r.example/x').verdict).toBe('ok')
  expect(judged()).toMatchObject({ verdict: 'warning', fix })
  expect(judged('v=TLSRPTv1; rua=a@b.example')).toMatchObject({ verdict: 'broken', fix })
  expect(judged('v=TLSRPTv1', 'v=TLSRPTv1').verdict).toBe('broken')
})

test('the doctor command reports a CAA record as broken if the record forbids the issuer of the service’s certificate', () => {
  const set = (...values: string[]) => ({
    at: 'example.com',
    records: values.map((value) => ({ tag: 'issue', value })),
  })
  expect(judgeCaa(MX, null, "Let's Encrypt").verdict).toBe('ok')
  expect(
    judgeCaa(MX, set('letsencrypt.org; validationmethods=dns-01'), "Let's Encrypt").verdict,
  ).toBe('ok')
  expect(judgeCaa(MX, set('digicert.com'), "Let's Encrypt")).toMatchObject({
    verdict: 'broken',
    found: 'example.com forbids letsencrypt.org, which issued the certificate',
    fix: 'example.com. IN CAA 0 issue "letsencrypt.org"',
  })
  expect(judgeCaa(MX, set(';'), 'An Own Authority')).toMatchObject({
    verdict: 'ok',
    found: 'example.com allows none',
  })
})
