import type { PoolClient } from 'pg'
import { type Batcher, createBatcher } from '../../shared/process/batcher.ts'
import type { Pool } from '../../sql/db.ts'
import { DELETE_DONE_JOBS } from '../../sql/queue/jobs.ts'
import { patiently } from './patiently.ts'

/** Gives access to the database operations of a Graphile Worker pool, and tells when these operations have ended. */
export type WatchedOperations = {
  /** Holds the connection pool that is passed to Graphile Worker. */
  pgPool: Pool
  /** Resolves when every database operation that was running at the time of the call has ended. */
  settled(): Promise<void>
}

/**
 * Limits in milliseconds how long the service waits for a reply on a database connection. An operation of Graphile
 * Worker takes only milliseconds, so a longer silence means a dead connection.
 */
const SILENCE_MAX_MS = 6_000

/** Matches the name of the prepared statement that deletes one succeeded job. */
const COMPLETES_A_JOB = /^complete_job\//

/**
 * Matches the names of prepared statements that end a job. Each such statement is one transaction, and a repeated
 * statement changes nothing.
 */
const ENDS_A_JOB = /^(complete|fail|return)_job/

/**
 * Sets how the deletions of ended jobs are batched. Jobs that end while one batch is being deleted form the next batch.
 */
const DELETING = { batchMax: 200, parallel: 2, lateMs: 20 }

/**
 * Wraps the connection pool of Graphile Worker 0.18. Graphile Worker never waits for the SQL statement that ends a job,
 * and never repeats this statement. Therefore its database connections follow three additional rules.
 * - One SQL statement deletes the jobs that succeed together, because a commit for each job took a fifth of the CPU
 *   time of a webhook delivery.
 * - An SQL statement that ends a job is repeated while the database is unreachable.
 * - A database connection that does not reply is closed. Therefore a database operation ends within a time limit, and
 *   no reply arrives after the operation has ended.
 * @param graphilePoolId returns the id of the Graphile Worker pool, which Graphile Worker chooses only later.
 * @param onLostEnd gets the error of a statement that could not end its job. If the function throws this error, the
 * error stays unhandled.
 */
export function watchOperations(
  pool: Pool,
  graphilePoolId: () => string,
  onLostEnd: (error: unknown) => void,
): WatchedOperations {
  const running = new Set<Promise<void>>()
  const done = createBatcher({
    ...DELETING,
    run: async (ids: string[]) => {
      const values = [ids, graphilePoolId()]
      await patiently(() => queryOnce(pool, { ...DELETE_DONE_JOBS, values }))
      return ids.map(() => true)
    },
  })
  const connect = async (): Promise<PoolClient> => {
    const { promise: over, resolve } = Promise.withResolvers<void>()
    running.add(over)
    const end = () => {
      running.delete(over)
      resolve()
    }
    return watchClient(pool, done, { end, onLostEnd })
  }
  return {
    pgPool: Object.create(pool, {
      connect: {
        // Only the listener of Graphile Worker passes a callback. It keeps its database connection for a long time, so
        // this connection does not count as an operation.
        value: (callback?: never) => (callback === undefined ? connect() : pool.connect(callback)),
      },
    }),
    async settled() {
      await Promise.all(running)
      // Graphile Worker receives the result of an SQL statement only some microtasks after the database connection is
      // released. Therefore the function also waits for these microtasks.
      await new Promise((resolve) => setImmediate(resolve))
    },
  }
}

/**
 * Returns a database client that connects only for its first SQL statement. If a statement deletes a job, the statement
 * takes no connection of this client.
 */
function watchClient(
  pool: Pool,
  done: Batcher<string, boolean>,
  { end, onLostEnd }: { end: () => void; onLostEnd: (error: unknown) => void },
): PoolClient {
  let held: PoolClient | undefined
  const release = (error?: Error) => {
    held?.release(error)
    held = undefined
  }
  const query = async (statement: unknown, values?: unknown) => {
    const id = doneJob(statement)
    if (id !== null) return await done.submit(id).catch(onLostEnd)
    try {
      held ??= await pool.connect()
      return await answered(held, statement, values)
    } catch (error) {
      // Graphile Worker needs the job slot at once, so another database connection repeats the failed SQL statement.
      release(error as Error)
      if (!endsJob(statement)) throw error
      return await patiently(() => queryOnce(pool, statement)).catch(onLostEnd)
    }
  }
  const watched = {
    query,
    release() {
      release()
      end()
    },
  }
  return watched as unknown as PoolClient
}

/** Returns the id of the job that an SQL statement deletes. Returns `null` if the SQL statement deletes no job. */
function doneJob(statement: unknown): string | null {
  if (typeof statement !== 'object' || statement === null) return null
  const { name, values } = statement as { name?: unknown; values?: unknown[] }
  return COMPLETES_A_JOB.test(String(name)) ? String(values![0]) : null
}

const endsJob = (statement: unknown): boolean =>
  typeof statement === 'object' &&
  statement !== null &&
  'name' in statement &&
  ENDS_A_JOB.test(String(statement.name))

async function queryOnce(pool: Pool, statement: unknown): Promise<unknown> {
  const client = await pool.connect()
  let broken: Error | undefined
  try {
    return await answered(client, statement)
  } catch (error) {
    broken = error as Error
    throw error
  } finally {
    client.release(broken)
  }
}

/**
 * Runs an SQL statement on a database connection. @throws {Error} as for a broken connection if the database does not
 * reply in time.
 */
async function answered(
  client: PoolClient,
  statement: unknown,
  values?: unknown,
): Promise<unknown> {
  const silence = Promise.withResolvers<never>()
  const timer = setTimeout(
    () => silence.reject(new Error('Connection terminated: the server is silent')),
    SILENCE_MAX_MS,
  )
  try {
    return await Promise.race([client.query(statement as string, values as []), silence.promise])
  } finally {
    clearTimeout(timer)
  }
}
