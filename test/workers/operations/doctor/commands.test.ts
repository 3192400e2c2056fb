/** Tests the commands `bun run doctor` and `bun run dns` as processes. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseConfig } from '../../../../shared/config/config.ts'
import { SECTION_RUNNER, SECTIONS } from '../../../../shared/doctor/report.ts'
import { createKeyringSource, masterKeys } from '../../../../sql/keyring/keyring.ts'
import { createDkimKey } from '../../../../sql/mail/domains/dkimKeys.ts'
import { recordSection } from '../../../../sql/operations/healthReports.ts'
import { registerPool } from '../../../../sql/queue/workerPools.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import { type NameServer, startNameServer } from '../../../support/mail/nameServer.ts'
import { startProcess } from '../../../support/process/process.ts'
import { startTcpProxy } from '../../../support/process/tcpProxy.ts'
import { waitFor } from '../../../support/waitFor.ts'
import '../../../support/long.ts'

const D = 'a.example'
const MX = 'mx.a.example'

const folder = mkdtempSync(join(tmpdir(), 'purser-doctor-'))
let database: TestDatabase
let server: NameServer
beforeAll(async () => {
  database = await createTestDatabase()
  server = await startNameServer([])
})
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  await database[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true, force: true })
})

async function run(command: 'doctor' | 'dns', args: string[], env: Record<string, string> = {}) {
  const settings = {
    ...{ DATABASE_URL: database.url, DATA_DIR: folder, DNS_SERVERS: server.address },
    ...{ MAIL_DOMAIN: D, MAIL_HOSTNAME: MX, OUTSIDE_URL: 'http://127.0.0.1:1/' },
    ...{ BASE_URL: 'http://127.0.0.1:1', RPC_URL: 'http://127.0.0.1:1', ...env },
  }
  const file = `workers/operations/doctor/${command}Main.ts`
  await using process = startProcess(file, settings, args)
  return { code: await process.exited, out: process.stdout(), error: process.stderr() }
}
const linesOf = ({ out }: { out: string }) => out.trimEnd().split('\n')

test('the commands doctor and dns show their usage for an unknown option or a wrong address', async () => {
  const wrong = [
    run('doctor', ['--nothing']),
    run('dns', ['--nothing']),
    run('dns', ['--address', '203.0.113.7', '--address', 'mx.a.example']),
  ]
  for (const { code, out, error } of await Promise.all(wrong)) {
    expect([code, out, error]).toEqual([78, '', expect.stringMatching(/^usage: bun run d/)])
  }
})

test('the command dns prints the records of the mail domain, and advice on names in zones of other owners', async () => {
  const away = `; ${MX}. IN A …   the public address of this machine: bun run dns --address …`
  const [bare, bind] = await Promise.all([
    run('dns', []),
    run('dns', ['--bind', '--address', '203.0.113.7']),
  ])
  const unsigned = [`; ${D}`, `; no key signs its mail yet: bun run dkim:new ${D}`]
  const own = [
    `${D}. IN MX 10 ${MX}.`,
    `${D}. IN TXT "v=spf1 a:${MX} ~all"`,
    `${MX}. IN TXT "v=spf1 a -all"`,
    `_dmarc.${D}. IN TXT "v=DMARC1; p=none; rua=mailto:dmarc@${D}"`,
    `_smtp._tls.${D}. IN TXT "v=TLSRPTv1; rua=mailto:tlsrpt@${D}"`,
  ]
  expect(bare.code).toBe(0)
  expect(linesOf(bare)).toEqual([
    ...[`; ${MX}`, away, ...unsigned],
    ...own,
    '; Ask the provider of the addresses to set:',
    `; the reverse name of each address: ${MX}`,
    '; MTA_STS=testing publishes a policy of MTA-STS. Run this command again with it.',
  ])
  const host = ['$TTL 3600', `; ${MX}`, `${MX}. IN A 203.0.113.7`]
  expect(linesOf(bind)).toEqual([...host, ...unsigned, ...own])
})

test('the command dns prints the record of a DKIM key, and the reverse name of an address', async () => {
  const keyring = await createKeyringSource(masterKeys(parseConfig({})))(database.pool)
  const { selector } = await createDkimKey(database.pool, keyring, D)
  const args = ['--address', '203.0.113.7']
  const lines = linesOf(await run('dns', args, { MTA_STS: 'testing' }))
  expect(lines).toContainEqual(expect.stringContaining(`${selector}._domainkey.${D}. IN TXT`))
  expect(lines).not.toContainEqual(expect.stringContaining('dkim:new'))
  expect(lines.slice(-2)).toEqual([
    `; 7.113.0.203.in-addr.arpa. IN PTR ${MX}.`,
    '; https://mta-sts.DOMAIN must lead to the API, with a certificate for each name.',
  ])
})

test('the commands doctor and dns report a database that lacks migrations or does not answer, and doctor still makes all other checks', async () => {
  await using empty = await createTestDatabase('template0')
  const dns = await run('dns', [], { DATABASE_URL: empty.url })
  expect([dns.code, dns.error]).toEqual([78, expect.stringContaining('bun run migrate')])
  for (const [url, found] of [
    [empty.url, { check: 'migrations', verdict: 'broken' }],
    ['postgres://127.0.0.1:1/none', { check: 'connection', verdict: 'broken' }],
  ] as const) {
    const { code, out, error } = await run('doctor', ['--json'], { DATABASE_URL: url })
    expect([code, error]).toEqual([1, ''])
    const { findings } = JSON.parse(out)
    for (const one of [found, { check: 'RPC', verdict: 'broken' }, { check: `MX of ${D}` }]) {
      expect(findings).toContainEqual(expect.objectContaining(one))
    }
  }
})

test('if the database is unreachable for a moment, the command doctor prints the findings of running workers, and examines the other sections itself', async () => {
  await using proxy = await startTcpProxy(Number(new URL(database.url).port))
  const living = SECTIONS.filter((section) => section !== 'chain')
  const pools = await Promise.all(
    living.map((section) =>
      registerPool({
        databaseUrl: database.url,
        graphilePoolId: `pool-${section}`,
        poolName: SECTION_RUNNER[section],
        onLost: () => {},
      }),
    ),
  )
  const through = new URL(database.url)
  through.port = String(proxy.port)
  const examined = run('doctor', [], { DATABASE_URL: through.href })
  const reportId = await waitFor('the report', async () => {
    const { rows } = await database.pool.query<{ id: string }>('select id from health_reports')
    return rows[0]?.id ?? null
  })
  await proxy.cut()
  await proxy.mend()
  for (const section of living) {
    const finding = {
      area: 'settings',
      check: section,
      verdict: 'ok',
      found: 'by a worker',
    } as const
    await recordSection(database.pool, { reportId, section, findings: [finding as never] })
  }
  const report = await examined
  expect([report.code, report.error]).toEqual([1, ''])
  const lines = linesOf(report)
  for (const section of living) {
    expect(lines).toContainEqual(expect.stringMatching(new RegExp(`${section} +by a worker`)))
  }
  expect(lines).toContainEqual(expect.stringMatching(/RPC +no answer/))
  expect(lines.at(-1)).toMatch(/^\d+ broken, \d+ warnings?, 3 ok$/)
  for (const pool of pools) await pool.release()
})
