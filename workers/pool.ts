import type { Logger } from 'pino'
import type { Running } from '../shared/service.ts'
import type { RunnerName, TaskName, TaskPayload } from '../shared/tasks.ts'
import { createPool, type Pool, type Queryable } from '../sql/db.ts'
import type { KeyringSource } from '../sql/keyring.ts'
import type { Resolve } from './guardedRequest.ts'
import { type LaneLimits, Lanes } from './lanes.ts'
import type { Dns } from './mail/dns.ts'
import type { LookUp } from './mail/lookUp.ts'
import type { Transport } from './mail/transport.ts'
import { startRunner } from './queue/runner.ts'
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

export type Tasks = { [Name in TaskName]?: Task<Name> }

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
  /** How often the pool looks for jobs that it has locked but does not have in hand. */
  recoveryIntervalMs?: number
  /** Milliseconds until the next job of a known time: the pool then fetches at that moment rather than at a poll. */
  nextInMs?: (db: Queryable) => Promise<number | null>
}

/** Connections beside one per job: the listener, fetching, completing. */
const SPARE_CONNECTIONS = 4
const RESTART_DELAY_MS = 1_000

/** Runs a Graphile Worker pool, restarts it when it fails, and drains it when asked to stop. */
export async function startPool(settings: PoolSettings, deps: PoolDeps): Promise<Running> {
  const log = deps.log.child({ pool: settings.name })
  const pool = createPool({
    url: settings.databaseUrl,
    size: settings.connections ?? settings.concurrency * 2 + SPARE_CONNECTIONS,
    name: `purser worker ${settings.name}`,
    log,
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
      // It may be another one by now, which was starting when the stop came.
      await current.drain()
      await pool.end()
    },
  }
}
