/** Tests the reason that an owner writes on the approval page. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { heldAgent, requestOf } from '../../../support/mail/held.ts'
import { sendMail } from '../../../support/mail/outbound.ts'
import { type Sink, startSink } from '../../../support/mail/sink.ts'
import { startTestService, type TestService } from '../../../support/service.ts'
import { waitFor } from '../../../support/waitFor.ts'

let sink: Sink
let service: TestService
beforeAll(async () => {
  sink = await startSink()
  service = await startTestService({ smtp: false, env: { SMTP_RELAY_URL: sink.url } })
})
afterAll(async () => {
  await service[Symbol.asyncDispose]()
  await sink[Symbol.asyncDispose]()
})

test('a mail can be rejected with a reason of 1,000 characters, although the browser sends each line end as two characters', async () => {
  const approverEmail = 'owner@elsewhere.example'
  const agent = await heldAgent(service, { sendPolicy: 'approve', approverEmail })
  const mail = { to: ['ada@example.com'], subject: 'Offer', text: 'Text' }
  const { messageId } = await sendMail(agent, mail)
  const { approvalId, sha256 } = await requestOf(service, agent, messageId)
  const notice = await waitFor('the notification', () =>
    sink.mails.find(({ email }) => email.messageId?.startsWith(`<${approvalId}.`)),
  )
  const link = service.url + /\/approve\/[\w-]{43}/.exec(notice.email.text!)![0]
  const reason = `${'x'.repeat(499)}\n${'y'.repeat(500)}`
  const form = { decision: 'reject', sha256, reason: reason.replace('\n', '\r\n') }
  const end = await fetch(link, { method: 'POST', body: new URLSearchParams(form) })
  expect(end.status).toBe(200)
  const decided = await requestOf(service, agent, messageId)
  expect([decided.state, decided.reason]).toEqual(['rejected', reason])
})
