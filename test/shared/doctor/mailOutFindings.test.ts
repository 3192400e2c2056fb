/** Tests in which cases `bun run doctor` reports a warning or a broken setup for outgoing mail. */
import { describe, expect, test } from 'bun:test'
import {
  judgeDkim,
  judgeDmarc,
  judgeEhlo,
  judgePort25,
  judgeRelay,
  judgeReverse,
  judgeSpf,
  missingDkim,
  type SpfResult,
  tagOf,
} from '../../../shared/doctor/mailOutFindings.ts'

const D = 'shop.example'
const MX = 'mx.shop.example'
const IP = '203.0.113.7'
const RELAY_FIX = 'SMTP_RELAY_URL=smtp://USER:PASSWORD@RELAY:587'

type Reached = Parameters<typeof judgePort25>[0][number]['reached']

describe('the doctor command checks that outgoing connections to port 25 are not blocked', () => {
  const seen = (...reached: Reached[]) =>
    judgePort25(reached.map((one, n) => ({ host: `h${n}.example`, reached: one })))

  test('the doctor command reports the outgoing port 25 as open if one host answers, and names the first such host', () => {
    expect(seen('silent', 'answered', 'answered')).toEqual({
      area: 'mail out',
      check: 'port 25 outward',
      found: 'h1.example answers',
      verdict: 'ok',
    })
  })

  test('if port 25 is closed, the doctor command blames the firewall or the provider only if all hosts give the same result', () => {
    const network = 'no host answers; the network of this machine has a fault'
    for (const reached of [
      ['silent', 'refused'],
      ['refused', 'silent'],
      ['unreachable'],
      ['silent', 'unreachable'],
    ] as Reached[][])
      expect(seen(...reached)).toMatchObject({
        verdict: 'broken',
        found: network,
        fix: RELAY_FIX,
      })
    expect(seen('silent').found).toBe(
      'no host answers, and none refuses: the provider shuts the port; ask it to open the port, or use a relay',
    )
    expect(seen('refused')).toMatchObject({
      found: 'every host is refused at once: a firewall near this machine shuts the port',
      fix: 'nft list ruleset   # let tcp dport 25 out',
    })
  })
})

describe('the doctor command checks that the reverse DNS name of an address resolves to this address', () => {
  const judged = (address: string, ...names: { name: string; forward: string[] }[]) =>
    judgeReverse(address, MX, names)
  const LINE = `7.113.0.203.in-addr.arpa. IN PTR ${MX}.   ; ask the provider of the address`

  test('the doctor command reports an IP address without a reverse DNS name as broken', () => {
    expect(judged(IP)).toEqual({
      area: 'mail out',
      check: `reverse name of ${IP}`,
      found: 'it has none',
      verdict: 'broken',
      fix: LINE,
    })
  })

  test('a reverse DNS name must resolve to its IP address, and the doctor command shows the first name that was found', () => {
    expect(
      judged(IP, { name: 'a.example', forward: [] }, { name: MX, forward: ['203.0.113.8'] }),
    ).toMatchObject({
      verdict: 'broken',
      found: `"a.example" does not lead back to ${IP}`,
      fix: LINE,
    })
    expect(
      judged(IP, { name: 'a.example', forward: [] }, { name: MX, forward: ['203.0.113.8', IP] }),
    ).toMatchObject({ verdict: 'ok', found: MX })
  })

  test('if the mail host is one of several reverse DNS names, the name of the mail host must resolve to the host’s IP address', () => {
    const names = [
      { name: MX, forward: ['192.0.2.99'] },
      { name: 'other.example', forward: [IP] },
    ]
    expect(judged(IP, ...names).found).toBe(`"other.example", and EHLO says ${MX}`)
    expect(judged(IP, ...names, { name: MX, forward: [IP] }).verdict).toBe('ok')
  })

  test('a reverse DNS name counts as the provider’s only if it contains each number of the IP address separately, leading zeros allowed', () => {
    const found = (name: string) => judged('1.2.1.2', { name, forward: ['1.2.1.2'] }).found
    for (const name of ['mail12.other.example', 'a-1-2.other.example', 'a-1-2-1.other.example']) {
      expect(found(name)).toBe(`"${name}", and EHLO says ${MX}`)
    }
    for (const name of ['a-1-2-1-2.isp.example', 'a002.001.002.001.isp.example']) {
      expect(found(name)).toBe(`"${name}" is the provider's name`)
    }
  })

  test('a reverse DNS name counts as the provider’s own only if it contains every number of the address, in any order', () => {
    const found = (name: string, address = IP) =>
      judged(address, { name, forward: [address] }).found
    expect(found('7-113-0-203.isp.example')).toBe(
      `"7-113-0-203.isp.example" is the provider's name`,
    )
    for (const name of ['7-113-0.isp.example', 'other.example'])
      expect(found(name)).toBe(`"${name}", and EHLO says ${MX}`)
    // The host name contains the number 7, which is the only number of the IPv6 address. Even so, the name must not
    // count as the provider's own name.
    expect(found('host7.example', '::7')).toBe(`"host7.example", and EHLO says ${MX}`)
    expect(found('p-2001-db8-9.example', '2001:db8::9')).toContain("is the provider's name")
  })
})

describe('the doctor command checks that the name in EHLO resolves to the sending address', () => {
  test('the name in EHLO must resolve to the address from which the service sends mail', () => {
    expect(judgeEhlo(IP, MX, ['2001:db8::9', IP])).toEqual({
      area: 'mail out',
      check: 'name in EHLO',
      found: `${MX} leads to ${IP}`,
      verdict: 'ok',
    })
    expect(judgeEhlo('2001:db8::9', MX, [])).toMatchObject({
      verdict: 'warning',
      found: `${MX} does not lead to 2001:db8::9`,
      fix: `${MX}. IN AAAA 2001:db8::9`,
    })
  })
})

describe('the doctor command checks that the SPF record allows every sending address', () => {
  const settings = {
    mailDomain: D,
    mailHostname: MX,
    webHost: D,
    relayUrl: 'direct',
    mtaSts: 'none',
  } as const
  const FIX = `${D}. IN TXT "v=spf1 a:${MX} ~all"`
  const judged = (change: Partial<Parameters<typeof judgeSpf>[0]>) =>
    judgeSpf({
      domain: D,
      records: ['v=spf1 -all'],
      results: [],
      isDirect: true,
      settings,
      ...change,
    })
  const results = (...all: [result: string, comment?: string][]): SpfResult[] =>
    all.map(([result, comment = ''], n) => ({ address: `192.0.2.${n}`, result, comment }))

  test('if no sending address is known, the doctor command says that SPF cannot be checked', () => {
    expect(judged({})).toMatchObject({
      verdict: 'warning',
      found: 'no address is known that sends mail, so that nobody can check it',
    })
  })

  test('if the SPF record allows all sending addresses of the service, the doctor command shows the record', () => {
    expect(judged({ results: results(['pass'], ['pass']) })).toEqual({
      area: 'mail out',
      check: `SPF of ${D}`,
      found: '"v=spf1 -all"',
      verdict: 'ok',
    })
  })

  test('the doctor command reports SPF as broken unless there is exactly one SPF record', () => {
    expect(judged({ records: [] })).toMatchObject({
      verdict: 'broken',
      found: 'no such record',
      fix: FIX,
    })
    expect(judged({ records: ['v=spf1 -all', 'v=spf1 -all'] })).toMatchObject({
      verdict: 'broken',
      found: '2 records instead of one',
      fix: FIX,
    })
  })

  test('if several addresses fail SPF, the doctor command reports a faulty record first, then a name server that does not answer, and a refusal last', () => {
    const all = results(['fail'], ['temperror'], ['permerror', 'loop'])
    expect(judged({ results: all })).toMatchObject({
      verdict: 'broken',
      found: 'it cannot be read: "loop"',
      fix: FIX,
    })
    expect(judged({ results: all.slice(0, 2) })).toMatchObject({
      verdict: 'warning',
      found: 'a name server did not answer',
      fix: FIX,
    })
    expect(judged({ results: all.slice(0, 1) }).found).toBe('it says fail for 192.0.2.0')
  })

  test('the doctor command names the first address that fails SPF, and reports a failing address of a mail relay only as a warning', () => {
    const some = results(['pass'], ['softfail'], ['fail'])
    expect(judged({ results: some })).toMatchObject({
      verdict: 'broken',
      found: 'it says softfail for 192.0.2.1',
      fix: FIX,
    })
    expect(judged({ results: some, isDirect: false })).toMatchObject({
      verdict: 'warning',
      found: 'it says softfail for 192.0.2.1, the relay',
      fix: `${FIX}   ; with the include that the relay names`,
    })
  })
})

describe('the doctor command checks that the DKIM record contains the key of the service', () => {
  const record = (chars: number) => `v=DKIM1; k=rsa; p=${'A'.repeat(chars)}`
  const judged = (own: string, ...found: string[]) =>
    judgeDkim({ domain: D, selector: 's1', record: own }, found)
  const KEY = record(216)
  const FIX = `s1._domainkey.${D}. IN TXT "${KEY}"`

  test('the DKIM check counts only TXT records with a key, and ignores spaces and letter case in the names of the tags', () => {
    for (const text of [KEY, KEY.replace('p=', ' P ='), `p=${'A'.repeat(216)}`])
      expect(judged(KEY, 'google-site-verification=p', text)).toEqual({
        area: 'mail out',
        check: `DKIM s1 of ${D}`,
        found: 'its key is ours',
        verdict: 'ok',
      })
    for (const text of ['v=DKIM1; k=rsa', 'v=spf1 -all', `xp=${'A'.repeat(216)}`])
      expect(judged(KEY, text)).toMatchObject({
        verdict: 'broken',
        found: 'no such record',
        fix: FIX,
      })
  })

  test('the DKIM check needs exactly one record, with the key of the service', () => {
    expect(judged(KEY, KEY, KEY)).toMatchObject({
      verdict: 'broken',
      found: '2 records instead of one',
      fix: FIX,
    })
    for (const other of [`p=`, record(217), KEY.replaceAll('A', 'a')])
      expect(judged(KEY, other)).toMatchObject({
        verdict: 'broken',
        found: 'its key is not ours',
        fix: FIX,
      })
  })

  test('the key in a DKIM record needs at least 216 characters, which means 1,024 bits', () => {
    expect(judged(record(215), record(215))).toMatchObject({
      verdict: 'broken',
      found: 'the key is too short',
      fix: `bun run dkim:new ${D}`,
    })
    expect(judged(KEY, KEY).verdict).toBe('ok')
  })

  test('the doctor command warns of a DKIM record with the flag y (testing), and accepts other flags', () => {
    for (const flags of ['y', 'y:s', 's : y'])
      expect(judged(KEY, `${KEY}; t=${flags}`)).toMatchObject({
        verdict: 'warning',
        found: 't=y says that the domain only tests',
        fix: FIX,
      })
    for (const flags of ['s', '', 'yes'])
      expect(judged(KEY, `${KEY}; t=${flags}`).verdict).toBe('ok')
  })

  test('if the service has no key to sign mail, the doctor command reports DKIM as broken', () => {
    expect(missingDkim(D)).toEqual({
      area: 'mail out',
      check: `DKIM of ${D}`,
      found: 'no key signs its mail',
      verdict: 'broken',
      fix: `bun run dkim:new ${D}`,
    })
  })
})

test('if a tag occurs twice in a DNS record, the first value counts, without surrounding white space and even with an equals sign inside', () => {
  expect(tagOf('v=DKIM1; p = AB\tC D==', 'p')).toBe('ABCD==')
  expect(tagOf('V=1; RUA=mailto:A@b.example; rua=other', 'rua')).toBe('mailto:A@b.example')
  for (const text of ['', 'xp=1', 'p2=1', ';;', 'v=p=1']) expect(tagOf(text, 'p')).toBe('')
  expect(tagOf('p', 'p')).toBe('p')
  for (const name of ['__proto__', 'constructor']) expect(tagOf('p=1', name)).toBe('')
})

describe('the doctor command checks that the DMARC record has a policy and valid report addresses', () => {
  const judged = (change: Partial<Parameters<typeof judgeDmarc>[0]>) =>
    judgeDmarc({ domain: D, found: null, unconfirmed: [], mailDomain: 'host.example', ...change })
  const of = (...records: string[]) => judged({ found: { at: D, records } })
  const FIX = `_dmarc.${D}. IN TXT "v=DMARC1; p=none"`

  test('the doctor command accepts DMARC only if there is exactly one DMARC record', () => {
    expect(judged({})).toEqual({
      area: 'mail out',
      check: `DMARC of ${D}`,
      found: 'no such record',
      verdict: 'broken',
      fix: FIX,
    })
    expect(of('v=DMARC1', 'v=DMARC1')).toMatchObject({
      verdict: 'broken',
      found: '2 records instead of one',
      fix: FIX,
    })
  })

  test('a DMARC record needs a known policy in any letter case, and a record without a policy counts as `none`', () => {
    for (const policy of ['none', 'quarantine', 'reject'])
      expect(of(`v=DMARC1; p=${policy.toUpperCase()}`)).toMatchObject({
        verdict: 'ok',
        found: `p=${policy}`,
      })
    expect(of('v=DMARC1')).toMatchObject({ verdict: 'ok', found: 'p=none' })
    expect(of('v=DMARC1; p=constructor')).toMatchObject({
      verdict: 'broken',
      found: 'p="constructor" is no policy',
      fix: FIX,
    })
  })

  test('the doctor command names the first host of DMARC reports that has not agreed, or else the first tag of the record that has no effect', () => {
    const record = 'v=DMARC1; p=none; pct=50'
    expect(
      judged({ found: { at: D, records: [record] }, unconfirmed: ['a.example', 'b.example'] }),
    ).toMatchObject({
      verdict: 'warning',
      found: `reports to "a.example" are not sent: it does not take those of ${D}`,
      fix: `${D}._report._dmarc.a.example. IN TXT "v=DMARC1"`,
    })
    for (const tag of ['pct', 'rf', 'ri'])
      expect(of(`v=DMARC1; p=none; ${tag}=1`)).toMatchObject({
        verdict: 'warning',
        found: `${tag}= has no meaning since RFC 9989`,
        fix: FIX,
      })
  })

  test('if the DMARC record belongs to a parent domain, its policy for subdomains applies', () => {
    const by = (record: string, at = 'parent.example') =>
      judged({ found: { at, records: [record] } }).found
    expect(by('v=DMARC1; p=reject; sp=none')).toBe('sp=none, by parent.example')
    expect(by('v=DMARC1; p=reject; sp=none', D)).toBe('p=reject')
    expect(by('v=DMARC1; p=none; sp=some')).toBe('sp="some" is no policy')
  })

  test('if the DMARC record belongs to a parent domain, the report host must confirm the parent domain', () => {
    const finding = judged({
      found: { at: 'parent.example', records: ['v=DMARC1; p=none'] },
      unconfirmed: ['reports.example'],
    })
    expect(finding.found).toEndWith('it does not take those of parent.example')
    expect(finding.fix).toBe('parent.example._report._dmarc.reports.example. IN TXT "v=DMARC1"')
  })

  test('the doctor command names the parent domain whose DMARC record applies', () => {
    const found = { at: 'parent.example', records: ['v=DMARC1; p=reject'] }
    expect(judged({ found }).found).toBe('p=reject, by parent.example')
    expect(judged({ found: { ...found, at: D } }).found).toBe('p=reject')
  })
})

describe('the doctor command checks that the mail relay accepts the login and the mail of the service', () => {
  const MB = 1024 * 1024
  type Facts = Parameters<typeof judgeRelay>[0]
  const judged = (change: Partial<Facts>) =>
    judgeRelay(
      { host: 'relay.example', login: 'accepted', isEncrypted: true, sizeMax: null, ...change },
      35 * MB,
    )
  const LOGIN_FIX = 'SMTP_RELAY_URL=smtp://USER:PASSWORD@relay.example:587'

  test.each([
    ['silent', 'no answer: the provider may shut the port', LOGIN_FIX],
    ['refused', 'it refuses the login', LOGIN_FIX],
    [
      'untrusted',
      'it offers no TLS that can be trusted',
      'SMTP_RELAY_CA_FILE=/etc/purser/relay.pem',
    ],
    ['unreachable', 'nothing answers there', RELAY_FIX],
  ] as const)(
    'a mail relay with the login result "%s" is broken, and the finding says what to change',
    (login, found, fix) => {
      expect(judged({ login })).toEqual([
        { area: 'mail out', check: 'relay relay.example', found, verdict: 'broken', fix },
      ])
    },
  )

  test('if a mail relay has an IPv6 address, the proposed setting SMTP_RELAY_URL shows the address in brackets', () => {
    expect(judged({ host: '2001:db8::9', login: 'refused' })[0]!.fix).toBe(
      'SMTP_RELAY_URL=smtp://USER:PASSWORD@[2001:db8::9]:587',
    )
  })

  test('the doctor command checks the login, the TLS and the size limit of a mail relay, and warns of a relay without TLS', () => {
    expect(judged({}).map(({ check, found }) => [check, found])).toEqual([
      ['relay relay.example', 'it takes our login'],
      ['TLS of the relay', 'mail goes out encrypted'],
      ['size of the relay', 'no limit is told'],
    ])
    expect(judged({ isEncrypted: false })[1]).toMatchObject({
      verdict: 'warning',
      found: 'mail goes out readable',
      fix: 'SMTP_RELAY_TLS=required',
    })
  })

  test('a mail relay should accept mail as large as the API allows, and the size limit 0 means no limit', () => {
    const size = (sizeMax: number) => judged({ sizeMax })[2]!
    expect(size(20 * MB)).toMatchObject({
      verdict: 'warning',
      found: 'it takes 20 MB, and the API 35 MB',
      fix: `${RELAY_FIX}   # one that takes 35 MB`,
    })
    for (const small of [1, 35 * MB - 1]) expect(size(small).verdict).toBe('warning')
    for (const large of [0, 35 * MB, 36 * MB]) expect(size(large).verdict).toBe('ok')
    expect(size(36 * MB).found).toBe('36 MB')
  })
})
