/**
 * Tests that nobody decides about a mail after losing the right to decide, even by a request that already waits for a
 * database lock.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { signIn, signInAs } from '../../../support/console/consoleSession.ts'
import { changingBefore } from '../../../support/database/beforeStatement.ts'
import { heldAgent, heldPath, requestOf } from '../../../support/mail/held.ts'
import { sendMail } from '../../../support/mail/outbound.ts'
import { createClient, startTestService, type TestService } from '../../../support/service.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService({ smtp: false, workers: false })
})
afterAll(() => service[Symbol.asyncDispose]())

/** Makes a mail that waits for approval. */
async function held() {
  const agent = await heldAgent(service)
  const { messageId } = await sendMail(agent)
  const request = await requestOf(service, agent, messageId)
  const state = async () => (await requestOf(service, agent, messageId)).state
  return { agent, state, sha256: request.sha256, path: heldPath(agent, request.approvalId) }
}

test('an owner who becomes a viewer while the rejection waits for a lock on the mail does not reject the mail', async () => {
  const { agent, path, state } = await held()
  const operator = await signIn(service)
  const owner = await signInAs(service, 'owner', [agent.project.id])
  const { status } = await changingBefore(
    'for update of a',
    () => operator.patch(`/people/${owner.personId}`, { role: 'viewer' }),
    () => owner.post(`${path}/reject`, {}),
  )
  expect([status, await state()]).toEqual([403, 'waiting'])
})

test('a platform key that is revoked while the approval waits for a lock on the mail does not approve the mail', async () => {
  const { path, sha256, state } = await held()
  const operator = await signIn(service)
  const { keyId, rawKey } = (await operator.post('/organization/keys', { name: 'Leaked' })).body
  const { status } = await changingBefore(
    'for update of a',
    () => operator.delete(`/organization/keys/${keyId}`),
    () => createClient(service.url, rawKey).post(`${path}/approve`, { sha256 }),
  )
  expect([status, await state()]).toEqual([401, 'waiting'])
})
