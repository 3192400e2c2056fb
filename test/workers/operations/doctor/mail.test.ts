/**
 * Tests the mail sections of the doctor (the service's self-check) with a name server of correct and wrong zones, and
 * with real SMTP and HTTPS servers.
 */
import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import type { Answer } from 'dns-packet'
import type { Config } from '../../../../shared/config/config.ts'
import type { Finding } from '../../../../shared/doctor/finding.ts'
import { createKeyringSource, masterKeys } from '../../../../sql/keyring/keyring.ts'
import { createDkimKey } from '../../../../sql/mail/domains/dkimKeys.ts'
import { addMailDomain } from '../../../../sql/mail/domains/mailDomains.ts'
import { examine } from '../../../../workers/operations/doctor/examine.ts'
import { type DoctorTools, freshDns } from '../../../../workers/operations/doctor/look.ts'
import { type NameServer, startNameServer } from '../../../support/mail/nameServer.ts'
import { type Sink, startSink } from '../../../support/mail/sink.ts'
import { answering, closeServers, serve } from '../../../support/process/localServer.ts'
import { newCertificate, serveTls } from '../../../support/process/tlsServer.ts'
import { startTestService, type TestService } from '../../../support/service.ts'
import '../../../support/long.ts'

const D = 'a.example'
const MX = 'mx.a.example'
const TENANT = 'tenant.test'
const certificate = newCertificate(MX, `mta-sts.${D}`, `mta-sts.${TENANT}`)
const POLICY = `version: STSv1\r\nmode: enforce\r\nmx: ${MX}\r\nmax_age: 604800\r\n`

const AWAY = { pool: null, reason: 'away' } as const

const records: Answer[] = []
let policy = POLICY
let server: NameServer
let sink: Sink
let service: TestService
let https: number
let dkim: { selector: string; record: string }
let tenantDkim: { selector: string; record: string }

beforeAll(async () => {
  server = await startNameServer(records)
  sink = await startSink({ certificate })
  https = await serveTls(certificate, (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/plain' }).end(policy)
  })
  const outside = await serve((_request, response) => response.end('fl=1\nip=127.0.0.1\n'))
  service = await startTestService({
    smtp: false,
    workers: false,
    env: {
      MAIL_DOMAIN: D,
      MAIL_HOSTNAME: MX,
      MTA_STS: 'enforce',
      POSTMASTER: `operator@${D}`,
      SMTP_RELAY_URL: 'direct',
      ALLOW_PRIVATE_NETWORKS: 'true',
      DNS_SERVERS: server.address,
      OUTSIDE_URL: `http://127.0.0.1:${outside}/`,
      BASE_URL: `https://${D}`,
    },
  })
  const { pool } = service.database
  const keyring = await createKeyringSource(masterKeys(service.config))(pool)
  dkim = await createDkimKey(pool, keyring, D)
  const added = await addMailDomain(pool, keyring, TENANT)
  tenantDkim = { selector: added!.dkimSelector, record: added!.dkimRecord }
  await pool.query(`update mail_domains set status = 'verified'`)
})
afterAll(async () => {
  await service[Symbol.asyncDispose]()
  await sink[Symbol.asyncDispose]()
  await server[Symbol.asyncDispose]()
  closeServers()
})

const txt = (name: string, ...data: string[]): Answer => ({ type: 'TXT', name, data })
const mx = (name: string, exchange: string, preference = 10): Answer => ({
  type: 'MX',
  name,
  data: { preference, exchange },
})
const address = (name: string, data: string): Answer => ({ type: 'A', name, data })
/** Splits a DKIM key into strings of at most 255 characters, because a string of a TXT record cannot be longer. */
const long = (text: string) => text.match(/.{1,255}/g)!

const rightZone = (): Answer[] => [
  mx(D, MX),
  address(MX, '127.0.0.1'),
  { type: 'PTR', name: '1.0.0.127.in-addr.arpa', data: MX },
  txt(D, `v=spf1 a:${MX} -all`),
  txt(`${dkim.selector}._domainkey.${D}`, ...long(dkim.record)),
  txt(`_dmarc.${D}`, `v=DMARC1; p=none; rua=mailto:dmarc@${D}`),
  txt(`_mta-sts.${D}`, 'v=STSv1; id=1'),
  txt(`_smtp._tls.${D}`, `v=TLSRPTv1; rua=mailto:tlsrpt@${D}`),
  { type: 'CAA', name: D, data: { tag: 'issue', value: 'letsencrypt.org', flags: 0 } },
  mx(TENANT, MX),
  txt(TENANT, `v=spf1 include:${D} ~all`),
  txt(`${tenantDkim.selector}._domainkey.${TENANT}`, ...long(tenantDkim.record)),
  txt(`_dmarc.${TENANT}`, 'v=DMARC1; p=reject'),
  txt(`_mta-sts.${TENANT}`, 'v=STSv1; id=1'),
  txt(`_smtp._tls.${TENANT}`, `v=TLSRPTv1; rua=mailto:tlsrpt@${D}`),
  mx('gmail.com', 'mx.gmail.example'),
  address('mx.gmail.example', '127.0.0.1'),
]

beforeEach(() => {
  records.splice(0, records.length, ...rightZone())
  policy = POLICY
})

const without = (name: string, type: string) =>
  records.splice(
    0,
    records.length,
    ...records.filter((record) => record.name !== name || record.type !== type),
  )

async function lookAt(
  change: Partial<Config> = {},
  more: Partial<DoctorTools> = {},
): Promise<Finding[]> {
  const config = { ...service.config, ...change }
  return examine('mail', {
    config,
    database: { pool: service.database.pool },
    ...freshDns(config),
    ports: { smtp: sink.port, https },
    resolve: answering('127.0.0.1'),
    ca: certificate.ca,
    ...more,
  })
}

const wrong = (findings: readonly Finding[]) =>
  findings.filter(({ verdict }) => verdict !== 'ok').map(({ check }) => check)
const of = (findings: readonly Finding[], check: string) =>
  findings.find((finding) => finding.check === check)!

test('the command `bun run doctor` makes every mail check, and reports no fault of a correct installation', async () => {
  const findings = await lookAt()
  // The test installation has two intended faults: its certificate expires in two days, and its addresses are private.
  expect(wrong(findings)).toEqual([`address of ${MX}`, 'certificate of the listener'])
  expect(of(findings, 'certificate of the listener').found).toMatch(/^for mx.a.example, [12] day/)
  const own = [D, TENANT].flatMap((domain) =>
    ['MX', 'SPF', 'DMARC', 'MTA-STS', 'policy', 'TLS-RPT'].map((kind) => `${kind} of ${domain}`),
  )
  expect(findings.map(({ check }) => check)).toEqual(
    expect.arrayContaining([
      ...own,
      'disk of DATA_DIR',
      'listener at 127.0.0.1',
      'STARTTLS',
      'kept names',
      'reports',
      'port 25 outward',
      'reverse name of 127.0.0.1',
      'name in EHLO',
      `DKIM ${dkim.selector} of ${D}`,
      `DKIM ${tenantDkim.selector} of ${TENANT}`,
      `CAA of ${MX}`,
    ]),
  )
  expect(of(findings, `CAA of ${MX}`).found).toBe(`${D} allows letsencrypt.org`)
  expect(of(findings, 'port 25 outward').found).toBe('gmail.com answers')
})

const DKIM = 'DKIM'
test.each([
  ['MX', D, () => without(D, 'MX'), `${D}. IN MX 10 ${MX}.`],
  ['MX', TENANT, () => without(TENANT, 'MX'), `${TENANT}. IN MX 10 ${MX}.`],
  ['SPF', D, () => without(D, 'TXT'), `${D}. IN TXT "v=spf1 a:${MX} ~all"`],
  ['SPF', D, () => records.push(txt(D, 'v=spf1 -all')), `${D}. IN TXT "v=spf1 a:${MX} ~all"`],
  ['SPF', TENANT, () => without(TENANT, 'TXT'), `${TENANT}. IN TXT "v=spf1 include:${D} ~all"`],
  ['DMARC', D, () => without(`_dmarc.${D}`, 'TXT'), `_dmarc.${D}. IN TXT "v=DMARC1; p=none; rua=`],
  [
    'TLS-RPT',
    D,
    () => without(`_smtp._tls.${D}`, 'TXT'),
    `_smtp._tls.${D}. IN TXT "v=TLSRPTv1; rua=`,
  ],
  ['MTA-STS', D, () => without(`_mta-sts.${D}`, 'TXT'), `_mta-sts.${D}. IN TXT "v=STSv1; id=`],
  [
    DKIM,
    D,
    () => without(`${dkim.selector}._domainkey.${D}`, 'TXT'),
    `_domainkey.${D}. IN TXT "v=DKIM1; k=rsa; p=`,
  ],
] as const)(
  'a missing or doubled %s record of %s has the line to publish as its fix',
  async (kind, domain, change, fix) => {
    change()
    const findings = await lookAt()
    const check = kind === DKIM ? `DKIM ${dkim.selector} of ${domain}` : `${kind} of ${domain}`
    expect(wrong(findings)).toContain(check)
    expect(of(findings, check).fix).toContain(fix)
  },
)

test('`bun run doctor` reports an SPF record with more than ten DNS lookups as broken', async () => {
  without(D, 'TXT')
  records.push(txt(D, `v=spf1 include:spf0.${D} a:${MX} -all`))
  for (let n = 0; n < 11; n++) {
    records.push(txt(`spf${n}.${D}`, `v=spf1 include:spf${n + 1}.${D} ?all`))
  }
  records.push(txt(`spf11.${D}`, 'v=spf1 ?all'))
  expect(of(await lookAt(), `SPF of ${D}`)).toMatchObject({
    verdict: 'broken',
    found: 'it cannot be read: "Too many DNS requests"',
  })
})

test('a DMARC record that sends reports to another domain needs a DNS record in which the other domain agrees', async () => {
  without(`_dmarc.${D}`, 'TXT')
  records.push(txt(`_dmarc.${D}`, 'v=DMARC1; p=none; rua=mailto:x@reports.test'))
  const line = `${D}._report._dmarc.reports.test`
  expect(of(await lookAt(), `DMARC of ${D}`).fix).toBe(`${line}. IN TXT "v=DMARC1"`)
  records.push(txt(line, 'v=DMARC1'))
  expect(of(await lookAt(), `DMARC of ${D}`).verdict).toBe('ok')
})

test.each([
  ['DMARC', `_dmarc.${D}`, 'v=dmarc1; p=reject'],
  ['MTA-STS', `_mta-sts.${D}`, 'v=STSV1; id=1'],
  ['TLS-RPT', `_smtp._tls.${D}`, `v=tlsrptv1; rua=mailto:tlsrpt@${D}`],
])(
  'the %s record at %s counts as missing if the version is in the wrong letter case',
  async (kind, name, text) => {
    without(name, 'TXT')
    records.push(txt(name, text))
    expect(wrong(await lookAt())).toContain(`${kind} of ${D}`)
  },
)

test('a domain without a DMARC record has the policy of its organisational domain, and not of its nearest parent domain', async () => {
  const name = `deep.sub.${D}`
  records.push(txt(`_dmarc.sub.${D}`, 'v=DMARC1; p=quarantine'))
  const dmarc = async () => of(await lookAt({ mailDomain: name }), `DMARC of ${name}`).found
  expect(await dmarc()).toBe(`p=none, by ${D}`)
  without(`_dmarc.sub.${D}`, 'TXT')
  records.push(txt(`_dmarc.sub.${D}`, 'v=DMARC1; p=quarantine; psd=n'))
  expect(await dmarc()).toBe(`p=quarantine, by sub.${D}`)
  without(`_dmarc.${D}`, 'TXT')
  without(`_dmarc.sub.${D}`, 'TXT')
  records.push(txt(`_dmarc.${D}`, 'v=DMARC1; p=reject; psd=y'))
  expect(await dmarc()).toBe(`p=reject, by ${D}`)
})

test('a DMARC record may have blanks around the equals sign of its version', async () => {
  without(`_dmarc.${D}`, 'TXT')
  records.push(txt(`_dmarc.${D}`, 'v = DMARC1 ; p = reject'))
  expect(of(await lookAt(), `DMARC of ${D}`).found).toBe('p=reject')
})

test('a domain below a public suffix has the DMARC policy of the suffix, even if the suffix is a top-level domain', async () => {
  records.push(txt('_dmarc.suffix', 'v=DMARC1; p=quarantine; psd=y'))
  const found = of(await lookAt({ mailDomain: 'shop.suffix' }), 'DMARC of shop.suffix').found
  expect(found).toBe('p=quarantine, by suffix')
})

test('the DMARC tree walk of a long domain name continues with its last seven labels', async () => {
  const name = `a.b.c.d.e.f.g.${D}`
  const labels = name.split('.')
  records.push(txt(`_dmarc.${labels.slice(-8).join('.')}`, 'v=DMARC1; p=reject; psd=n'))
  const dmarc = async () => of(await lookAt({ mailDomain: name }), `DMARC of ${name}`).found
  expect(await dmarc()).toBe(`p=none, by ${D}`)
  records.push(txt(`_dmarc.${labels.slice(-7).join('.')}`, 'v=DMARC1; p=reject; psd=n'))
  expect(await dmarc()).toBe(`p=reject, by ${labels.slice(-7).join('.')}`)
})

test('a report host of another organisation below the same public suffix must also agree to the DMARC reports', async () => {
  const name = 'shop.co.test'
  records.push(txt(`_dmarc.${name}`, 'v=DMARC1; p=none; rua=mailto:x@vendor.co.test'))
  const dmarc = async () => of(await lookAt({ mailDomain: name }), `DMARC of ${name}`)
  expect((await dmarc()).fix).toBe(`${name}._report._dmarc.vendor.co.test. IN TXT "v=DMARC1"`)
  without(`_dmarc.${name}`, 'TXT')
  records.push(txt(`_dmarc.${name}`, `v=DMARC1; p=none; rua=mailto:x@reports.${name}`))
  expect((await dmarc()).verdict).toBe('ok')
})

test('the CAA records of the mail host are compared with the certificate of the SMTP listener, and not of BASE_URL', async () => {
  // In a self-signed certificate, the issuer is the first of the names for which the certificate is made. Therefore
  // this test can choose the issuer.
  const web = await serveTls(newCertificate('amazon.test'), (_request, response) => response.end())
  const { http } = service.config
  const found = await lookAt({ http: { ...http, baseUrl: `https://127.0.0.1:${web}` } })
  expect(of(found, `CAA of ${MX}`)).toMatchObject({
    verdict: 'ok',
    found: `${D} allows letsencrypt.org`,
  })
  const smtp = await startSink({ certificate: newCertificate('buypass.test', MX) })
  const ports = { smtp: smtp.port, https }
  const judged = of(await lookAt({}, { ports }), `CAA of ${MX}`)
  await smtp[Symbol.asyncDispose]()
  expect(judged).toMatchObject({
    verdict: 'broken',
    found: `${D} forbids buypass.com, which issued the certificate`,
  })
})

test('`bun run doctor` reports a missing reverse DNS name and a mail host name that is an alias as broken', async () => {
  records.push(
    { type: 'CNAME', name: MX, data: 'other.a.example' },
    address('other.a.example', '127.0.0.1'),
  )
  const findings = await lookAt()
  expect(of(findings, `address of ${MX}`)).toMatchObject({
    verdict: 'broken',
    found: 'it is an alias of "other.a.example", which no MX may name',
    fix: `${MX}. IN A 127.0.0.1`,
  })
  without('1.0.0.127.in-addr.arpa', 'PTR')
  expect(of(await lookAt(), 'reverse name of 127.0.0.1')).toMatchObject({
    verdict: 'broken',
    fix: `1.0.0.127.in-addr.arpa. IN PTR ${MX}.   ; ask the provider of the address`,
  })
})

test('`bun run doctor` reports an MTA-STS policy for another mail host as broken, because all mail would be lost', async () => {
  policy = POLICY.replace(MX, 'mx.other.example')
  expect(of(await lookAt(), `policy of ${D}`)).toMatchObject({
    verdict: 'broken',
    found: `it does not name ${MX}`,
    fix: expect.stringContaining(`mx: ${MX}`),
  })
  policy = 'nonsense'
  expect(of(await lookAt(), `policy of ${D}`).found).toBe('it cannot be fetched: malformed')
})

test('under an enforced MTA-STS policy, `bun run doctor` reports a listener without STARTTLS or a trusted certificate as broken', async () => {
  // A sender that obeys an enforced policy delivers no mail to a listener without STARTTLS or without a trusted
  // certificate (RFC 8461 §5).
  const { ca } = newCertificate(MX)
  await using plain = await startSink()
  for (const [mtaSts, verdict] of [
    ['enforce', 'broken'],
    ['testing', 'warning'],
    ['none', 'warning'],
  ] as const) {
    const untrusted = of(await lookAt({ mtaSts }, { ca }), 'certificate of the listener')
    expect([mtaSts, untrusted.verdict]).toEqual([mtaSts, verdict])
    const bare = of(await lookAt({ mtaSts }, { ports: { smtp: plain.port, https } }), 'STARTTLS')
    expect([mtaSts, bare.verdict]).toEqual([mtaSts, verdict])
  }
})

test('if the SMTP listener does not use port 25, `bun run doctor` names the settings for port 25', async () => {
  const smtp = { ...service.config.smtp, host: '127.0.0.1', port: sink.port }
  // No process listens on port 1, so the doctor (the self-check) finds no SMTP listener.
  const findings = await lookAt({ smtp }, { ports: { smtp: 1, https } })
  expect(of(findings, 'listener at 127.0.0.1')).toMatchObject({
    verdict: 'broken',
    found: `nothing listens on port 1; the listener is at 127.0.0.1:${sink.port}`,
    fix: expect.stringMatching(/^SMTP_HOST=0\.0\.0\.0 SMTP_PORT=25/),
  })
  expect(of(findings, 'port 25 outward').verdict).toBe('broken')
  // The doctor (the self-check) cannot reach port 25 from outside, so the doctor reads the certificate from the SMTP
  // listener on this machine.
  expect(of(findings, 'certificate of the listener').found).toContain(`for ${MX}`)
  const foreign = await lookAt({ smtp, mailHostname: 'gmail.com' })
  expect(of(foreign, 'certificate of the listener')).toMatchObject({
    verdict: 'broken',
    found: expect.stringContaining('it is not for gmail.com, but for "mx.a.example"'),
  })
})

test('if a name server fails, `bun run doctor` gives a warning without a verdict, and still shows every other finding', async () => {
  const findings = await lookAt({ mailDomain: 'broken.example', mailHostname: 'broken.host' })
  const failed = findings.filter(({ found }) => found === 'the name servers did not answer')
  expect(failed.map(({ check }) => check)).toEqual([
    'MX of broken.example',
    'address of broken.host',
    'SPF of broken.example',
    'DMARC of broken.example',
    'MTA-STS of broken.example',
    'TLS-RPT of broken.example',
    'CAA of broken.host',
  ])
  for (const { verdict, fix } of failed)
    expect([verdict, fix]).toEqual(['warning', 'DNS_SERVERS=1.1.1.1,9.9.9.9'])
  expect(of(findings, `DMARC of ${TENANT}`).verdict).toBe('ok')
  expect(of(findings, 'DKIM of broken.example').fix).toBe('bun run dkim:new broken.example')
})

test('without a database, `bun run doctor` examines only what the settings and the DNS tell', async () => {
  const checks = (await lookAt({ postmaster: undefined }, { database: AWAY })).map(
    ({ check }) => check,
  )
  expect(checks).toEqual(expect.arrayContaining([`MX of ${D}`, `SPF of ${D}`, `DMARC of ${D}`]))
  for (const check of ['reports', 'kept names', `DKIM of ${D}`, `MX of ${TENANT}`]) {
    expect(checks).not.toContain(check)
  }
})

test('if OUTSIDE_URL does not tell the service’s IP address, the addresses of the mail host count as the sending addresses', async () => {
  const outside = await serve((_request, response) => response.end('ip=nonsense\n'))
  const findings = await lookAt({ outsideUrl: `http://127.0.0.1:${outside}/` })
  expect(of(findings, 'reverse name of 127.0.0.1').verdict).toBe('ok')
  expect(of(findings, 'reverse name of nonsense')).toBeUndefined()
})

test('`bun run doctor` tries the login to the mail relay, and no finding contains the relay password', async () => {
  records.push(address('relay.a.example', '127.0.0.1'))
  const relayUrl = `smtp://user:hunter22@127.0.0.1:${sink.port}`
  const right = await lookAt({ relayUrl: `smtp://127.0.0.1:${sink.port}`, relayTls: 'off' })
  expect(of(right, 'relay 127.0.0.1')).toMatchObject({ verdict: 'ok', found: 'it takes our login' })
  expect(of(right, 'TLS of the relay').verdict).toBe('warning')
  expect(right.map(({ check }) => check)).not.toContain('port 25 outward')
  const untrusted = await lookAt({ relayUrl, relayTls: 'required' })
  expect(of(untrusted, 'relay 127.0.0.1')).toMatchObject({
    verdict: 'broken',
    fix: 'SMTP_RELAY_CA_FILE=/etc/purser/relay.pem',
  })
  const away = await lookAt({ relayUrl: 'smtp://user:hunter22@127.0.0.1:1', relayTls: 'off' })
  expect(of(away, 'relay 127.0.0.1')).toMatchObject({
    verdict: 'broken',
    found: 'nothing answers there',
  })
  const refused = await lookAt({ relayUrl, relayTls: 'off' })
  expect(of(refused, 'relay 127.0.0.1').found).toBe('it refuses the login')
  expect(JSON.stringify([right, untrusted, away, refused])).not.toContain('hunter22')
})

test('`bun run doctor` compares the size limit that the mail relay announces with the limit of the API', async () => {
  for (const [bytesMax, verdict, found] of [
    [undefined, 'ok', 'no limit is told'],
    [0, 'ok', 'no limit is told'],
    [5 * 1024 * 1024, 'warning', expect.stringMatching(/^it takes 5 MB, and the API \d+ MB$/)],
  ] as const) {
    await using relay = await startSink(bytesMax === undefined ? {} : { bytesMax })
    const relayUrl = `smtp://127.0.0.1:${relay.port}`
    const findings = await lookAt({ relayUrl, relayTls: 'off' })
    expect(of(findings, 'size of the relay')).toMatchObject({ verdict, found })
  }
})

test('`bun run doctor` reports a project whose inbox name is reserved', async () => {
  const agent = await service.newAgent({ emailName: 'abuse' })
  const finding = of(await lookAt(), `abuse@${D}`)
  expect(finding.verdict).toBe('warning')
  expect(finding.fix).toContain(`/v0/platform/projects/${agent.project.id}`)
})
