/** Tests that concurrent requests for a large mail that waits for approval get only a limited part of the memory. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { heldAgent, heldPath, requestOf } from '../../../support/mail/held.ts'
import { sendMail } from '../../../support/mail/outbound.ts'
import { startTestService, type TestService } from '../../../support/service.ts'
import '../../../support/long.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService({ smtp: false, workers: false })
})
afterAll(() => service[Symbol.asyncDispose]())

test('concurrent edits of a large mail that waits for approval get a limited part of the memory, and one edit succeeds', async () => {
  const agent = await heldAgent(service)
  const content = Buffer.alloc(2_000_000, 'x').toString('base64')
  const { messageId } = await sendMail(agent, {
    attachments: [{ filename: 'a.txt', contentType: 'text/plain', content }],
  })
  const held = await requestOf(service, agent, messageId)
  const path = heldPath(agent, held.approvalId)
  const edits = Array.from({ length: 30 }, (_, n) =>
    service.platform.patch(path, { sha256: held.sha256, subject: `Subject ${n}` }),
  )
  const answers = await Promise.all(edits)
  const count = (wanted: number) => answers.filter(({ status }) => status === wanted).length
  expect(count(200)).toBe(1)
  // Each edit counts as 8 MB against the project's limit of 128 MB, so many of the concurrent edits must get 503.
  expect(count(503)).toBeGreaterThanOrEqual(10)
  expect(count(200) + count(409) + count(503)).toBe(30)
  const other = await heldAgent(service)
  const { messageId: small } = await sendMail(other, {})
  const waiting = await requestOf(service, other, small)
  const change = { sha256: waiting.sha256, subject: 'New' }
  expect((await service.platform.patch(heldPath(other, waiting.approvalId), change)).status).toBe(
    200,
  )
})
