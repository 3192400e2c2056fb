import { afterAll, beforeAll, expect, test } from 'bun:test'
import { recordSection, requestReport } from '../../../sql/operations/healthReports.ts'
import { type NameServer, startNameServer } from '../../support/mail/nameServer.ts'
import { closeServers, serve } from '../../support/process/localServer.ts'
import { startTestService, type TestService } from '../../support/service.ts'

const PATH = '/v0/platform/health'

let names: NameServer
let env: Record<string, string>
let service: TestService
beforeAll(async () => {
  names = await startNameServer([])
  const outside = await serve((_request, response) => response.end('ip=127.0.0.1\n'))
  env = {
    DNS_SERVERS: names.address,
    OUTSIDE_URL: `http://127.0.0.1:${outside}/`,
    ALLOW_PRIVATE_NETWORKS: 'true',
    METRICS_TOKEN: 'metrics-token-that-nobody-sees',
  }
  service = await startTestService({ smtp: false, pools: ['outbound', 'webhooks'], env })
})
afterAll(async () => {
  await service[Symbol.asyncDispose]()
  await names[Symbol.asyncDispose]()
  closeServers()
})

test('a request for the health report gets status 404 before the first health check', async () => {
  const { status, body } = await service.platform.get(PATH)
  expect(status).toBe(404)
  expect(body.message).toBe('No report yet: POST /v0/platform/health makes one')
})

test('a new health report contains new checks by the workers, names each part without workers, and is stored by the service', async () => {
  const { status, body } = await service.platform.post(PATH)
  expect(status).toBe(200)
  expect(body).toMatchObject({ complete: true, verdict: 'broken' })
  expect(body.findings).toContainEqual({
    area: 'mail in',
    check: 'MX of mail.test',
    found: 'no such record',
    verdict: 'broken',
    fix: 'mail.test. IN MX 10 mail.test.',
  })
  expect(body.findings).toContainEqual(
    expect.objectContaining({ area: 'database', check: 'migrations', verdict: 'ok', fix: null }),
  )
  expect(body.findings).toContainEqual({
    area: 'chain',
    check: 'payments workers',
    found: 'none runs: nothing of this part was looked at',
    verdict: 'broken',
    fix: 'bun run workers --pool payments',
  })
  const { body: kept } = await service.platform.get(PATH)
  expect(kept).toEqual({ ...body, ageSeconds: kept.ageSeconds })
  expect(JSON.stringify(kept)).not.toContain(env.METRICS_TOKEN)
})

const WHOLE = { sections: [], given: { service: [], mail: [], chain: [] } }
const PART = { sections: [], given: { service: [], mail: [] } }

test('callers who request a health report at the same time get the same report, and a later caller gets a new report', async () => {
  const { pool } = service.database
  const ids = await Promise.all([1, 2, 3].map(() => requestReport(pool, PART)))
  const [reportId] = ids as [string]
  expect(ids).toEqual([reportId, reportId, reportId])
  const [answer] = await Promise.all([
    service.platform.post(PATH),
    recordSection(pool, { reportId, section: 'chain', findings: [] }),
  ])
  expect((await service.platform.post(PATH)).body.reportId).not.toBe(answer.body.reportId)
})

test('the service keeps the last ten health reports', async () => {
  const { pool } = service.database
  const ids: string[] = []
  for (let n = 0; n < 12; n++) ids.push(await requestReport(pool, WHOLE))
  const { rows } = await pool.query('select id from health_reports order by requested_at, id')
  expect(rows.map(({ id }) => id).toSorted()).toEqual(ids.slice(2).toSorted())
  expect((await service.platform.get(PATH)).body).toMatchObject({ complete: true, verdict: 'ok' })
})

test('if a worker does not respond for half a minute, the health report says that this worker is missing', async () => {
  const { pool } = service.database
  const id = await requestReport(pool, PART)
  const { body: waiting } = await service.platform.get(PATH)
  expect(waiting).toMatchObject({ reportId: id, complete: false, findings: [], verdict: 'ok' })
  await pool.query(
    `update health_reports set requested_at = now() - interval '31 seconds' where id = $1`,
    [id],
  )
  await pool.query('delete from health_reports where id <> $1', [id])
  const { body } = await service.platform.get(PATH)
  expect(body).toMatchObject({ reportId: id, complete: true, verdict: 'broken', ageSeconds: 31 })
  expect(body.findings.map(({ check }: { check: string }) => check)).toEqual(['payments workers'])
})

test('if a worker reports twice for one health report, the report keeps the first findings', async () => {
  const { pool } = service.database
  const reportId = await requestReport(pool, PART)
  const finding = { area: 'chain', check: 'RPC', found: 'first', verdict: 'ok' } as const
  await recordSection(pool, { reportId, section: 'chain', findings: [finding] })
  const second = { ...finding, found: 'second' }
  await recordSection(pool, { reportId, section: 'chain', findings: [second] })
  const { body } = await service.platform.get(PATH)
  expect(body.findings.map(({ found }: { found: string }) => found)).toEqual(['first'])
})

test('a project key cannot read health reports', async () => {
  const agent = await service.newAgent()
  expect((await agent.get(PATH)).status).toBe(403)
  expect((await agent.post(PATH)).status).toBe(403)
})
