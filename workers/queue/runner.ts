import { EventEmitter } from 'node:events'
import { Logger as GraphileLogger, run, type WorkerEvents, type WorkerPool } from 'graphile-worker'
import type { Logger } from 'pino'
import { isDatabaseUnavailable } from '../../shared/process/databaseAway.ts'
import type { Running } from '../../shared/process/service.ts'
import type { RunnerName } from '../../shared/tasks.ts'
import type { Pool, Queryable } from '../../sql/db.ts'
import { countLockedJobs, forceUnlock } from '../../sql/queue/workerPools.ts'
import { startAlarm } from './alarm.ts'
import type { JobMetrics } from './jobMetrics.ts'
import { followJobs } from './jobsInHand.ts'
import type { LaneLimits } from './lanes.ts'
import { watchOperations } from './operations.ts'
import { recoverJobs, watchFetches } from './recoverJobs.ts'
import { keepRegistered, type Registration } from './registration.ts'
import type { PoolContext, Tasks } from './task.ts'
import { taskList } from './taskList.ts'

const DRAIN_LIMIT_MS = 14_000
const UNLOCK_WAIT_MS = 3_000
const POLL_MS = 25
const RECOVERY_INTERVAL_MS = 4_000
const REGISTRATION_WAIT_MS = 2_000
/** Sets for how many recent fetches of jobs the worker pool remembers the duration. */
const FETCHES = 5

export type PoolSettings = {
  name: RunnerName
  databaseUrl: string
  /** Limits the jobs that the worker pool runs at the same time. */
  concurrency: number
  /**
   * Sets the interval at which the worker pool polls for due jobs. A new job does not wait for a poll, because NOTIFY
   * announces the job.
   */
  pollIntervalMs: number
  /** Creates the tasks of the pool. The function is called once for each worker pool. */
  tasks: (context: PoolContext) => Tasks
  /**
   * Sets how the lanes (queues for one receiver) share the job slots of the pool. By default the limits for webhooks
   * apply.
   */
  lanes?: LaneLimits
  /**
   * Sets the number of database connections of the worker pool. By default, every concurrent job can have a connection.
   */
  connections?: number
  /** Sets the interval at which the pool searches for jobs that it has locked but does not have in memory. */
  recoveryIntervalMs?: number
  /** Sets how long a stopping pool waits for its jobs. */
  drainLimitMs?: number
  /** Measures the jobs of the worker pool. If it is absent, the jobs are not measured. */
  metrics?: JobMetrics
  /**
   * Returns how many milliseconds remain until the next job with a planned time is due. The pool fetches jobs at
   * exactly this moment.
   */
  nextInMs?: (db: Queryable) => Promise<number | null>
}

/** Describes a running Graphile Worker pool. */
export type Runner = {
  /** Resolves when the worker pool has ended, because it was stopped or because it failed. */
  ended: Promise<void>
  /**
   * Finishes the running jobs, fetches no more jobs, and gives back the fetched jobs that have not started. @returns
   * false if jobs still run at the end of DRAIN_LIMIT_MS.
   */
  drain(): Promise<boolean>
}

/**
 * Starts a Graphile Worker pool together with its registration as a live pool, its alarm for due jobs, and its search
 * for lost jobs.
 */
export async function startRunner(
  settings: PoolSettings,
  tasks: Tasks,
  { pool, log }: PoolContext,
): Promise<Runner> {
  const events: WorkerEvents = new EventEmitter()
  settings.metrics?.follow(events)
  let stopping = false
  let registration: Registration | undefined
  const jobs = followJobs(events, () => registration?.epoch() ?? -1)
  const fetches = watchFetches(events)
  let workerPool: WorkerPool | undefined
  let isLeft = false
  const operations = watchOperations(
    pool,
    () => workerPool!.id,
    (error) => {
      // If the job still ran when the pool had ended, the pool cannot record the end of the job, and another pool runs
      // the job again. Therefore the code only logs the error.
      if (!isLeft) throw error
      log.warn({ err: error }, 'a job ended after the pool, and the end was not recorded')
    },
  )
  events.once('pool:create', (created) => {
    workerPool = created.workerPool
    registration = keepRegistered({
      databaseUrl: settings.databaseUrl,
      poolName: settings.name,
      graphilePoolId: workerPool.id,
      log,
    })
  })
  const runner = await run({
    events,
    pgPool: operations.pgPool,
    taskList: taskList(tasks, pool, () => ({
      graphilePoolId: workerPool!.id,
      jobs,
      registration: registration!,
      isStopping: () => stopping,
    })),
    logger: graphileLogger(log),
    ...graphileOptions(settings),
  }).catch(async (error) => {
    await registration?.release()
    throw error
  })
  const graphilePoolId = workerPool!.id
  await untilRegistered(registration!)
  const recovery = recoverJobs({
    pool,
    graphilePoolId,
    jobs,
    operations,
    fetches,
    intervalMs: settings.recoveryIntervalMs ?? RECOVERY_INTERVAL_MS,
    onStuck() {
      log.error('the pool fetches no jobs; it is stopped')
      runner.stop().catch(() => {})
    },
    onReleased: (count) => workerPool!.nudge(count),
    log,
  })
  const alarm = startPoolAlarm(settings, { pool, log }, events, () => workerPool!.nudge(1))
  const ended = runner.promise.then(
    () => {},
    (error) => log.error({ err: error }, 'the pool failed'),
  )
  const drain = async () => {
    stopping = true
    await alarm?.stop()
    const stopped = [recovery.stop(), runner.stop().catch(() => ended)]
    const isDone = await endsWithin(settings.drainLimitMs ?? DRAIN_LIMIT_MS, Promise.all(stopped))
    if (!isDone) {
      isLeft = true
      // The locks on jobs and the registration of the pool stay until the process ends, because another pool would
      // otherwise run the same jobs at the same time.
      log.warn('jobs still run; another pool gets them after the end of this process')
      return false
    }
    await Promise.all([
      // A finished job may already look unlocked while its row is being deleted. If the reply to the deletion was lost,
      // the deletion is repeated, so the pool still needs its database connection.
      operations.settled(),
      untilUnlocked(pool, graphilePoolId).catch((error) =>
        log.warn({ err: error }, 'the state of the last jobs is not known'),
      ),
    ])
    await registration!.release()
    return true
  }
  let drained: Promise<boolean> | undefined
  return {
    ended,
    drain() {
      drained ??= drain()
      return drained
    },
  }
}

const graphileOptions = ({ concurrency, pollIntervalMs }: PoolSettings) => ({
  noHandleSignals: true,
  crontab: '',
  preset: {
    worker: {
      concurrentJobs: concurrency,
      pollInterval: pollIntervalMs,
      // With the local queue of Graphile Worker, one job fetch serves all jobs of the pool. The comments of
      // operations.ts explain the value -1.
      localQueue: { size: concurrency + 1 },
      completeJobBatchDelay: -1,
      failJobBatchDelay: -1,
    },
  },
})

/** Waits for work, but at most for the given time. @returns whether the work has ended in this time. */
async function endsWithin(limitMs: number, work: Promise<unknown>): Promise<boolean> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(() => resolve(false), limitMs)
  })
  try {
    return await Promise.race([work.then(() => true), late])
  } finally {
    clearTimeout(timer)
  }
}

function startPoolAlarm(
  { nextInMs }: PoolSettings,
  { pool, log }: Pick<PoolContext, 'pool' | 'log'>,
  events: WorkerEvents,
  nudge: () => void,
): Running | null {
  if (nextInMs === undefined) return null
  let rungMs = 0
  const fetchesMs: number[] = []
  events.on('localQueue:getJobs:complete', () => {
    if (rungMs > 0) fetchesMs.push(performance.now() - rungMs)
    if (fetchesMs.length > FETCHES) fetchesMs.shift()
    rungMs = 0
  })
  return startAlarm({
    nextInMs: () => nextInMs(pool),
    ring: () => {
      rungMs = performance.now()
      nudge()
    },
    // The duration of the shortest recent job fetch counts, because longer fetches were slow for other reasons than the
    // database.
    fetchMs: () => (fetchesMs.length === 0 ? 0 : Math.min(...fetchesMs)),
    log,
  })
}

/**
 * Waits until the pool is registered as alive, so that /readyz finds the pool. The pool also runs jobs if the
 * registration fails.
 */
async function untilRegistered(registration: Registration): Promise<void> {
  const deadlineMs = performance.now() + REGISTRATION_WAIT_MS
  while (registration.epoch() < 0 && performance.now() < deadlineMs) await Bun.sleep(POLL_MS)
}

/**
 * Waits for a limited time until no job of the pool is locked, and then unlocks the jobs that are still locked. The
 * wait is needed, because `runner.stop()` does not wait for the deletion of the rows of finished jobs. A job whose row
 * stays locked would run again.
 */
async function untilUnlocked(pool: Pool, graphilePoolId: string): Promise<void> {
  const deadline = Date.now() + UNLOCK_WAIT_MS
  while ((await countLockedJobs(pool, graphilePoolId)) > 0) {
    if (Date.now() > deadline) return forceUnlock(pool, [graphilePoolId])
    await Bun.sleep(POLL_MS)
  }
}

const GRAPHILE_LEVELS: Record<string, 'error' | 'warn' | 'debug'> = {
  error: 'error',
  warning: 'warn',
}

/**
 * Matches the warning of Graphile Worker about too few connections. The pool intentionally has fewer connections than
 * jobs, because jobs mostly wait on the network.
 */
const EXPECTED_WARNING = /maxPoolSize \(\d+\) smaller than concurrency/

function graphileLogger(log: Logger): GraphileLogger {
  return new GraphileLogger(() => (level, message, meta) => {
    const known = EXPECTED_WARNING.test(message)
    const write = log[known ? 'debug' : (GRAPHILE_LEVELS[level] ?? 'debug')].bind(log)
    const err = meta?.error
    if (isDatabaseUnavailable(err)) write({ err }, message)
    else write(message)
  })
}
