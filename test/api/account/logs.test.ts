import { afterAll, beforeAll, expect, test } from 'bun:test'
import { expireAll } from '../../support/retention.ts'
import { type Agent, startTestService, type TestService } from '../../support/service.ts'
import { vaultPath as path } from '../../support/vault/vault.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService({ smtp: false, workers: false })
})
afterAll(() => service[Symbol.asyncDispose]())

const logs = async (agent: Agent, query = ''): Promise<any[]> => {
  const { status, body } = await agent.get(`/v0/logs?limit=100${query}`)
  expect(status).toBe(200)
  expect(body.count).toBe(body.logs.length)
  return body.logs
}

test('the audit log records actor, action, subject, time and request id of every secret read and change', async () => {
  const agent = await service.newAgent()
  const secret = 'JBSWY3DPEHPK3PXP'
  const expected: string[] = []
  let requestId = ''
  const step = async (entry: string, call: Promise<{ status: number; headers: Headers }>) => {
    expected.unshift(entry)
    requestId = (await call).headers.get('x-request-id')!
    const [newest] = await logs(agent)
    const what = [newest.action, newest.subject, newest.description, newest.outcome].join(' ')
    expect(what.replace('  ', ' ')).toBe(entry)
    expect(newest).toEqual({
      id: expect.stringMatching(/^log_\d+$/),
      action: entry.split(' ')[0],
      category: 'vault',
      subject: entry.split(' ')[1],
      description: /version \d+/.exec(entry)?.[0] ?? null,
      actor: agent.key.slice(0, 17),
      requestId,
      outcome: entry.split(' ').at(-1),
      status: entry.endsWith(' ok') ? 'success' : 'failure',
      severity: entry.endsWith(' ok') ? 'info' : 'warning',
      targetType: 'credential',
      targetId: entry.split(' ')[1],
      metadata: {
        requestId,
        outcome: entry.split(' ').at(-1),
        ...(/version/.test(entry) ? { detail: /version \d+/.exec(entry)![0] } : {}),
      },
      durationMs: null,
      createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
    })
    expect(Math.abs(Date.parse(newest.createdAt) - Date.now())).toBeLessThan(5_000)
  }
  const put = (more = {}) =>
    agent.put(path('n'), { type: 'TOTP', data: { secret, backupCodes: ['b'] }, ...more })
  await step('vault.get n not_found', agent.get(path('n')))
  await step('vault.delete n not_found', agent.delete(path('n')))
  await step('vault.put n ok', put())
  await step('vault.get n ok', agent.get(path('n')))
  await step('vault.totp n ok', agent.get(path('n', '/totp')))
  await step('vault.backup_code n ok', agent.post(path('n', '/totp/backup')))
  await step('vault.backup_code n refused', agent.post(path('n', '/totp/backup')))
  await step('vault.version_get n version 1 ok', agent.get(path('n', '/versions/1')))
  await step('vault.version_get n version 9 not_found', agent.get(path('n', '/versions/9')))
  await step('vault.restore n version 1 ok', agent.post(path('n', '/versions/1/restore')))
  await step('vault.restore n version 9 not_found', agent.post(path('n', '/versions/9/restore')))
  await step('vault.put n ok', put({ expiresAt: '2020-01-01' }))
  await step('vault.get n expired', agent.get(path('n')))
  await step('vault.totp n expired', agent.get(path('n', '/totp')))
  await step('vault.backup_code n expired', agent.post(path('n', '/totp/backup')))
  await step('vault.version_get n version 1 expired', agent.get(path('n', '/versions/1')))
  await step('vault.put n ok', agent.put(path('n'), { type: 'CUSTOM', data: { a: 1 } }))
  await step('vault.totp n refused', agent.get(path('n', '/totp')))
  await step('vault.delete n ok', agent.delete(path('n')))
  const all = await logs(agent)
  expect(
    all.map((e) => [e.action, e.subject, e.description, e.outcome].join(' ').replace('  ', ' ')),
  ).toEqual(expected)
  // The audit log gets no entry when a client only reads the list of credentials, or when a request is refused, because
  // no secret is read then.
  await agent.get('/v0/vault')
  await agent.put(path('n'), { type: 'NONE', data: {} })
  expect(await logs(agent)).toHaveLength(all.length)
  expect(JSON.stringify(all)).not.toContain(secret)
  expect(JSON.stringify(all)).not.toContain(agent.key)
})

test('the audit log records the request id that the client sent, and records a HEAD request for a secret as a read', async () => {
  const agent = await service.newAgent()
  await agent.put(path('n'), { type: 'CUSTOM', data: { a: 1 } })
  const headers = { authorization: `Bearer ${agent.key}`, 'x-request-id': 'mine-1' }
  await fetch(service.url + path('n'), { method: 'HEAD', headers })
  const found = await logs(agent, '&requestId=mine-1')
  expect(found.map((entry) => entry.action)).toEqual(['vault.get'])
})

test('a hundred concurrent reads of a secret add a hundred audit log entries', async () => {
  const agent = await service.newAgent()
  await agent.put(path('hot'), { type: 'CUSTOM', data: { a: 1 } })
  const answers = await Promise.all(Array.from({ length: 100 }, () => agent.get(path('hot'))))
  const asked = answers.map(({ headers }) => headers.get('x-request-id')!)
  const found = await logs(agent, '&action=vault.get')
  expect(found.map((entry) => entry.requestId).toSorted()).toEqual(asked.toSorted())
})

test('a project key without scopes may read the audit log of its own project, and no other project’s audit log', async () => {
  const bare = await service.newAgent({ scopes: [] })
  expect(await logs(bare)).toEqual([])
  const { status, body } = await service.platform.get('/v0/logs')
  expect([status, body.error]).toEqual([403, 'forbidden'])
})

test('the audit log statistics count exactly the entries that the audit log list shows', async () => {
  const agent = await service.newAgent()
  await agent.put(path('a'), { type: 'CUSTOM', data: { a: 1 } })
  await agent.get(path('a'))
  await agent.get(path('a'))
  await agent.get(path('gone'))
  const stats = async (query = '') => (await agent.get(`/v0/logs/stats${query}`)).body
  expect(await stats()).toEqual({
    total: 4,
    complete: true,
    success: 3,
    failure: 1,
    errors: 1,
    today: 4,
    bySeverity: { info: 3, warning: 1, error: 0 },
    byOutcome: { ok: 3, not_found: 1 },
    byCategory: { vault: 4 },
    byAction: { 'vault.get': 3, 'vault.put': 1 },
  })
  await service.database.pool.query(
    `update audit_log set at = at - interval '1 day' where project_id = $1 and action = 'vault.put'`,
    [agent.project.id],
  )
  expect(await stats()).toMatchObject({ total: 4, today: 3 })
  expect(await stats('?subject=a&action=vault.get')).toMatchObject({ total: 2, failure: 0 })
  expect(await stats('?before=2020-01-01')).toMatchObject({ total: 0, byAction: {} })
  expect((await agent.get('/v0/logs/stats?after=x')).body.message).toMatch(/^after must be/)
  const other = await service.newAgent({ scopes: [] })
  expect((await other.get('/v0/logs/stats')).body.total).toBe(0)
  expect((await service.platform.get('/v0/logs/stats')).status).toBe(403)
})

test('each filter of the audit log returns only the matching entries, alone and together with the other filters', async () => {
  const agent = await service.newAgent()
  await agent.put(path('a'), { type: 'CUSTOM', data: { a: 1 } })
  await agent.put(path('b/ü'), { type: 'CUSTOM', data: { a: 1 } })
  await agent.get(path('a'))
  await agent.get(path('b/ü'))
  await agent.get(path('gone'))
  const { pool } = service.database
  // The test adds two entries directly to the audit log: one for sent mail, and one whose action begins with "vault"
  // but is no action of the vault.
  await pool.query(
    `insert into audit_log (project_id, action, subject, actor, request_id, outcome, at)
     values ($1, 'mail.send', 'thd_1', 'loid-other', 'r', 'ok', '2020-01-01'),
            ($1, 'vaulted.x', null, 'loid-other', 'r', 'ok', '2020-01-02')`,
    [agent.project.id],
  )
  const count = async (query: string) => (await logs(agent, query)).length
  expect(await count('')).toBe(7)
  expect(await count('&category=vault')).toBe(5)
  expect(await count('&category=mail')).toBe(1)
  expect(await count('&action=vault.get')).toBe(3)
  expect(await count(`&subject=${encodeURIComponent('b/ü')}`)).toBe(2)
  expect(await count('&action=vault.get&outcome=ok')).toBe(2)
  expect(await count('&status=failure')).toBe(1)
  expect(await count('&status=error')).toBe(1)
  expect(await count('&status=denied')).toBe(0)
  expect(await count('&status=success&category=vault')).toBe(4)
  expect(await count('&severity=warning')).toBe(1)
  expect(await count('&severity=WARNING&outcome=not_found')).toBe(1)
  expect(await count('&severity=INFO&status=failure')).toBe(0)
  expect(await count('&severity=info&category=vault')).toBe(4)
  expect(await count('&severity=error')).toBe(0)
  const { body: stats } = await agent.get('/v0/logs/stats?severity=warning')
  expect(stats).toMatchObject({ total: 1, bySeverity: { info: 0, warning: 1, error: 0 } })
  expect(await count('&actor=loid-other')).toBe(2)
  expect(await count(`&actor=${agent.key.slice(0, 17)}`)).toBe(5)
  expect(await count('&before=2020-01-02')).toBe(1)
  expect(await count('&after=2020-01-01T12:00:00Z&before=2021-01-01')).toBe(1)
  expect(await count("&subject=' or 1=1--")).toBe(0)
  for (const [query, message] of [
    ['outcome=fine', /^outcome must be one of "ok", /],
    ['status=ok', /^status must be one of "success", "failure"/],
    ['severity=fine', /^severity must be one of "info", /],
    ['after=yesterday', /^after must be an ISO 8601 time/],
    ['before=2020-13-01', /^before must be/],
    ['action=', /^action must be a string of 1 to 256 characters/],
    [`subject=${'x'.repeat(257)}`, /^subject must be/],
    ['limit=0', /^limit must be/],
    ['pageToken=x', /^pageToken must be/],
  ] as const) {
    const answer = await agent.get(`/v0/logs?${query}`)
    expect([query, answer.status, answer.body.message]).toEqual([
      query,
      400,
      expect.stringMatching(message),
    ])
  }
})

test('each audit log entry appears once in the list’s pages, even if entries have equal times or are added while a client reads', async () => {
  const agent = await service.newAgent()
  await service.database.pool.query(
    `insert into audit_log (project_id, action, subject, actor, request_id, outcome, at)
     select $1, 'vault.get', 's' || n, 'a', 'r', 'ok', '2026-01-01' from generate_series(1, 500) n`,
    [agent.project.id],
  )
  const seen: string[] = []
  let token: string | undefined
  do {
    const page = token === undefined ? '' : `&pageToken=${encodeURIComponent(token)}`
    const { body } = await agent.get(`/v0/logs?limit=60${page}`)
    seen.push(...body.logs.map((entry: any) => entry.subject))
    token = body.nextPageToken
    await agent.get(path('meanwhile'))
  } while (token !== undefined)
  expect(seen).toHaveLength(500)
  expect(new Set(seen).size).toBe(500)
})

test('audit log entries older than 90 days are deleted, and younger entries stay', async () => {
  const agent = await service.newAgent()
  const { pool } = service.database
  const old = await service.newAgent()
  await pool.query('delete from audit_log')
  await pool.query(
    `insert into audit_log (project_id, action, actor, request_id, outcome, at)
     select $1, 'vault.get', 'a', 'r', 'ok', now() - interval '90 days 1 minute' from generate_series(1, 2500)`,
    [old.project.id],
  )
  await pool.query(
    `insert into audit_log (project_id, action, actor, request_id, outcome, at)
     values ($1, 'vault.get', 'a', 'r', 'ok', now() - interval '89 days 23 hours')`,
    [agent.project.id],
  )
  await expireAll(pool)
  expect(await logs(old)).toHaveLength(0)
  expect(await logs(agent)).toHaveLength(1)
})
