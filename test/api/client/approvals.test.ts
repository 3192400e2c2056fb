import { afterAll, beforeAll, expect, test } from 'bun:test'
import { ConflictError, Purser, PurserPlatform } from '../../../api/client/main.ts'
import { startTestService, type TestService } from '../../support/service.ts'
import { waitFor } from '../../support/waitFor.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService({ smtp: false, env: { SMTP_RELAY_URL: 'capture' } })
})
afterAll(() => service[Symbol.asyncDispose]())

test('an agent drafts and sends mail, and its owner edits, approves and rejects the mail with the client', async () => {
  const agent = await service.newAgent()
  const purser = new Purser({ apiKey: agent.key, baseUrl: service.url })
  const platform = new PurserPlatform({ apiKey: service.platform.key, baseUrl: service.url })
  const projectId = agent.project.id
  await platform.projects.update(projectId, { sendPolicy: 'approve' })

  const { drafts } = purser.messages
  const { draftId } = await drafts.create({ to: ['ada@example.com'], subject: 'Offer' })
  await drafts.update(draftId, { text: 'Shall I?' })
  expect((await drafts.get(draftId)).text).toBe('Shall I?')
  const seen: string[] = []
  for await (const one of drafts.all()) seen.push(one.draftId)
  expect(seen).toEqual([draftId])
  const { messageId, deliveryStatus } = await drafts.send(draftId)
  expect(deliveryStatus).toBe('held')

  const [waiting] = (await platform.held.list(projectId)).held
  const { approvalId } = waiting!
  const { sha256 } = await platform.held.get(projectId, approvalId)
  const edited = await platform.held.edit(projectId, approvalId, {
    sha256: sha256!,
    text: 'May I?',
  })
  expect(
    new TextDecoder().decode((await platform.held.raw(projectId, approvalId)) as never),
  ).toContain('May I?')
  await expect(
    platform.held.approve(projectId, approvalId, { sha256: sha256! }),
  ).rejects.toBeInstanceOf(ConflictError)
  await platform.held.approve(projectId, approvalId, { sha256: edited.sha256! })
  await waitFor('the sending', async () => {
    const message = await purser.messages.get(messageId)
    return message.deliveryStatus === 'sent' && message.text === 'May I?'
  })

  const next = { to: ['bob@example.com'], subject: 'Again', text: 'Now?' }
  const second = await purser.messages.send(next)
  for await (const one of platform.held.all(projectId)) {
    await platform.held.reject(projectId, one.approvalId, { reason: 'Not now.' })
  }
  const rejected = await purser.messages.get(second.messageId)
  expect(rejected.deliveryError).toBe('rejected by the owner: Not now.')
  const third = await purser.messages.send(next)
  expect((await purser.messages.cancel(third.messageId)).deliveryStatus).toBe('cancelled')
  const other = await drafts.create()
  await drafts.delete(other.draftId)
  expect((await drafts.list()).count).toBe(0)
})
