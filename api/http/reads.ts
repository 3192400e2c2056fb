import type { Logger } from 'pino'
import { createBatcher } from '../../shared/process/batcher.ts'
import { isDatabaseUnavailable } from '../../shared/process/databaseAway.ts'
import { isDeadlock, type Pool } from '../../sql/db.ts'
import { type Lsn, markWritten, readReplayed } from '../../sql/operations/replica.ts'
import type { Searches } from '../mail/messages/searches.ts'

/** The connections to one server. */
type Server = { pool: Pool; searches: Searches }

/** Where reads of lists run: on the replica if it has all that the project wrote, else on the primary. */
export type Reads = {
  run<Result>(request: Request, read: (server: Server) => Promise<Result>): Promise<Result>
  /** Call it before the answer to a request that may have written. */
  wrote(projectId: string): Promise<void>
  /** Whether the gate must read how far a project wrote. */
  needsWritten: boolean
  stop(): Promise<void>
}

/** How often the replica is asked how far it is, milliseconds. */
const POLL_MS = 50

/** All reads run on the primary. */
export const primaryReads = (primary: Server): Reads => ({
  run: (_request, read) => read(primary),
  async wrote() {},
  needsWritten: false,
  async stop() {},
})

/**
 * Reads run on the replica while it is near enough. A read that fails there runs again on the primary: the replica is
 * away, or its replay cancels a long read.
 */
export function replicaReads({
  primary,
  replica,
  writtenTo,
  log,
}: {
  primary: Server
  replica: Server
  /** How far a server must be to have all that the project of a request wrote; null: anywhere. */
  writtenTo: (request: Request) => Lsn | null
  log: Logger
}): Reads {
  /** How far the replica is at least; null: it is not used. */
  let replayed: Lsn | null = null
  let stopping = false
  const poll = async () => {
    while (!stopping) {
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
      if (replayed === null || (needed !== null && replayed < needed)) return read(primary)
      try {
        return await read(replica)
      } catch (error) {
        if (!isDatabaseUnavailable(error) && !isDeadlock(error)) throw error
        return read(primary)
      }
    },
    wrote: (projectId) => writes.submit(projectId),
    needsWritten: true,
    async stop() {
      stopping = true
      await Promise.all([polling, writes.drain()])
    },
  }
}
