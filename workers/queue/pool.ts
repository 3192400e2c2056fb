import type { Logger } from 'pino'
import type { Running } from '../../shared/process/service.ts'
import { createPool } from '../../sql/db.ts'
import { createHeldOutcomes } from './heldOutcomes.ts'
import { Lanes } from './lanes.ts'
import { type PoolSettings, startRunner } from './runner.ts'

/**
 * Sets how many database connections a worker pool needs besides the connections for its jobs. These connections listen
 * for new jobs, fetch jobs and end jobs.
 */
const SPARE_CONNECTIONS = 4
const RESTART_DELAY_MS = 1_000
/**
 * Limits how long a stopping pool waits until all outcomes are recorded, after it has waited for its jobs. Both waits
 * together end before the process ends (see shared/process/service.ts).
 */
const SETTLE_LIMIT_MS = 4_000

/** Runs a Graphile Worker pool, restarts it if it fails, and lets its jobs finish when it must stop. */
export async function startPool(settings: PoolSettings, parentLog: Logger): Promise<Running> {
  const log = parentLog.child({ pool: settings.name })
  const pool = createPool({
    url: settings.databaseUrl,
    size: settings.connections ?? settings.concurrency * 2 + SPARE_CONNECTIONS,
    name: `purser worker ${settings.name}`,
    log,
  })
  const outcomes = createHeldOutcomes(log)
  const lanes = new Lanes(settings.concurrency, settings.lanes)
  const context = { log, pool, lanes, outcomes }
  const tasks = settings.tasks(context)
  let stopping = false
  let current = await startRunner(settings, tasks, context)
  const supervised = (async () => {
    for (;;) {
      await current.ended
      if (stopping) return
      log.error('the pool ended; starting it again')
      await current.drain()
      for (let started = false; !started && !stopping; ) {
        await Bun.sleep(RESTART_DELAY_MS)
        try {
          current = await startRunner(settings, tasks, context)
          started = true
        } catch (error) {
          log.warn({ err: error }, 'the pool could not be started; will retry')
        }
      }
      if (stopping) return
    }
  })()
  return {
    async stop() {
      stopping = true
      let isDone = await current.drain()
      if (isDone) {
        await supervised
        // The stop may have come while a new runner was still starting. `current` contains this runner only after its
        // start has ended, so the code drains `current` again.
        isDone = await current.drain()
      }
      // The pool waits for outcomes that are not recorded yet, because the database may become reachable in this time.
      // Running jobs may also wait for their outcomes to be recorded.
      await outcomes.settle(SETTLE_LIMIT_MS)
      // `end` would wait for the connections of running jobs, so it is called only if no job runs.
      if (isDone) await pool.end()
    },
  }
}
