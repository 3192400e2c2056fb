/**
 * Tests that the housekeeping continues after a failed step, and that it does not make up for missed sweeps (regular
 * runs).
 */
import { afterEach, beforeEach, expect, test } from 'bun:test'
import pino from 'pino'
import { startMaintenance } from '../../../workers/operations/maintenance.ts'
import { startPostgresProxy } from '../../support/database/postgresProxy.ts'
import { rawMail, receive } from '../../support/mail/mailRows.ts'
import { messagePath, startTestService, type TestService } from '../../support/service.ts'
import { waitFor } from '../../support/waitFor.ts'
import '../../support/long.ts'

let service: TestService
beforeEach(async () => {
  service = await startTestService({
    smtp: false,
    workers: false,
    env: { RETENTION_MAIL_DAYS: '30' },
  })
})
afterEach(() => service[Symbol.asyncDispose]())

/** Renames a table. One step of the housekeeping then fails in each sweep. */
const breakStep = () =>
  service.database.pool.query('alter table mta_sts_policies rename to absent_policies')

/** Starts the housekeeping, and returns it with the lines of its log. */
function startLogged(url = service.database.url) {
  const lines: string[] = []
  const log = pino({ level: 'warn' }, { write: (line: string) => void lines.push(line) })
  return { lines, maintenance: startMaintenance(url, service.config.retention, log) }
}

/** Adds a dead worker pool, and waits until the housekeeping has released its jobs. */
async function releaseDeadPool(): Promise<void> {
  const { pool } = service.database
  await pool.query(
    `insert into worker_pools (graphile_pool_id, pool_name, registered_at)
     values ('worker-dead', 'vault', clock_timestamp() - interval '1 hour')`,
  )
  await waitFor('the dead pool to be released', async () => {
    const { rowCount } = await pool.query(
      `select from worker_pools where graphile_pool_id = 'worker-dead'`,
    )
    return rowCount === 0
  })
}

test('old mail is deleted even if another step of the regular housekeeping always fails', async () => {
  const agent = await service.newAgent()
  const { pool } = service.database
  await breakStep()
  const { messageId } = await receive(pool, agent.project.id, rawMail({ text: 'cinnamon' }))
  await pool.query(`update messages set created_at = created_at - interval '31 days'`)
  const { lines, maintenance } = startLogged()
  try {
    await waitFor(
      'the old mail to go',
      async () => (await agent.get(messagePath(messageId))).status === 404,
    )
    expect(lines.join('')).toContain('mta_sts_policies')
  } finally {
    await maintenance.stop()
  }
})

test('if the housekeeping is stopped while it waits for the database, it ends after the current sweep (regular run)', async () => {
  await breakStep()
  const client = await service.database.pool.connect()
  try {
    await client.query('begin')
    await client.query('lock table statistics_minutes in access exclusive mode')
    const { lines, maintenance } = startLogged()
    // The timer for the release of jobs has the same period as the sweeps of the housekeeping, so more sweeps are due
    // while the first sweep waits.
    await releaseDeadPool()
    const stopped = maintenance.stop()
    await client.query('rollback')
    await stopped
    expect(lines.filter((line) => line.includes('mta_sts_policies'))).toHaveLength(1)
  } finally {
    client.release()
  }
})

test('while a step of the housekeeping waits for a lock, the jobs of a dead worker pool are released', async () => {
  const client = await service.database.pool.connect()
  try {
    await client.query('begin')
    await client.query('lock table statistics_minutes in access exclusive mode')
    const { maintenance } = startLogged()
    await releaseDeadPool()
    const stopped = maintenance.stop()
    await client.query('rollback')
    await stopped
  } finally {
    client.release()
  }
})

test('the minute statistics of three days ago are added up to hour statistics before the minutes are deleted', async () => {
  const { pool } = service.database
  await pool.query(
    `insert into statistics_minutes
       (minute, mail_in, mail_out, payments, paid_atomic, webhooks_ok, webhooks_failed, jobs)
     values (date_trunc('minute', clock_timestamp() - interval '3 days'), 7, 0, 0, 0, 0, 0, '{}')`,
  )
  const { maintenance } = startLogged()
  try {
    await waitFor('the minute to go', async () => {
      const { rowCount } = await pool.query('select from statistics_minutes where mail_in = 7')
      return rowCount === 0
    })
  } finally {
    await maintenance.stop()
  }
  const { rows } = await pool.query('select mail_in from statistics_hours where mail_in > 0')
  expect(rows).toEqual([{ mail_in: 7 }])
})

test('the housekeeping deletes a quote of a price a day after its end, and keeps each purchase and each unfinished quote', async () => {
  const agent = await service.newAgent()
  const { pool } = service.database
  const ask = async (kind: 'pay' | 'quote', endedAt: string | null) => {
    const { body } = await agent.post(
      `/v0/purse/${kind}?timeout=0`,
      { url: 'https://seller.example/', ...(kind === 'pay' ? { maxAmount: '1' } : {}) },
      kind === 'pay' ? { 'idempotency-key': 'one' } : {},
    )
    await pool.query(
      `update purchases set ended_at = clock_timestamp() - $2::interval, created_at = created_at - interval '9 days',
         state = case when $2 is null then state else 'failed' end where id = $1`,
      [body.purchaseId, endedAt],
    )
    return `/v0/purse/payments/${body.purchaseId}?timeout=0`
  }
  const old = await ask('quote', '25 hours')
  const kept = [
    await ask('quote', '23 hours'),
    await ask('quote', null),
    await ask('pay', '8 days'),
  ]
  const { maintenance } = startLogged()
  try {
    await waitFor('the old quote to go', async () => (await agent.get(old)).status === 404)
  } finally {
    await maintenance.stop()
  }
  for (const one of kept) expect((await agent.get(one)).status).toBeWithin(200, 203)
})

test('a worker pool that looked dead before an outage of the database gets its full waiting time again after the outage', async () => {
  const { pool, url } = service.database
  await using proxy = await startPostgresProxy(url)
  proxy.refuse()
  await pool.query(
    `insert into worker_pools (graphile_pool_id, pool_name, registered_at, suspect_since)
     values ('worker-away', 'vault', clock_timestamp() - interval '1 hour', clock_timestamp() - interval '1 minute')`,
  )
  const suspectedForS = async (): Promise<number | undefined> => {
    const { rows } = await pool.query<{ s: number }>(
      `select extract(epoch from clock_timestamp() - suspect_since)::float8 as s from worker_pools
       where graphile_pool_id = 'worker-away'`,
    )
    return rows[0]?.s
  }
  const { lines, maintenance } = startLogged(proxy.url)
  try {
    await waitFor('a failed round', () =>
      lines.some((line) => line.includes('housekeeping failed')),
    )
    proxy.accept()
    await waitFor('the next round', async () => ((await suspectedForS()) ?? 0) < 30)
    expect(await suspectedForS()).toBeNumber()
    await waitFor('the end of the waiting time', async () => (await suspectedForS()) === undefined)
  } finally {
    await maintenance.stop()
  }
})
