/** Tests that a purge of a deleted project deletes only the rows of this project. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { beginIdempotent } from '../../../../sql/account/idempotency.ts'
import { deleteProject } from '../../../../sql/account/projects/deleteProject.ts'
import { findErasure } from '../../../../sql/account/projects/erasure.ts'
import {
  MAIL_TABLES,
  OWN_TABLES,
  purgeProject,
  requeueLostPurges,
} from '../../../../sql/account/projects/purgeProject.ts'
import { updateRetention } from '../../../../sql/account/projects/retention.ts'
import { createRule } from '../../../../sql/mail/inbound/emailRules.ts'
import { deleteMessage } from '../../../../sql/mail/messages/deleteMail.ts'
import { acceptIntents } from '../../../../sql/mail/outbound/acceptIntents.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import { newDelivery } from '../../../support/events/eventRows.ts'
import { newIntent, newSent, readRaw, receive, takeIn } from '../../../support/mail/mailRows.ts'
import { dropJobs, failJobs, newProject, newSettled, row } from '../../../support/till/tillRows.ts'

let database: TestDatabase
let pool: TestDatabase['pool']

beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
})
afterAll(() => database[Symbol.asyncDispose]())

const KEPT = [
  // After a project is deleted, the service keeps the rows of these tables for audits.
  ...['payments', 'seller_endpoints', 'api_keys'],
  // The service keeps the row of a project in `project_retention` as long as it keeps the payments of the project.
  'project_retention',
  // The rows of these tables are deleted together with the messages and threads to which they belong, so the purge need
  // not name the tables.
  ...['message_labels', 'outbound_mails', 'thread_identifiers'],
]

let endpoints = 0
async function insertEndpoint(db: TestDatabase['pool'], projectId: string): Promise<string> {
  const { rows } = await db.query<{ id: string }>(
    `insert into seller_endpoints (id, project_id, url_pattern, match_key, price_atomic, network)
     values ('end_' || $2::int, $1, 'https://a.example', 'a.example/' || $2::int, 1000, 'base') returning id`,
    [projectId, ++endpoints],
  )
  return rows[0]!.id
}

const countsOf = async (projectId: string): Promise<number[]> => {
  const counts: number[] = []
  for (const table of ['inbound_mails', 'messages', 'threads', 'events', 'webhook_deliveries']) {
    const { rowCount } = await pool.query(`select from ${table} where project_id = $1`, [projectId])
    counts.push(rowCount!)
  }
  return counts
}

/** Makes a project with a sent message, a received message and a delivery. */
async function inUse(): Promise<{ projectId: string; delivery: string }> {
  const projectId = await newProject(pool)
  await newSent(pool, { projectId })
  await receive(pool, projectId)
  return { projectId, delivery: await newDelivery(pool, { projectId }) }
}

test('the removal of a project’s data (purge) deletes nothing unless the project is deleted', async () => {
  const { projectId } = await inUse()
  await purgeProject(pool, projectId)
  expect(await countsOf(projectId)).toEqual([1, 2, 2, 1, 1])
})

test('a deleted project does not count as erased as long as one of its rows exists', async () => {
  await using own = await createTestDatabase()
  const projectId = await newProject(own.pool)
  await own.pool.query('insert into project_limits (project_id, daily_gas) values ($1, 1)', [
    projectId,
  ])
  await own.pool.query(
    `create function keep() returns trigger language plpgsql as 'begin return null; end'`,
  )
  await own.pool.query(
    'create trigger keep before delete on project_limits for each row execute function keep()',
  )
  await deleteProject(own.pool, projectId, null)
  await purgeProject(own.pool, projectId)
  expect((await findErasure(own.pool, projectId))!.completedAt).toBeNull()
  await own.pool.query('drop trigger keep on project_limits')
  await purgeProject(own.pool, projectId)
  expect((await findErasure(own.pool, projectId))!.completedAt).toBeInstanceOf(Date)
})

test('the purge of a deleted project removes its mail and deliveries, and keeps the rows of another project', async () => {
  const [gone, neighbour] = [await inUse(), await inUse()]
  const both = await takeIn(pool, [gone.projectId, neighbour.projectId])
  const { raw_id: shared } = await row(pool, 'inbound_mails', both[0]!)
  const own = await receive(pool, gone.projectId)
  await deleteProject(pool, gone.projectId, null)
  await purgeProject(pool, gone.projectId)
  expect(await countsOf(gone.projectId)).toEqual([0, 0, 0, 0, 0])
  expect(await countsOf(neighbour.projectId)).toEqual([2, 2, 2, 1, 1])
  expect(await readRaw(pool, own.rawId)).toBeUndefined()
  expect(await readRaw(pool, shared)).toContain('Subject')
  expect((await row(pool, 'webhook_deliveries', neighbour.delivery)).status).toBe('pending')
})

test('every database table with rows of a project is either purged, or is listed as kept', async () => {
  const { rows } = await pool.query(
    `select table_name as name from information_schema.columns
     where table_schema = 'public' and column_name = 'project_id'`,
  )
  const purged = [...MAIL_TABLES, ...OWN_TABLES].map(([table]) => table)
  expect(rows.map(({ name }) => name).toSorted()).toEqual([...purged, ...KEPT].toSorted())
})

/** Returns the names of the tables that contain a row, without the tables that belong to the service itself. */
async function tablesInUse(): Promise<string[]> {
  const { rows } = await pool.query<{ name: string }>(
    `select table_name as name from information_schema.tables
     where table_schema = 'public' and table_type = 'BASE TABLE' order by table_name`,
  )
  const used: string[] = []
  for (const { name } of rows) {
    const { rowCount } = await pool.query(`select from ${name} limit 1`)
    if (rowCount === 1) used.push(name)
  }
  return used
}

test('after the purge of a project without payments, only its project row and its API key row are left', async () => {
  await using empty = await createTestDatabase()
  const shared = pool
  pool = empty.pool
  try {
    const before = await tablesInUse()
    const { projectId } = await inUse()
    const actor = { projectId, keyPrefix: 'lopk-test', requestId: 'req' }
    await updateRetention(pool, projectId, { mail: 30 }, actor)
    await createRule(pool, projectId, { type: 'BLOCK', scope: 'RECEIVE', value: 'a@b.example' })
    const [sent] = await acceptIntents(pool, [newIntent(projectId, { subject: 'out' })], 10)
    expect(sent!.kind).toBe('accepted')
    await deleteMessage(pool, projectId, (await receive(pool, projectId)).messageId)
    await beginIdempotent(pool, { projectId, operation: 'o', key: 'k', hash: Buffer.alloc(32) })
    await insertEndpoint(pool, projectId)
    expect((await findErasure(pool, projectId))!.left).toMatchObject({ mail: 8, deliveries: 2 })
    await deleteProject(pool, projectId, null)
    expect((await findErasure(pool, projectId))!.completedAt).toBeNull()
    await purgeProject(pool, projectId)
    expect(await tablesInUse()).toEqual([...before, 'api_keys', 'projects'].toSorted())
    expect(await row(pool, 'projects', projectId)).toMatchObject({ name: '', display_name: null })
    expect(await findErasure(pool, projectId)).toEqual({
      requestedAt: expect.any(Date),
      completedAt: expect.any(Date),
      left: { mail: 0, vault: 0, deliveries: 0, logs: 0, other: 0 },
      kept: { payments: 0, endpoints: 0, keys: 1 },
      objects: 'none',
    })
  } finally {
    pool = shared
  }
})

test('the purge of a project deletes large mail in small batches, so that no SQL statement takes too long', async () => {
  await using own = await createTestDatabase()
  const projectId = await newProject(own.pool)
  for (let n = 0; n < 8; n++) await receive(own.pool, projectId)
  const bytes = 10 * 1024 * 1024
  await own.pool.query('update messages set stored_bytes = $1', [bytes])
  await own.pool.query(`
    create table deletions (bytes bigint);
    create function note() returns trigger language plpgsql as $$
    begin insert into deletions select sum(stored_bytes) from gone; return null; end $$;
    create trigger note after delete on messages
      referencing old table as gone for each statement execute function note()`)
  await deleteProject(own.pool, projectId, null)
  await purgeProject(own.pool, projectId)
  expect((await findErasure(own.pool, projectId))!.completedAt).toBeInstanceOf(Date)
  const { rows } = await own.pool.query('select max(bytes)::int as most from deletions')
  expect(rows[0].most).toBeLessThanOrEqual(4 * bytes)
})

test('the erasure of a project removes the wallet addresses of the project from its row', async () => {
  const projectId = await newProject(pool)
  await pool.query(
    `update projects set pay_to = '0xpay', own_addresses = '{0xown}' where id = $1`,
    [projectId],
  )
  await deleteProject(pool, projectId, null)
  await purgeProject(pool, projectId)
  expect(await row(pool, 'projects', projectId)).toMatchObject({ pay_to: null, own_addresses: [] })
})

test('the purge of a project keeps its payments, the endpoint of each payment, and the row with the project’s retention days', async () => {
  const projectId = await newProject(pool)
  const actor = { projectId, keyPrefix: 'lopk-test', requestId: 'req' }
  await updateRetention(pool, projectId, { paymentDetails: 7 }, actor)
  const [endpointId] = [
    await insertEndpoint(pool, projectId),
    await insertEndpoint(pool, projectId),
  ]
  await newSettled(pool, { projectId, endpointId })
  await deleteProject(pool, projectId, null)
  await purgeProject(pool, projectId)
  const { completedAt, kept } = (await findErasure(pool, projectId))!
  expect([completedAt, kept]).toEqual([expect.any(Date), { payments: 1, endpoints: 1, keys: 1 }])
  const { rowCount } = await pool.query('select from project_retention where project_id = $1', [
    projectId,
  ])
  expect(rowCount).toBe(1)
})

test('if the purge job of a deleted project is lost or has failed permanently, the purge is queued again after a minute', async () => {
  const projectId = await newProject(pool)
  await deleteProject(pool, projectId, null)
  await dropJobs(pool)
  await requeueLostPurges(pool)
  const queued = async () =>
    (
      await pool.query(`select from graphile_worker.jobs where key = 'purge_project:' || $1`, [
        projectId,
      ])
    ).rowCount
  expect(await queued()).toBe(0)
  await pool.query(`update projects set deleted_at = now() - interval '2 minutes' where id = $1`, [
    projectId,
  ])
  await requeueLostPurges(pool)
  expect(await queued()).toBe(1)
  expect(await requeueLostPurges(pool)).toBe(0)
  await failJobs(pool)
  expect(await requeueLostPurges(pool)).toBe(1)
  await purgeProject(pool, projectId)
  await dropJobs(pool)
  await requeueLostPurges(pool)
  expect(await queued()).toBe(0)
})
