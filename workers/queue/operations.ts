import type { PoolClient } from 'pg'
import { type Batcher, createBatcher } from '../../shared/process/batcher.ts'
import type { Pool } from '../../sql/db.ts'
import { DELETE_DONE_JOBS } from '../../sql/queue/jobs.ts'
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

/** The name of the prepared statement that deletes one job which has succeeded. */
const COMPLETES_A_JOB = /^complete_job\//

/** Names of prepared statements that end a job. Each is one transaction, and changes nothing the second time. */
const ENDS_A_JOB = /^(complete|fail|return)_job/

/** Jobs that end while a deletion runs share the next one. */
const DELETING = { batchMax: 200, parallel: 2, lateMs: 20 }

/**
 * Watches the pool that Graphile Worker 0.18 uses. Graphile Worker never awaits or repeats the statement that ends a job.
 * - Jobs that succeed together are deleted by one statement. One commit for each was a fifth of a webhook's CPU.
 * - A statement that ends a job is repeated while the database is away.
 * - A silent connection is closed. An operation therefore ends in bounded time, and no answer arrives after its end.
 */
export function watchOperations(pool: Pool): WatchedOperations {
  const running = new Set<Promise<void>>()
  const done = createBatcher({
    ...DELETING,
    run: async (ids: string[]) => {
      await patiently(() => queryOnce(pool, { ...DELETE_DONE_JOBS, values: [ids] }))
      return ids.map(() => true)
    },
  })
  const connect = async (): Promise<PoolClient> => {
    const { promise: over, resolve } = Promise.withResolvers<void>()
    running.add(over)
    return watchClient(pool, done, () => {
      running.delete(over)
      resolve()
    })
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

/** The client connects with its first statement. The deletion of a job takes no connection. */
function watchClient(pool: Pool, done: Batcher<string, boolean>, end: () => void): PoolClient {
  let held: PoolClient | undefined
  const release = (error?: Error) => {
    held?.release(error)
    held = undefined
  }
  const query = async (statement: unknown, values?: unknown) => {
    const id = doneJob(statement)
    if (id !== null) return await done.submit(id)
    try {
      held ??= await pool.connect()
      return await answered(held, statement, values)
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

/** The id of the job that a statement deletes; null: it is another statement. */
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
