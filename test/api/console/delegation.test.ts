import { afterAll, beforeAll, expect, test } from 'bun:test'
import { type ConsoleClient, signIn } from '../../support/console/consoleSession.ts'
import { startTestService, type TestService } from '../../support/service.ts'

let service: TestService
let operator: ConsoleClient
beforeAll(async () => {
  service = await startTestService({ smtp: false, workers: false })
  operator = await signIn(service)
})
afterAll(() => service[Symbol.asyncDispose]())

type Entry = { action: string; subject: string; description: string; outcome: string }
const shown = (logs: Entry[]) =>
  logs
    .map(({ action, subject, description, outcome }) => [action, subject, description, outcome])
    .reverse()

test('a console session changes the email rules, suppressions and webhooks of a project, and the audit log records each change', async () => {
  const agent = await service.newAgent()
  const { pool } = service.database
  await pool.query(
    `insert into suppressions (project_id, address, reason) values ($1, 'o''hara+x@example.com', 'bounce')`,
    [agent.project.id],
  )
  const project = `/projects/${agent.project.id}/v0`
  const rule = { type: 'BLOCK', scope: 'RECEIVE', value: '*@Example.com' }
  const { body: made } = await operator.post(`${project}/email-rules`, rule)
  // If the same email rule is set again, nothing changes, but the audit log records the request.
  expect((await operator.post(`${project}/email-rules`, rule)).status).toBe(200)
  expect((await operator.post(`${project}/email-rules`, { ...rule, type: 'ALLOW' })).status).toBe(
    409,
  )
  expect((await operator.delete(`${project}/email-rules/${made.id}`)).status).toBe(204)
  const address = encodeURIComponent("o'hara+x@example.com")
  expect((await operator.delete(`${project}/suppressions/${address}`)).status).toBe(204)
  expect((await operator.delete(`${project}/suppressions/${address}`)).status).toBe(404)
  const { status, body: webhook } = await operator.post(`${project}/webhooks`, {
    url: 'https://example.com/hooks?token=for-them-alone',
    events: ['message.received'],
  })
  expect([status, webhook.secret.slice(0, 6)]).toEqual([201, 'whsec_'])
  const path = `${project}/webhooks/${webhook.webhookId}`
  const url = 'https://example.com/hooks?token=another-for-them-alone'
  expect((await operator.patch(path, { url })).body).toMatchObject({ url })
  expect((await operator.patch(path, { url: 'nonsense' })).status).toBe(400)
  const { body: rotated } = await operator.post(`${path}/rotate-secret`)
  expect(rotated.secret).toMatch(/^whsec_/)
  expect(rotated.secret).not.toBe(webhook.secret)
  expect((await operator.delete(path)).status).toBe(204)
  expect((await operator.post(`${path}/rotate-secret`)).status).toBe(404)
  for (const list of ['email-rules', 'suppressions', 'webhooks']) {
    const { body } = await operator.get(`${project}/${list}`)
    expect([list, body.count]).toEqual([list, 0])
  }

  const { logs } = (await agent.get('/v0/logs')).body
  const ruled = 'BLOCK RECEIVE *@example.com'
  expect(shown(logs)).toEqual([
    ['email_rule.create', made.id, ruled, 'ok'],
    ['email_rule.create', made.id, ruled, 'ok'],
    ['email_rule.create', null!, null!, 'refused'],
    ['email_rule.delete', made.id, null!, 'ok'],
    ['suppression.delete', "o'hara+x@example.com", null!, 'ok'],
    ['suppression.delete', "o'hara+x@example.com", null!, 'not_found'],
    ['webhook.create', webhook.webhookId, null!, 'ok'],
    ['webhook.update', webhook.webhookId, null!, 'ok'],
    ['webhook.update', webhook.webhookId, null!, 'refused'],
    ['webhook.rotate_secret', webhook.webhookId, null!, 'ok'],
    ['webhook.delete', webhook.webhookId, null!, 'ok'],
    ['webhook.rotate_secret', webhook.webhookId, null!, 'not_found'],
  ])
  const session = `console:${(await operator.get('/session')).body.person.personId}`
  expect(new Set(logs.map(({ actor }: { actor: string }) => actor))).toEqual(new Set([session]))
  const stored = JSON.stringify(logs)
  for (const secret of [webhook.secret, rotated.secret, 'for-them-alone']) {
    expect(stored).not.toContain(secret)
  }
})

test('a console session changes mail domains, and the audit log of the organization records each change', async () => {
  const path = '/v0/platform/domains'
  const { status, body } = await operator.post(path, { domain: 'Agents.Example.COM' })
  expect([status, body.domain, body.status]).toEqual([201, 'agents.example.com', 'pending'])
  expect((await operator.post(path, { domain: 'agents.example.com' })).status).toBe(409)
  expect((await operator.get(path)).body.domains[0]).toEqual(body)
  expect((await operator.post(`${path}/agents.example.com/verify`)).status).toBe(200)
  expect((await operator.delete(`${path}/agents.example.com`)).status).toBe(204)
  expect((await operator.delete(`${path}/agents.example.com`)).status).toBe(404)
  const { logs } = (await operator.get('/organization/logs')).body
  expect(shown(logs.slice(0, 5))).toEqual([
    ['mail_domain.create', 'agents.example.com', null!, 'ok'],
    ['mail_domain.create', null!, null!, 'refused'],
    ['mail_domain.verify', 'agents.example.com', null!, 'ok'],
    ['mail_domain.delete', 'agents.example.com', null!, 'ok'],
    ['mail_domain.delete', 'agents.example.com', null!, 'not_found'],
  ])
})

test('the console serves project routes and platform routes only under their own paths, and hostile names in a path break neither the response nor the audit log', async () => {
  const agent = await service.newAgent()
  const project = `/projects/${agent.project.id}/v0`
  for (const path of [`${project}/platform/domains`, '/v0/email-rules', '/v0/webhooks']) {
    expect([path, (await operator.get(path)).status]).toEqual([path, 404])
  }
  for (const name of ['%00', '%0a', '%zz', 'x'.repeat(400), '%E2%80%A8']) {
    for (const path of [`${project}/email-rules/${name}`, `/v0/platform/domains/${name}`]) {
      const { status } = await operator.delete(path)
      expect([path, status === 400 || status === 404]).toEqual([path, true])
    }
  }
})

test('a person who creates a project gets its API key, even if the audit log cannot store the project’s name', async () => {
  const { pool } = service.database
  await pool.query(
    `create function refuse_change() returns trigger language plpgsql as $$ begin raise 'away'; end $$`,
  )
  await pool.query(
    'create trigger refuse_change before update on audit_log for each row execute function refuse_change()',
  )
  try {
    const { status, body } = await operator.post('/v0/platform/projects', { name: 'Kept' })
    expect([status, body.rawKey?.slice(0, 5)]).toEqual([201, 'loid-'])
    const { logs } = (await operator.get('/organization/logs?action=project.create')).body
    expect(shown(logs).at(-1)).toEqual(['project.create', null!, null!, 'ok'])
  } finally {
    await pool.query('drop function refuse_change cascade')
  }
})
