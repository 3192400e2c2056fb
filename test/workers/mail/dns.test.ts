import { afterAll, beforeAll, expect, test } from 'bun:test'
import { getServers, setServers } from 'node:dns'
import { networkInterfaces } from 'node:os'
import type { Answer } from 'dns-packet'
import { createDns, type Dns } from '../../../workers/mail/dns.ts'
import { queryTxt } from '../../../workers/mail/queryTxt.ts'
import { type NameServer, startNameServer } from '../../support/mail/nameServer.ts'

const RECORDS: Answer[] = [
  { type: 'MX', name: 'a.test', data: { preference: 20, exchange: 'mx2.a.test' } },
  { type: 'MX', name: 'a.test', data: { preference: 10, exchange: 'mx1.a.test' } },
  { type: 'MX', name: 'null.test', data: { preference: 0, exchange: '.' } },
  { type: 'A', name: 'a.test', data: '192.0.2.1' },
  { type: 'AAAA', name: 'a.test', data: '2001:db8::1' },
  { type: 'A', name: 'four.test', data: '192.0.2.4' },
  { type: 'A', name: 'half.test', data: '192.0.2.5' },
  { type: 'CNAME', name: 'alias.test', data: 'a.test' },
  { type: 'TXT', name: 'a.test', data: [Buffer.from('v=DKIM1; p=AB'), Buffer.from('CD')] },
  { type: 'TXT', name: 'a.test', data: [Buffer.from('v=spf1 -all')] },
  { type: 'TXT', name: 'lost.test', data: ['found'] },
  { type: 'TXT', name: 'shaky.test', data: ['found'] },
  { type: 'TXT', name: 'wide.test', data: Array(4).fill(Buffer.from('x'.repeat(255))) },
  ...['long.test', 'closed.test', 'mute.test', 'forged.test', 'junk.test'].map(
    (name): Answer => ({ type: 'TXT', name, data: Array(20).fill(Buffer.from('x'.repeat(255))) }),
  ),
]

/** Sets a timeout that is longer than a test may take, so that a test that waits for this timeout fails. */
const ENDLESS_MS = 60_000
const once = (timeoutMs: number) => ({ servers: [server.address], timeoutMs, tries: 1 })
const code = (asked: Promise<unknown>) => asked.catch((error) => error.code)

let server: NameServer
let dns: Dns
beforeAll(async () => {
  server = await startNameServer(RECORDS)
  dns = createDns([server.address])
})
afterAll(() => server[Symbol.asyncDispose]())

test('the DNS function mx returns the mail exchangers of a domain, and also a null MX record', async () => {
  const found = await dns.mx('a.test')
  expect(found.toSorted((a, b) => a.priority - b.priority)).toEqual([
    { priority: 10, exchange: 'mx1.a.test' },
    { priority: 20, exchange: 'mx2.a.test' },
  ])
  const none = await dns.mx('null.test')
  expect(none.map(({ exchange }) => exchange.replace('.', ''))).toEqual([''])
})

test('the DNS function addresses returns the IPv4 and IPv6 addresses of a host, even if the host name is an alias (CNAME)', async () => {
  expect(await dns.addresses('a.test')).toEqual(['192.0.2.1', '2001:db8::1'])
  expect(await dns.addresses('alias.test')).toEqual(['192.0.2.1', '2001:db8::1'])
  expect(await dns.addresses('four.test')).toEqual(['192.0.2.4'])
  // Some name servers answer queries for A records, but return a failure for AAAA records. The IPv4 addresses must then
  // still be found.
  expect(await dns.addresses('half.test')).toEqual(['192.0.2.5'])
})

test('the DNS client joins the strings of a TXT record to one text', async () => {
  expect((await dns.txt('a.test')).toSorted()).toEqual(['v=DKIM1; p=ABCD', 'v=spf1 -all'])
  expect(await dns.txt('alias.test')).toEqual(await dns.txt('a.test'))
  expect(await dns.txt('A.Test')).toEqual(await dns.txt('a.test'))
  expect(await dns.txt('long.test')).toEqual(['x'.repeat(20 * 255)])
})

test('a DNS answer of a thousand bytes fits into one UDP packet, so the query is not repeated over TCP', async () => {
  expect(await dns.txt('wide.test')).toEqual(['x'.repeat(4 * 255)])
  expect(server.askedOverTcp).not.toContain('TXT wide.test')
})

test('the id of a DNS query cannot be guessed from the id of the query before', async () => {
  const before = server.ids.length
  for (let n = 0; n < 20; n++) await dns.txt('a.test')
  const ids = server.ids.slice(before)
  expect(new Set(ids.map((id, n) => id - (ids[n - 1] ?? 0))).size).toBeGreaterThan(10)
})

test('the DNS client sends a query again if the query or the answer is lost', async () => {
  expect(await queryTxt('lost.test', once(ENDLESS_MS))).toEqual(['found'])
})

test('if a name server fails at the first attempt, the DNS client sends the query to it a second time', async () => {
  expect(await dns.txt('shaky.test')).toEqual(['found'])
})

test('if a name server refuses a query, the DNS client continues with the next name server at once', async () => {
  const servers = ['127.0.0.1:1', server.address]
  expect(await queryTxt('a.test', { servers, timeoutMs: ENDLESS_MS, tries: 1 })).toHaveLength(2)
})

test('a missing, forged or invalid DNS answer over TCP counts as a timeout', async () => {
  for (const name of ['closed.test', 'forged.test', 'junk.test']) {
    expect([name, await code(queryTxt(name, once(ENDLESS_MS)))]).toEqual([name, 'ETIMEOUT'])
  }
  expect(await code(queryTxt('mute.test', once(20)))).toBe('ETIMEOUT')
})

test('a change of the DNS resolvers in the operating system takes effect at once', async () => {
  const system = createDns()
  const before = getServers()
  setServers([server.address])
  try {
    expect(await system.txt('long.test')).toHaveLength(1)
  } finally {
    setServers(before)
  }
})

test.if(networkInterfaces().lo?.some(({ address }) => address === '::1') === true)(
  'a name server with an IPv6 address is queried over IPv6',
  async () => {
    await using six = await startNameServer(RECORDS, '::1')
    for (const name of ['a.test', 'long.test']) {
      expect(await createDns([six.address]).txt(name)).toEqual(await dns.txt(name))
    }
  },
)

test('the DNS client returns an empty list for a missing record, and throws an error for a failing or silent name server', async () => {
  for (const name of ['none.test', 'four.test']) {
    expect([await dns.mx(name), await dns.txt(name)]).toEqual([[], []])
  }
  expect(await dns.addresses('none.test')).toEqual([])
  for (const ask of [dns.mx, dns.addresses, dns.txt]) {
    expect(await ask('broken.test').catch((error) => error.code)).toBe('ESERVFAIL')
  }
  const silent = { servers: [server.address], timeoutMs: 20, tries: 2 }
  expect(await queryTxt('silent.test', silent).catch((error) => error.code)).toBe('ETIMEOUT')
  const second = { ...silent, servers: ['127.0.0.1:1', ...silent.servers], timeoutMs: 5_000 }
  expect(await queryTxt('a.test', second)).toHaveLength(2)
})
