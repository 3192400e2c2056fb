/**
 * Tests the steps of docs/operating.md after a leak of an API key: the steps find everything that the thief has left
 * behind.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { startWebhookService } from '../../support/events/webhooks.ts'
import { createClient, messagePath, type TestService } from '../../support/service.ts'
import { vaultPath } from '../../support/vault/vault.ts'

let service: TestService
beforeAll(async () => {
  service = await startWebhookService()
})
afterAll(() => service[Symbol.asyncDispose]())

test('after the rotation of a leaked key, the owner finds and ends everything that the thief has left behind', async () => {
  const thief = await service.newAgent()
  await thief.put(vaultPath('github'), { type: 'API_KEY', data: { apiKey: 'for-the-owner-alone' } })
  await thief.get(vaultPath('github'))
  const url = 'https://thief.example/hook'
  const hook = await thief.post('/v0/webhooks', { url, events: ['message.received'] })
  const to = ['ada@example.com']
  const sendAt = new Date(Date.now() + 86_400_000).toISOString()
  const mail = { to, subject: 'Later', text: 'Pay me', sendAt }
  const { messageId } = (await thief.post('/v0/messages/send', mail)).body
  const { draftId } = (await thief.post('/v0/messages/drafts', { to, subject: 'Draft' })).body
  const rule = { type: 'BLOCK', scope: 'RECEIVE', value: '*@customer.example' }
  const { id: ruleId } = (await thief.post('/v0/email-rules', rule)).body
  const offer = { urlPattern: 'http://127.0.0.1:1/paid', priceUsdc: '0.01' }
  const { endpointId } = (await thief.put('/v0/sellers/endpoints', offer)).body

  const rotated = await service.platform.post(
    `/v0/platform/projects/${thief.project.id}/rotate-key`,
  )
  expect((await thief.get('/v0/messages')).status).toBe(401)
  const owner = createClient(service.url, rotated.body.rawKey)
  const { logs } = (await owner.get(`/v0/logs?actor=${thief.key.slice(0, 17)}&limit=100`)).body
  expect(logs.map(({ action, subject }: any) => `${action} ${subject}`).toSorted()).toEqual([
    `email_rule.create ${ruleId}`,
    `endpoint.put ${endpointId}`,
    'vault.get github',
    'vault.put github',
    `webhook.create ${hook.body.webhookId}`,
  ])
  const idsIn = async (path: string, list: string, id: string) =>
    (await owner.get(path)).body[list].map((one: any) => one[id])
  expect(await idsIn('/v0/webhooks', 'webhooks', 'webhookId')).toEqual([hook.body.webhookId])
  expect(await idsIn('/v0/messages?labels=scheduled', 'messages', 'messageId')).toEqual([messageId])
  expect(await idsIn('/v0/messages/drafts', 'drafts', 'draftId')).toEqual([draftId])
  expect(await idsIn('/v0/email-rules', 'rules', 'id')).toEqual([ruleId])
  expect(await idsIn('/v0/sellers/endpoints', 'endpoints', 'endpointId')).toEqual([endpointId])

  const ended = [
    await owner.delete(`/v0/webhooks/${hook.body.webhookId}`),
    await owner.post(`${messagePath(messageId)}/cancel`),
    await owner.delete(`/v0/messages/drafts/${draftId}`),
    await owner.delete(`/v0/email-rules/${ruleId}`),
    await owner.delete(`/v0/sellers/endpoints/${endpointId}`),
  ]
  expect(ended.map(({ status }) => status)).toEqual([204, 200, 204, 204, 204])
})
