import { afterAll, beforeAll, expect, test } from 'bun:test'
import { POOLS, TASK_POOL } from '../../../shared/tasks.ts'
import { readHistory, recordMinutes } from '../../../sql/operations/statisticsHistory.ts'
import type { PoolSettings } from '../../../workers/queue/runner.ts'
import { inboundRunner } from '../../../workers/runners/inbound.ts'
import { outboundRunner } from '../../../workers/runners/outbound.ts'
import { paymentsRunner } from '../../../workers/runners/payments.ts'
import { purseRunner } from '../../../workers/runners/purse.ts'
import { vaultRunner } from '../../../workers/runners/vault.ts'
import { webhooksRunner } from '../../../workers/runners/webhooks.ts'
import { type ConsoleClient, signIn } from '../../support/console/consoleSession.ts'
import { register, sendEvent } from '../../support/events/webhooks.ts'
import { createClient, startTestService, type TestService } from '../../support/service.ts'

let service: TestService
let operator: ConsoleClient
beforeAll(async () => {
  service = await startTestService({
    smtp: false,
    workers: false,
    env: { RATE_LIMIT_REQUESTS: '50', ALLOW_PRIVATE_NETWORKS: 'true' },
  })
  operator = await signIn(service)
})
afterAll(() => service[Symbol.asyncDispose]())

const organizationLog = async (): Promise<any[]> =>
  (await operator.get('/organization/logs')).body.logs

test('a console session can call API routes like an API key, but its calls do not count against the project’s rate limit', async () => {
  const agent = await service.newAgent()
  await agent.post('/v0/messages/send', { to: ['a@b.example'], subject: 'Hi', text: 'Hi.' })
  for (const path of ['/v0/messages?labels=sent', '/v0/vault', '/v0/payments?limit=3']) {
    const [through, direct] = [
      await operator.get(`/projects/${agent.project.id}${path}`),
      await agent.get(path),
    ]
    expect([path, through.status, through.body]).toEqual([path, 200, direct.body])
    expect([...through.headers.keys()].filter((name) => name.startsWith('x-ratelimit'))).toEqual([])
    expect(through.headers.get('cache-control')).toBe('no-store')
  }
  for (let asked = 0; asked < 60; asked++) {
    await operator.get(`/projects/${agent.project.id}/v0/messages`)
  }
  expect((await agent.get('/v0/whoami')).status).toBe(200)
})

test('a person may send the console 600 requests a minute in all sessions together, and each request above this limit gets 429', async () => {
  const sessions = [await signIn(service), await signIn(service)]
  const personId = (await sessions[0]!.get('/session')).body.person.personId as string
  // The test moves the time window of the rate limit to the next minute, so that the window cannot end during the test.
  await service.database.pool.query(
    `insert into rate_windows (subject, window_start, used)
     values ($1, date_trunc('minute', clock_timestamp()) + interval '1 minute', 598)
     on conflict (subject) do update set window_start = excluded.window_start, used = excluded.used`,
    [`console:${personId}`],
  )
  const answers = []
  for (const n of [0, 1, 0]) answers.push(await sessions[n]!.get('/session'))
  await service.database.pool.query('delete from rate_windows')
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 429])
  const { body, headers } = answers[2]!
  expect([body.error, Number(headers.get('retry-after')) > 0]).toEqual(['rate_limited', true])
  expect((await sessions[0]!.get('/session')).status).toBe(200)
})

test('a console session reaches only the routes that the console uses, and never a deleted project', async () => {
  const agent = await service.newAgent()
  const project = `/projects/${agent.project.id}`
  const refused: [string, string][] = [
    ['POST', `${project}/v0/payments/challenge`],
    ['POST', `${project}/v0/payments/redeem`],
    ['DELETE', `${project}/v0/vault/x`],
    ['GET', `${project}/v0/events`],
    ['GET', `${project}/v0/whoami`],
    ['GET', `${project}/v0/platform/projects`],
    ['GET', `${project}/v0/../healthz`],
    ['GET', '/v0/messages'],
    ['GET', '/v0/vault'],
    ['POST', '/projects/prj_0/v0/messages/send'],
  ]
  for (const [method, path] of refused) {
    const response = await fetch(`${service.url}/console/api${path}`, {
      method,
      headers: { cookie: operator.cookie, 'x-purser-console': '1' },
    })
    expect([method, path, [404, 405].includes(response.status)]).toEqual([method, path, true])
  }
  for (const id of ['prj_0', '..', 'organization', '%2e%2e']) {
    expect((await operator.get(`/projects/${id}/v0/messages`)).status).toBe(404)
  }
  const { body } = await agent.post('/v0/messages/send', {
    to: ['a@b.example'],
    subject: 'Hi',
    text: 'Hi.',
    html: '<p>Hi.</p>',
  })
  const shown = [
    `${project}/v0/messages`,
    `${project}/threads`,
    `${project}/threads/${body.threadId}`,
    `${project}/outgoing`,
    `${project}/messages/${encodeURIComponent(body.messageId)}/html`,
  ]
  for (const path of shown) expect([path, (await operator.get(path)).status]).toEqual([path, 200])
  // No worker runs in this test, so all data of the deleted project are still in the database.
  await operator.delete(`/v0/platform/projects/${agent.project.id}`)
  for (const path of shown) expect([path, (await operator.get(path)).status]).toEqual([path, 404])
})

test('a thread, message or payment of another project is not shown', async () => {
  const [one, other] = [await service.newAgent(), await service.newAgent()]
  const { body } = await one.post('/v0/messages/send', {
    to: ['a@b.example'],
    subject: 'Hi',
    text: 'Hi.',
    html: '<p>Hi.</p>',
  })
  const id = encodeURIComponent(body.messageId)
  for (const [project, status] of [
    [one, 200],
    [other, 404],
  ] as const) {
    const base = `/projects/${project.project.id}`
    expect((await operator.get(`${base}/threads/${body.threadId}`)).status).toBe(status)
    expect((await operator.get(`${base}/messages/${id}/html`)).status).toBe(status)
  }
  const thread = (await operator.get(`/projects/${one.project.id}/threads/${body.threadId}`)).body
  expect([thread.totalMessages, thread.withHtml]).toEqual([1, [body.messageId]])
})

test('the audit log records a change with its console session before the change happens, and adds the outcome afterwards', async () => {
  const session = `console:${(await operator.get('/session')).body.person.personId}`
  const created = await operator.post('/v0/platform/projects', { name: 'Recorded' })
  const path = `/v0/platform/projects/${created.body.projectId}`
  await operator.patch(path, { name: 'Renamed' })
  await operator.patch(path, { payTo: 'nowhere' })
  await operator.post(`${path}/rotate-key`)
  await operator.delete(path)
  await operator.delete(path)
  const entries = (await organizationLog()).slice(0, 6).reverse()
  expect(
    entries.map(({ action, subject, outcome, actor }) => [action, subject, outcome, actor]),
  ).toEqual(
    [
      ['project.create', 'ok'],
      ['project.update', 'ok'],
      ['project.update', 'refused'],
      ['project.rotate_key', 'ok'],
      ['project.delete', 'ok'],
      ['project.delete', 'not_found'],
    ].map(([action, outcome]) => [action!, created.body.projectId, outcome!, session]),
  )
  expect(JSON.stringify(entries)).not.toContain(created.body.rawKey)
})

test('a secret is read only after the audit log has recorded the console session', async () => {
  const agent = await service.newAgent()
  await agent.put('/v0/vault/github', { type: 'LOGIN', data: { password: 'correct horse' } })
  const project = `/projects/${agent.project.id}`
  expect(JSON.stringify((await operator.get(`${project}/v0/vault`)).body)).not.toContain('horse')
  expect((await operator.get(`${project}/v0/vault/github`)).body.data.password).toBe(
    'correct horse',
  )
  await operator.get(`${project}/v0/vault/missing`)
  const { logs } = (await agent.get('/v0/logs?category=vault')).body
  expect(
    logs
      .slice(0, 2)
      .map((entry: any) => [entry.action, entry.subject, entry.outcome, entry.actor.slice(0, 12)]),
  ).toEqual([
    ['vault.get', 'missing', 'not_found', 'console:per_'],
    ['vault.get', 'github', 'ok', 'console:per_'],
  ])
})

test('an operator with a console session repeats a webhook delivery', async () => {
  const agent = await service.newAgent()
  await service.database.pool.query(
    `insert into chain_status (chain_id, network, checked_at) values (84532, 'base-sepolia', clock_timestamp())
     on conflict do nothing`,
  )
  const endpoint = await register(agent, 'http://127.0.0.1:1/hook')
  const deliveryId = await sendEvent(service.database, agent, endpoint)
  const path = `/projects/${agent.project.id}/v0/webhooks/deliveries/${deliveryId}`
  expect((await operator.post(`${path}/replay`)).body.status).toBe('pending')
  expect((await operator.post(`${path}x/replay`)).status).toBe(404)
  const { logs } = (await agent.get('/v0/logs?category=webhook')).body
  expect(logs.map((entry: any) => [entry.subject, entry.outcome])).toEqual([
    [`${deliveryId}x`, 'not_found'],
    [deliveryId, 'ok'],
  ])
})

test('a platform key has a name, is shown once, is listed by prefix and can be revoked', async () => {
  const { status, body } = await operator.post('/organization/keys', { name: 'deployment' })
  expect([status, body.name, body.rawKey.slice(0, 17)]).toEqual([201, 'deployment', body.prefix])
  const platform = createClient(service.url, body.rawKey)
  expect((await platform.get('/v0/platform/projects')).status).toBe(200)
  const { keys } = (await operator.get('/organization/keys')).body
  expect(keys[0]).toEqual({ ...body, rawKey: undefined })
  expect((await operator.delete(`/organization/keys/${body.keyId}`)).body.revokedAt).toBeString()
  expect((await operator.delete(`/organization/keys/${body.keyId}`)).status).toBe(404)
  expect((await platform.get('/v0/platform/projects')).status).toBe(401)
  for (const name of ['', 'two\nlines', 'x'.repeat(101), 7]) {
    const refused = await operator.post('/organization/keys', { name })
    expect([refused.status, refused.body.message]).toEqual([
      400,
      'name must be one line of 1 to 100 characters',
    ])
  }
  // A project key is no platform key, so the console's route for platform keys must not delete it.
  const agent = await service.newAgent()
  const { rows } = await service.database.pool.query<{ id: string }>(
    'select id from api_keys where project_id = $1',
    [agent.project.id],
  )
  expect((await operator.delete(`/organization/keys/${rows[0]!.id}`)).status).toBe(404)
  expect((await agent.get('/v0/whoami')).status).toBe(200)
})

test('an organization has at most 200 active platform keys, and revoked keys do not count', async () => {
  const { pool } = service.database
  const create = async () => (await operator.post('/organization/keys', { name: 'next' })).status
  await pool.query(
    `insert into api_keys (kind, lookup_prefix, key_hash, name, revoked_at)
     select 'platform', 'lopk-' || n, sha256(('old' || n)::bytea), 'old', now() from generate_series(1, 200) n`,
  )
  expect(await create()).toBe(201)
  await pool.query(`update api_keys set revoked_at = null where name = 'old'`)
  expect(await create()).toBe(400)
  await pool.query(`delete from api_keys where name in ('old', 'next')`)
})

test('an operator’s API lists background jobs by state; waiting and failed jobs can be retried, and running jobs cannot', async () => {
  const { pool } = service.database
  const add = async (name: string) => {
    const { rows } = await pool.query<{ id: string }>(
      `select id from graphile_worker.add_job('purge_project', '{"projectId":"prj_000000000000000000000000"}',
         run_at := clock_timestamp() + interval '1 hour', job_key := $1)`,
      [name],
    )
    return rows[0]!.id
  }
  const [delayed, failed, running] = [
    await add('delayed'),
    await add('failed'),
    await add('running'),
  ]
  await pool.query("select graphile_worker.permanently_fail_jobs(array[$1::bigint], 'It broke')", [
    failed,
  ])
  await pool.query(
    "update graphile_worker._private_jobs set locked_at = now(), locked_by = 'somebody' where id = $1",
    [running],
  )
  const listed = async (state: string) =>
    (await operator.get(`/jobs?state=${state}`)).body.jobs.filter((job: any) =>
      [delayed, failed, running].includes(job.jobId),
    )
  expect((await listed('delayed'))[0]).toMatchObject({
    jobId: delayed,
    task: 'purge_project',
    pool: 'mail',
    key: 'delayed',
  })
  expect((await listed('failed'))[0]).toMatchObject({
    jobId: failed,
    lastError: 'It broke',
    attempts: 25,
  })
  expect((await listed('running'))[0]).toMatchObject({ jobId: running })
  for (const id of [delayed, failed]) {
    expect((await operator.post(`/jobs/${id}/retry`)).body).toEqual({
      jobId: id,
      task: 'purge_project',
    })
  }
  expect((await listed('ready')).map((job: any) => [job.jobId, job.attempts])).toEqual([
    [delayed, 0],
    [failed, 0],
  ])
  expect((await operator.post(`/jobs/${running}/retry`)).status).toBe(409)
  expect((await operator.post('/jobs/999999/retry')).status).toBe(409)
  expect((await operator.post('/jobs/0/retry')).body.message).toBe(
    'jobId must be the number of a job',
  )
  expect((await operator.get('/jobs?state=lost')).status).toBe(400)
  const retries = (await organizationLog()).filter(({ action }) => action === 'job.retry')
  expect(retries.map(({ outcome }) => outcome)).toEqual(['refused', 'refused', 'ok', 'ok'])
})

test('the console overview counts messages of the current minute, and counts messages of past minutes only once', async () => {
  const { pool } = service.database
  const agent = await service.newAgent()
  const now = async () => (await operator.get('/overview')).body
  const total = (overview: any) =>
    overview.minutes.reduce((sum: number, minute: any) => sum + minute.mailOut, 0)
  const before = total(await now())
  await agent.post('/v0/messages/send', { to: ['a@b.example'], subject: 'Hi', text: 'Hi.' })
  const after = await now()
  expect([total(after) - before, after.minutes.length]).toEqual([1, 60])
  expect(after.minutes.at(-1).jobs).toEqual(after.jobs)
  for (const range of ['hour', 'day', 'week', 'month']) {
    const { history } = (await operator.get(`/overview?range=${range}&zoneMinutes=-330`)).body
    // The history of message counts divides the time range into parts. The test adds the counts of all parts, because a
    // part may end during the test, and the newest messages are then in two parts.
    const mailOut = history.parts.reduce((sum: number, part: any) => sum + part.mailOut, 0)
    expect([range, history.range, mailOut]).toEqual([range, range, total(after)])
  }
  expect((await operator.get('/overview?range=year')).status).toBe(400)
  for (const [minutes, status] of [
    [840, 200],
    [-840, 200],
    [855, 400],
    [-855, 400],
  ]) {
    const answer = await operator.get(`/overview?zoneMinutes=${minutes}`)
    expect([minutes, answer.status]).toEqual([minutes, status])
  }
  expect((await operator.get('/overview?zoneMinutes=7')).body.message).toBe(
    'zoneMinutes must be a multiple of 15, from -840 to 840',
  )
  expect(after.jobs).toEqual({
    mail: expect.any(Number),
    payments: 0,
    purse: 0,
    vault: 0,
    webhooks: expect.any(Number),
  })

  // The test moves all sent messages to the only minute that is not counted yet. Two workers count this minute at the
  // same time.
  await recordMinutes(pool)
  const removed = await pool.query<{ minute: Date }>(
    `delete from statistics_minutes
     where minute = date_trunc('minute', clock_timestamp()) - interval '10 minutes' returning minute`,
  )
  // The counts from earlier tests may already include some of these messages, so the test sets all counts to 0.
  await pool.query('update statistics_minutes set mail_out = 0')
  await pool.query(`update messages set added_at = $1 where direction = 'sent'`, [
    removed.rows[0]!.minute,
  ])
  const { rowCount } = await pool.query("select from messages where direction = 'sent'")
  await Promise.all([recordMinutes(pool), recordMinutes(pool)])
  const stored = await pool.query('select mail_out from statistics_minutes where mail_out > 0')
  expect(stored.rows).toEqual([{ mail_out: rowCount }])
  const history = await readHistory(pool)
  const times = history.map(({ minute }) => minute.getTime())
  expect(times).toEqual(times.toSorted())
  expect(new Set(times).size).toBe(times.length)
  expect(history.reduce((sum, minute) => sum + minute.mailOut, 0)).toBe(rowCount!)
})

test('the console overview shows every background task with its worker pool', () => {
  const none = {} as never
  const runners: Omit<PoolSettings, 'databaseUrl'>[] = [
    inboundRunner(none),
    outboundRunner(none),
    webhooksRunner(none),
    vaultRunner(none),
    purseRunner(none),
    paymentsRunner(none, none),
  ]
  const tasksOf = new Map(runners.map(({ name, tasks }) => [name, Object.keys(tasks(none))]))
  const run = Object.entries(POOLS).flatMap(([pool, names]) =>
    names.flatMap((name) => tasksOf.get(name)!.map((task) => [task, pool])),
  )
  expect(Object.fromEntries(run)).toEqual(TASK_POOL)
})

test('the content security policy of the console page allows only files of the service, and unchanged files get status 304', async () => {
  for (const path of ['/console', '/console/login']) {
    const response = await fetch(service.url + path)
    const html = await response.text()
    const policy = response.headers.get('content-security-policy')!
    expect(policy.split('; ')).toEqual(
      expect.arrayContaining([
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
      ]),
    )
    expect(policy).not.toMatch(/unsafe|https?:|\*/)
    expect(response.headers.get('referrer-policy')).toBe('no-referrer')
    expect(html).not.toMatch(/<style|<script(?![^>]* src="\/console\/)| on\w+=|https?:/)
    for (const [, file] of html.matchAll(/(?:src|href)="([^"]+)"/g)) {
      const asset = await fetch(service.url + file)
      expect([file, asset.status]).toEqual([file!, 200])
      expect(asset.headers.get('x-content-type-options')).toBe('nosniff')
      const again = await fetch(service.url + file, {
        headers: { 'if-none-match': asset.headers.get('etag')! },
      })
      expect([file, again.status, await again.text()]).toEqual([file!, 304, ''])
    }
  }
  for (const name of ['main.ts', 'nothing.js', '..%2Fpages.ts', 'tsconfig.json']) {
    expect((await fetch(`${service.url}/console/assets/${name}`)).status).toBe(404)
  }
})

test('the HTML body of a mail is sandboxed and readable only from a frame of the console', async () => {
  const agent = await service.newAgent()
  const { body } = await agent.post('/v0/messages/send', {
    to: ['a@b.example'],
    subject: 'Hi',
    text: 'Hi.',
    html: '<p>Hi.</p><script>1</script>',
  })
  const path = `/projects/${agent.project.id}/messages/${encodeURIComponent(body.messageId)}/html`
  const shown = await operator.get(path, { 'x-purser-console': null })
  expect(shown.headers.get('content-security-policy')).toBe(
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'; sandbox",
  )
  expect(shown.body).toContain('<p>Hi.</p>')
  expect(shown.body).not.toContain('<script>')
  expect((await operator.get(path, { 'sec-fetch-site': 'cross-site' })).status).toBe(403)
  expect((await operator.get(path, { 'sec-fetch-site': 'none' })).status).toBe(403)
  expect((await operator.get(path, { cookie: null })).status).toBe(401)
})

test('the OpenAPI document contains no route of the console', async () => {
  const text = await (await fetch(`${service.url}/openapi.json`)).text()
  expect(text).not.toContain('console')
})
