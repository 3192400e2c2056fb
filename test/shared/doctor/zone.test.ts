/** Tests which DNS records the service asks its operator to create, and how a zone file writes these records. */
import { describe, expect, test } from 'bun:test'
import {
  addressRecord,
  dmarcRecord,
  mxRecord,
  ownPolicy,
  ptrRecord,
  recordsOf,
  relayHost,
  reverseName,
  spfRecord,
  stsRecord,
  tlsReportRecord,
  txtRecord,
  type ZoneSettings,
  zoneLine,
} from '../../../shared/doctor/zone.ts'

const SETTINGS: ZoneSettings = {
  mailDomain: 'host.example',
  mailHostname: 'mx.host.example',
  webHost: 'www.host.example',
  relayUrl: 'direct',
  mtaSts: 'testing',
}

describe('each DNS record becomes one line of a zone file in the right format', () => {
  test('a line of a zone file ends with a dot if the record’s value is a host name', () => {
    for (const type of ['CNAME', 'MX', 'PTR'] as const)
      expect(zoneLine({ name: 'a.example', type, value: 'b.example' })).toBe(
        `a.example. IN ${type} b.example.`,
      )
    for (const type of ['A', 'AAAA'] as const)
      expect(zoneLine({ name: 'a.example', type, value: 'v' })).toBe(`a.example. IN ${type} v`)
  })

  test('a line of a zone file puts the value of a TXT record in quotes, and splits it after 255 bytes', () => {
    const line = (length: number) => zoneLine(txtRecord('a.example', 'x'.repeat(length)))
    expect(line(255)).toBe(`a.example. IN TXT "${'x'.repeat(255)}"`)
    expect(line(256)).toBe(`a.example. IN TXT "${'x'.repeat(255)}" "x"`)
  })

  test('only the zone file line of an IPv6 address has the type AAAA', () => {
    expect(addressRecord('a.example', '2001:db8::9').type).toBe('AAAA')
    expect(addressRecord('a.example', '203.0.113.7').type).toBe('A')
  })
})

describe('the SPF record that the service proposes names all hosts that send its mail', () => {
  const own = (relayUrl: string) => spfRecord('host.example', { ...SETTINGS, relayUrl }).value

  test('the SPF record of a project’s own domain includes the domain of the service', () => {
    expect(spfRecord('shop.example', SETTINGS)).toEqual({
      name: 'shop.example',
      type: 'TXT',
      value: 'v=spf1 include:host.example ~all',
    })
  })

  test.each([
    ['smtp://u:p@email-smtp.eu-west-1.amazonaws.com:587', 'amazonses.com'],
    ['smtps://smtp.mailgun.org', 'mailgun.org'],
    ['smtp://mailgun.org:587', 'mailgun.org'],
    ['smtp://smtp.postmarkapp.com:587', 'spf.mtasv.net'],
    ['smtp://smtp.sendgrid.net:587', 'sendgrid.net'],
    ['smtp://Smtp.SendGrid.NET:587', 'sendgrid.net'],
  ])(
    'if the service uses the mail relay %s, its SPF record includes the name %s',
    (relayUrl, include) => {
      expect(own(relayUrl)).toBe(`v=spf1 a:mx.host.example include:${include} ~all`)
    },
  )

  test('if the service uses no well-known mail relay, its SPF record names only the mail host', () => {
    for (const relayUrl of [
      'direct',
      'capture',
      'smtp://relay.example',
      'smtp://mymailgun.org',
      'smtp://mailgun.org.example',
      'smtp://mailgunXorg:587',
    ])
      expect(own(relayUrl)).toBe('v=spf1 a:mx.host.example ~all')
  })
})

test('the host of a mail relay is the name or address in the relay’s URL, and is null if no relay is set', () => {
  expect(relayHost('smtp://user:pass@relay.example:587')).toBe('relay.example')
  expect(relayHost('smtp://[2001:db8::9]:587')).toBe('2001:db8::9')
  expect(relayHost('smtp://203.0.113.7')).toBe('203.0.113.7')
  for (const text of ['direct', 'capture', '']) expect(relayHost(text)).toBeNull()
})

test('DMARC reports go to the service only for its own domain, and TLS reports go to the service for every domain', () => {
  expect(dmarcRecord('host.example', 'host.example').value).toBe(
    'v=DMARC1; p=none; rua=mailto:dmarc@host.example',
  )
  expect(dmarcRecord('shop.example', 'host.example')).toMatchObject({
    name: '_dmarc.shop.example',
    value: 'v=DMARC1; p=none',
  })
  expect(tlsReportRecord('shop.example', 'host.example')).toMatchObject({
    name: '_smtp._tls.shop.example',
    value: 'v=TLSRPTv1; rua=mailto:tlsrpt@host.example',
  })
})

test('if the service publishes no MTA-STS policy yet, the doctor command proposes a policy with the mode `testing`', () => {
  const mode = (mtaSts: ZoneSettings['mtaSts']) =>
    ownPolicy({ mtaSts, mailHostname: 'mx.host.example' }).split('\r\n').slice(1, 3)
  expect(mode('none')).toEqual(['mode: testing', 'mx: mx.host.example'])
  expect(mode('testing')[0]).toBe('mode: testing')
  expect(mode('enforce')[0]).toBe('mode: enforce')
  expect(zoneLine(stsRecord('shop.example', 'id1'))).toBe(
    '_mta-sts.shop.example. IN TXT "v=STSv1; id=id1"',
  )
})

describe('the proposed reverse DNS record of the service’s address names the mail host', () => {
  const ZEROS = '0.'.repeat(23)

  test.each([
    ['203.0.113.7', '7.113.0.203.in-addr.arpa'],
    ['2001:db8::9', `9.${ZEROS}8.b.d.0.1.0.0.2.ip6.arpa`],
    ['::', `${'0.'.repeat(32)}ip6.arpa`],
    ['::1', `1.${'0.'.repeat(31)}ip6.arpa`],
    ['1::', `${'0.'.repeat(28)}1.0.0.0.ip6.arpa`],
    ['2001:DB8:0:0:0:0:0:9', `9.${ZEROS}8.b.d.0.1.0.0.2.ip6.arpa`],
    ['::ffff:203.0.113.7', `7.0.1.7.0.0.b.c.f.f.f.f.${'0.'.repeat(20)}ip6.arpa`],
  ])('the reverse DNS name of %s is %s', (address, name) => {
    expect(reverseName(address)).toBe(name)
  })

  test('the reverse DNS record of the service’s address names the mail host', () => {
    expect(zoneLine(ptrRecord('203.0.113.7', 'mx.host.example'))).toBe(
      '7.113.0.203.in-addr.arpa. IN PTR mx.host.example.',
    )
  })
})

describe('the service lists exactly the DNS records that a domain needs', () => {
  const types = (domain: string, change: Partial<ZoneSettings> = {}) =>
    recordsOf({ domain, dkim: [], claim: null }, { ...SETTINGS, ...change }, 'id1').map(
      ({ name, type }) => `${name} ${type}`,
    )

  test('the DNS records of a domain contain a proof of ownership only if a project claims the domain', () => {
    expect(types('shop.example')).toEqual([
      'shop.example MX',
      'shop.example TXT',
      '_dmarc.shop.example TXT',
      '_mta-sts.shop.example TXT',
      'mta-sts.shop.example CNAME',
      '_smtp._tls.shop.example TXT',
    ])
  })

  test('a separate SPF record for the mail host is listed only for the service’s domain, and only if the host has another name', () => {
    expect(types('host.example')).toContain('mx.host.example TXT')
    expect(types('shop.example')).not.toContain('mx.host.example TXT')
    const same = types('host.example', { mailHostname: 'host.example' })
    expect(same.filter((one) => one === 'host.example TXT')).toHaveLength(1)
  })

  test('the DNS records contain MTA-STS records only if the service publishes a policy', () => {
    const sts = (mtaSts: ZoneSettings['mtaSts']) =>
      types('shop.example', { mtaSts }).filter((one) => one.includes('mta-sts'))
    expect([sts('none'), sts('testing').length, sts('enforce').length]).toEqual([[], 2, 2])
  })

  test('if the web host is an IP address, the DNS records give this address to the host of the MTA-STS policy', () => {
    expect(types('shop.example', { webHost: '203.0.113.7' })).toContain('mta-sts.shop.example A')
    expect(types('shop.example', { webHost: '2001:db8::9' })).toContain('mta-sts.shop.example AAAA')
  })

  test('the DNS records contain one DKIM record for each DKIM key', () => {
    const dkim = ['s1', 's2'].map((selector) => ({ selector, record: `p=${selector}` }))
    const records = recordsOf({ domain: 'shop.example', dkim, claim: null }, SETTINGS, 'id1')
    expect(records.slice(2, 4)).toEqual([
      txtRecord('s1._domainkey.shop.example', 'p=s1'),
      txtRecord('s2._domainkey.shop.example', 'p=s2'),
    ])
    expect(records[0]).toEqual(mxRecord('shop.example', 'mx.host.example'))
  })
})
