/** Tests how `bun run doctor` judges the settings, database, storage, web server, webhooks and certificates. */
import { describe, expect, test } from 'bun:test'
import { readConfig } from '../../../shared/config/config.ts'
import { ALL_SECRETS } from '../../../shared/config/secrets.ts'
import { judgeCertificate } from '../../../shared/doctor/certificateFindings.ts'
import {
  type DatabaseFacts,
  databaseAway,
  judgeBlobStore,
  judgeDatabase,
  judgeDisk,
  judgeReplica,
} from '../../../shared/doctor/databaseFindings.ts'
import type { Finding } from '../../../shared/doctor/finding.ts'
import {
  judgeClock,
  judgeEnvironment,
  judgeMasterKeys,
  judgeProduction,
} from '../../../shared/doctor/settingsFindings.ts'
import { judgeBaseUrl, judgeGuard } from '../../../shared/doctor/webFindings.ts'
import { DEVNET_ACCOUNTS } from '../../../shared/till/devnetAccounts.ts'

const NOW = new Date('2026-11-23T12:00:00Z')
const ago = (hours: number) => new Date(NOW.getTime() - hours * 3_600_000)
const verdicts = (findings: readonly Finding[]) =>
  Object.fromEntries(findings.map(({ check, verdict }) => [check, verdict]))
const named = (findings: readonly Finding[], check: string) =>
  findings.find((finding) => finding.check === check)!

describe('the doctor command checks the settings, and names the setting to change for each fault', () => {
  test('the doctor command names the variable to change for each fault of the settings, with a value if the service can propose one', () => {
    const env = { NODE_ENV: 'production', PORT: 'x', SMTP_RELAY_URL: 'direct' }
    const { faults } = readConfig(env, ALL_SECRETS)
    const findings = judgeEnvironment({
      faults,
      misspelt: [{ name: 'RPCURL', nearest: 'RPC_URL' }],
    })
    expect(findings.map(({ check, verdict, fix }) => [check, verdict, fix])).toEqual([
      ['PORT', 'broken', 'PORT=3000'],
      ['RPC_URL', 'broken', 'RPC_URL=https://mainnet.base.org'],
      ['SETTLEMENT_KEYS', 'broken', 'bun run secrets:new   # prints SETTLEMENT_KEYS=…'],
      ['RECEIPT_SIGNING_KEYS', 'broken', 'bun run secrets:new   # prints RECEIPT_SIGNING_KEYS=…'],
      ['MASTER_KEYS', 'broken', 'bun run secrets:new   # prints MASTER_KEYS=…'],
      ['RPCURL', 'warning', 'RPC_URL=…   # instead of RPCURL'],
    ])
    expect(verdicts(judgeEnvironment({ faults: [], misspelt: [] }))).toEqual({ variables: 'ok' })
  })

  test('the doctor command warns if production mode is off, and reports a published devnet key as broken', () => {
    const chain = readConfig({ RPC_URL: 'https://rpc.example.com' }, ALL_SECRETS).config.chain
    const own = { ...chain, settlementKeys: [`0x${'11'.repeat(32)}`] as const }
    const right = { production: true, chain: own, relayUrl: 'direct', mailDomain: 'a.example.com' }
    expect(verdicts(judgeProduction(right))).toEqual({ NODE_ENV: 'ok' })
    const wrong = {
      production: false,
      chain: { ...chain, settlementKeys: [DEVNET_ACCOUNTS.gasWallet.privateKey] },
      relayUrl: 'capture',
      mailDomain: 'mail.localhost',
    }
    expect(verdicts(judgeProduction(wrong))).toEqual({
      NODE_ENV: 'warning',
      SETTLEMENT_KEYS: 'broken',
      SMTP_RELAY_URL: 'warning',
      MAIL_DOMAIN: 'warning',
    })
  })

  test('the doctor command reports the master keys as broken if they lack a key with which data in the database is encrypted', () => {
    expect(judgeMasterKeys(null).verdict).toBe('ok')
    expect(
      judgeMasterKeys('MASTER_KEYS: lacks "old", which encrypts stored secrets'),
    ).toMatchObject({
      verdict: 'broken',
      found: 'lacks "old", which encrypts stored secrets',
    })
  })

  test.each([
    [0, 'ok', 'the same'],
    [9_000, 'ok', '9 s ahead of it'],
    [-20_000, 'warning', '20 s behind it'],
    [31_000, 'broken', '31 s ahead of it'],
    [null, 'warning', 'the page could not be asked'],
  ] as const)(
    'the command `bun run doctor` judges a clock that is ahead by %p ms as %s',
    (aheadMs, verdict, found) => {
      expect(judgeClock('the page', aheadMs)).toMatchObject({ verdict, found })
    },
  )
})

describe('the doctor command checks that the database server can be reached and is set up correctly', () => {
  const RIGHT: DatabaseFacts = {
    version: '18.1',
    versionNumber: 180_001,
    latencyMs: 0.3,
    synchronousCommit: 'on',
    maxConnections: 200,
    reservedConnections: 3,
    connections: 40,
    neededConnections: 120,
    pendingMigrations: 0,
    aheadMs: 0,
    standbys: [{ name: 'b', lagBytes: 4096, lagMs: 10 }],
    backupAt: ago(3),
    archivedAt: null,
  }
  const judged = (change: Partial<DatabaseFacts>) => judgeDatabase({ ...RIGHT, ...change }, NOW)

  test('the doctor command reports no fault of a correct database server', () => {
    expect(verdicts(judged({}))).toEqual({
      version: 'ok',
      latency: 'ok',
      migrations: 'ok',
      synchronous_commit: 'ok',
      max_connections: 'ok',
      'standby b': 'ok',
      backup: 'ok',
    })
  })

  test.each([
    ['version', { version: '14.9', versionNumber: 140_009 }, 'broken', undefined],
    ['latency', { latencyMs: 30 }, 'warning', 'DATABASE_URL='],
    ['latency', { latencyMs: 900 }, 'broken', 'DATABASE_URL='],
    ['migrations', { pendingMigrations: 2 }, 'broken', 'bun run migrate'],
    [
      'synchronous_commit',
      { synchronousCommit: 'off' },
      'broken',
      'alter system set synchronous_commit = on',
    ],
    ['synchronous_commit', { synchronousCommit: 'local' }, 'broken', 'alter system'],
    [
      'max_connections',
      { neededConnections: 198 },
      'warning',
      'alter system set max_connections = 300',
    ],
    [
      'standby b',
      { standbys: [{ name: 'b', lagBytes: 1e9, lagMs: null }] },
      'warning',
      'table pg_stat_replication',
    ],
    ['backup', { backupAt: null }, 'warning', 'bun run backup'],
    ['backup', { backupAt: ago(72) }, 'warning', 'bun run backup'],
    ['backup', { backupAt: null, archivedAt: ago(0.5) }, 'ok', undefined],
    ['backup', { backupAt: null, archivedAt: ago(2) }, 'warning', 'bun run backup'],
  ] as const)(
    'the finding about the database property %s with the facts %p is %s',
    (check, change, verdict, fix) => {
      const finding = named(judged(change as Partial<DatabaseFacts>), check)
      expect(finding.verdict).toBe(verdict)
      if (fix === undefined) expect(finding.fix).toBeUndefined()
      else expect(finding.fix).toStartWith(fix)
    },
  )

  test('the doctor command reports an unreachable database server as broken, and also a replica that is unreachable or is a primary', () => {
    expect(databaseAway('DATABASE_URL: no database answers at db')).toMatchObject({
      verdict: 'broken',
      found: 'no database answers at db',
    })
    expect(judgeReplica({ lagBytes: 1024n })).toMatchObject({ verdict: 'ok', found: '1 KB behind' })
    expect(judgeReplica({ lagBytes: 10n ** 9n }).verdict).toBe('warning')
    expect(judgeReplica('away').verdict).toBe('broken')
    expect(judgeReplica('primary').verdict).toBe('broken')
  })
})

test('the doctor command reports a full disk as broken, and also an object store that refuses to write, read or delete a test object', () => {
  const GB = 1024 ** 3
  const disk = (freeBytes: number) => judgeDisk({ freeBytes, totalBytes: 100 * GB })
  expect(disk(50 * GB)).toMatchObject({ verdict: 'ok', found: '50.0 of 100.0 GB free' })
  expect(disk(3 * GB).verdict).toBe('warning')
  expect(disk(GB / 2).verdict).toBe('broken')
  expect(judgeDisk(null).verdict).toBe('broken')
  expect(judgeBlobStore(null).verdict).toBe('ok')
  expect(judgeBlobStore({ step: 'deleted', reason: 'AccessDenied' })).toMatchObject({
    verdict: 'broken',
    found: 'an object could not be deleted: AccessDenied',
  })
})

test('the doctor command warns of a local BASE_URL, and reports a BASE_URL that does not answer as broken', () => {
  expect(verdicts(judgeBaseUrl('https://a.example.com', { status: 200 }))).toEqual({
    BASE_URL: 'ok',
    'answer at BASE_URL': 'ok',
  })
  expect(verdicts(judgeBaseUrl('http://127.0.0.1:3000', { status: 502 }))).toEqual({
    BASE_URL: 'warning',
    'answer at BASE_URL': 'broken',
  })
  const away = judgeBaseUrl('https://a.example.com', { failure: 'ECONNREFUSED' })[1]!
  expect(away).toMatchObject({
    verdict: 'broken',
    found: 'none: ECONNREFUSED',
    fix: expect.stringContaining('curl -i https://a.example.com/healthz'),
  })
})

test('the doctor command checks that the webhook worker can reach the internet, and cannot reach the private network', () => {
  const seen = {
    outsideUrl: 'https://out.example.com/x',
    outside: 'answered',
    inside: 'blocked',
    allowPrivate: false,
    production: true,
  } as const
  const outcome = (change: object) => judgeGuard({ ...seen, ...change }).map((one) => one.verdict)
  expect(outcome({})).toEqual(['ok', 'ok'])
  expect(outcome({ outside: { failure: 'ENOTFOUND' } })).toEqual(['broken', 'ok'])
  expect(outcome({ outside: 'blocked' })).toEqual(['broken', 'ok'])
  expect(outcome({ inside: 'answered' })).toEqual(['ok', 'broken'])
  expect(outcome({ inside: 'answered', production: false })).toEqual(['ok', 'warning'])
  expect(judgeGuard({ ...seen, inside: 'answered' })[1]!.fix).toBe('ALLOW_PRIVATE_NETWORKS=false')
})

test('the doctor command reports a TLS certificate as broken if it is for another name, expired or untrusted, and as a warning if it expires soon', () => {
  const certificate = {
    fits: true,
    names: ['mx.example.com'],
    expiresAt: new Date('2027-01-23T12:00:00Z'),
    trusted: true,
    issuer: "Let's Encrypt",
  }
  const judged = (change: object, isDemanded = true) =>
    judgeCertificate({
      area: 'web',
      check: 'certificate',
      name: 'mx.example.com',
      certificate: { ...certificate, ...change },
      now: NOW,
      isDemanded,
      fix: 'renew',
    })
  expect(judged({})).toEqual({
    area: 'web',
    check: 'certificate',
    verdict: 'ok',
    found: 'for mx.example.com, 61 days left',
  })
  const soon = new Date('2026-12-01T12:00:00Z')
  expect(judged({ expiresAt: soon })).toMatchObject({ verdict: 'warning', fix: 'renew' })
  expect(judged({ expiresAt: ago(1) })).toMatchObject({
    verdict: 'broken',
    found: 'it ended 2026-11-23',
  })
  expect(judged({ fits: false, names: ['a\n', 'b'] })).toMatchObject({
    verdict: 'broken',
    found: 'it is not for mx.example.com, but for "a?", "b"',
  })
  expect(judged({ trusted: false }).verdict).toBe('broken')
  expect(judged({ trusted: false }, false).verdict).toBe('warning')
})
