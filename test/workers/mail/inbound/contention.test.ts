import { afterAll, beforeAll, expect, test } from 'bun:test'
import { standardBounce } from '../../../support/mail/bounceMails.ts'
import { sendMail } from '../../../support/mail/outbound.ts'
import { type Sink, startSink } from '../../../support/mail/sink.ts'
import { deliverRaw } from '../../../support/mail/smtpTalk.ts'
import {
  type Answer,
  messagePath,
  startTestService,
  type TestService,
  waitForMessages,
} from '../../../support/service.ts'
import { waitFor } from '../../../support/waitFor.ts'
import '../../../support/long.ts'

const EACH = 30

let sink: Sink
let service: TestService
beforeAll(async () => {
  sink = await startSink()
  service = await startTestService({ env: { SMTP_RELAY_URL: sink.url } })
})
afterAll(async () => {
  await service[Symbol.asyncDispose]()
  await sink[Symbol.asyncDispose]()
})

/** Repeats a request while the service says that it is unavailable, as a client must do on a busy machine. */
const patiently = (ask: () => Promise<Answer>): Promise<Answer> =>
  waitFor('an answer other than 503', async () => {
    const answer = await ask()
    return answer.status === 503 ? null : answer
  })

test('no change is lost if messages are delivered, sent, bounced, labelled and deleted at the same time', async () => {
  const agent = await service.newAgent()
  // Bounces and answers come from two addresses, because the SMTP listener admits 50 connections from one address.
  const deliver = async (raw: string, localAddress: string) =>
    expect(await deliverRaw(service.smtp!.port, agent.address, raw, { localAddress })).toStartWith(
      '250',
    )
  const numbers = Array.from({ length: EACH }, (_, n) => n)
  const isDeleted = (n: number) => n % 5 === 0
  const send = async (n: number) => {
    const mail = { to: [`gone${n}@example.com`], subject: 'Subject', text: 'Text' }
    const key = { 'idempotency-key': `contention-${n}` }
    const { status, body } = await patiently(() => agent.post('/v0/messages/send', mail, key))
    expect([status, body.message]).toEqual([201, undefined])
    return body.messageId as string
  }
  const { messageId: first, threadId } = await sendMail(agent)
  const [bounced] = await Promise.all([
    Promise.all(
      numbers.map(async (n) => {
        const recipient = `gone${n}@example.com`
        const messageId = await send(n)
        // A bounce can arrive before the service has recorded the attempt that sent the mail, so the test delivers the
        // bounce at once.
        await Promise.all([
          deliver(standardBounce({ messageId, recipient, to: agent.address }), '127.0.8.1'),
          ...(isDeleted(n) ? [patiently(() => agent.delete(messagePath(messageId)))] : []),
        ])
        return messageId
      }),
    ),
    ...numbers.map((n) =>
      deliver(
        `From: ada@example.com\nTo: ${agent.address}\nSubject: Re: Subject\nMessage-ID: <answer${n}@example.com>\nIn-Reply-To: ${first}\n\nAnswer ${n}\n`,
        '127.0.8.2',
      ),
    ),
    ...numbers.map(async (n) => {
      const change = { addLabels: [`label${n}`] }
      const answer = await patiently(() => agent.patch(`/v0/threads/${threadId}`, change))
      expect(answer.status).toBe(200)
    }),
  ])
  expect(await waitForMessages(agent, 2 * EACH, '&labels=received')).toHaveLength(2 * EACH)
  await waitFor('no job to be left', async () => {
    const { rows } = await service.database.pool.query(
      `select attempts, last_error from graphile_worker.jobs`,
    )
    expect(rows.filter((row) => row.last_error !== null)).toEqual([])
    return rows.length === 0
  })
  const thread = (await agent.get(`/v0/threads/${threadId}?limit=500`)).body
  expect(thread.totalMessages).toBe(EACH + 1)
  expect(thread.messages[0].labels).toEqual(
    expect.arrayContaining(['sent', ...numbers.map((n) => `label${n}`)]),
  )
  const statuses = await Promise.all(
    bounced.map(async (messageId) => (await agent.get(messagePath(messageId))).body.deliveryStatus),
  )
  expect(statuses).toEqual(numbers.map((n) => (isDeleted(n) ? undefined : 'bounced')))
})
