/** Tests that an agent cannot make the approval page show another recipient than the one that gets the mail. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { approvalLink, heldAgent, requestOf } from '../../../support/mail/held.ts'
import { sendMail } from '../../../support/mail/outbound.ts'
import { type Sink, startSink } from '../../../support/mail/sink.ts'
import { type Agent, startTestService, type TestService } from '../../../support/service.ts'

let sink: Sink
let service: TestService
let agent: Agent
beforeAll(async () => {
  sink = await startSink()
  service = await startTestService({ smtp: false, env: { SMTP_RELAY_URL: sink.url } })
  agent = await heldAgent(service, {
    sendPolicy: 'approve',
    approverEmail: 'owner@elsewhere.example',
  })
})
afterAll(async () => {
  await service[Symbol.asyncDispose]()
  await sink[Symbol.asyncDispose]()
})

const encoded = (text: string) => `=?utf-8?B?${Buffer.from(text).toString('base64')}?=`

test('a mail to an address with an encoded word is refused', async () => {
  const evil = `${encoded('boss@corp.example>\nX-Ref: <7')}@evil.example`
  for (const field of ['to', 'cc', 'bcc']) {
    const { status, body } = await agent.post('/v0/messages/send', {
      ...{ to: ['ada@example.com'], subject: 'Contract', text: 'x' },
      [field]: [evil],
    })
    expect([field, status, body.message]).toEqual([
      field,
      400,
      `${field}[0] must be one email address, such as ada@example.com or Ada <ada@example.com>`,
    ])
  }
})

test('the approval page shows the value of an added header field as it is written', async () => {
  const value = encoded('1\nFrom: Agent\nTo: boss@corp.example\nSubject: Lunch\n')
  const { messageId } = await sendMail(agent, {
    ...{ to: ['mallory@evil.example'], subject: 'Contract', text: 'x' },
    headers: { 'X-A': value },
  })
  const { approvalId } = await requestOf(service, agent, messageId)
  const html = await (await fetch(await approvalLink(service, sink, approvalId))).text()
  expect(html).toContain(`X-A: ${value}`)
  expect(html).not.toContain('boss@corp.example')
  expect(html).toContain('To: mallory@evil.example')
})
