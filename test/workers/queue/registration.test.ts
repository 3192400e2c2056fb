import { expect, test } from 'bun:test'
import { transaction } from '../../../sql/db.ts'
import { addJob } from '../../../sql/queue/jobs.ts'
import { releaseJobsOfDeadPools } from '../../../sql/queue/workerPools.ts'
import { startPool } from '../../../workers/queue/pool.ts'
import type { PoolSettings } from '../../../workers/queue/runner.ts'
import type { Task } from '../../../workers/queue/task.ts'
import { createTestDatabase } from '../../support/database/database.ts'
import { MOMENTS, startPostgresProxy } from '../../support/database/postgresProxy.ts'
import { silentLog } from '../../support/logs.ts'
import { RECOVERY_LIMIT_MS } from '../../support/process/alone.ts'
import { waitFor } from '../../support/waitFor.ts'
import '../../support/whole.ts'

/**
 * Sets how many round trips to the database the test tries. In each run, the test cuts the connection at another round
 * trip. A start (schema, task ids, fetch, listener, registration) and some later work need fewer round trips than this.
 */
const ROUND_TRIPS_OF_START = 16

/** Matches the query for task ids, which Graphile Worker sends only once, when it fetches jobs for the first time. */
const READS_TASK_IDS = /_private_tasks/

type VerifyDomain = Task<'verify_domain'>

const settings = (databaseUrl: string, verifyDomain: VerifyDomain): PoolSettings => ({
  name: 'inbound',
  databaseUrl,
  concurrency: 4,
  pollIntervalMs: 100,
  recoveryIntervalMs: 100,
  tasks: () => ({ verify_domain: verifyDomain }),
})

/** Starts a worker pool like the supervisor, which tries again if the start fails. */
const startUntilUp = (started: PoolSettings) =>
  waitFor('the pool to start', () => startPool(started, silentLog).catch(() => null))

const queue = (pool: Parameters<typeof transaction>[0], domain: string) =>
  transaction(pool, (db) => addJob(db, { task: 'verify_domain', payload: { domain }, key: domain }))

/** Returns the number of jobs that worker pools have fetched and not finished. */
async function countFetched(pool: Parameters<typeof transaction>[0]): Promise<number | null> {
  const { rowCount } = await pool.query(
    'select from graphile_worker.jobs where locked_at is not null',
  )
  return rowCount
}

for (const moment of MOMENTS) {
  test(`if its database connection is cut ${moment} any round trip of its start, a worker pool starts, works and registers once`, async () => {
    await using database = await createTestDatabase()
    await using proxy = await startPostgresProxy(database.url)
    for (let number = 1; number <= ROUND_TRIPS_OF_START; number++) {
      const seen: string[] = []
      const domain = `${moment}-${number}.example`
      proxy.cutAt(number, moment, (sent) => !READS_TASK_IDS.test(sent))
      const pool = await startUntilUp(
        settings(proxy.url, async (job) => void seen.push(job.domain)),
      )
      await queue(database.pool, domain)
      await waitFor(
        `the job, after a cut ${moment} ${proxy.cutStatement}`,
        () => seen[0] === domain,
      )
      await waitFor('one registration', async () => {
        const { rows } = await database.pool.query('select from worker_pools')
        return rows.length === 1
      })
      await pool.stop()
      proxy.disarm()
      await database.pool.query('delete from worker_pools')
    }
  })
}

test('if its first attempt to fetch jobs fails, a worker pool still works within 15 s', async () => {
  await using database = await createTestDatabase()
  await using proxy = await startPostgresProxy(database.url)
  const seen: string[] = []
  proxy.cutAt(1, 'before', (sent) => READS_TASK_IDS.test(sent))
  await queue(database.pool, 'first.example')
  const pool = await startPool(
    settings(proxy.url, async ({ domain }) => void seen.push(domain)),
    silentLog,
  )
  await waitFor('the job', () => seen.length === 1, RECOVERY_LIMIT_MS)
  expect(proxy.cutStatement).toMatch(READS_TASK_IDS)
  await pool.stop()
})

test('if another worker pool has taken a job that the first pool had fetched but not started, the first pool does not run it', async () => {
  await using database = await createTestDatabase()
  await using proxy = await startPostgresProxy(database.url)
  const runs: string[] = []
  const gate = Promise.withResolvers<void>()
  const first = await startPool(
    {
      ...settings(proxy.url, async ({ domain }) => {
        runs.push(`first ${domain}`)
        await gate.promise
      }),
      concurrency: 1,
    },
    silentLog,
  )
  await queue(database.pool, 'held.example')
  await waitFor('the first job to run', () => runs.length === 1)
  await queue(database.pool, 'waiting.example')
  await waitFor(
    'the second job to be fetched',
    async () => (await countFetched(database.pool)) === 2,
  )
  // The first worker pool loses the database until it counts as dead. The second worker pool then gets the jobs of the
  // first pool.
  proxy.refuse()
  await waitFor('the first pool to count as dead', async () => {
    const dead = await releaseJobsOfDeadPools(database.pool)
    return dead.length > 0
  })
  const second = await startPool(
    settings(database.url, async ({ domain }) => void runs.push(`second ${domain}`)),
    silentLog,
  )
  await waitFor('the second pool to have done both', () => runs.length === 3)
  proxy.accept()
  gate.resolve()
  await waitFor('no job to be left', async () => {
    const { rows } = await database.pool.query('select from graphile_worker.jobs')
    return rows.length === 0
  })
  await queue(database.pool, 'last.example')
  await waitFor('the last job', () => runs.some((run) => run.endsWith('last.example')))
  expect(runs).not.toContain('first waiting.example')
  await Promise.all([first.stop(), second.stop()])
})

test('a worker pool that cannot register itself runs no job that it fetches, because other worker pools run the job', async () => {
  await using database = await createTestDatabase()
  await using proxy = await startPostgresProxy(database.url)
  const runs: string[] = []
  const gate = Promise.withResolvers<void>()
  const first = await startPool(
    settings(proxy.url, async ({ domain }) => {
      runs.push(`first ${domain}`)
      await gate.promise
    }),
    silentLog,
  )
  const registered = async () =>
    (
      await database.pool.query(
        `select from pg_stat_activity where application_name like '%(alive)'`,
      )
    ).rowCount === 1
  await waitFor('the first pool to be registered', registered)
  proxy.refuse((startup) => startup.includes('(alive)'))
  await waitFor('the first pool to lose its registration', async () => !(await registered()))
  await queue(database.pool, 'one.example')
  await waitFor(
    'the first pool to fetch the job',
    async () => (await countFetched(database.pool)) === 1,
  )
  await waitFor('the first pool to count as dead', async () => {
    const dead = await releaseJobsOfDeadPools(database.pool)
    return dead.length > 0
  })
  const second = await startPool(
    settings(database.url, async ({ domain }) => void runs.push(`second ${domain}`)),
    silentLog,
  )
  // The first worker pool may fetch the job repeatedly, so the test releases it repeatedly, as the housekeeping does.
  await waitFor('the second pool to have done the job', async () => {
    await releaseJobsOfDeadPools(database.pool)
    return runs.includes('second one.example')
  })
  proxy.accept()
  gate.resolve()
  await queue(database.pool, 'last.example')
  await waitFor('the last job', () => runs.some((run) => run.endsWith('last.example')))
  expect(runs.filter((run) => run.endsWith('one.example'))).toEqual(['second one.example'])
  await Promise.all([first.stop(), second.stop()])
})

test('a worker pool that registers again before it counts as dead runs the job that it has fetched, at the first attempt', async () => {
  await using database = await createTestDatabase()
  await using proxy = await startPostgresProxy(database.url)
  const attempts: number[] = []
  const pool = await startPool(
    settings(proxy.url, async () => {
      const { rows } = await database.pool.query('select attempts from graphile_worker.jobs')
      attempts.push(...rows.map((job) => job.attempts))
    }),
    silentLog,
  )
  const isRegistered = async () =>
    (
      await database.pool.query(
        `select from pg_stat_activity where application_name like '%(alive)'`,
      )
    ).rowCount === 1
  await waitFor('the pool to be registered', isRegistered)
  proxy.refuse((startup) => startup.includes('(alive)'))
  await waitFor('the pool to lose its registration', async () => !(await isRegistered()))
  await queue(database.pool, 'one.example')
  await waitFor('the pool to fetch the job', async () => (await countFetched(database.pool)) === 1)
  proxy.accept()
  await waitFor('the job to run', () => attempts.length > 0)
  await pool.stop()
  expect(attempts).toEqual([1])
})

test('a worker pool whose job does not end stops within its time limit, and keeps the job locked until its process ends', async () => {
  await using database = await createTestDatabase()
  const gate = Promise.withResolvers<void>()
  let runs = 0
  const pool = await startPool(
    settings(database.url, async () => {
      runs++
      await gate.promise
    }),
    silentLog,
  )
  await queue(database.pool, 'endless.example')
  await waitFor('the job to run', () => runs === 1)
  await pool.stop()
  expect(await countFetched(database.pool)).toBe(1)
  expect((await database.pool.query('select from worker_pools')).rowCount).toBe(1)
  gate.resolve()
  await waitFor('the end of the job', async () => (await countFetched(database.pool)) === 0)
}, 60_000)
