import { afterAll, beforeAll, expect, test } from 'bun:test'
import { heldAgent, heldPath, requestOf } from '../../../support/mail/held.ts'
import { untilStatus } from '../../../support/mail/outbound.ts'
import { callTool, connectMcp, failTool } from '../../../support/mcp.ts'
import { startTestService, type TestService } from '../../../support/service.ts'
import '../../../support/long.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService({ smtp: false, env: { SMTP_RELAY_URL: 'capture' } })
})
afterAll(() => service[Symbol.asyncDispose]())

test('a model writes a draft and sends it, and the response says that the owner must approve the mail', async () => {
  const agent = await heldAgent(service)
  await using mcp = await connectMcp(service.url, agent.key)
  const { draftId } = await callTool(mcp, 'mail.create_draft', { to: ['a@example.com'] })
  expect(await failTool(mcp, 'mail.send_draft', { draftId })).toStartWith(
    'bad_request: text must be in the draft',
  )
  await callTool(mcp, 'mail.update_draft', { draftId, subject: 'Offer', text: 'Shall I?' })
  expect((await callTool(mcp, 'mail.list_drafts')).drafts[0].draftId).toBe(draftId)
  expect((await callTool(mcp, 'mail.get_draft', { draftId })).text).toBe('Shall I?')
  const said = (await mcp.callTool({
    name: 'mail.send_draft',
    arguments: { draftId },
  })) as any
  expect(said.content[0].text).toStartWith('Held until the owner approves it; do not send it again')
  const { messageId } = said.structuredContent
  const held = await requestOf(service, agent, messageId)
  await service.platform.post(`${heldPath(agent, held.approvalId)}/reject`, { reason: 'No.' })
  const seen = await callTool(mcp, 'mail.get_message', { messageId })
  expect([seen.deliveryStatus, seen.deliveryError]).toEqual([
    'rejected',
    'rejected by the owner: No.',
  ])
})

test('a model schedules a mail, cancels the mail, and deletes a draft', async () => {
  const agent = await service.newAgent()
  await using mcp = await connectMcp(service.url, agent.key)
  const sendAt = new Date(Date.now() + 3_600_000).toISOString()
  const mail = { to: ['a@example.com'], subject: 's', text: 't' }
  const sent = await callTool(mcp, 'mail.send', { ...mail, sendAt })
  expect(sent.deliveryStatus).toBe('scheduled')
  const { messageId } = sent
  const cancelled = await callTool(mcp, 'mail.cancel', { messageId })
  expect(cancelled.deliveryStatus).toBe('cancelled')
  const other = await callTool(mcp, 'mail.send', mail)
  await untilStatus(agent, other.messageId, 'sent')
  expect(await failTool(mcp, 'mail.cancel', { messageId: other.messageId })).toStartWith(
    'conflict: Only a scheduled or held message can be cancelled',
  )
  const { draftId } = await callTool(mcp, 'mail.create_draft', {})
  expect(await callTool(mcp, 'mail.delete_draft', { draftId })).toEqual({ draftId, deleted: true })
  expect(await failTool(mcp, 'mail.get_draft', { draftId })).toContain('mail.list_drafts')
})
