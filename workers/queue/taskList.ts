import { isDatabaseUnavailable } from '../../shared/databaseAway.ts'
import { type TaskName, taskPayloads } from '../../shared/tasks.ts'
import { hasLock, type JobLock } from '../../sql/workerPools.ts'
import type { TaskDeps, Tasks } from '../pool.ts'
import type { JobsInHand } from './jobsInHand.ts'
import type { Registration } from './registration.ts'

const RETRY_MIN_MS = 100
const RETRY_MAX_MS = 2_000

type Context = {
  graphilePoolId: string
  jobs: JobsInHand
  registration: Registration
  isStopping: () => boolean
}

/** The tasks as Graphile Worker calls them. */
export function taskList(tasks: Tasks, deps: TaskDeps, context: () => Context) {
  return Object.fromEntries(
    (Object.keys(tasks) as TaskName[]).map((name) => {
      const task = tasks[name] as (
        payload: unknown,
        deps: TaskDeps,
        job: { attempt: number },
      ) => Promise<void>
      return [
        name,
        async (raw: unknown, { job }: { job: JobLock }) => {
          const payload = taskPayloads[name].parse(raw)
          await outlastDatabase(deps, context(), job, () =>
            task(payload, deps, { attempt: job.attempts }),
          )
        },
      ]
    }),
  )
}

/**
 * Runs a task, again and again while the database is away. A failed job would wait for Graphile Worker's exponential
 * back-off, and would lose its attempts to outages.
 * @throws {Error} when the job was given to another pool: that happens once the proof of life is lost for seconds.
 */
async function outlastDatabase(
  deps: TaskDeps,
  context: Context,
  job: JobLock,
  run: () => Promise<void>,
): Promise<void> {
  let epoch = context.jobs.epochOf(job.id)
  for (let delayMs = RETRY_MIN_MS; ; delayMs = Math.min(delayMs * 2, RETRY_MAX_MS)) {
    try {
      if (epoch !== context.registration.epoch()) {
        await context.registration.held()
        epoch = context.registration.epoch()
        if (!(await hasLock(deps.pool, context.graphilePoolId, job))) {
          throw new Error('the job was given to another worker pool')
        }
      }
      return await run()
    } catch (error) {
      if (!isDatabaseUnavailable(error) || context.isStopping()) throw error
      await Bun.sleep(delayMs)
    }
  }
}
