/** Tests that the audit log records each change of a setting by an API key or an MCP tool. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { startWebhookService } from '../../support/events/webhooks.ts'
import { callMcp, toolCall } from '../../support/oauth.ts'
import type { Agent, TestService } from '../../support/service.ts'

let service: TestService
beforeAll(async () => {
  service = await startWebhookService()
})
afterAll(() => service[Symbol.asyncDispose]())

const entriesOf = async ({ get }: Pick<Agent, 'get'>) =>
  (await get('/v0/logs?limit=100')).body.logs.toReversed()
const shown = (logs: any[]) =>
  logs.map(({ action, subject, description, outcome }) => [action, subject, description, outcome])
const suppress = (by: Agent, address: string) =>
  service.database.pool.query(
    `insert into suppressions (project_id, address, reason) values ($1, $2, 'bounce')`,
    [by.project.id, address],
  )

test('the audit log names the key that changed an endpoint, a webhook, an email rule or a suppression', async () => {
  const agent = await service.newAgent()
  const hook = {
    url: 'https://example.com/hook?token=for-them-alone',
    events: ['message.received'],
  }
  const urlPattern = 'https://example.com/weather'
  const offer = { urlPattern, priceUsdc: '0.01', webhookUrl: hook.url }
  const { endpointId, webhookSecret } = (await agent.put('/v0/sellers/endpoints', offer)).body
  const endpoint = `/v0/sellers/endpoints/${endpointId}`
  await agent.patch(endpoint, { priceUsdc: '0.02' })
  await agent.patch(endpoint, { priceUsdc: 'dear' })
  await agent.post(`${endpoint}/rotate-secret`)
  await agent.delete(endpoint)
  const { webhookId, secret } = (await agent.post('/v0/webhooks', hook)).body
  const webhook = `/v0/webhooks/${webhookId}`
  await agent.patch(webhook, { url: 'https://example.com/other' })
  await agent.post(`${webhook}/rotate-secret`)
  await agent.delete(webhook)
  await agent.delete(webhook)
  const rule = { type: 'BLOCK', scope: 'RECEIVE', value: '*@example.com' }
  const { id } = (await agent.post('/v0/email-rules', rule)).body
  await agent.delete(`/v0/email-rules/${id}`)
  await suppress(agent, 'ada@example.com')
  await agent.delete('/v0/suppressions/ada%40example.com')

  const logs = await entriesOf(agent)
  expect(shown(logs)).toEqual([
    ['endpoint.put', endpointId, urlPattern, 'ok'],
    ['endpoint.update', endpointId, null, 'ok'],
    ['endpoint.update', endpointId, null, 'refused'],
    ['endpoint.rotate_secret', endpointId, null, 'ok'],
    ['endpoint.delete', endpointId, null, 'ok'],
    ['webhook.create', webhookId, null, 'ok'],
    ['webhook.update', webhookId, null, 'ok'],
    ['webhook.rotate_secret', webhookId, null, 'ok'],
    ['webhook.delete', webhookId, null, 'ok'],
    ['webhook.delete', webhookId, null, 'not_found'],
    ['email_rule.create', id, 'BLOCK RECEIVE *@example.com', 'ok'],
    ['email_rule.delete', id, null, 'ok'],
    ['suppression.delete', 'ada@example.com', null, 'ok'],
  ])
  expect(new Set(logs.map(({ actor }: any) => actor))).toEqual(new Set([agent.key.slice(0, 17)]))
  for (const hidden of [webhookSecret, secret, 'for-them-alone']) {
    expect(JSON.stringify(logs)).not.toContain(hidden)
  }
})

test('the audit log records a change as failed if the service fails while it makes the change', async () => {
  const agent = await service.newAgent()
  const value = 'broken@example.com'
  await service.database.pool.query(
    `alter table email_rules add constraint email_rules_broken check (value <> '${value}')`,
  )
  const rule = { type: 'ALLOW', scope: 'SEND', value }
  expect((await agent.post('/v0/email-rules', rule)).status).toBe(500)
  expect(shown(await entriesOf(agent))).toEqual([['email_rule.create', null, null, 'failed']])
})

test('a change by an MCP tool adds the same audit log entry as the change by its route', async () => {
  const agent = await service.newAgent()
  const call = async (name: string, args: object) =>
    (await callMcp(service.url, agent.key, toolCall(name, args))).body.result.structuredContent
  const rule = { type: 'ALLOW', scope: 'SEND', value: 'ada@example.com' }
  const { id: ruleId } = await call('mail.add_rule', rule)
  await call('mail.delete_rule', { ruleId })
  await call('mail.delete_rule', { ruleId })
  await call('mail.delete_rule', { ruleId: 'one\ntwo' })
  await suppress(agent, 'ada@example.com')
  await call('mail.remove_suppression', { address: 'ada@example.com' })

  const logs = await entriesOf(agent)
  expect(shown(logs)).toEqual([
    ['email_rule.create', ruleId, 'ALLOW SEND ada@example.com', 'ok'],
    ['email_rule.delete', ruleId, null, 'ok'],
    ['email_rule.delete', ruleId, null, 'not_found'],
    ['email_rule.delete', null, null, 'not_found'],
    ['suppression.delete', 'ada@example.com', null, 'ok'],
  ])
  expect(new Set(logs.map(({ actor }: any) => actor))).toEqual(new Set([agent.key.slice(0, 17)]))
})

test('the audit log of the organization names the platform key that created a project or changed a mail domain', async () => {
  const { platform } = service
  const { projectId } = (await platform.post('/v0/platform/projects', { name: 'New' })).body
  const path = '/v0/platform/domains'
  await platform.post(path, { domain: 'agents.example.com' })
  await platform.delete(`${path}/agents.example.com`)
  const actor = platform.key.slice(0, 17)
  const { rows } = await service.database.pool.query(
    `select concat_ws(' ', action, subject, outcome) as entry from audit_log
     where project_id = 'organization' and actor = $1
       and (subject = $2 or action like 'mail_domain.%') order by row`,
    [actor, projectId],
  )
  expect(rows.map(({ entry }) => entry)).toEqual([
    `project.create ${projectId} ok`,
    'mail_domain.create agents.example.com ok',
    'mail_domain.delete agents.example.com ok',
  ])
})
