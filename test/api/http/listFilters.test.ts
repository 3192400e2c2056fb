/**
 * Tests the filters and the sort order of the API's lists. The database applies the filters, so that the API also finds
 * matches on later pages.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { type ConsoleClient, signIn } from '../../support/console/consoleSession.ts'
import { type Agent, startTestService, type TestService } from '../../support/service.ts'
import '../../support/long.ts'

let service: TestService
let agent: Agent
let operator: ConsoleClient
beforeAll(async () => {
  service = await startTestService({
    smtp: false,
    workers: false,
    env: { ALLOW_PRIVATE_NETWORKS: 'true' },
  })
  agent = await service.newAgent()
  operator = await signIn(service)
})
afterAll(() => service[Symbol.asyncDispose]())

/** Returns every item of an API list by reading pages of two items. */
async function all(get: Agent['get'], path: string, name: string): Promise<any[]> {
  const items: any[] = []
  let token: string | undefined
  do {
    const page = token === undefined ? '' : `&pageToken=${encodeURIComponent(token)}`
    const { status, body } = await get(`${path}&limit=2${page}`)
    expect([path, status]).toEqual([path, 200])
    items.push(...body[name])
    token = body.nextPageToken
  } while (token !== undefined)
  return items
}

const sql = (text: string, values: unknown[] = []) => service.database.pool.query(text, values)

describe('the list of webhook deliveries can be filtered, and a filter also finds deliveries on later pages', () => {
  let webhookId: string
  beforeAll(async () => {
    const { body } = await agent.post('/v0/webhooks', {
      url: 'https://hooks.example/a',
      events: ['message.received'],
    })
    webhookId = body.webhookId
    await sql(
      `insert into webhook_deliveries (id, project_id, webhook_id, subject_id, event, idempotency_key, url, body, status, created_at)
       select 'whd_' || n, $1, case when n % 2 = 0 then $2 end, '<m' || n || '@x>',
              case when n % 5 = 0 then 'payment.settled' else 'message.received' end, 'k' || n,
              'https://Hooks.example/' || case when n = 3 then 'Third' else 'a' end, '',
              (array['delivered', 'exhausted', 'aborted', 'pending'])[1 + n % 4],
              timestamptz '2026-01-01T00:00:00Z' + n * interval '1 day'
       from generate_series(1, 9) n`,
      [agent.project.id, webhookId],
    )
  })
  const ids = async (query: string) =>
    (await all(agent.get, `/v0/webhooks/deliveries?${query}`, 'deliveries')).map(({ deliveryId }) =>
      deliveryId.replace('whd_', ''),
    )

  test('filters find webhook deliveries by time, event, message, receiver, part of the URL and state, in both sort orders', async () => {
    const cases: [string, string][] = [
      ['', '987654321'],
      ['order=oldest', '123456789'],
      ['after=2026-01-04&before=2026-01-07T00:00:00Z', '543'],
      ['event=payment.settled', '5'],
      ['event=nothing', ''],
      ['messageId=%3Cm7%40x%3E', '7'],
      [`webhookId=${webhookId}`, '8642'],
      ['q=third', '3'],
      ['q=THIRD&status=pending', '3'],
      ['q=%25', ''],
      ['status=pending', '73'],
      ['status=failed', '96521'],
      ['status=failed&order=oldest&after=2026-01-03', '2569'],
    ]
    for (const [query, wanted] of cases) {
      expect([query, (await ids(query)).join('')]).toEqual([query, wanted])
    }
  })

  test('the API counts webhook deliveries by state and receiver, with the percentage of failed deliveries', async () => {
    const { body } = await agent.get('/v0/webhooks/deliveries/stats?event=message.received')
    expect(body).toMatchObject({ total: 8, complete: true, delivered: 2, pending: 2, failed: 4 })
    expect(body.failureRate).toBeCloseTo(4 / 6)
    const ours = body.byReceiver.find((one: any) => one.webhookId === webhookId)
    expect(ours).toEqual({ endpointId: null, webhookId, delivered: 2, pending: 0, failed: 2 })
    const none = await agent.get('/v0/webhooks/deliveries/stats?after=2027-01-01')
    expect(none.body).toMatchObject({ total: 0, failureRate: null, byReceiver: [] })
    expect((await agent.get('/v0/webhooks/deliveries/stats?status=failed')).body.total).toBe(5)
  })
})

test('a list filter finds credentials by name and by type', async () => {
  for (const [name, type] of [
    ['work/GitHub', 'LOGIN'],
    ['weather', 'API_KEY'],
    ['git', 'API_KEY'],
    ['100%', 'API_KEY'],
  ]) {
    const data = type === 'LOGIN' ? { password: 'p' } : { key: 'k' }
    const { status } = await agent.put(`/v0/vault/${encodeURIComponent(name!)}`, { type, data })
    expect([name, status]).toEqual([name, 200])
  }
  const names = async (query: string) =>
    (await all(agent.get, `/v0/vault?${query}`, 'credentials')).map(({ name }) => name)
  expect(await names('q=GIT')).toEqual(['git', 'work/GitHub'])
  expect(await names('q=git&type=LOGIN')).toEqual(['work/GitHub'])
  expect(await names('type=API_KEY')).toEqual(['100%', 'git', 'weather'])
  expect(await names('q=%25')).toEqual(['100%'])
})

test('a list filter finds audit log entries by a part of their text, and the list can be sorted in both directions', async () => {
  const owner = await service.newAgent()
  for (const name of ['alpha', 'beta', 'alphabet']) await owner.get(`/v0/vault/${name}`)
  const subjects = async (query: string) =>
    (await all(owner.get, `/v0/logs?${query}`, 'logs')).map(({ subject }) => subject)
  expect(await subjects('q=ALPHA')).toEqual(['alphabet', 'alpha'])
  expect(await subjects('order=oldest')).toEqual(['alpha', 'beta', 'alphabet'])
  expect(await subjects('q=vault.get&order=oldest&outcome=not_found')).toHaveLength(3)
  expect(await subjects('outcome=ok')).toEqual([])
  expect((await owner.get('/v0/logs/stats?q=beta')).body.total).toBe(1)
})

test('the audit log of the organization has the same filters as the audit log of a project', async () => {
  await operator.post('/organization/keys', { name: 'deployment' })
  await operator.post('/jobs/999999/retry')
  const actions = async (query: string) =>
    (await all(operator.get, `/organization/logs?${query}`, 'logs')).map(({ action }) => action)
  expect(await actions('q=deployment')).toEqual(['platform_key.create'])
  expect(await actions('category=job&outcome=refused')).toEqual(['job.retry'])
})

test('filters find projects by name, address, enabled payments and creation time', async () => {
  const { body: made } = await service.platform.post('/v0/platform/projects', {
    name: 'Harbour Pilot',
    emailName: 'pilot',
    payTo: `0x${'ab'.repeat(20)}`,
    paymentsEnabled: true,
  })
  const ids = async (query: string) =>
    (await all(service.platform.get, `/v0/platform/projects?${query}`, 'projects')).map(
      ({ projectId }) => projectId,
    )
  expect(await ids('q=harbour')).toEqual([made.projectId])
  expect(await ids('q=pilot%40')).toEqual([made.projectId])
  expect(await ids('payments=on')).toEqual([made.projectId])
  expect(await ids('payments=off')).not.toContain(made.projectId)
  expect(await ids('before=2026-01-01')).toEqual([])
  expect(await ids('order=oldest')).toEqual((await ids('order=newest')).toReversed())
})

test('list filters find paid endpoints by URL, by verification verdict, and by whether they are paused', async () => {
  for (const path of ['tea', 'Rum', 'rum/old']) {
    await agent.put('/v0/sellers/endpoints', {
      urlPattern: `http://127.0.0.1:1/${path}`,
      priceUsdc: '0.01',
      ...(path === 'tea' ? { active: false } : {}),
    })
  }
  const urls = async (query: string) =>
    (await all(agent.get, `/v0/sellers/endpoints?${query}`, 'endpoints')).map(
      ({ urlPattern }) => new URL(urlPattern).pathname,
    )
  expect(await urls('q=RUM')).toEqual(['/rum/old', '/Rum'])
  expect(await urls('active=false')).toEqual(['/tea'])
  expect(await urls('active=true&order=oldest')).toEqual(['/Rum', '/rum/old'])
  expect(await urls('verification=verified')).toEqual([])
  expect(await urls('verification=pending')).toHaveLength(3)
})

test('a list filter finds messages by their delivery status, also within a search', async () => {
  const owner = await service.newAgent()
  for (const subject of ['one tea', 'two tea', 'three rum']) {
    await owner.post('/v0/messages/send', { to: ['a@b.example'], subject, text: 'x' })
  }
  await sql(
    `update messages set delivery_status = 'bounced' where project_id = $1 and subject <> 'one tea'`,
    [owner.project.id],
  )
  const subjects = (found: any[]) => found.map(({ subject }) => subject)
  const direct = (query: string) => all(owner.get, `/v0/messages?${query}`, 'messages')
  expect(subjects(await direct('deliveryStatus=bounced'))).toEqual(['three rum', 'two tea'])
  expect(subjects(await direct('deliveryStatus=bounced&q=tea'))).toEqual(['two tea'])
  expect(subjects(await direct('deliveryStatus=queued&labels=sent'))).toEqual(['one tea'])
  const outgoing = (query: string) =>
    all(operator.get, `/projects/${owner.project.id}/outgoing?${query}`, 'messages')
  expect(subjects(await outgoing('deliveryStatus=bounced'))).toEqual(['three rum', 'two tea'])
  expect(subjects(await outgoing('q=tea'))).toEqual(['two tea', 'one tea'])
  expect(subjects(await outgoing('to=b.example&deliveryStatus=queued'))).toEqual(['one tea'])
  expect(subjects(await outgoing('after=2100-01-01'))).toEqual([])
})

test('the API lists jobs in pages, and finds them by task, job key, error and time', async () => {
  const add = (key: string, day: number) =>
    sql(
      `select graphile_worker.add_job('purge_project', '{"projectId":"prj_000000000000000000000000"}',
         run_at := clock_timestamp() + $2 * interval '1 day', job_key := $1)`,
      [key, day],
    )
  for (const day of [300, 301, 302, 303, 304]) await add(`purge:${day}`, day)
  const keys = async (query: string) =>
    (await all(operator.get, `/jobs?state=delayed&${query}`, 'jobs')).map(({ key }) => key)
  const wanted = ['purge:300', 'purge:301', 'purge:302', 'purge:303', 'purge:304']
  expect(await keys('task=purge_project')).toEqual(wanted)
  expect(await keys('q=PURGE:302')).toEqual(['purge:302'])
  expect(await keys('task=send_mail')).toEqual([])
  const after = new Date(Date.now() + 302.5 * 86_400_000).toISOString()
  expect(await keys(`after=${after}&task=purge_project`)).toEqual(['purge:303', 'purge:304'])
})

test('an invalid list filter is refused with the name of the filter', async () => {
  const cases: [string, string][] = [
    ['/v0/webhooks/deliveries?status=lost', 'status must be one of'],
    ['/v0/webhooks/deliveries?after=yesterday', 'after must be an ISO 8601 time'],
    ['/v0/webhooks/deliveries?order=up', 'order must be one of "newest", "oldest"'],
    [
      '/v0/webhooks/deliveries?messageId=a&paymentId=b',
      'messageId must stand without paymentId: no delivery is of both',
    ],
    [`/v0/webhooks/deliveries?q=${'a'.repeat(201)}`, 'q must be a string of 1 to 200 characters'],
    ['/v0/vault?q=', 'q must be a string of 1 to 200 characters'],
    ['/v0/vault?type=SONG', 'type must be one of'],
    ['/v0/logs?order=up', 'order must be one of'],
    ['/v0/sellers/endpoints?active=no', 'active must be one of "true", "false"'],
    ['/v0/messages?deliveryStatus=gone', 'deliveryStatus must be one of'],
    ['/v0/webhooks/deliveries?stats=failed', 'the nearest parameter is status'],
  ]
  for (const [path, message] of cases) {
    const { status, body } = await agent.get(path)
    expect([path, status]).toEqual([path, 400])
    expect(body.message).toContain(message)
  }
  for (const query of ['before=x', 'payments=maybe', 'q=']) {
    expect((await service.platform.get(`/v0/platform/projects?${query}`)).status).toBe(400)
  }
  expect((await operator.get('/jobs?state=failed&pageToken=1')).status).toBe(400)
})
