import { expect, test } from 'bun:test'
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { releaseJobsOfDeadPools } from '../../sql/queue/workerPools.ts'
import { startSink } from '../support/mail/sink.ts'
import { RECOVERY_LIMIT_MS } from '../support/process/alone.ts'
import { startTestService } from '../support/service.ts'
import { waitFor } from '../support/waitFor.ts'

const ROOT = join(import.meta.dir, '../..')

test('if a worker is killed while it sends a mail, another worker sends the mail within 15 s with the same Message-ID', async () => {
  await using sink = await startSink()
  await using service = await startTestService({ smtp: false, workers: false })
  const agent = await service.newAgent()
  const env = {
    ...process.env,
    DATABASE_URL: service.database.url,
    SMTP_RELAY_URL: sink.url,
    MAIL_DOMAIN: 'mail.test',
    DATA_DIR: service.config.dataDir,
    LOG_LEVEL: 'silent',
  }
  const startWorker = () =>
    spawn(process.execPath, ['workers/main.ts', '--pool', 'mail'], {
      cwd: ROOT,
      env,
      stdio: 'ignore',
    })

  let worker = startWorker()
  let arrived = 0
  sink.refuseData = () => {
    if (++arrived > 1) return null
    worker.kill('SIGKILL')
    return { code: 451, message: 'nobody hears this' }
  }
  const { body } = await agent.post('/v0/messages/send', {
    to: ['a@example.com'],
    subject: 's',
    text: 't',
  })
  await new Promise((resolve) => worker.once('exit', resolve))
  const pools = async () => {
    const { rows } = await service.database.pool.query('select graphile_pool_id from worker_pools')
    return rows.map((row) => row.graphile_pool_id as string)
  }
  const dead = await pools()
  worker = startWorker()
  try {
    // The documentation promises 15 s only for workers that are already running, so the time that a process needs to
    // start does not count.
    await waitFor('the new worker', async () => (await pools()).some((id) => !dead.includes(id)))
    const mail = await waitFor('the message at the sink', () => sink.mails[0], RECOVERY_LIMIT_MS)
    expect(mail.email.messageId).toBe(body.messageId)
  } finally {
    worker.kill('SIGTERM')
    expect(await new Promise((resolve) => worker.once('exit', resolve))).toBe(0)
  }
  const { rows } = await service.database.pool.query(
    'select count(*)::int as n from graphile_worker.jobs',
  )
  expect(rows[0].n).toBe(0)
  expect(sink.mails).toHaveLength(1)
})

test('while dead worker pools are cleaned up, a running worker pool keeps its registration and its jobs', async () => {
  await using service = await startTestService({ smtp: false })
  const { pool } = service.database
  const registered = await waitFor('the registration', async () => {
    const { rows } = await pool.query('select graphile_pool_id from worker_pools')
    return rows[0]?.graphile_pool_id as string | undefined
  })
  // The test changes the job so that the live worker pool seems to have locked it a minute ago.
  await pool.query(
    `select graphile_worker.add_job('purge_project', '{}', run_at := now() + interval '1 day')`,
  )
  await pool.query(
    `update graphile_worker._private_jobs set locked_by = $1, locked_at = now() - interval '1 minute'`,
    [registered],
  )
  await pool.query(`update worker_pools set registered_at = now() - interval '1 minute'`)
  for (let n = 0; n < 3; n++) expect(await releaseJobsOfDeadPools(pool)).toEqual([])
  await pool.query(`update graphile_worker._private_jobs set locked_by = 'pool-of-nobody'`)
  expect(await releaseJobsOfDeadPools(pool)).toEqual(['pool-of-nobody'])
  const { rows } = await pool.query('select locked_by from graphile_worker.jobs')
  expect(rows).toEqual([{ locked_by: null }])
})

test('if its database row is deleted, a worker pool registers again under the same id, and keeps its jobs', async () => {
  await using service = await startTestService({ smtp: false, pools: ['inbound'] })
  const { pool } = service.database
  const registrations = async () =>
    (await pool.query('select id, graphile_pool_id from worker_pools order by id')).rows
  const [before] = await waitFor('the registration', async () => {
    const rows = await registrations()
    return rows.length === 1 ? rows : null
  })
  await pool.query(
    `select pg_terminate_backend(pid) from pg_stat_activity
     where datname = current_database() and application_name like '%(alive)'`,
  )
  const [after] = await waitFor('the next registration', async () => {
    const rows = await registrations()
    return rows.length === 1 && rows[0].id !== before.id ? rows : null
  })
  expect(after.graphile_pool_id).toBe(before.graphile_pool_id)
  // The test adds an old database row of the worker pool, because a worker process that dies during its start leaves
  // such a row.
  await pool.query(
    `insert into worker_pools (graphile_pool_id, pool_name, registered_at, suspect_since)
     values ($1, 'inbound', now() - interval '1 minute', now() - interval '1 minute')`,
    [after.graphile_pool_id],
  )
  await pool.query(`update worker_pools set registered_at = now() - interval '1 minute'`)
  expect(await releaseJobsOfDeadPools(pool)).toEqual([])
})

test('after an outage of the database, a worker pool that seems dead gets a full new grace period', async () => {
  await using service = await startTestService({ smtp: false, workers: false })
  const { pool } = service.database
  await pool.query(
    `insert into worker_pools (graphile_pool_id, pool_name, registered_at, suspect_since)
     values ('suspect', 'outbound', now() - interval '1 minute', now() - interval '1 minute')`,
  )
  expect(await releaseJobsOfDeadPools(pool, true)).toEqual([])
  expect(await releaseJobsOfDeadPools(pool)).toEqual([])
  await pool.query(`update worker_pools set suspect_since = now() - interval '1 minute'`)
  expect(await releaseJobsOfDeadPools(pool)).toEqual(['suspect'])
})
