import { type Config, ConfigError } from '../../../shared/config/config.ts'
import {
  databaseAway,
  judgeDatabase,
  judgeReplica,
} from '../../../shared/doctor/databaseFindings.ts'
import type { Finding } from '../../../shared/doctor/finding.ts'
import {
  judgeClock,
  judgeMasterKeys,
  judgeProduction,
} from '../../../shared/doctor/settingsFindings.ts'
import type { RunnerName } from '../../../shared/tasks.ts'
import { createPool, type Pool } from '../../../sql/db.ts'
import { compareMasterKeys, masterKeys } from '../../../sql/keyring/keyring.ts'
import { readDatabaseFacts, readReplicaLag } from '../../../sql/operations/databaseFacts.ts'
import { RUNNER_CONNECTIONS } from '../../queue/runnerConnections.ts'
import { type DoctorTools, inTime, takeLooks } from './look.ts'
import type { Outside } from './outside.ts'

/**
 * Sets how many database connections a runner (a process that runs jobs) needs besides the connections for its jobs.
 * The additional connections serve its registration as a live pool, its listener, the housekeeping, the metrics and the
 * keys.
 */
const RUNNER_OTHERS = 8
/**
 * Sets how many database connections an API process needs besides DATABASE_POOL, for exports and two listeners. The
 * number of connections does not include connections to a replica of the database.
 */
const API_OTHERS = 8

/** Judges whether the settings of this process are suitable for a service that other people use. */
export const lookAtSettings = (
  { config, database }: DoctorTools,
  outside: Promise<Outside>,
): Promise<Finding[]> =>
  takeLooks('settings', [
    { check: 'NODE_ENV', run: async () => judgeProduction(config) },
    {
      check: 'MASTER_KEYS',
      run: async () =>
        database.pool === null || (config.production && config.masterKeys === undefined)
          ? []
          : judgeMasterKeys(await masterKeyFault(config, database.pool)),
    },
    {
      check: 'clock',
      run: async () => judgeClock(new URL(config.outsideUrl).host, (await outside).aheadMs),
    },
  ])

async function masterKeyFault(config: Config, pool: Pool): Promise<string | null> {
  try {
    await inTime(compareMasterKeys(pool, masterKeys(config)))
    return null
  } catch (error) {
    if (error instanceof ConfigError) return error.message
    throw error
  }
}

/** Examines the database and its replica. */
export async function lookAtDatabase({ config, database }: DoctorTools): Promise<Finding[]> {
  const { pool } = database
  if (pool === null) return [databaseAway(database.reason)]
  const replicaUrl = config.databaseReplicaUrl
  return takeLooks('database', [
    { check: 'server', run: () => server(config, pool) },
    ...(replicaUrl === null
      ? []
      : [{ check: 'DATABASE_REPLICA_URL', run: () => replica(pool, replicaUrl) }]),
  ])
}

async function server({ databasePoolSize }: Config, pool: Pool): Promise<Finding[]> {
  const runners = Object.fromEntries(
    Object.entries(RUNNER_CONNECTIONS).map(([name, size]) => [name, size + RUNNER_OTHERS]),
  ) as Record<RunnerName, number>
  const each = { api: databasePoolSize + API_OTHERS, runners }
  const facts = await inTime(readDatabaseFacts(pool, each))
  return [
    ...judgeDatabase(facts, new Date()),
    { ...judgeClock('the database', facts.aheadMs), area: 'database' as const },
  ]
}

async function replica(primary: Pool, url: string): Promise<Finding> {
  const pool = createPool({ url, size: 1, name: 'purser doctor' })
  try {
    return judgeReplica(await inTime(readReplicaLag(primary, pool)).catch(() => 'away' as const))
  } finally {
    await pool.end()
  }
}
