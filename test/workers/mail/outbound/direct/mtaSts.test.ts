/**
 * Tests mail to domains with an MTA-STS policy (RFC 8461). The test serves the policies over real HTTPS, and the mail
 * hosts of the test use real STARTTLS.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createMtaSts } from '../../../../../workers/mail/outbound/direct/mtaSts.ts'
import { silentLog } from '../../../../support/logs.ts'
import { fakeDns, type Zone } from '../../../../support/mail/fakeDns.ts'
import { sendMail, untilStatus } from '../../../../support/mail/outbound.ts'
import { type Sink, startSink } from '../../../../support/mail/sink.ts'
import { closeServers } from '../../../../support/process/localServer.ts'
import { newCertificate, serveTls } from '../../../../support/process/tlsServer.ts'
import {
  type Agent,
  messagePath,
  startTestService,
  type TestService,
} from '../../../../support/service.ts'
import { waitFor } from '../../../../support/waitFor.ts'

const zone: Required<Zone> = { mx: {}, a: {}, txt: {}, failing: [] }
const DOMAINS = [
  'right',
  'foreign',
  'untrusted',
  'plain',
  'testing',
  'kept',
  'broken',
  'none',
  'moved',
  'crowded',
  'gone',
  'bytes0',
  'bytes1',
  'bytes2',
  'bytes3',
]
const hosts = [
  'mx.right.test',
  'mx.foreign.test',
  'mx.testing.test',
  'mx.kept.test',
  'mx.broken.test',
  'mx.none.test',
  'mx.moved.test',
  'mx.crowded.test',
]
const certificate = newCertificate(...hosts, ...DOMAINS.map((name) => `mta-sts.${name}.test`))
/**
 * Maps the URL host of each MTA-STS policy to the text of the policy. `asked` lists the hosts from which the service
 * fetched a policy.
 */
const policies: Record<string, string> = {}
const asked: string[] = []

let trusted: Sink
let untrusted: Sink
let plain: Sink
let service: TestService
let agent: Agent
let policyPort: number

const policy = (mode: string, mx: string) =>
  `version: STSv1\r\nmode: ${mode}\r\nmx: ${mx}\r\nmax_age: 604800\r\n`

beforeAll(async () => {
  trusted = await startSink({ host: '127.0.0.12', certificate })
  const { port } = trusted
  untrusted = await startSink({ host: '127.0.0.13', port, tls: true })
  plain = await startSink({ host: '127.0.0.14', port })
  policyPort = await serveTls(certificate, (request, response) => {
    const name = (request.headers.host ?? '').replace(/:\d+$/, '')
    asked.push(name)
    const text = policies[name]
    const status = text === undefined || name === 'mta-sts.broken.test' ? 404 : 200
    response.writeHead(status, { 'content-type': 'text/plain' }).end(text)
  })
  for (const name of DOMAINS) {
    zone.mx[`${name}.test`] = [[10, `mx.${name}.test`]]
    zone.txt[`_mta-sts.${name}.test`] = [`v=STSv1; id=${name}1;`]
    zone.a[`mx.${name}.test`] = ['127.0.0.12']
  }
  zone.a['mx.untrusted.test'] = ['127.0.0.13']
  zone.a['mx.plain.test'] = ['127.0.0.14']
  service = await startTestService({
    smtp: false,
    env: { SMTP_RELAY_URL: 'direct', MAIL_HOSTNAME: 'mx.own.test', ALLOW_PRIVATE_NETWORKS: 'true' },
    dns: fakeDns(zone),
    directPort: port,
    policyPort,
    ca: certificate.ca,
    resolve: (_name, answer) => answer(null, [{ address: '127.0.0.1', family: 4 }]),
  })
  agent = await service.newAgent()
})
afterAll(async () => {
  await service[Symbol.asyncDispose]()
  for (const sink of [trusted, untrusted, plain]) await sink[Symbol.asyncDispose]()
  await closeServers()
})

const send = async (name: string) =>
  (await sendMail(agent, { to: [`a@${name}.test`] })).messageId as string
const errorOf = async (messageId: string) =>
  await waitFor('an attempt', async () => {
    const { body } = await agent.get(messagePath(messageId))
    return body.deliveryStatus === 'queued' ? null : String(body.deliveryError)
  })

test('mail is sent if the MTA-STS policy of the domain names the mail host and the certificate is valid for the host name', async () => {
  policies['mta-sts.right.test'] = policy('enforce', '*.right.test')
  const messageId = await send('right')
  await untilStatus(agent, messageId, 'sent')
  expect(trusted.mails.at(-1)).toMatchObject({ secure: true, servername: 'mx.right.test' })
})

test('mail is deferred, and not sent, if the MTA-STS policy of the domain does not name the mail host', async () => {
  policies['mta-sts.foreign.test'] = policy('enforce', 'mail.foreign.test')
  const messageId = await send('foreign')
  expect(await errorOf(messageId)).toContain(
    '4.7.5 No mail exchanger of the domain is named by its MTA-STS policy',
  )
})

test('mail is sent to the one mail host that the MTA-STS policy names, however many other mail exchangers are preferred', async () => {
  const addresses = (net: number) => [2, 3, 4].map((n) => `127.0.${net}.${n}`)
  Object.assign(zone.a, { 'old1.moved.test': addresses(1), 'old2.moved.test': addresses(2) })
  zone.mx['moved.test'] = [
    [10, 'old1.moved.test'],
    [20, 'old2.moved.test'],
    [30, 'mx.moved.test'],
  ]
  const others = Array.from({ length: 10 }, (_, n): [number, string] => [n, `old${n}.crowded.test`])
  zone.mx['crowded.test'] = [...others, [30, 'mx.crowded.test']]
  for (const name of ['moved', 'crowded']) {
    policies[`mta-sts.${name}.test`] = policy('enforce', `mx.${name}.test`)
    await untilStatus(agent, await send(name), 'sent')
    expect(trusted.mails.at(-1)?.servername).toBe(`mx.${name}.test`)
  }
})

test('mail is deferred if the only mail host that the MTA-STS policy of the domain names has no address', async () => {
  policies['mta-sts.gone.test'] = policy('enforce', 'new.gone.test')
  zone.mx['gone.test'] = [
    [10, 'new.gone.test'],
    [20, 'mx.gone.test'],
  ]
  const messageId = await send('gone')
  expect(await errorOf(messageId)).toContain('4.7.5 No mail exchanger')
  expect((await agent.get(messagePath(messageId))).body.deliveryStatus).toBe('deferred')
})

test('under an MTA-STS policy a mail host with a wrong certificate or without TLS gets no mail, not even in plain text', async () => {
  for (const [name, sink] of [
    ['untrusted', untrusted],
    ['plain', plain],
  ] as const) {
    policies[`mta-sts.${name}.test`] = policy('enforce', `mx.${name}.test`)
    const before = sink.mails.length
    const messageId = await send(name)
    expect(await errorOf(messageId)).toContain(`mx.${name}.test`)
    expect((await agent.get(messagePath(messageId))).body.deliveryStatus).toBe('deferred')
    expect(sink.mails.length).toBe(before)
  }
})

test('mail is sent if the MTA-STS policy of the domain has the mode testing or none, or if the domain has no policy', async () => {
  policies['mta-sts.testing.test'] = policy('testing', 'other.testing.test')
  await untilStatus(agent, await send('testing'), 'sent')
  // The web site of broken.test responds with 404, and the text of this response is no policy, so the mail is sent
  // without a policy.
  policies['mta-sts.broken.test'] = policy('enforce', 'mail.foreign.test')
  await untilStatus(agent, await send('broken'), 'sent')
  policies['mta-sts.none.test'] = 'version: STSv1\r\nmode: none\r\nmax_age: 86400\r\n'
  await untilStatus(agent, await send('none'), 'sent')
})

test('an MTA-STS policy counts as no policy if it contains mail host names that are malformed, and the mail is sent', async () => {
  const names = ['mx.bytes0\u0000.test', 'mx bytes1.test', 'm\u00fcx.test', '*.*.test']
  for (const [index, mx] of names.entries()) {
    policies[`mta-sts.bytes${index}.test`] = policy('enforce', mx)
    await untilStatus(agent, await send(`bytes${index}`), 'sent')
    expect(asked).toContain(`mta-sts.bytes${index}.test`)
  }
})

test('an MTA-STS policy stays valid after an attacker removed its DNS record and its web site', async () => {
  policies['mta-sts.kept.test'] = policy('enforce', 'mx.kept.test')
  await untilStatus(agent, await send('kept'), 'sent')
  delete policies['mta-sts.kept.test']
  delete zone.txt['_mta-sts.kept.test']
  const { rows } = await service.database.pool.query(
    `select mode, mx, expires_at > clock_timestamp() + interval '6 days' as lasts from mta_sts_policies where domain = 'kept.test'`,
  )
  expect(rows).toEqual([{ mode: 'enforce', mx: ['mx.kept.test'], lasts: true }])
  zone.mx['kept.test'] = [[10, 'mx.plain.test']]
  const messageId = await send('kept')
  expect(await errorOf(messageId)).toContain('4.7.5')
  expect(asked.filter((name) => name === 'mta-sts.kept.test')).toHaveLength(1)
})

test('a new process reads a stored MTA-STS policy from the web site again only if the DNS record has another id', async () => {
  const { pool } = service.database
  const host = 'mta-sts.right.test'
  policies[host] = policy('enforce', 'mx.right.test')
  const read = async (record: string | null) => {
    const txt = record === null ? {} : { '_mta-sts.right.test': [`v=STSv1; id=${record};`] }
    const before = asked.length
    const find = createMtaSts({
      ...{ pool, dns: fakeDns({ ...zone, txt }), log: silentLog, port: policyPort },
      ...{ ca: certificate.ca, allowPrivate: true },
      resolve: (_name, answer) => answer(null, [{ address: '127.0.0.1', family: 4 }]),
    })
    const found = await find('right.test')
    return [found?.mode, asked.length - before]
  }
  expect(await read('new')).toEqual(['enforce', 1])
  // An attacker who controls the web site, but not the DNS record, cannot replace the stored MTA-STS policy.
  policies[host] = policy('none', 'mx.right.test')
  expect(await read('new')).toEqual(['enforce', 0])
  expect(await read(null)).toEqual(['enforce', 0])
  expect(await read('newer')).toEqual(['none', 1])
})
