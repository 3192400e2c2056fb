/** Tests at which values `bun run doctor` judges the database and the storage as a warning or as broken. */
import { describe, expect, test } from 'bun:test'
import {
  type DatabaseFacts,
  databaseAway,
  judgeBlobStore,
  judgeDatabase,
  judgeDisk,
  judgeReplica,
} from '../../../shared/doctor/databaseFindings.ts'

const NOW = new Date('2026-11-23T12:00:00Z')
const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const before = (ms: number) => new Date(NOW.getTime() - ms)

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
  standbys: [],
  backupAt: before(HOUR_MS),
  archivedAt: null,
}
const finding = (check: string, change: Partial<DatabaseFacts>) =>
  judgeDatabase({ ...RIGHT, ...change }, NOW).find((one) => one.check === check)!

test('the doctor command reports an unreachable database as broken, and does not repeat the name of the variable DATABASE_URL', () => {
  expect(databaseAway('DATABASE_URL: no answer')).toEqual({
    area: 'database',
    check: 'connection',
    found: 'no answer',
    verdict: 'broken',
    fix: 'DATABASE_URL=postgres://USER:PASSWORD@HOST/DATABASE',
  })
  expect(databaseAway('at DATABASE_URL: no answer').found).toBe('at DATABASE_URL: no answer')
})

test('the command `bun run doctor` accepts PostgreSQL from version 15.0 on', () => {
  const version = (versionNumber: number) =>
    finding('version', { version: 'v', versionNumber }).verdict
  expect([149_999, 150_000].map(version)).toEqual(['broken', 'ok'])
  expect(finding('version', { version: '14.9', versionNumber: 140_009 }).found).toBe(
    'PostgreSQL 14.9; 15 or newer is needed',
  )
})

test.each([
  [20, 'ok', '20.0 ms a statement'],
  [20.1, 'warning', '20.1 ms a statement'],
  [500, 'warning', '500.0 ms a statement'],
  [500.1, 'broken', '500.1 ms a statement'],
] as const)(
  'the command `bun run doctor` judges a database latency of %p ms as %s',
  (latencyMs, verdict, found) => {
    expect(finding('latency', { latencyMs })).toMatchObject({ verdict, found })
  },
)

test('the doctor command reports a database as broken if one migration is not yet applied', () => {
  expect(finding('migrations', { pendingMigrations: 0 })).toMatchObject({
    verdict: 'ok',
    found: 'all are applied',
  })
  expect(finding('migrations', { pendingMigrations: 1 })).toMatchObject({
    verdict: 'broken',
    found: '1 to apply',
  })
})

test.each([
  ['on', 'ok'],
  ['remote_apply', 'ok'],
  ['remote_write', 'ok'],
  ['local', 'broken'],
  ['off', 'broken'],
] as const)(
  'the command `bun run doctor` judges synchronous_commit with the value %s as %s',
  (synchronousCommit, verdict) => {
    const { verdict: judged, found } = finding('synchronous_commit', { synchronousCommit })
    expect([judged, found.split(':')[0]!]).toEqual([verdict, synchronousCommit])
  },
)

describe('the doctor command checks whether the limit on database connections is high enough for the service', () => {
  test('the doctor command accepts the limit on database connections if the service needs no more than the unreserved connections', () => {
    expect(finding('max_connections', { neededConnections: 197 })).toMatchObject({
      verdict: 'ok',
      found: '40 in use; the service may open 197 of 197',
    })
    expect(finding('max_connections', { neededConnections: 198 }).verdict).toBe('warning')
  })

  test.each([
    [198, 300],
    [247, 300],
    [248, 350],
  ])(
    'for %p needed database connections, the doctor command proposes the limit %p, which leaves fifty free and is rounded up',
    (neededConnections, most) => {
      expect(finding('max_connections', { neededConnections }).fix).toBe(
        `alter system set max_connections = ${most};   -- and restart the server`,
      )
    },
  )
})

describe('the doctor command warns about a standby that is too far behind the primary', () => {
  const standby = (lagBytes: number, lagMs: number | null = null) =>
    finding('standby b', { standbys: [{ name: 'b', lagBytes, lagMs }] })
  const MOST = 64 * 1024 * 1024

  test('the doctor command accepts a standby that is at most 64 MB behind the primary', () => {
    expect(standby(MOST)).toMatchObject({ verdict: 'ok', found: '65536 KB behind' })
    expect(standby(MOST + 1).verdict).toBe('warning')
  })

  test('the doctor command shows how many seconds a standby is behind the primary, if the server knows it', () => {
    expect(standby(2_048, 1_600).found).toBe('2 KB, 2 s behind')
    expect(standby(0, 0).found).toBe('0 KB, 0 s behind')
    expect(standby(0).found).toBe('0 KB behind')
  })

  test('the doctor command reports a separate finding for each standby', () => {
    const standbys = ['a', 'b'].map((name) => ({ name, lagBytes: 0, lagMs: null }))
    const checks = judgeDatabase({ ...RIGHT, standbys }, NOW).map(({ check }) => check)
    expect(checks.filter((check) => check.startsWith('standby'))).toEqual([
      'standby a',
      'standby b',
    ])
  })
})

describe('the doctor command checks that a read replica answers and is not too far behind', () => {
  test('the doctor command accepts a read replica if it answers, is at most 64 MB behind, and is not a primary', () => {
    expect(judgeReplica({ lagBytes: 67_108_864n })).toMatchObject({
      verdict: 'ok',
      found: '65536 KB behind',
    })
    const fix = 'DATABASE_REPLICA_URL=   # the primary then answers lists'
    expect(judgeReplica({ lagBytes: 67_108_865n })).toMatchObject({ verdict: 'warning', fix })
    expect(judgeReplica('away')).toMatchObject({
      verdict: 'broken',
      found: 'the replica does not answer',
      fix,
    })
    expect(judgeReplica('primary')).toMatchObject({
      verdict: 'broken',
      found: 'the server is no replica',
      fix,
    })
  })
})

describe('the doctor command warns about a backup that is too old', () => {
  const backup = (backupAt: Date | null, archivedAt: Date | null = null) => {
    const { verdict, found } = finding('backup', { backupAt, archivedAt })
    return [verdict, found]
  }

  test('the doctor command counts a backup as recent for 25 hours, and an archived WAL file for one hour', () => {
    expect(backup(before(25 * HOUR_MS))).toEqual(['ok', '25 hours ago'])
    expect(backup(before(25 * HOUR_MS + 1))).toEqual(['warning', 'the last was 25 hours ago'])
    expect(backup(null, before(HOUR_MS))).toEqual(['ok', 'the WAL was archived 60 minutes ago'])
    expect(backup(null, before(HOUR_MS + 1))).toEqual(['warning', 'none was recorded'])
  })

  test('the doctor command reports a recent archived WAL file instead of a backup; if the WAL file is old, it reports a recent backup', () => {
    const minute = before(MINUTE_MS)
    expect(backup(minute, minute)).toEqual(['ok', 'the WAL was archived 1 minute ago'])
    expect(backup(minute, before(9 * HOUR_MS))).toEqual(['ok', '1 minute ago'])
    expect(backup(before(72 * HOUR_MS), minute)[0]).toBe('ok')
  })

  test.each([
    [-HOUR_MS, '0 minutes ago'],
    [90 * 1_000, '2 minutes ago'],
    [119 * MINUTE_MS, '119 minutes ago'],
    [120 * MINUTE_MS, '2 hours ago'],
    [150 * MINUTE_MS, '3 hours ago'],
  ])('the finding about a backup that is %p ms old says %p', (ms, found) => {
    expect(backup(before(ms))).toEqual(['ok', found])
  })

  test('the doctor command shows the age of a backup in days if the backup is 48 hours old or older', () => {
    const last = (ms: number) => backup(before(ms))[1]
    expect(last(48 * HOUR_MS - MINUTE_MS)).toBe('the last was 48 hours ago')
    expect(last(48 * HOUR_MS)).toBe('the last was 2 days ago')
    expect(last(60 * HOUR_MS)).toBe('the last was 3 days ago')
  })
})

describe('the doctor command checks whether the disk and the object store can be used', () => {
  const GB = 1024 ** 3
  const disk = (freeBytes: number) => judgeDisk({ freeBytes, totalBytes: 10 * GB })

  test('the doctor command reports a disk with less than one free gigabyte as broken, and a disk with less than five as a warning', () => {
    const verdicts = [GB - 1, GB, 5 * GB - 1, 5 * GB].map((free) => disk(free).verdict)
    expect(verdicts).toEqual(['broken', 'warning', 'warning', 'ok'])
    expect(disk(1.26 * GB)).toEqual({
      area: 'storage',
      check: 'disk of DATA_DIR',
      found: '1.3 of 10.0 GB free',
      verdict: 'warning',
      fix: 'df -h   # then free space, or name a larger disk: DATA_DIR=…',
    })
  })

  test('the doctor command reports the storage as broken unless the service can read the folder DATA_DIR', () => {
    expect(judgeDisk(null)).toMatchObject({
      verdict: 'broken',
      found: 'the folder cannot be read',
      fix: 'DATA_DIR=/var/lib/purser',
    })
  })

  test.each(['written', 'read', 'deleted'] as const)(
    'the object store is broken if a test object could not be %s',
    (step) => {
      expect(judgeBlobStore({ step, reason: 'AccessDenied' })).toMatchObject({
        area: 'storage',
        verdict: 'broken',
        found: `an object could not be ${step}: AccessDenied`,
      })
    },
  )

  test('the doctor command accepts the object store if a test object was written, read and deleted', () => {
    expect(judgeBlobStore(null)).toMatchObject({
      verdict: 'ok',
      found: 'an object was written, read and deleted',
    })
  })
})
