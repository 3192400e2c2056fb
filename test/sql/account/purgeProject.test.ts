/** A purge deletes the rows of its project only. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { deleteProject } from '../../../sql/account/projects.ts'
import { MAIL_TABLES, OWN_TABLES, purgeProject } from '../../../sql/account/purgeProject.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { newDelivery } from '../../support/eventRows.ts'
import { newSent, readRaw, receive, takeIn } from '../../support/mailRows.ts'
import { newProject, row } from '../../support/tillRows.ts'

let database: TestDatabase
let pool: TestDatabase['pool']

beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
})
afterAll(() => database[Symbol.asyncDispose]())

const KEPT = [
  // For audit.
  ...['payments', 'seller_endpoints', 'api_keys'],
  // Deleted by age.
  'payment_checks',
  // Deleted with the messages and threads that they belong to.
  ...['message_labels', 'outbound_mails', 'thread_identifiers'],
]

const countsOf = async (projectId: string): Promise<number[]> => {
  const counts: number[] = []
  for (const table of ['inbound_mails', 'messages', 'threads', 'events', 'webhook_deliveries']) {
    const { rowCount } = await pool.query(`select from ${table} where project_id = $1`, [projectId])
    counts.push(rowCount!)
  }
  return counts
}

/** A project with a message each way and a delivery. */
async function inUse(): Promise<{ projectId: string; delivery: string }> {
  const projectId = await newProject(pool)
  await newSent(pool, { projectId })
  await receive(pool, projectId)
  return { projectId, delivery: await newDelivery(pool, { projectId }) }
}

test('a live project loses nothing', async () => {
  const { projectId } = await inUse()
  await purgeProject(pool, projectId)
  expect(await countsOf(projectId)).toEqual([1, 2, 2, 1, 1])
})

test('a deleted project loses its mail and logs; another project keeps its own', async () => {
  const [gone, neighbour] = [await inUse(), await inUse()]
  const both = await takeIn(pool, [gone.projectId, neighbour.projectId])
  const { raw_id: shared } = await row(pool, 'inbound_mails', both[0]!)
  const own = await receive(pool, gone.projectId)
  await deleteProject(pool, gone.projectId)
  await purgeProject(pool, gone.projectId)
  expect(await countsOf(gone.projectId)).toEqual([0, 0, 0, 0, 0])
  expect(await countsOf(neighbour.projectId)).toEqual([2, 2, 2, 1, 1])
  expect(await readRaw(pool, own.rawId)).toBeUndefined()
  expect(await readRaw(pool, shared)).toContain('Subject')
  expect((await row(pool, 'webhook_deliveries', neighbour.delivery)).status).toBe('pending')
})

test('every table with rows of a project is purged, or kept for a reason', async () => {
  const { rows } = await pool.query(
    `select table_name as name from information_schema.columns
     where table_schema = 'public' and column_name = 'project_id'`,
  )
  const purged = [...MAIL_TABLES, ...OWN_TABLES].map(([table]) => table)
  expect(rows.map(({ name }) => name).toSorted()).toEqual([...purged, ...KEPT].toSorted())
})
