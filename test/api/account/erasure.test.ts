/**
 * Tests that the report about a project's erasure states when the erasure is complete, and until when backups hold the
 * project's data.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { type Agent, startTestService, type TestService } from '../../support/service.ts'
import { newPayment } from '../../support/till/tillRows.ts'
import { waitFor } from '../../support/waitFor.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService({ smtp: false, env: { BACKUP_RETENTION_DAYS: '30' } })
})
afterAll(() => service[Symbol.asyncDispose]())

/** Returns the names of the database tables in which some row contains the given text. */
async function tablesNaming(text: string): Promise<string[]> {
  const { pool } = service.database
  const { rows: tables } = await pool.query<{ name: string }>(
    `select format('%I.%I', schemaname, tablename) as name from pg_tables
     where schemaname in ('public', 'graphile_worker') order by 1`,
  )
  const naming: string[] = []
  for (const { name } of tables) {
    const found = await pool.query(
      `select from ${name} t where position($1 in t::text) > 0 limit 1`,
      [text],
    )
    if (found.rowCount === 1) naming.push(name.replace('public.', ''))
  }
  return naming
}

const pathOf = ({ project }: Agent, rest = '') => `/v0/platform/projects/${project.id}${rest}`
const erasureOf = async (agent: Agent) =>
  (await service.platform.get(pathOf(agent, '/erasure'))).body

test('a deleted project is erased, and the response states when its backups expire', async () => {
  const agent = await service.newAgent()
  await agent.post('/v0/messages/send', { to: ['a@example.com'], subject: 's', text: 't' })
  await agent.put('/v0/vault/site', { type: 'CUSTOM', data: { n: 1 } })
  await agent.get('/v0/x402/supported')
  const live = await erasureOf(agent)
  expect(live).toMatchObject({ state: 'not_requested', requestedAt: null, outside: [] })
  expect([live.left.mail > 0, live.left.vault]).toEqual([true, 1])
  await service.platform.delete(pathOf(agent))
  const erased = await waitFor('the end of the erasure', async () => {
    const erasure = await erasureOf(agent)
    return erasure.state === 'complete' ? erasure : null
  })
  expect(erased.left).toEqual({ mail: 0, vault: 0, deliveries: 0, logs: 0, other: 0 })
  expect(erased.kept).toEqual({ payments: 0, endpoints: 0, keys: 1 })
  expect(erased.outside.map(({ place }: { place: string }) => place)).toEqual([
    'backups',
    'blobs',
    'recipients',
  ])
  // Two tables keep the id of a deleted project, so that no other project can ever get its email address. A third
  // table, the log of the organization, keeps who deleted the project.
  expect(await tablesNaming(agent.project.id)).toEqual(['api_keys', 'audit_log', 'projects'])
  const until = Date.parse(erased.completedAt) + 30 * 86_400_000
  expect(erased.outside[0]).toEqual({
    place: 'backups',
    until: new Date(until).toISOString(),
    description: 'Backups from before the end hold it; the operator keeps them 30 days.',
  })
})

test('after a project is erased, no record still contains the email address of the owner who approved the project’s mail', async () => {
  const agent = await service.newAgent()
  const approverEmail = 'owner-of-the-erased@example.org'
  await service.platform.patch(pathOf(agent), { sendPolicy: 'approve', approverEmail })
  expect(await tablesNaming(approverEmail)).toContain('projects')
  await service.platform.delete(pathOf(agent))
  await waitFor('the end of the erasure', async () => (await erasureOf(agent)).state === 'complete')
  expect(await tablesNaming(approverEmail)).toEqual([])
})

test('the report of an erasure in progress states that the erasure is not complete', async () => {
  await using idle = await startTestService({ smtp: false, workers: false })
  const agent = await idle.newAgent()
  await agent.put('/v0/vault/site', { type: 'CUSTOM', data: { n: 1 } })
  await idle.platform.delete(pathOf(agent))
  const { body } = await idle.platform.get(pathOf(agent, '/erasure'))
  expect(body).toMatchObject({ state: 'running', completedAt: null, left: { vault: 1 } })
  expect(body.outside[0]).toMatchObject({ place: 'backups', until: null })
})

test('only a platform key reads the erasure report of a project, and only if the project existed', async () => {
  const agent = await service.newAgent()
  expect((await agent.get(pathOf(agent, '/erasure'))).status).toBe(403)
  const unknown = await service.platform.get('/v0/platform/projects/prj_0/erasure')
  expect([unknown.status, unknown.body.message]).toEqual([404, 'Project not found'])
})

test('a project whose purse (wallet) awaits a payment is not deleted, and the error states the awaited amount', async () => {
  const agent = await service.newAgent()
  const { pool } = service.database
  const address = `0x${'5a'.repeat(20)}` as const
  await pool.query('insert into purses (project_id, address, balance_atomic) values ($1, $2, 0)', [
    agent.project.id,
    address,
  ])
  await newPayment(pool, { recipient: address, amountAtomic: 25_000n })
  const refused = await service.platform.delete(pathOf(agent))
  expect([refused.status, (refused.body as { message: string }).message]).toEqual([
    409,
    'The purse awaits 0.025 USDC of pending payments: try again after their end',
  ])
  expect((await agent.get('/v0/messages')).status).toBe(200)
})
