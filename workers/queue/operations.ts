import type { PoolClient } from 'pg'
import type { Pool } from '../../sql/db.ts'
import { patiently } from './patiently.ts'

/** The database operations of a Graphile Worker pool, watched. */
export type WatchedOperations = {
  /** The pool to hand to Graphile Worker. */
  pgPool: Pool
  /** Resolves when every operation that was under way at the time of the call has ended. */
  settled(): Promise<void>
}

/** An operation of Graphile Worker takes milliseconds. A connection silent for this long is dead. */
const SILENCE_MAX_MS = 6_000

/** Names of prepared statements that end a job. Each is one transaction, and changes nothing the second time. */
const ENDS_A_JOB = /^(complete|fail|return)_job/

/**
 * Watches the pool that Graphile Worker 0.18 uses. Graphile Worker never awaits or repeats the statement that ends a job.
 * - A statement that ends a job is repeated while the database is away.
 * - A silent connection is closed. An operation therefore ends in bounded time, and no answer arrives after its end.
 */
export function watchOperations(pool: Pool): WatchedOperations {
  const running = new Set<Promise<void>>()
  const connect = async (): Promise<PoolClient> => {
    const { promise: over, resolve } = Promise.withResolvers<void>()
    running.add(over)
    const end = () => {
      running.delete(over)
      resolve()
    }
    try {
      return watchClient(pool, await pool.connect(), end)
    } catch (error) {
      end()
      throw error
    }
  }
  return {
    pgPool: Object.create(pool, {
      connect: {
        // The listener alone passes a callback. It keeps its connection, and is no operation.
        value: (callback?: never) => (callback === undefined ? connect() : pool.connect(callback)),
      },
    }),
    async settled() {
      await Promise.all(running)
      // Graphile Worker hears of a result some microtasks after the connection is released.
      await new Promise((resolve) => setImmediate(resolve))
    },
  }
}

function watchClient(pool: Pool, client: PoolClient, end: () => void): PoolClient {
  let released = false
  const release = (error?: Error) => {
    if (!released) client.release(error)
    released = true
  }
  const query = async (statement: unknown, values?: unknown) => {
    try {
      return await answered(client, statement, values)
    } catch (error) {
      // Graphile Worker needs its slot at once, so the repetition takes another connection.
      release(error as Error)
      if (!endsJob(statement)) throw error
      return patiently(() => queryOnce(pool, statement))
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

/** @throws {Error} the error of a broken connection when no answer comes. */
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
