import { BlobsAwayError } from '../../shared/blobs/objectStore.ts'
import { isDatabaseUnavailable } from '../../shared/process/databaseAway.ts'
import { traced } from '../../shared/process/tracing.ts'
import { within } from '../../shared/process/workContext.ts'
import { type TaskName, taskPayloads } from '../../shared/tasks.ts'
import type { Pool } from '../../sql/db.ts'
import { addJob } from '../../sql/queue/jobs.ts'
import { hasLock, type JobLock } from '../../sql/queue/workerPools.ts'
import type { JobsInHand } from './jobsInHand.ts'
import type { Registration } from './registration.ts'
import type { Tasks } from './task.ts'

const RETRY_MIN_MS = 100
const RETRY_MAX_MS = 2_000
/**
 * Sets the milliseconds after which a job is retried while the object store is unreachable. The delay is one to two
 * times this number.
 */
const BLOBS_AWAY_MS = 15_000
/**
 * Limits how long a job keeps its slot while the database is unreachable. After this time, the job gives up the slot.
 * It runs again when the database is reachable, because the database has not recorded its end.
 */
const OUTLASTED_MS = 60_000

type Context = {
  graphilePoolId: string
  jobs: JobsInHand
  registration: Registration
  isStopping: () => boolean
}

/** Describes a job in the form in which Graphile Worker hands it to a task. */
type FetchedJob = JobLock & { key: string | null; priority: number }

/** Returns the tasks in the form in which Graphile Worker calls them. */
export function taskList(tasks: Tasks, pool: Pool, context: () => Context) {
  return Object.fromEntries(
    (Object.keys(tasks) as TaskName[]).map((name) => {
      const task = tasks[name] as (payload: unknown, job: { attempt: number }) => Promise<void>
      return [
        name,
        async (raw: unknown, { job }: { job: FetchedJob }) => {
          const { traceparent = null, ...ids } = raw as { traceparent?: string }
          const payload = taskPayloads[name].parse(ids)
          const run = async () => {
            try {
              await outlastDatabase(pool, context(), job, () =>
                task(payload, { attempt: job.attempts }),
              )
            } catch (error) {
              if (!(error instanceof BlobsAwayError) || job.key === null) throw error
              // The retry is a new job, because retries of the same job would use up its attempts while the object
              // store is unreachable.
              const inMs = BLOBS_AWAY_MS * (1 + Math.random())
              const { key, priority } = job
              await addJob(pool, { task: name, payload, key, inMs, priority })
            }
          }
          await within({ jobId: String(job.id) }, () =>
            // A job that was queued together with many others has no trace id. Its task reads the trace id from the
            // database rows that it processes.
            traceparent === null
              ? run()
              : traced(`job ${name}`, { kind: 'consumer', parent: traceparent }, run),
          )
        },
      ]
    }),
  )
}

/**
 * Runs a task, and repeats the task while the database is unreachable. If the task failed instead, the job would wait
 * for Graphile Worker's exponential back-off, and outages would use up its attempts.
 * @throws {Error} if another worker pool has taken the job. This happens some seconds after the database connection
 * breaks that holds the pool's advisory lock (its registration as alive).
 */
async function outlastDatabase(
  pool: Pool,
  context: Context,
  job: JobLock,
  run: () => Promise<void>,
): Promise<void> {
  let epoch = context.jobs.epochOf(job.id) ?? -1
  const startMs = performance.now()
  for (let delayMs = RETRY_MIN_MS; ; delayMs = Math.min(delayMs * 2, RETRY_MAX_MS)) {
    try {
      // Other worker pools take the jobs of an unregistered pool, because they believe that this pool is dead.
      if (epoch < 0 || epoch !== context.registration.epoch()) {
        epoch = await untilRegistered(context)
        if (!(await hasLock(pool, context.graphilePoolId, job))) {
          throw new Error('the job was given to another worker pool')
        }
      }
      return await run()
    } catch (error) {
      const isOver = context.isStopping() || performance.now() - startMs > OUTLASTED_MS
      if (!isDatabaseUnavailable(error) || isOver) throw error
      await Bun.sleep(delayMs)
    }
  }
}

/**
 * Waits until the worker pool is registered as alive. @returns the number (epoch) of the registration.
 * @throws {Error} if the pool stops before it is registered.
 */
async function untilRegistered({ registration, isStopping }: Context): Promise<number> {
  while (registration.epoch() < 0) {
    if (isStopping()) throw new Error('the worker pool stops')
    await Bun.sleep(RETRY_MIN_MS)
  }
  return registration.epoch()
}
