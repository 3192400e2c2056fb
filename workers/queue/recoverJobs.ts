import type { WorkerEvents } from 'graphile-worker'
import type { Logger } from 'pino'
import { isDatabaseUnavailable } from '../../shared/process/databaseAway.ts'
import { createPause } from '../../shared/process/pause.ts'
import type { Running } from '../../shared/process/service.ts'
import type { Pool } from '../../sql/db.ts'
import { listLocks, releaseLocks } from '../../sql/queue/workerPools.ts'
import type { JobsInHand } from './jobsInHand.ts'
import type { WatchedOperations } from './operations.ts'

/**
 * Sets the milliseconds without a job fetch after which a worker pool counts as stuck while the database responds,
 * because a healthy pool polls for jobs at least every second.
 */
const STUCK_AFTER_MS = 8_000

/**
 * Releases jobs that this worker pool has locked in the database but does not have in memory. A job stays locked if the
 * reply to a job fetch is lost, or if the row of the finished job could not be deleted. Without this release, Graphile
 * Worker would keep the job locked for four hours.
 *
 * A released job cannot be running, because the release waits for the end of every database operation that could bring
 * the job into memory.
 * @param onStuck is called if the pool polls and the database responds, but no fetch of jobs succeeds. Graphile Worker
 * 0.18 never recovers from an error in its very first fetch, because it keeps the rejected promise of its task ids.
 */
export function recoverJobs(options: {
  pool: Pool
  graphilePoolId: string
  jobs: JobsInHand
  operations: WatchedOperations
  fetches: Fetches
  /**
   * Sets how many milliseconds pass between two searches for jobs that the pool has locked but does not have in memory.
   */
  intervalMs: number
  onStuck: () => void
  /** Gets the number of lost jobs that the search has released. */
  onReleased: (count: number) => void
  log: Logger
}): Running {
  const { pool, graphilePoolId, jobs, operations, fetches, log } = options
  const look = async () => {
    const locked = await listLocks(pool, graphilePoolId)
    if (fetches.areMissing()) {
      fetches.excuse()
      options.onStuck()
    }
    if (locked.every(({ id }) => jobs.has(id))) return
    await operations.settled()
    const lost = locked.filter(({ id }) => !jobs.has(id))
    const released = lost.length === 0 ? 0 : await releaseLocks(pool, graphilePoolId, lost)
    if (released === 0) return
    options.onReleased(released)
    log.warn({ released }, 'jobs that this pool did not have in hand were released')
  }
  let stopped = false
  const pause = createPause()
  const loop = async () => {
    while (!stopped) {
      await pause.sleep(options.intervalMs)
      if (stopped) return
      await look().catch((error) => {
        fetches.excuse()
        if (!isDatabaseUnavailable(error)) log.warn({ err: error }, 'lost jobs were not looked for')
      })
    }
  }
  const ended = loop()
  return {
    async stop() {
      stopped = true
      pause.wake()
      await ended
    },
  }
}

/** Tells whether a worker pool fetches jobs as it should. */
export type Fetches = {
  areMissing(): boolean
  /**
   * Sets the time of the last job fetch to now. The caller uses this function after an outage of the database, because
   * without it the pool would count as stuck.
   */
  excuse(): void
}

/** Follows the job fetches of a worker pool. */
export function watchFetches(events: WorkerEvents): Fetches {
  let isPolling = false
  let sinceMs = 0
  const restart = () => {
    sinceMs = performance.now()
  }
  events.on('localQueue:setMode', ({ newMode }) => {
    isPolling = newMode === 'POLLING'
    restart()
  })
  events.on('localQueue:getJobs:complete', restart)
  return {
    areMissing: () => isPolling && performance.now() - sinceMs > STUCK_AFTER_MS,
    excuse: restart,
  }
}
