/** Tests how jobs end whose worker pool counted as dead, or whose registration disappeared. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import pino from 'pino'
import { BlobsAwayError } from '../../../shared/blobs/objectStore.ts'
import { addJob } from '../../../sql/queue/jobs.ts'
import {
  forceUnlock,
  registerPool,
  releaseJobsOfDeadPools,
} from '../../../sql/queue/workerPools.ts'
import { startPool } from '../../../workers/queue/pool.ts'
import type { Task } from '../../../workers/queue/task.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database/database.ts'
import { silentLog } from '../../support/logs.ts'
import { waitFor } from '../../support/waitFor.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database[Symbol.asyncDispose]())

const start = (verifyDomain: Task<'verify_domain'>) =>
  startPool(
    {
      name: 'inbound',
      databaseUrl: database.url,
      concurrency: 2,
      pollIntervalMs: 100,
      tasks: () => ({ verify_domain: verifyDomain }),
    },
    silentLog,
  )

const queue = (domain: string, more: { runAt?: Date; priority?: number } = {}) =>
  addJob(database.pool, { task: 'verify_domain', payload: { domain }, key: domain, ...more })

async function jobOf(domain: string) {
  const { rows } = await database.pool.query(
    'select run_at, priority, locked_by from graphile_worker.jobs where key = $1',
    [domain],
  )
  return rows[0]
}

async function rowsOf(graphilePoolId?: string) {
  const { rows } = await database.pool.query<{ id: number; graphile_pool_id: string }>(
    `select id, graphile_pool_id from worker_pools where $1::text is null or graphile_pool_id = $1 order by id`,
    [graphilePoolId ?? null],
  )
  return rows
}

test('if another process released a running job, the retry that its own task queued stays in the queue', async () => {
  const domain = 'retry.example'
  const runAt = new Date(Date.now() + 3_600_000)
  let runs = 0
  const pool = await start(async () => {
    runs++
    await forceUnlock(database.pool, [(await jobOf(domain)).locked_by])
    await queue(domain, { runAt })
  })
  await queue(domain)
  await waitFor('the run', () => runs === 1)
  await pool.stop()
  expect(await jobOf(domain)).toMatchObject({ run_at: runAt, locked_by: null })
})

test('if another process released a running job, the job is deleted after its task has succeeded', async () => {
  const domain = 'released.example'
  let runs = 0
  const pool = await start(async () => {
    runs++
    if (runs === 1) await forceUnlock(database.pool, [(await jobOf(domain)).locked_by])
  })
  await queue(domain)
  await waitFor('the end of the job', async () => runs > 0 && (await jobOf(domain)) === undefined)
  await pool.stop()
})

test('if the object store is unreachable, the retry of a job keeps its priority', async () => {
  const domain = 'store.example'
  const pool = await start(async () => {
    throw new BlobsAwayError('the object store is away')
  })
  const dueAt = new Date()
  await queue(domain, { priority: 7, runAt: dueAt })
  await waitFor('the retry', async () => (await jobOf(domain)).run_at > dueAt)
  expect((await jobOf(domain)).priority).toBe(7)
  await pool.stop()
})

test('the cleanup of a pool’s old registration does not delete the pool’s new registration', async () => {
  const graphilePoolId = 'again'
  const { release } = await registerPool({
    databaseUrl: database.url,
    graphilePoolId,
    poolName: 'inbound',
    onLost: () => {},
  })
  const [now] = await rowsOf(graphilePoolId)
  await database.pool.query(
    `insert into worker_pools (id, graphile_pool_id, pool_name, registered_at, suspect_since) overriding system value
     values (-1, $1, 'inbound', now() - interval '1 minute', now() - interval '1 minute')`,
    [graphilePoolId],
  )
  expect(await releaseJobsOfDeadPools(database.pool)).not.toContain(graphilePoolId)
  expect(await rowsOf(graphilePoolId)).toContainEqual(now!)
  await release()
  await waitFor('the end of the old registration', async () => {
    await releaseJobsOfDeadPools(database.pool)
    return (await rowsOf(graphilePoolId)).length === 0
  })
})

test('a worker pool whose registration is deleted registers again', async () => {
  const pool = await start(async () => {})
  const [before] = await waitFor('the registration', async () => {
    const rows = await rowsOf()
    return rows.length === 1 ? rows : null
  })
  await database.pool.query('delete from worker_pools')
  const [after] = await waitFor('the new registration', async () => {
    const rows = await rowsOf()
    return rows.length === 1 ? rows : null
  })
  expect(after!.graphile_pool_id).toBe(before!.graphile_pool_id)
  await pool.stop()
  expect(await rowsOf()).toEqual([])
})

test('if a job is still running when its worker pool ends, the job’s end is logged, and a database error does not end the process', async () => {
  const own = await createTestDatabase()
  const lines: string[] = []
  const log = pino({ level: 'warn' }, { write: (line: string) => void lines.push(line) })
  const started = Promise.withResolvers<void>()
  const hold = Promise.withResolvers<void>()
  const pool = await startPool(
    {
      ...{ name: 'inbound', databaseUrl: own.url, concurrency: 2, pollIntervalMs: 100 },
      drainLimitMs: 10,
      tasks: () => ({
        async verify_domain() {
          started.resolve()
          await hold.promise
        },
      }),
    },
    log,
  )
  await addJob(own.pool, { task: 'verify_domain', payload: { domain: 'slow' }, key: 'slow' })
  await started.promise
  await pool.stop()
  await own[Symbol.asyncDispose]()
  hold.resolve()
  await waitFor('the log entry', () => lines.some((line) => line.includes('was not recorded')))
})
