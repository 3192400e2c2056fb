import type { Logger } from 'pino'
import { createBatcher } from '../../shared/process/batcher.ts'
import { isDatabaseUnavailable } from '../../shared/process/databaseAway.ts'
import { isDeadlock, isUnmigrated, type Pool } from '../../sql/db.ts'
import { type Lsn, markWritten, readReplayed } from '../../sql/operations/replica.ts'
import type { Searches } from './limits/searches.ts'

/** Holds the connection pool and the searches of one database server. */
type Server = { pool: Pool; searches: Searches }

/**
 * Decides which database server executes the read queries of lists. A read runs on the replica if the replica has
 * already replayed everything that the project wrote. Otherwise the read runs on the primary.
 */
export type Reads = {
  run<Result>(request: Request, read: (server: Server) => Promise<Result>): Promise<Result>
  /**
   * Records the position in the database's write-ahead log up to which a project has written. The caller awaits this
   * function before it answers a request that may have written. The function never throws, because the change is
   * already made, and an error would make the client repeat it.
   */
  wrote(projectId: string): Promise<void>
  /**
   * Tells whether the gate (the checks before every handler) must read the project's newest position in the write-ahead
   * log.
   */
  needsWritten: boolean
  stop(): Promise<void>
}

/** Sets the milliseconds between two queries for the replica's position in the write-ahead log. */
const POLL_MS = 50

/** Runs all reads of lists on the primary, because the service has no replica. */
export const primaryReads = (primary: Server): Reads => ({
  run: (_request, read) => read(primary),
  async wrote() {},
  needsWritten: false,
  async stop() {},
})

/**
 * Runs reads on the replica while it is not too far behind the primary. If a read on the replica fails, the service
 * repeats it on the primary. The replica may be unreachable, its replay may cancel a long read, or it may lack a
 * migration that the primary already has.
 */
export function replicaReads({
  primary,
  replica,
  writtenTo,
  log,
}: {
  primary: Server
  replica: Server
  /**
   * Returns the position in the write-ahead log up to which the request's project has written. A database server may
   * answer the request only after it has reached this position. Null means that any server may answer.
   */
  writtenTo: (request: Request) => Lsn | null
  log: Logger
}): Reads {
  /**
   * Holds the position in the write-ahead log that the replica has reached. Null means that the service does not use
   * the replica at the moment.
   */
  let replayed: Lsn | null = null
  let stopping = false
  /**
   * Holds the projects that have written, if the database has not yet recorded the position of this write. Until then,
   * the primary executes the reads of such a project.
   */
  const unrecorded = new Map<string, object>()
  const recordAgain = async () => {
    const writes = [...unrecorded]
    await markWritten(
      primary.pool,
      writes.map(([projectId]) => projectId),
    )
    // If the project has written again in the meantime, the project stays in `unrecorded`, because the database has not
    // recorded the later write yet.
    for (const [projectId, write] of writes) {
      if (unrecorded.get(projectId) === write) unrecorded.delete(projectId)
    }
  }
  const poll = async () => {
    while (!stopping) {
      if (unrecorded.size > 0) await recordAgain().catch(() => {})
      try {
        replayed = await readReplayed(replica.pool)
      } catch (error) {
        if (replayed !== null) log.warn({ err: error }, 'the replica is away; the primary reads')
        replayed = null
      }
      await Bun.sleep(POLL_MS)
    }
  }
  const polling = poll()
  const writes = createBatcher({
    batchMax: 200,
    parallel: 2,
    async run(projects: string[]) {
      await markWritten(primary.pool, [...new Set(projects)])
      return projects.map(() => undefined)
    },
  })
  return {
    async run(request, read) {
      const needed = writtenTo(request)
      if (unrecorded.size > 0 || replayed === null || (needed !== null && replayed < needed))
        return read(primary)
      try {
        return await read(replica)
      } catch (error) {
        if (!isDatabaseUnavailable(error) && !isDeadlock(error) && !isUnmigrated(error)) throw error
        return read(primary)
      }
    },
    async wrote(projectId) {
      try {
        await writes.submit(projectId)
      } catch (error) {
        unrecorded.set(projectId, {})
        log.warn({ err: error }, 'the writes of a project are not recorded; the primary reads')
      }
    },
    needsWritten: true,
    async stop() {
      stopping = true
      await Promise.all([polling, writes.drain()])
    },
  }
}
