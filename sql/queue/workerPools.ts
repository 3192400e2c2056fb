import pg from 'pg'
import type { Pool, Queryable } from '../db.ts'

/** First key of the two-part advisory lock that a live worker pool holds; arbitrary, ours alone. */
const WORKER_LOCK_CLASS = 7_305_147

/**
 * A crashed process's jobs are taken back once its lock has been free this long: a live pool whose connection broke has
 * it back within about four seconds.
 */
const GRACE = '6 seconds'

/** A machine that vanishes ends no connection: Postgres must probe, and gives this one up after about 10 s of silence. */
const KEEPALIVES = '-c tcp_keepalives_idle=4 -c tcp_keepalives_interval=2 -c tcp_keepalives_count=3'

/** Registering asks four small questions. A connection that leaves one unanswered is given up, and another is tried. */
const ANSWER_TIMEOUT_MS = 2_500
/** An idle connection never notices that its server vanished. The heartbeat does. */
const HEARTBEAT_MS = 1_500

/** A worker pool's proof of life: a connection of its own that holds an advisory lock. */
export type PoolRegistration = {
  /** Ends the proof: removes the row and closes the connection. */
  release(): Promise<void>
}

/**
 * Registers a Graphile Worker pool. Postgres frees the lock when the connection ends, however the process died, so no
 * clock and no heartbeat is needed to know that its jobs are nobody's.
 * @param onLost called once when the connection breaks; the caller registers again.
 */
export async function registerPool(options: {
  databaseUrl: string
  graphilePoolId: string
  poolName: string
  onLost: (error: Error) => void
}): Promise<PoolRegistration> {
  const client = new pg.Client({
    connectionString: options.databaseUrl,
    application_name: `purser worker ${options.poolName} (alive)`,
    keepAlive: true,
    options: KEEPALIVES,
    connectionTimeoutMillis: ANSWER_TIMEOUT_MS,
    query_timeout: ANSWER_TIMEOUT_MS,
  })
  // Until the lock is held, a failure is the caller's to hear as an exception; afterwards as one call of onLost.
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
    // The row of a connection that broke would be taken for a dead pool, and this live one with it.
    await client.query('delete from worker_pools where graphile_pool_id = $1 and id <> $2', [
      options.graphilePoolId,
      id,
    ])
    state = 'held'
    heartbeat = setInterval(() => client.query('select').catch(lost), HEARTBEAT_MS)
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
 * Takes back the jobs of pools whose process is gone, so that they run again within seconds; Graphile Worker alone would
 * wait four hours. A pool is suspected when its lock is free, and dealt with when it still is after the grace. Jobs held
 * by a pool that was never registered, because it died on the way, are dealt with after the same grace.
 * @returns the Graphile Worker pool ids whose jobs were released.
 */
export async function releaseJobsOfDeadPools(pool: Pool): Promise<string[]> {
  const { rows } = await pool.query<{ graphile_pool_id: string }>(
    `with probed as materialized (
       select id, pg_try_advisory_xact_lock(${WORKER_LOCK_CLASS}, id) as free
       from worker_pools where registered_at < clock_timestamp() - interval '1 second'
       order by id for update skip locked
     ), marked as (
       update worker_pools w set suspect_since =
         case when p.free then coalesce(w.suspect_since, clock_timestamp()) end
       from probed p where p.id = w.id
       returning w.graphile_pool_id, w.suspect_since
     )
     select graphile_pool_id from marked m
     where suspect_since < clock_timestamp() - interval '${GRACE}'
       -- A pool that has registered anew lives, whatever its former row says.
       and not exists (
         select from marked alive
         where alive.graphile_pool_id = m.graphile_pool_id and alive.suspect_since is null)
     union
     select distinct locked_by from graphile_worker.jobs j
     where locked_at < clock_timestamp() - interval '${GRACE}'
       and not exists (select from worker_pools w where w.graphile_pool_id = j.locked_by)`,
  )
  const dead = rows.map((row) => row.graphile_pool_id)
  if (dead.length === 0) return []
  await forceUnlock(pool, dead)
  await pool.query('delete from worker_pools where graphile_pool_id = any ($1)', [dead])
  return dead
}

/** The names of the pools that live, each once. */
export async function listLivingPools(db: Queryable): Promise<string[]> {
  const { rows } = await db.query<{ pool_name: string }>({
    name: 'list-living-pools',
    text: 'select distinct pool_name from worker_pools where suspect_since is null',
  })
  return rows.map((row) => row.pool_name)
}

/** Makes the jobs that these Graphile Worker pools hold available at once. */
export async function forceUnlock(db: Queryable, graphilePoolIds: string[]): Promise<void> {
  await db.query('select graphile_worker.force_unlock_workers($1::text[])', [graphilePoolIds])
}

/**
 * A lock that a Graphile Worker pool has on a job. `attempts` grows with every fetch, and tells two locks apart; a job that
 * was superseded while it ran has all its attempts at once, and no key.
 */
export type JobLock = { id: string; attempts: number }

/** The locks that this Graphile Worker pool has according to the database. */
export async function listLocks(db: Queryable, graphilePoolId: string): Promise<JobLock[]> {
  const { rows } = await db.query<JobLock>(
    'select id, attempts from graphile_worker._private_jobs where locked_by = $1',
    [graphilePoolId],
  )
  return rows
}

/** Whether the pool still has this lock. */
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
 * Makes these jobs of the pool available at once. A job that was fetched anew in between keeps its lock.
 * `attempts` stays: nobody knows whether the job ran.
 * @returns how many locks were released.
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

/** Jobs that this Graphile Worker pool holds. */
export async function countLockedJobs(db: Queryable, graphilePoolId: string): Promise<number> {
  const { rows } = await db.query<{ count: number }>(
    'select count(*)::int as count from graphile_worker.jobs where locked_by = $1',
    [graphilePoolId],
  )
  return rows[0]!.count
}
