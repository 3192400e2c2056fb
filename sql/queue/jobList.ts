import type { Queryable } from '../db.ts'
import { JOB_STATE, type JobState } from '../operations/statistics.ts'

/** A job in the operator's list. */
export type ListedJob = {
  id: string
  task: string
  /** The job key: the task and the id of its object. */
  key: string | null
  state: JobState
  attempts: number
  maxAttempts: number
  runAt: Date
  lockedAt: Date | null
  lastError: string | null
  createdAt: Date
}

/** Most jobs in a list. */
const JOBS_SHOWN = 100
/** The beginning of a stack names the error. */
const ERROR_LENGTH = 2_000

/** Jobs in one state, the earliest due first; at most {@link JOBS_SHOWN}. */
export async function listJobs(db: Queryable, state: JobState): Promise<ListedJob[]> {
  const { rows } = await db.query<ListedJob>({
    name: 'list-jobs',
    text: `
      select id, task_identifier as task, key, s.state, attempts, max_attempts as "maxAttempts", run_at as "runAt",
             locked_at as "lockedAt", left(last_error, ${ERROR_LENGTH}) as "lastError", created_at as "createdAt"
      from graphile_worker.jobs ${JOB_STATE}
      where s.state = $1 order by run_at, id limit ${JOBS_SHOWN}`,
    values: [state],
  })
  return rows
}

/**
 * Makes a waiting or failed job due now and resets its attempts.
 * @returns null: no such job, or a worker runs it.
 */
export async function retryJob(db: Queryable, id: string): Promise<{ task: string } | null> {
  const { rows } = await db.query<{ task: string }>(
    `select t.task_identifier as task
     from graphile_worker.reschedule_jobs(array[$1::bigint], run_at := clock_timestamp(), attempts := 0) r
     join graphile_worker.jobs t on t.id = r.id`,
    [id],
  )
  return rows[0] ?? null
}
