/** Tests changes of a message that has many labels, after the service has added one more label to it. */
import { expect, test } from 'bun:test'
import { standardBounce } from '../../../support/mail/bounceMails.ts'
import { sendMail, sunkAt, untilStatus } from '../../../support/mail/outbound.ts'
import { startSink } from '../../../support/mail/sink.ts'
import { deliverRaw } from '../../../support/mail/smtpTalk.ts'
import { messagePath, startTestService, waitForMessages } from '../../../support/service.ts'
import '../../../support/long.ts'

test('labels can be removed from a message that has more than 50 labels because the service labelled it as bounced', async () => {
  await using sink = await startSink()
  await using service = await startTestService({ env: { SMTP_RELAY_URL: sink.url } })
  const agent = await service.newAgent()
  const recipient = 'ada@example.com'
  const { messageId, threadId } = await sendMail(agent, { to: [recipient] })
  const { from } = await sunkAt(sink, messageId)
  await untilStatus(agent, messageId, 'sent')
  const addLabels = Array.from({ length: 49 }, (_, n) => `a${n}`)
  expect((await agent.patch(messagePath(messageId), { addLabels })).status).toBe(200)
  const bounce = standardBounce({ messageId, recipient, to: agent.address })
  expect(await deliverRaw(service.smtp!.port, from, bounce, { sender: '' })).toStartWith('250')
  await waitForMessages(agent, 2)
  const thread = `/v0/threads/${threadId}`
  const read = await agent.patch(thread, { addLabels: ['bounced'], removeLabels: ['unread'] })
  expect([read.status, read.body.message]).toEqual([200, undefined])
  expect(read.body.messages.map((one: any) => one.labels.length)).toEqual([51, 3])
  const swapped = await agent.patch(messagePath(messageId), {
    addLabels: ['new'],
    removeLabels: ['a0'],
  })
  expect([swapped.status, swapped.body.labels?.length]).toEqual([200, 51])
  for (const path of [thread, messagePath(messageId)])
    expect((await agent.patch(path, { addLabels: ['one more'] })).status).toBe(400)
})
