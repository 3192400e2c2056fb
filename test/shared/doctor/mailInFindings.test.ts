/** Tests in which cases `bun run doctor` reports a warning or a broken setup for incoming mail. */
import { describe, expect, test } from 'bun:test'
import {
  dnsAway,
  judgeListener,
  judgeMailHost,
  judgeMx,
  judgeReportAddresses,
  judgeReservedNames,
  judgeStartTls,
} from '../../../shared/doctor/mailInFindings.ts'

const D = 'shop.example'
const MX = 'mx.shop.example'
const MX_LINE = `${D}. IN MX 10 ${MX}.`

test('if a DNS query gets no answer, the doctor command reports this as a warning, and proposes other name servers', () => {
  expect(dnsAway('policies', 'MX of a.example')).toEqual({
    area: 'policies',
    check: 'MX of a.example',
    found: 'the name servers did not answer',
    verdict: 'warning',
    fix: 'DNS_SERVERS=1.1.1.1,9.9.9.9',
  })
})

describe('the doctor command checks that the MX records of a domain name the service’s host first', () => {
  const mx = (...records: [priority: number, exchange: string][]) =>
    judgeMx(
      D,
      MX,
      records.map(([priority, exchange]) => ({ priority, exchange })),
    )

  test('the doctor command accepts the MX records if no other host has a lower preference than the service’s host', () => {
    expect(mx([7, MX])).toEqual({
      area: 'mail in',
      check: `MX of ${D}`,
      found: `7 ${MX}`,
      verdict: 'ok',
    })
    expect(mx([11, 'backup.example'], [10, MX]).verdict).toBe('ok')
    expect(mx([0, 'Old.example.'], [1, MX.toUpperCase()])).toMatchObject({
      verdict: 'warning',
      found: `"old.example" gets the mail before ${MX}`,
      fix: MX_LINE,
    })
  })

  test('if the MX records name the service’s host twice, the lower preference counts', () => {
    expect(mx([20, MX], [10, MX])).toMatchObject({ verdict: 'ok', found: `10 ${MX}` })
    expect(mx([20, MX], [15, 'old.example'], [10, MX]).verdict).toBe('ok')
  })

  test('the MX records count as a null MX only if there is a single record and it names the root', () => {
    const found = 'a null MX: the domain takes no mail'
    for (const root of ['', '.']) expect(mx([0, root])).toMatchObject({ verdict: 'broken', found })
    expect(mx([0, '.'], [10, 'other.example']).found).toBe(`"" instead of ${MX}`)
    expect(mx([10, '.'], [0, MX]).verdict).toBe('ok')
  })

  test('no MX record may contain an IP address, even if another record names the service’s host', () => {
    for (const address of ['203.0.113.7', '2001:db8::7'])
      expect(mx([10, MX], [20, address])).toMatchObject({
        verdict: 'broken',
        found: `"${address}" is an address, and must be a name`,
        fix: MX_LINE,
      })
    expect(mx([10, MX], [20, '203-0-113-7.example']).verdict).toBe('ok')
    expect(mx([10, MX], [20, '1.2.3.a']).verdict).toBe('ok')
  })

  test('the MX records must name the host of the service', () => {
    expect(mx()).toMatchObject({ verdict: 'broken', found: 'no such record', fix: MX_LINE })
    expect(mx([10, 'A.example.'], [20, 'b.example'])).toMatchObject({
      verdict: 'broken',
      found: `"a.example" instead of ${MX}`,
      fix: MX_LINE,
    })
  })
})

describe('the doctor command checks that the addresses of the mail host are public', () => {
  const host = (change: Partial<Parameters<typeof judgeMailHost>[0]>) =>
    judgeMailHost({
      mailHostname: MX,
      addresses: ['8.8.4.4', '2606:4700::1'],
      alias: null,
      seenAddress: null,
      allowPrivate: false,
      ...change,
    })
  const UNKNOWN_FIX = `${MX}. IN A …   ; the public address of this machine`

  test('the doctor command accepts the mail host if its addresses are public', () => {
    expect(host({})).toEqual({
      area: 'mail in',
      check: `address of ${MX}`,
      found: '8.8.4.4, 2606:4700::1',
      verdict: 'ok',
    })
  })

  test('if the mail host has no address, the doctor command proposes the service’s public address as seen from outside', () => {
    expect(host({ addresses: [] })).toMatchObject({
      verdict: 'broken',
      found: 'it has none',
      fix: UNKNOWN_FIX,
    })
    expect(host({ addresses: [], seenAddress: '9.9.9.9' }).fix).toBe(`${MX}. IN A 9.9.9.9`)
  })

  test('the mail host must not be an alias, even if the alias has a public address', () => {
    expect(host({ alias: 'web.example' })).toMatchObject({
      verdict: 'broken',
      found: 'it is an alias of "web.example", which no MX may name',
      fix: UNKNOWN_FIX,
    })
  })

  test('the doctor command reports a private address of the mail host as broken, but only as a warning if private networks are allowed', () => {
    const addresses = ['8.8.4.4', '10.0.0.5', '10.0.0.6']
    for (const [allowPrivate, verdict] of [
      [false, 'broken'],
      [true, 'warning'],
    ] as const)
      expect(host({ addresses, allowPrivate })).toMatchObject({
        verdict,
        found: '10.0.0.5 is not public',
        fix: UNKNOWN_FIX,
      })
    expect(host({ allowPrivate: true }).verdict).toBe('ok')
  })
})

describe('the doctor command checks that the SMTP listener answers and offers STARTTLS', () => {
  type Facts = Parameters<typeof judgeListener>[0]
  const listener = (reached: Facts['reached'], local: Facts['reached'] | null) =>
    judgeListener({
      address: '8.8.4.4',
      port: 2525,
      reached,
      local: local === null ? null : { at: '127.0.0.1:25', reached: local },
    })
  const NC_FIX =
    'nc -vz 8.8.4.4 2525   # from elsewhere; if it is shut, ask the provider to open it, or set INBOUND_SECRETS for mail over HTTP'

  test('the doctor command accepts an SMTP listener that answers, even if it does not know whether the listener runs on this machine', () => {
    for (const local of ['refused', null] as const)
      expect(listener('answered', local)).toEqual({
        area: 'mail in',
        check: 'listener at 8.8.4.4',
        found: 'it answers on port 2525, seen from here',
        verdict: 'ok',
      })
  })

  test('the doctor command reports an SMTP listener that refuses connections as broken, and says at which address it listens', () => {
    const fix = 'SMTP_HOST=0.0.0.0 SMTP_PORT=25   # and let port 25 through the firewall'
    expect(listener('refused', 'answered')).toMatchObject({
      verdict: 'broken',
      found: 'nothing listens on port 2525; the listener is at 127.0.0.1:25',
      fix,
    })
    for (const local of ['refused', 'silent', null] as const)
      expect(listener('refused', local)).toMatchObject({
        verdict: 'broken',
        found: 'nothing listens on port 2525',
        fix,
      })
  })

  test.each([
    [
      'silent',
      'no answer on port 2525: a firewall drops it, or the network does not lead back here',
    ],
    ['unreachable', 'there is no way to port 2525'],
  ] as const)(
    'an SMTP listener that is %s is a warning if it answers locally, and is broken if it does not',
    (reached, found) => {
      expect(listener(reached, 'answered')).toMatchObject({
        verdict: 'warning',
        found,
        fix: NC_FIX,
      })
      for (const local of ['refused', null] as const)
        expect(listener(reached, local)).toMatchObject({ verdict: 'broken', found, fix: NC_FIX })
    },
  )

  test('the doctor command warns of an SMTP listener that does not offer STARTTLS', () => {
    expect(judgeStartTls(true)).toMatchObject({ verdict: 'ok', found: 'the listener offers it' })
    expect(judgeStartTls(false)).toEqual({
      area: 'mail in',
      check: 'STARTTLS',
      found: 'the listener does not offer it: mail comes in readable',
      verdict: 'warning',
      fix: 'SMTP_TLS_CERT_FILE=/etc/purser/cert.pem SMTP_TLS_KEY_FILE=/etc/purser/key.pem',
    })
  })
})

test('the doctor command names every address for mail reports that has no inbox', () => {
  expect(judgeReportAddresses([], D)).toMatchObject({ verdict: 'ok', found: 'an inbox takes them' })
  expect(judgeReportAddresses([`dmarc@${D}`, `tlsrpt@${D}`], D).found).toBe(
    `mail to dmarc@${D} and tlsrpt@${D} is refused`,
  )
})

test('each project with a reserved inbox name gets a separate warning, which shows the name on one line', () => {
  expect(judgeReservedNames([])).toEqual([
    { area: 'mail in', check: 'kept names', found: 'no project holds one', verdict: 'ok' },
  ])
  const taken = ['Ada\nBob', 'x'.repeat(101)].map((name, n) => ({
    address: `abuse@d${n}.example`,
    projectId: `prj_${n}`,
    name,
  }))
  expect(judgeReservedNames(taken).map(({ check, found }) => [check, found])).toEqual([
    ['abuse@d0.example', 'the inbox of the project "Ada?Bob" (prj_0)'],
    ['abuse@d1.example', `the inbox of the project "${'x'.repeat(100)}…" (prj_1)`],
  ])
})
