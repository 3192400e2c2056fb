import { EventEmitter } from 'node:events'
import { Logger as GraphileLogger, run, type WorkerEvents } from 'graphile-worker'
import type { Logger } from 'pino'
import type { Running } from '../shared/service.ts'
import { type RunnerName, type TaskName, type TaskPayload, taskPayloads } from '../shared/tasks.ts'
import { createPool, type Pool, type Queryable } from '../sql/db.ts'
import type { KeyringSource } from '../sql/keyring.ts'
import {
  countLockedJobs,
  forceUnlock,
  type PoolRegistration,
  registerPool,
} from '../sql/workerPools.ts'
import { startAlarm } from './alarm.ts'
import type { Resolve } from './guardedRequest.ts'
import { type LaneLimits, Lanes } from './lanes.ts'
import type { Dns } from './mail/dns.ts'
import type { LookUp } from './mail/lookUp.ts'
import type { Transport } from './mail/transport.ts'
import type { Till } from './till/till.ts'

/** What a task works with. */
export type TaskDeps = {
  pool: Pool
  log: Logger
  mailDomain: string
  /** What the MX records of our domains name; the mail domain when left out. */
  mailHostname?: string
  /** Looks the names of mail up; by the system's resolvers when left out. */
  dns?: Dns
  transport: Transport
  /** Whether requests on a tenant's behalf may go to private addresses (development). */
  allowPrivateNetworks: boolean
  /** Resolves names for such requests; the system's resolver when left out. */
  resolve?: Resolve
  /** Asks the DNS about senders. */
  lookUp: LookUp
  /** Shares the pool's slots between endpoints, or domains. */
  lanes: Lanes
  /** Opens the secrets of webhooks and the keys that sign mail; in processes that deliver either. */
  keyring?: KeyringSource
  /** In processes that run the payments pool. */
  till?: Till
}

/** What a pool is given; the rest of TaskDeps it makes itself. */
export type PoolDeps = Omit<TaskDeps, 'pool' | 'lanes'>

/**
 * One kind of job. It may run twice for one job, after a crash, and must then change nothing the second time. A remote
 * failure is recorded, never thrown: a throw means a bug or a database that is away, and Graphile Worker tries again.
 */
export type Task<Name extends TaskName> = (
  payload: TaskPayload<Name>,
  deps: TaskDeps,
  job: { attempt: number },
) => Promise<void>

type Tasks = { [Name in TaskName]?: Task<Name> }

export type PoolSettings = {
  name: RunnerName
  databaseUrl: string
  /** Jobs at the same time. */
  concurrency: number
  /** How often to look for jobs whose time has come; new jobs are announced and wait for no poll. */
  pollIntervalMs: number
  tasks: Tasks
  /** How its slots are shared; as webhooks need it when left out. */
  lanes?: LaneLimits
  /** Connections to the database; enough for every job at once when left out. */
  connections?: number
  /** Milliseconds until the next job of a known time: the pool then fetches at that moment rather than at a poll. */
  nextInMs?: (db: Queryable) => Promise<number | null>
}

/** Connections beside one per job: the listener, fetching, completing. */
const SPARE_CONNECTIONS = 4
const RESTART_DELAY_MS = 1_000
const DRAIN_LIMIT_MS = 14_000
const UNLOCK_WAIT_MS = 3_000
const POLL_MS = 25

/** Runs a Graphile Worker pool, restarts it when it fails, and drains it when asked to stop. */
export async function startPool(settings: PoolSettings, deps: PoolDeps): Promise<Running> {
  const log = deps.log.child({ pool: settings.name })
  const pool = createPool({
    url: settings.databaseUrl,
    size: settings.connections ?? settings.concurrency * 2 + SPARE_CONNECTIONS,
    name: `purser worker ${settings.name}`,
    onError: (error) => log.warn({ err: error }, 'a database connection broke'),
  })
  const taskDeps = { ...deps, log, pool, lanes: new Lanes(settings.concurrency, settings.lanes) }
  let stopping = false
  let current = await startRunner(settings, taskDeps)
  const supervised = (async () => {
    for (;;) {
      await current.ended
      if (stopping) return
      log.error('the pool ended; starting it again')
      await current.drain()
      for (let started = false; !started && !stopping; ) {
        await Bun.sleep(RESTART_DELAY_MS)
        try {
          current = await startRunner(settings, taskDeps)
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
      await current.drain()
      await supervised
      await pool.end()
    },
  }
}

type RunningPool = { ended: Promise<void>; drain(): Promise<void> }

async function startRunner(settings: PoolSettings, deps: TaskDeps): Promise<RunningPool> {
  const events: WorkerEvents = new EventEmitter()
  let graphilePoolId = ''
  let nudge = () => {}
  events.once('pool:create', ({ workerPool }) => {
    graphilePoolId = workerPool.id
    nudge = () => workerPool.nudge(1)
  })
  const runner = await run({
    events,
    pgPool: deps.pool,
    taskList: taskList(settings.tasks, deps),
    noHandleSignals: true,
    crontab: '',
    logger: graphileLogger(deps.log),
    preset: {
      worker: {
        concurrentJobs: settings.concurrency,
        pollInterval: settings.pollIntervalMs,
        // One fetch for all workers of the pool; -1 keeps completion retried (batched completion never is).
        localQueue: { size: settings.concurrency + 1 },
        completeJobBatchDelay: -1,
        failJobBatchDelay: -1,
        gracefulShutdownAbortTimeout: DRAIN_LIMIT_MS,
      },
    },
  })
  const registration = keepRegistered(settings, graphilePoolId, deps.log)
  const alarm = startPoolAlarm(settings, deps, events, () => nudge())
  const ended = runner.promise.then(
    () => {},
    (error) => deps.log.error({ err: error }, 'the pool failed'),
  )
  let drained: Promise<void> | undefined
  const drain = async () => {
    await alarm?.stop()
    await runner.stop().catch(() => ended)
    await untilUnlocked(deps.pool, graphilePoolId).catch((error) =>
      deps.log.warn({ err: error }, 'the state of the last jobs is not known'),
    )
    await registration.release()
  }
  return {
    ended,
    drain: () => {
      drained ??= drain()
      return drained
    },
  }
}

function startPoolAlarm(
  { nextInMs }: PoolSettings,
  { pool, log }: TaskDeps,
  events: WorkerEvents,
  nudge: () => void,
): Running | null {
  if (nextInMs === undefined) return null
  let rungMs = 0
  let fetchMs = 0
  events.on('localQueue:getJobs:complete', () => {
    if (rungMs > 0) fetchMs = performance.now() - rungMs
    rungMs = 0
  })
  return startAlarm({
    nextInMs: () => nextInMs(pool),
    ring: () => {
      rungMs = performance.now()
      nudge()
    },
    fetchMs: () => fetchMs,
    log,
  })
}

/**
 * `runner.stop()` does not wait for the rows of finished jobs to be deleted, and a job that is left locked would run
 * again: wait until none is, then free whatever remains.
 */
async function untilUnlocked(pool: Pool, graphilePoolId: string): Promise<void> {
  const deadline = Date.now() + UNLOCK_WAIT_MS
  while ((await countLockedJobs(pool, graphilePoolId)) > 0) {
    if (Date.now() > deadline) return forceUnlock(pool, [graphilePoolId])
    await Bun.sleep(POLL_MS)
  }
}

/** Holds the pool's proof of life, and takes it up again whenever its connection breaks. */
function keepRegistered(
  settings: PoolSettings,
  graphilePoolId: string,
  log: Logger,
): { release(): Promise<void> } {
  let released = false
  let held: Promise<PoolRegistration | null>
  const register = async (): Promise<PoolRegistration | null> => {
    while (!released) {
      try {
        return await registerPool({
          databaseUrl: settings.databaseUrl,
          graphilePoolId,
          poolName: settings.name,
          onLost: () => {
            held = register()
          },
        })
      } catch (error) {
        log.warn({ err: error }, 'the pool could not be registered; will retry')
        await Bun.sleep(POLL_MS * 10)
      }
    }
    return null
  }
  held = register()
  return {
    async release() {
      released = true
      await (await held)?.release().catch(() => {})
    },
  }
}

function taskList(tasks: Tasks, deps: TaskDeps) {
  return Object.fromEntries(
    (Object.keys(tasks) as TaskName[]).map((name) => [
      name,
      async (raw: unknown, helpers: { job: { attempts: number } }) => {
        const payload = taskPayloads[name].parse(raw)
        const task = tasks[name] as (
          payload: unknown,
          deps: TaskDeps,
          job: { attempt: number },
        ) => Promise<void>
        await task(payload, deps, { attempt: helpers.job.attempts })
      },
    ]),
  )
}

const GRAPHILE_LEVELS: Record<string, 'error' | 'warn' | 'debug'> = {
  error: 'error',
  warning: 'warn',
}

/** Jobs that wait on the network share fewer connections than there are jobs, on purpose. */
const EXPECTED_WARNING = /maxPoolSize \(\d+\) smaller than concurrency/

function graphileLogger(log: Logger): GraphileLogger {
  return new GraphileLogger(() => (level, message) => {
    const known = EXPECTED_WARNING.test(message)
    log[known ? 'debug' : (GRAPHILE_LEVELS[level] ?? 'debug')](message)
  })
}
