import type { Cursor } from '../../shared/cursor.ts'
import { conditions, holds } from '../conditions.ts'
import type { Queryable } from '../db.ts'
import { JOB_STATE, type JobState } from '../operations/statistics.ts'
import { pageOrder } from '../pageStart.ts'

/** Describes a job in the operator's list of jobs. */
export type ListedJob = {
  id: string
  task: string
  /** Holds the job key: the task name and the id of the object that the task processes. */
  key: string | null
  state: JobState
  attempts: number
  maxAttempts: number
  runAt: Date
  lockedAt: Date | null
  lastError: string | null
  createdAt: Date
}

/**
 * Sets the maximum number of characters of a job's error in the operator's list of jobs. The start of the text is
 * enough, because a stack trace begins with the name of the error.
 */
const ERROR_LENGTH = 2_000

export type JobFilter = {
  state: JobState
  task?: string
  /** Selects the jobs that have this text in their key or error. */
  text?: string
  /** Selects only jobs that are due at the time `after` or later, and before the time `before`. */
  after?: Date
  before?: Date
}

/**
 * Rounds the time at which a job is due down to milliseconds, because the cursor of a page contains whole milliseconds.
 */
const DUE = "date_trunc('milliseconds', run_at)"

/** Lists the jobs in one state, the earliest due job first, with at most `limit` jobs after the cursor. */
export async function listJobs(
  db: Queryable,
  { state, limit, cursor, ...filter }: JobFilter & { limit: number; cursor: Cursor | null },
): Promise<(ListedJob & { row: bigint })[]> {
  const values: unknown[] = [state, ...pageOrder('oldest', cursor).start, limit]
  const tests = conditions(values, [
    ['task_identifier = ?', filter.task],
    [holds(`concat_ws(E'\\n', key, last_error)`), filter.text],
    ['run_at >= ?', filter.after],
    ['run_at < ?', filter.before],
  ])
  const { rows } = await db.query<ListedJob>(
    `
      select id, task_identifier as task, key, s.state, attempts, max_attempts as "maxAttempts", run_at as "runAt",
             locked_at as "lockedAt", left(last_error, ${ERROR_LENGTH}) as "lastError", created_at as "createdAt"
      from graphile_worker.jobs ${JOB_STATE}
      where s.state = $1 and (${DUE}, id) > ($2::timestamptz, $3::bigint) ${tests}
      order by ${DUE}, id limit $4`,
    values,
  )
  return rows.map((job) => ({ ...job, row: BigInt(job.id) }))
}

/**
 * Makes a waiting or failed job due now, and sets the job's count of attempts back to zero.
 * @returns null if the job does not exist, or if a worker process is running the job.
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
