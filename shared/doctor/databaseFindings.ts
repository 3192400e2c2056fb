import { counted, type Finding, findingsIn } from './finding.ts'

const { ok, warning, broken } = findingsIn('database')
const storage = findingsIn('storage')

/** Holds the facts about the database server that the doctor (the service's self-check) judges. */
export type DatabaseFacts = {
  version: string
  /** Holds the version of the database server, in the format of `server_version_num`. */
  versionNumber: number
  /** Holds the time that the database server takes for an empty SQL statement. */
  latencyMs: number
  synchronousCommit: string
  maxConnections: number
  reservedConnections: number
  /** Counts all open connections to the database server. */
  connections: number
  /** Holds the maximum number of database connections that the running processes of the service may open together. */
  neededConnections: number
  pendingMigrations: number
  /** Holds the time of this machine's clock minus the time of the database server's clock. */
  aheadMs: number
  /** Lists the standbys (replicas) of the database server, each with its lag in bytes. */
  standbys: readonly { name: string; lagBytes: number; lagMs: number | null }[]
  /** Holds the time when `bun run backup` last ended. Null means that no backup is recorded. */
  backupAt: Date | null
  /**
   * Holds the time when the database server last archived a WAL file. Null means that the database server has archived
   * no WAL file.
   */
  archivedAt: Date | null
}

const VERSION_MIN = 150_000
const LATENCY_WARNING_MS = 20
const LATENCY_BROKEN_MS = 500
const LAG_WARNING_BYTES = 64 * 1024 * 1024
const HOUR_MS = 60 * 60 * 1000
const BACKUP_WARNING_MS = 25 * HOUR_MS
const ARCHIVE_WARNING_MS = HOUR_MS
/**
 * Lists the values of synchronous_commit with which a committed transaction survives the loss of the primary. With
 * `remote_write`, a transaction is lost only if both machines lose power at once.
 */
const DURABLE = ['on', 'remote_apply', 'remote_write']

/** Reports that the database is unreachable. @param reason is one line about the cause, without a secret. */
export const databaseAway = (reason: string): Finding =>
  broken(
    'connection',
    reason.replace(/^DATABASE_URL: /, ''),
    'DATABASE_URL=postgres://USER:PASSWORD@HOST/DATABASE',
  )

export function judgeDatabase(facts: DatabaseFacts, now: Date): Finding[] {
  const { version, versionNumber, latencyMs, pendingMigrations } = facts
  const took = `${latencyMs.toFixed(1)} ms a statement`
  return [
    versionNumber < VERSION_MIN
      ? broken('version', `PostgreSQL ${version}; 15 or newer is needed`)
      : ok('version', `PostgreSQL ${version}`),
    latencyMs > LATENCY_BROKEN_MS
      ? broken('latency', took, 'DATABASE_URL=…   # a server in the same place')
      : latencyMs > LATENCY_WARNING_MS
        ? warning('latency', took, 'DATABASE_URL=…   # a server in the same place')
        : ok('latency', took),
    pendingMigrations > 0
      ? broken('migrations', `${pendingMigrations} to apply`, 'bun run migrate')
      : ok('migrations', 'all are applied'),
    judgeCommit(facts.synchronousCommit),
    judgeConnections(facts),
    ...facts.standbys.map(judgeStandby),
    judgeBackup(facts, now),
  ]
}

const judgeCommit = (setting: string): Finding =>
  DURABLE.includes(setting)
    ? ok('synchronous_commit', setting)
    : broken(
        'synchronous_commit',
        `${setting}: a crash can lose accepted mail and claims`,
        'alter system set synchronous_commit = on; select pg_reload_conf();',
      )

function judgeConnections(facts: DatabaseFacts): Finding {
  const { connections, neededConnections, maxConnections, reservedConnections } = facts
  const free = maxConnections - reservedConnections
  const found = `${connections} in use; the service may open ${neededConnections} of ${free}`
  const fix = `alter system set max_connections = ${Math.ceil((neededConnections + reservedConnections) / 50) * 50 + 50};   -- and restart the server`
  return neededConnections > free
    ? warning('max_connections', found, fix)
    : ok('max_connections', found)
}

function judgeStandby({ name, lagBytes, lagMs }: DatabaseFacts['standbys'][number]): Finding {
  const behind = lagMs === null ? '' : `, ${Math.round(lagMs / 1000)} s`
  const found = `${Math.round(lagBytes / 1024)} KB${behind} behind`
  return lagBytes > LAG_WARNING_BYTES
    ? warning(`standby ${name}`, found, 'table pg_stat_replication;   -- on the primary')
    : ok(`standby ${name}`, found)
}

/** Judges whether the database replica is recent enough to answer list requests. */
export function judgeReplica(replica: { lagBytes: bigint } | 'away' | 'primary'): Finding {
  const check = 'DATABASE_REPLICA_URL'
  const fix = 'DATABASE_REPLICA_URL=   # the primary then answers lists'
  if (replica === 'away') return broken(check, 'the replica does not answer', fix)
  if (replica === 'primary') return broken(check, 'the server is no replica', fix)
  const found = `${replica.lagBytes / 1024n} KB behind`
  return replica.lagBytes > BigInt(LAG_WARNING_BYTES)
    ? warning(check, found, fix)
    : ok(check, found)
}

function judgeBackup({ backupAt, archivedAt }: DatabaseFacts, now: Date): Finding {
  const age = (at: Date | null, most: number) =>
    at !== null && now.getTime() - at.getTime() <= most ? at : null
  const archived = age(archivedAt, ARCHIVE_WARNING_MS)
  if (archived !== null) return ok('backup', `the WAL was archived ${ago(archived, now)}`)
  if (age(backupAt, BACKUP_WARNING_MS) !== null) return ok('backup', ago(backupAt!, now))
  return warning(
    'backup',
    backupAt === null ? 'none was recorded' : `the last was ${ago(backupAt, now)}`,
    'bun run backup /var/backups/purser-$(date +%F)',
  )
}

function ago(at: Date, now: Date): string {
  const minutes = Math.max(0, Math.round((now.getTime() - at.getTime()) / 60_000))
  if (minutes < 120) return `${counted(minutes, 'minute')} ago`
  if (minutes < 48 * 60) return `${Math.round(minutes / 60)} hours ago`
  return `${Math.round(minutes / 1440)} days ago`
}

const GIGABYTE = 1024 ** 3
const FREE_WARNING_BYTES = 5 * GIGABYTE
const FREE_BROKEN_BYTES = GIGABYTE

/**
 * Makes the finding of the doctor (the service's self-check) about the free space on the disk of DATA_DIR. The disk of
 * DATA_DIR holds the spool of accepted mail and the embedded database. A null `disk` means that the folder DATA_DIR
 * cannot be read.
 */
export function judgeDisk(disk: { freeBytes: number; totalBytes: number } | null): Finding {
  if (disk === null) {
    return storage.broken(
      'disk of DATA_DIR',
      'the folder cannot be read',
      'DATA_DIR=/var/lib/purser',
    )
  }
  const found = `${(disk.freeBytes / GIGABYTE).toFixed(1)} of ${(disk.totalBytes / GIGABYTE).toFixed(1)} GB free`
  const fix = 'df -h   # then free space, or name a larger disk: DATA_DIR=…'
  if (disk.freeBytes < FREE_BROKEN_BYTES) return storage.broken('disk of DATA_DIR', found, fix)
  if (disk.freeBytes < FREE_WARNING_BYTES) return storage.warning('disk of DATA_DIR', found, fix)
  return storage.ok('disk of DATA_DIR', found)
}

/**
 * Judges a test in which the service writes, reads and deletes an object in the object store. @param failed is the step
 * that failed. Null means that every step succeeded.
 */
export const judgeBlobStore = (
  failed: { step: 'written' | 'read' | 'deleted'; reason: string } | null,
): Finding =>
  failed === null
    ? storage.ok('BLOB_STORE', 'an object was written, read and deleted')
    : storage.broken(
        'BLOB_STORE',
        `an object could not be ${failed.step}: ${failed.reason}`,
        'S3_ACCESS_KEY_ID=…   # with the rights to put, get and delete; and S3_SECRET_ACCESS_KEY=…',
      )
