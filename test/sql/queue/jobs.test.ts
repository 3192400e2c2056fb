import { afterAll, beforeAll, expect, test } from 'bun:test'
import { type Client, type Queryable, transaction } from '../../../sql/db.ts'
import { addJob, addPayloadsFrom, deleteSupersededJobs } from '../../../sql/queue/jobs.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database/database.ts'
import { waitFor } from '../../support/waitFor.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database[Symbol.asyncDispose]())

const projectId = `prj_${'0'.repeat(24)}`
const job = { task: 'purge_project', payload: { projectId }, key: 'same' } as const

/** Lists the two ways to queue a job: with addJob alone, and with addPayloadsFrom inside a larger SQL statement. */
const WAYS: Record<string, (db: Queryable) => Promise<unknown>> = {
  addJob: (db) => addJob(db, job),
  addPayloadsFrom: (db) =>
    db.query(
      `with due as (select 'purge_project' as task, json_build_object('projectId', $1::text) as payload, 'same' as key)
       ${addPayloadsFrom('due')}`,
      [projectId],
    ),
}

test.each(Object.keys(WAYS))(
  '%s: a replaced job is still queued when a worker locks the job during its replacement',
  async (way) => {
    const { pool } = database
    await pool.query('delete from graphile_worker._private_jobs')
    await addJob(pool, job)
    const worker: Client = await pool.connect()
    await worker.query('begin')
    await worker.query(
      `update graphile_worker._private_jobs set locked_at = now(), locked_by = 'worker', attempts = 1 where key = 'same'`,
    )
    const replaced = transaction(pool, WAYS[way]!)
    await waitFor('the replacement to wait for the row', async () => {
      const { rows } = await pool.query(
        `select count(*)::int as n from pg_locks where not granted and database = (select oid from pg_database where datname = current_database()) or not granted and locktype = 'transactionid'`,
      )
      return rows[0].n > 0
    })
    await worker.query('commit')
    worker.release()
    await replaced
    const { rows } = await pool.query(`select locked_by, key from graphile_worker.jobs order by id`)
    expect(rows).toEqual([
      { locked_by: 'worker', key: null },
      { locked_by: null, key: 'same' },
    ])
  },
)

test('a job that was replaced while it ran is deleted, and a job that failed permanently is kept', async () => {
  const { pool } = database
  const locks = `update graphile_worker._private_jobs set locked_at = now(), locked_by = 'other'`
  await addJob(pool, { ...job, key: 'superseded' })
  await addJob(pool, { ...job, key: 'failed' })
  await pool.query(`${locks}, attempts = 1 where key = 'superseded'`)
  await pool.query(`${locks}, attempts = max_attempts where key = 'failed'`)
  await addJob(pool, { ...job, key: 'superseded' })
  await deleteSupersededJobs(pool)
  await pool.query('select graphile_worker.force_unlock_workers(array[$1])', ['other'])
  expect(await deleteSupersededJobs(pool)).toBe(1)
  const { rows } = await pool.query(
    `select key, attempts from graphile_worker.jobs where key in ('superseded', 'failed') order by key`,
  )
  expect(rows).toEqual([
    { key: 'failed', attempts: 25 },
    { key: 'superseded', attempts: 0 },
  ])
})

test('if a job is replaced many times at once, only one job is left', async () => {
  const { pool } = database
  await pool.query('select graphile_worker.force_unlock_workers(array[$1])', ['worker'])
  await Promise.all(
    Array.from({ length: 50 }, () =>
      transaction(pool, (db) => addJob(db, { ...job, key: 'many' })),
    ),
  )
  const { rows } = await pool.query(
    `select count(*)::int as n from graphile_worker.jobs where key = 'many'`,
  )
  expect(rows[0].n).toBe(1)
})

test('a job is refused if its payload does not fit its task', async () => {
  const wrong = addJob(database.pool, {
    task: 'purge_project',
    payload: { projectId: 'x' },
    key: 'wrong',
  })
  await expect(wrong).rejects.toThrow()
})
