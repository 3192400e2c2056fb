import { traceparent } from '../../shared/process/workContext.ts'
import { type TaskName, type TaskPayload, taskPayloads } from '../../shared/tasks.ts'
import type { Queryable } from '../db.ts'

/**
 * Describes a job that a caller wants to queue (docs/decisions/postgres-queue.md). A job with a `key` replaces a
 * waiting job with the same key. If such a job is already running, the key moves to the new job, and the running job
 * counts as superseded (replaced).
 */
export type NewJob<Name extends TaskName = TaskName> = {
  task: Name
  payload: TaskPayload<Name>
  key: string
  runAt?: Date
  /**
   * Holds the number of milliseconds after which the job runs, by the database's clock. A time that this process
   * computes from its own clock would be wrong if the clocks differ.
   */
  inMs?: number
  /** Holds the priority of the job. Jobs with the lowest priority number run first. The default priority is 0. */
  priority?: number
  /** Tells whether a waiting job with the same key keeps its run time, if the new job would run later. */
  keepsTime?: boolean
}

/**
 * Writes the payload of a job as JSON. The payload also contains the caller's trace context, so that the job continues
 * the trace of the caller.
 */
export function jobPayload<Name extends TaskName>(task: Name, payload: TaskPayload<Name>): string {
  const trace = traceparent()
  return JSON.stringify({
    ...taskPayloads[task].parse(payload),
    ...(trace === null ? {} : { traceparent: trace }),
  })
}

/** Queues one job in the caller's transaction. */
export async function addJob<Name extends TaskName>(
  db: Queryable,
  job: NewJob<Name>,
): Promise<void> {
  await db.query({
    name: 'add-job',
    text: `select queue_jobs(
      array[row($1, $2::json, null, coalesce($3::timestamptz, clock_timestamp() + $7::float8 * interval '1 millisecond'),
                null, $4, $5, null)::graphile_worker.job_spec], $6)`,
    values: [
      job.task,
      jobPayload(job.task, job.payload),
      job.runAt ?? null,
      job.key,
      job.priority ?? null,
      job.keepsTime === true,
      job.inMs ?? null,
    ],
  })
}

/**
 * Writes an SQL expression for use inside a larger statement. It queues one job for each row of the query `source`,
 * which must have a text column `payload_id`. One call of add_jobs takes about 13 µs for each job, but a call of
 * add_job takes 480 µs.
 * @param order is the SQL expression that orders the jobs. It may use the row `s` of the query `source`.
 */
export function addJobsFrom(
  source: string,
  task: TaskName,
  payloadField: string,
  order = 's.payload_id',
): string {
  return `select queue_jobs(array(
    select row('${task}', json_build_object('${payloadField}', s.payload_id), null, null, null,
               '${task}:' || s.payload_id, null, null)::graphile_worker.job_spec
    from ${source} s order by ${order}))`
}

/**
 * Writes an SQL expression for use inside a larger statement. It queues jobs of several tasks. The query `source` must
 * have the columns `task`, `key` and `payload`.
 * @param options holds SQL expressions, which may use the row `s` of the query `source`. If `runAt` is `null`, the jobs
 * run at once. If `priority` is `null`, the jobs have the priority 0.
 */
export const addPayloadsFrom = (
  source: string,
  { runAt = 'null', priority = 'null' } = {},
): string =>
  `select queue_jobs(array(
    select row(s.task, s.payload, null, ${runAt}, null, s.key, ${priority}, null)::graphile_worker.job_spec from ${source} s))`

/**
 * Writes the SQL condition that no job with a given key will run, because the job is missing or has failed for good.
 * Queries that search for work without a job use this condition. A job fails for good after its last attempt, for
 * example while a master key is missing. A job that is running its last attempt still counts as a job.
 * @param key is an SQL expression.
 */
export const hasNoJob = (key: string): string =>
  `not exists (select from graphile_worker._private_jobs j
               where j.key = ${key} and (j.attempts < j.max_attempts or j.locked_at is not null))`

/**
 * Deletes superseded jobs that no worker process is running. If a caller adds the key of a running job again, Graphile
 * Worker removes the key from the running job and raises its attempts to the maximum. If nobody then records the end of
 * this job, its row stays for ever and looks like a failed job.
 * @returns the number of deleted superseded jobs.
 */
export async function deleteSupersededJobs(db: Queryable): Promise<number> {
  const { rowCount } = await db.query(
    `delete from graphile_worker._private_jobs
     where key is null and locked_at is null and attempts >= max_attempts`,
  )
  return rowCount ?? 0
}

/**
 * Deletes jobs that have succeeded in a Graphile Worker pool. The SQL locks the jobs in the order of their ids, because
 * other statements also lock several of them. The SQL keeps a job that another pool has fetched. It also keeps a job
 * that was unlocked during its run and queued again, for example by its own task. The SQL recognises such a job, which
 * has the same id, by its count of zero attempts.
 */
export const DELETE_DONE_JOBS = {
  name: 'delete-done-jobs',
  text: `
    with done as materialized (
      select id from graphile_worker._private_jobs
      where id = any ($1::bigint[]) and (locked_by = $2 or locked_by is null and attempts > 0)
      order by id for update
    )
    delete from graphile_worker._private_jobs j using done where j.id = done.id`,
}
