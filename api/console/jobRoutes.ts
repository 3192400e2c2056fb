import { Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { TASK_POOL, type TaskName } from '../../shared/tasks.ts'
import { writeAudit } from '../../sql/account/audit.ts'
import { transaction } from '../../sql/db.ts'
import { countJobs, JOB_STATES } from '../../sql/operations/statistics.ts'
import { type ListedJob, listJobs, retryJob } from '../../sql/queue/jobList.ts'
import { conflict } from '../http/errors.ts'
import { RangeQuery, readRange } from '../http/input/queryTime.ts'
import { PageQuery, PartOf } from '../http/operation.ts'
import { cutPage, readPage } from '../http/page.ts'
import type { Services } from '../http/services.ts'
import { organizationActor } from './access.ts'
import { consoleOperation } from './consoleOperation.ts'

const Query = t.Composite([
  PageQuery,
  RangeQuery,
  t.Object({
    state: t.Union(JOB_STATES.map((state) => t.Literal(state))),
    task: t.Optional(t.String({ minLength: 1, maxLength: 100 })),
    q: PartOf('the key or the error'),
  }),
])
const Params = t.Object({
  jobId: t.String({ pattern: '^[1-9][0-9]{0,17}$', error: 'be the number of a job' }),
})

/** Serves the list of background jobs, and the route that makes a failed or waiting job due at once. */
export function jobRoutes({ pool }: Services) {
  return new Elysia({ prefix: '/console/api/jobs' })
    .get(
      '',
      async ({ query }) => {
        const { state, task, q } = query
        const { limit, cursor } = readPage(query)
        const filter = {
          state,
          ...readRange(query),
          ...(task === undefined ? {} : { task }),
          ...(q === undefined ? {} : { text: q }),
        }
        const [counts, found] = await Promise.all([
          countJobs(pool),
          listJobs(pool, { ...filter, cursor, limit: limit + 1 }),
        ])
        const { page, next } = cutPage(found, limit, ({ runAt }) => runAt)
        return {
          counts: counts.map(({ task, state, count }) => ({
            task,
            pool: TASK_POOL[task as TaskName] ?? null,
            state,
            count,
          })),
          jobs: page.map(toView),
          ...next,
        }
      },
      { query: Query, detail: consoleOperation('operator') },
    )
    .post(
      '/:jobId/retry',
      async ({ request, params }) => {
        const { jobId } = params
        const retried = await transaction(pool, async (db) => {
          const job = await retryJob(db, jobId)
          await writeAudit(db, organizationActor(request), {
            action: 'job.retry',
            subject: jobId,
            ...(job === null ? {} : { detail: job.task }),
            outcome: job === null ? 'refused' : 'ok',
          })
          return job
        })
        if (retried === null) throw conflict('The job has ended, or a worker has it at this moment')
        return { jobId, task: retried.task }
      },
      { params: Params, detail: consoleOperation('operator') },
    )
}

const toView = (job: ListedJob) => ({
  jobId: job.id,
  task: job.task,
  pool: TASK_POOL[job.task as TaskName] ?? null,
  key: job.key,
  state: job.state,
  attempts: job.attempts,
  maxAttempts: job.maxAttempts,
  runAt: job.runAt.toISOString(),
  lockedAt: job.lockedAt?.toISOString() ?? null,
  lastError: job.lastError,
  createdAt: job.createdAt.toISOString(),
})
