import type { DatabaseFacts } from '../../shared/doctor/databaseFindings.ts'
import { RUNNER_NAMES, type RunnerName } from '../../shared/tasks.ts'
import type { Pool, Queryable } from '../db.ts'
import { pendingMigrations } from '../migrate.ts'
import { lastBackupAt } from './backups.ts'
import { readReplayed } from './replica.ts'

/** Counts the database connections that a process of each kind may open. */
export type ProcessConnections = { api: number; runners: Readonly<Record<RunnerName, number>> }

type FactRow = {
  version: string
  version_number: number
  synchronous_commit: string
  max_connections: number
  reserved_connections: number
  connections: number
  now: Date
  archived_at: Date | null
}

/** Reads the facts about the database server that the doctor (the service's self-check) judges. */
export async function readDatabaseFacts(
  db: Pool,
  each: ProcessConnections,
): Promise<DatabaseFacts> {
  await db.query('select')
  const startedMs = performance.now()
  await db.query('select')
  const latencyMs = performance.now() - startedMs
  const { rows } = await db.query<FactRow>(
    `select current_setting('server_version') as version,
            current_setting('server_version_num')::int as version_number,
            -- The query reads the server's default of synchronous_commit, because the present session may have its own
            -- value.
            coalesce((select reset_val from pg_settings where name = 'synchronous_commit'), 'on') as synchronous_commit,
            current_setting('max_connections')::int as max_connections,
            current_setting('superuser_reserved_connections')::int as reserved_connections,
            (select count(*)::int from pg_stat_activity where backend_type = 'client backend') as connections,
            clock_timestamp() as now,
            (select last_archived_time from pg_stat_archiver) as archived_at`,
  )
  const row = rows[0]!
  const nowMs = Date.now()
  const pending = await pendingMigrations(db)
  return {
    version: row.version,
    versionNumber: row.version_number,
    latencyMs,
    synchronousCommit: row.synchronous_commit,
    maxConnections: row.max_connections,
    reservedConnections: row.reserved_connections,
    connections: row.connections,
    neededConnections: await neededConnections(db, each),
    pendingMigrations: pending.length,
    aheadMs: nowMs - row.now.getTime(),
    standbys: await readStandbys(db),
    // While migrations are pending, the code does not read the table `backups`, because this table exists only after
    // the last migration.
    backupAt: pending.length > 0 ? null : await lastBackupAt(db),
    archivedAt: row.archived_at,
  }
}

/**
 * Computes the database connections that all processes need. Each process keeps one connection with a name open, and
 * the function counts the processes by these names.
 */
async function neededConnections(db: Queryable, each: ProcessConnections): Promise<number> {
  const { rows } = await db.query<{ name: string; count: number }>(
    `select application_name as name, count(*)::int as count from pg_stat_activity
     where datname = current_database()
       and (application_name = 'purser api (payments)' or application_name like 'purser worker % (alive)')
     group by 1`,
  )
  const counted = new Map(rows.map(({ name, count }) => [name, count]))
  const ofRunners = RUNNER_NAMES.map(
    (name) => (counted.get(`purser worker ${name} (alive)`) ?? 0) * each.runners[name],
  )
  const ofApis = (counted.get('purser api (payments)') ?? 0) * each.api
  return ofRunners.reduce((sum, count) => sum + count, ofApis)
}

/** Reads the standbys of the database server. If the database user may not see the standbys, the list is empty. */
async function readStandbys(db: Queryable): Promise<DatabaseFacts['standbys']> {
  const { rows } = await db.query<{ name: string; lag_bytes: string; lag_ms: number | null }>(
    `select application_name as name, pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn)::text as lag_bytes,
            (extract(epoch from replay_lag) * 1000)::int as lag_ms
     from pg_stat_replication where state = 'streaming' and replay_lsn is not null and not pg_is_in_recovery()
     order by 1`,
  )
  return rows.map((row) => ({
    name: row.name,
    lagBytes: Number(row.lag_bytes),
    lagMs: row.lag_ms,
  }))
}

/** Reads how many bytes of WAL a replica is behind its primary. */
export async function readReplicaLag(
  primary: Pool,
  replica: Pool,
): Promise<{ lagBytes: bigint } | 'primary'> {
  const { rows } = await primary.query<{ lsn: string }>(
    `select pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::text as lsn`,
  )
  const replayed = await readReplayed(replica)
  if (replayed === null) return 'primary'
  const lagBytes = BigInt(rows[0]!.lsn) - replayed
  return { lagBytes: lagBytes > 0n ? lagBytes : 0n }
}
