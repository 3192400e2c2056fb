import { connectionTo, singleConnection } from '../connectionTo.ts'
import type { Pool, Queryable } from '../db.ts'

/**
 * Holds the first key of the two-part advisory lock that a live worker pool holds. The value of WORKER_LOCK_CLASS is
 * arbitrary.
 */
const WORKER_LOCK_CLASS = 7_305_147

/**
 * Sets how long the advisory lock of a worker pool may be free before the pool counts as crashed and its jobs are
 * released. After a broken database connection, a live pool takes its lock again within about four seconds.
 */
const GRACE = '6 seconds'

/**
 * Makes PostgreSQL send TCP keepalives, because a vanished machine does not close its database connection. With these
 * settings, PostgreSQL closes a connection after about 10 s of silence.
 */
const KEEPALIVES = '-c tcp_keepalives_idle=4 -c tcp_keepalives_interval=2 -c tcp_keepalives_count=3'

/**
 * Limits the milliseconds of each SQL statement during the registration of a worker pool. The registration needs four
 * short statements. If one of them times out, the caller closes the connection and tries a new one.
 */
const ANSWER_TIMEOUT_MS = 2_500
/**
 * Sets the time between two heartbeats on a worker pool's database connection. Without heartbeats, an idle database
 * connection would never notice that the database server has vanished.
 */
const HEARTBEAT_MS = 1_500

/**
 * Proves that a worker pool is alive. The worker pool has its own database connection, which holds an advisory lock.
 */
export type PoolRegistration = {
  /** Deletes the row of the worker pool and closes the database connection. */
  release(): Promise<void>
}

/**
 * Registers a Graphile Worker pool. After a crash, PostgreSQL frees the pool's advisory lock at the end of the database
 * connection. Therefore the service recognises dead worker pools without a comparison of two machines' clocks.
 * @param onLost is a function that runs once if the pool's database connection breaks. The pool is then no longer
 * registered, and the caller must register it again.
 */
export async function registerPool(options: {
  databaseUrl: string
  graphilePoolId: string
  poolName: string
  onLost: (error: Error) => void
}): Promise<PoolRegistration> {
  const client = singleConnection({
    ...connectionTo(options.databaseUrl, `purser worker ${options.poolName} (alive)`, KEEPALIVES),
    keepAlive: true,
    connectionTimeoutMillis: ANSWER_TIMEOUT_MS,
    query_timeout: ANSWER_TIMEOUT_MS,
  })
  // If the registration fails before the worker pool holds the advisory lock, `registerPool` throws. If the database
  // connection fails later, `registerPool` calls `onLost` once instead.
  let state: 'starting' | 'held' | 'over' = 'starting'
  let heartbeat: ReturnType<typeof setInterval> | undefined
  const lost = (error: Error) => {
    clearInterval(heartbeat)
    if (state === 'held') options.onLost(error)
    state = 'over'
    client.end().catch(() => {})
  }
  client.on('error', lost)
  client.on('end', () => lost(new Error('the connection ended')))
  let id: number
  try {
    await client.connect()
    const { rows } = await client.query<{ id: number }>(
      'insert into worker_pools (graphile_pool_id, pool_name) values ($1, $2) returning id',
      [options.graphilePoolId, options.poolName],
    )
    id = rows[0]!.id
    await client.query('select pg_advisory_lock($1, $2)', [WORKER_LOCK_CLASS, id])
    // The SQL deletes old rows of the same worker pool. With an old row, the live pool would look dead, because the
    // advisory lock of that row is free.
    await client.query('delete from worker_pools where graphile_pool_id = $1 and id <> $2', [
      options.graphilePoolId,
      id,
    ])
    state = 'held'
    heartbeat = setInterval(() => {
      client.query('select from worker_pools where id = $1', [id]).then(({ rowCount }) => {
        if (rowCount === 0) lost(new Error('the registration is gone'))
      }, lost)
    }, HEARTBEAT_MS)
  } catch (error) {
    await client.end().catch(() => {})
    throw error
  }
  return {
    async release() {
      if (state === 'over') return
      state = 'over'
      clearInterval(heartbeat)
      await client.query('delete from worker_pools where id = $1', [id])
      await client.end()
    },
  }
}

/**
 * Releases the jobs of dead worker pools within seconds. Graphile Worker itself would release them only after four
 * hours. A pool that does not hold its advisory lock is probably dead, and counts as dead after the time GRACE. The
 * jobs of a pool that died before its registration are released after the same time.
 * @param wasAway tells that the caller could not reach the database for some time. Meanwhile, no worker pool could
 * prove that it was alive, so the time GRACE begins again. Otherwise other pools would get the jobs of a live pool that
 * is reconnecting and must still store its results.
 * @returns the ids of the dead Graphile Worker pools.
 */
export async function releaseJobsOfDeadPools(pool: Pool, wasAway = false): Promise<string[]> {
  const { rows } = await pool.query<{ id: number | null; graphile_pool_id: string }>(
    `with probed as materialized (
       select id, pg_try_advisory_xact_lock(${WORKER_LOCK_CLASS}, id) as free
       from worker_pools where registered_at < clock_timestamp() - interval '1 second'
       order by id for update skip locked
     ), marked as (
       update worker_pools w set suspect_since =
         case when p.free then coalesce(case when not $1 then w.suspect_since end, clock_timestamp()) end
       from probed p where p.id = w.id
       returning w.id, w.graphile_pool_id, w.suspect_since
     )
     select id, graphile_pool_id from marked m
     where suspect_since < clock_timestamp() - interval '${GRACE}'
       -- A worker pool that has registered again is alive, although its old row looks like the row of a dead pool.
       and not exists (
         select from marked alive
         where alive.graphile_pool_id = m.graphile_pool_id and alive.suspect_since is null)
       and not exists (
         select from worker_pools later
         where later.graphile_pool_id = m.graphile_pool_id and later.id > m.id)
     union all
     select distinct null::int, locked_by from graphile_worker.jobs j
     where locked_at < clock_timestamp() - interval '${GRACE}'
       and not exists (select from worker_pools w where w.graphile_pool_id = j.locked_by)`,
    [wasAway],
  )
  const dead = [...new Set(rows.map((row) => row.graphile_pool_id))]
  if (dead.length === 0) return []
  await forceUnlock(pool, dead)
  // The SQL deletes worker pools by row and not by name, because a pool may have registered again in the meantime and
  // have a new row.
  await pool.query('delete from worker_pools where id = any ($1)', [
    rows.flatMap(({ id }) => id ?? []),
  ])
  return dead
}

/**
 * Tells in SQL whether the row `w` of a worker pool stands for a live pool. Only worker processes mark the rows of dead
 * pools, so nobody marks the row of the last one that dies. Therefore the condition also checks the advisory lock. For
 * its first second, a row counts as live without the lock, because a new pool does not have its lock at once.
 */
export const IS_LIVING = `(w.suspect_since is null and (w.registered_at > clock_timestamp() - interval '1 second'
  or exists (
    select from pg_locks l
    where l.locktype = 'advisory' and l.classid = ${WORKER_LOCK_CLASS} and l.objid = w.id::oid and l.objsubid = 2 and l.granted
      and l.database = (select oid from pg_database where datname = current_database()))))`

/** Sets the time without a heartbeat after which a worker pool counts as hanging and runs no jobs. */
const SILENCE_MAX = '5 seconds'

/**
 * Selects the names of worker pools that hold their advisory lock but send no heartbeat. The event loop of such a
 * pool's process hangs, or the whole process is frozen. Ended processes are not in the list, because their database
 * connection is closed.
 */
export const SILENT_POOLS = `
  select distinct substring(application_name from '^purser worker (\\S+) \\(alive\\)$') as pool_name
  from pg_stat_activity
  where datname = current_database() and application_name like 'purser worker % (alive)'
    and state = 'idle' and state_change < clock_timestamp() - interval '${SILENCE_MAX}'`

/** Lists the names of worker pools that are registered but fetch no more jobs. */
export async function listSilentPools(db: Queryable): Promise<string[]> {
  const { rows } = await db.query<{ pool_name: string }>({
    name: 'list-silent-pools',
    text: `${SILENT_POOLS} order by 1`,
  })
  return rows.map((row) => row.pool_name)
}

/** Lists the distinct names of live worker pools. */
export async function listLivingPools(db: Queryable): Promise<string[]> {
  const { rows } = await db.query<{ pool_name: string }>({
    name: 'list-living-pools',
    text: `select distinct pool_name from worker_pools w where ${IS_LIVING}`,
  })
  return rows.map((row) => row.pool_name)
}

/** Releases all jobs that the given Graphile Worker pools hold. */
export async function forceUnlock(db: Queryable, graphilePoolIds: string[]): Promise<void> {
  await db.query('select graphile_worker.force_unlock_workers($1::text[])', [graphilePoolIds])
}

/**
 * Describes the lock with which a Graphile Worker pool holds a job. The field `attempts` grows each time that a pool
 * fetches the job, so it distinguishes two locks on the same job. A superseded (replaced) job has no key and no
 * attempts left.
 */
export type JobLock = { id: string; attempts: number }

/** Lists the locks on jobs that a Graphile Worker pool holds in the database. */
export async function listLocks(db: Queryable, graphilePoolId: string): Promise<JobLock[]> {
  const { rows } = await db.query<JobLock>(
    'select id, attempts from graphile_worker._private_jobs where locked_by = $1',
    [graphilePoolId],
  )
  return rows
}

/** Tells whether a Graphile Worker pool still holds a given lock on a job. */
export async function hasLock(
  db: Queryable,
  graphilePoolId: string,
  { id, attempts }: JobLock,
): Promise<boolean> {
  const { rowCount } = await db.query(
    `select from graphile_worker._private_jobs
     where id = $1 and locked_by = $2 and (attempts = $3 or key is null)`,
    [id, graphilePoolId, attempts],
  )
  return rowCount === 1
}

/**
 * Releases the given locks of a Graphile Worker pool on jobs. A job that a pool has fetched again in the meantime keeps
 * its new lock. The job's `attempts` stays unchanged, because the job may have run.
 * @returns the number of released job locks.
 */
export async function releaseLocks(
  db: Queryable,
  graphilePoolId: string,
  locks: readonly JobLock[],
): Promise<number> {
  const { rowCount } = await db.query(
    `update graphile_worker._private_jobs j set locked_by = null, locked_at = null
     from unnest($2::bigint[], $3::int[]) as lost(id, attempts)
     where j.id = lost.id and j.attempts = lost.attempts and j.locked_by = $1`,
    [graphilePoolId, locks.map(({ id }) => id), locks.map(({ attempts }) => attempts)],
  )
  return rowCount ?? 0
}

/** Counts the jobs that a Graphile Worker pool has locked. */
export async function countLockedJobs(db: Queryable, graphilePoolId: string): Promise<number> {
  const { rows } = await db.query<{ count: number }>(
    'select count(*)::int as count from graphile_worker.jobs where locked_by = $1',
    [graphilePoolId],
  )
  return rows[0]!.count
}
