import { type TaskName, type TaskPayload, taskPayloads } from '../../shared/tasks.ts'
import type { Queryable } from '../db.ts'

/**
 * A job to queue. `key` makes it unique: a job that waits under the same key is replaced. A job that runs loses its key to
 * the new one, and is then superseded.
 */
export type NewJob<Name extends TaskName = TaskName> = {
  task: Name
  payload: TaskPayload<Name>
  key: string
  runAt?: Date
}

/** A worker can lock the job of the same key at the very moment it is replaced; by the next statement it has it. */
const ATTEMPTS_MAX = 10

/**
 * Queues one job in the caller's transaction. `add_job` answers null when the job of the same key was locked by a worker
 * in between; asked again it puts a new job beside it. Without a job the caller must roll back, so this throws.
 */
export async function addJob<Name extends TaskName>(
  db: Queryable,
  job: NewJob<Name>,
): Promise<void> {
  const payload = taskPayloads[job.task].parse(job.payload)
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt++) {
    const { rows } = await db.query<{ id: string | null }>({
      name: 'add-job',
      text: `select id from graphile_worker.add_job($1, $2::json, run_at := $3::timestamptz, job_key := $4)`,
      values: [job.task, JSON.stringify(payload), job.runAt ?? null, job.key],
    })
    if (rows[0]?.id != null) return
  }
  throw new Error(`the job ${job.task} was not queued`)
}

/**
 * An SQL expression that queues one job per row of `source` inside a larger statement: `source` must offer a text column
 * `payload_id`. One call of add_jobs costs about 13 µs a job, a call of add_job 480.
 */
export function addJobsFrom(source: string, task: TaskName, payloadField: string): string {
  return `select count(*) from graphile_worker.add_jobs(array(
    select row('${task}', json_build_object('${payloadField}', s.payload_id), null, null, null,
               '${task}:' || s.payload_id, null, null)::graphile_worker.job_spec
    from ${source} s order by s.payload_id))`
}

/**
 * Deletes superseded jobs that no worker has. Graphile Worker takes the key and all attempts from a job that runs when its
 * key is added again. If the end of such a job is lost, its row stands for ever and looks like a failure.
 * @returns how many there were.
 */
export async function deleteSupersededJobs(db: Queryable): Promise<number> {
  const { rowCount } = await db.query(
    `delete from graphile_worker._private_jobs
     where key is null and locked_at is null and attempts >= max_attempts`,
  )
  return rowCount ?? 0
}
