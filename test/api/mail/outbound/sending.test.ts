import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { heldAgent } from '../../../support/mail/held.ts'
import { sendMail } from '../../../support/mail/outbound.ts'
import {
  type Agent,
  messagePath,
  startTestService,
  type TestService,
} from '../../../support/service.ts'
import { whileHeld } from '../../../support/till/tillRows.ts'

const SEND = '/v0/messages/send'
const DRAFTS = '/v0/messages/drafts'
const MAIL = { to: ['ada@example.com'], subject: 'Offer', text: 'Shall I order?' }
const CONFLICT = [409, 'conflict', 'Idempotency-Key was used for another request']

let service: TestService
let agent: Agent
beforeAll(async () => {
  service = await startTestService({
    smtp: false,
    workers: false,
    env: { DAILY_SEND_LIMIT: '200' },
  })
  agent = await service.newAgent()
})
afterAll(() => service[Symbol.asyncDispose]())

const people = (count: number, name = 'a') =>
  Array.from({ length: count }, (_, n) => `${name}${n}@example.com`)
const keyed = (key: string) => ({ 'idempotency-key': key })
const errorOf = ({ status, body }: { status: number; body: any }) => [
  status,
  body.error,
  body.message,
]
const reply = (of: string, body: object = {}, headers = {}, by = agent) =>
  by.post(`${messagePath(of)}/reply`, { text: 'Yes.', ...body }, headers)
const suppress = (by: Agent, ...addresses: string[]) =>
  service.database.pool.query(
    `insert into suppressions (project_id, address, reason)
     select $1, address, 'bounce' from unnest($2::text[]) address`,
    [by.project.id, addresses],
  )
async function messageOf(messageId: string) {
  const { rows } = await service.database.pool.query(
    'select * from messages where message_id = $1',
    [messageId],
  )
  return rows[0]
}

describe('the response to a send call shows the accepted mail', () => {
  test('the response to a send call contains the mail and its thread, but not the text of the mail', async () => {
    const { status, body } = await agent.post(SEND, { ...MAIL, cc: ['Bob <bob@example.com>'] })
    expect([status, body]).toEqual([
      201,
      {
        messageId: expect.stringMatching(/^<.+@mail\.test>$/),
        inboxId: agent.address,
        from: [agent.address],
        to: ['ada@example.com'],
        cc: ['bob@example.com'],
        subject: 'Offer',
        labels: ['sent'],
        threadId: expect.any(String),
        createdAt: expect.any(String),
      },
    ])
    expect(await messageOf(body.messageId)).toMatchObject({ in_reply_to: [], reference_ids: [] })
  })

  test('for a mail that is sent later, the response to the send call has the time in UTC and the label scheduled', async () => {
    const sendAt = new Date(Date.now() + 3_600_000)
    const body = await sendMail(agent, { sendAt: sendAt.toISOString().replace('Z', '+00:00') })
    expect(body).toMatchObject({
      sendAt: sendAt.toISOString(),
      labels: ['sent', 'scheduled'],
      deliveryStatus: 'scheduled',
    })
  })

  test('if a mail must wait for its owner’s approval, the response to the send call gives the mail the label held', async () => {
    const held = await sendMail(await heldAgent(service))
    expect([held.labels, held.deliveryStatus]).toEqual([['sent', 'held'], 'held'])
  })

  test('with the setting ANSWERS=full, the response to a send call or a reply contains the mail’s text', async () => {
    await using full = await startTestService({
      smtp: false,
      workers: false,
      env: { ANSWERS: 'full' },
    })
    const other = await full.newAgent()
    const sent = await sendMail(other, { text: 'Hello' })
    expect(sent).toMatchObject({ text: 'Hello', extractedText: 'Hello', inboxId: other.address })
    const { body } = await reply(sent.messageId, {}, keyed('k'), other)
    expect(body).toMatchObject({ text: 'Yes.', extractedText: 'Yes.', inboxId: other.address })
    expect((await reply(sent.messageId, {}, keyed('k'), other)).body).toEqual(body)
  })
})

test('the fields to, cc and bcc of a mail may name at most 50 recipients together', async () => {
  const whole = { ...MAIL, to: people(20), cc: people(20, 'b'), bcc: people(10, 'c') }
  expect((await agent.post(SEND, whole)).status).toBe(201)
  expect(errorOf(await agent.post(SEND, { ...whole, bcc: people(11, 'c') }))).toEqual([
    400,
    'bad_request',
    'to, cc and bcc must name at most 50 recipients together',
  ])
})

describe('if the service refuses a recipient of a mail, the response names the recipient, and the other recipients get the mail', () => {
  test('the response names each refused recipient with the reason, and the other recipients get the mail', async () => {
    const own = await service.newAgent()
    await suppress(own, 'ada@example.com', 'eve@example.com')
    const body = await sendMail(own, {
      to: ['ada@example.com', 'bob@example.com'],
      bcc: ['eve@example.com'],
    })
    expect(body.refused).toEqual([
      { address: 'ada@example.com', reason: 'suppressed' },
      { address: 'eve@example.com', reason: 'suppressed' },
    ])
    expect((await sendMail(own, { to: ['bob@example.com'] })).refused).toBeUndefined()
  })

  test('if every recipient of a mail is refused, the mail fails, even if two fields name the same recipient', async () => {
    const own = await service.newAgent()
    await suppress(own, 'ada@example.com', 'eve@example.com')
    const twice = { ...MAIL, cc: MAIL.to, bcc: ['eve@example.com'] }
    expect(errorOf(await own.post(SEND, twice))).toEqual([
      422,
      'recipient_blocked',
      'Every recipient is refused: ada@example.com (suppressed), eve@example.com (suppressed)',
    ])
  })

  test('a block rule for replies does not affect new mail to the same recipient, and a block rule for new mail does not affect replies', async () => {
    const own = await service.newAgent()
    const { messageId } = await sendMail(own)
    const rule = { type: 'BLOCK', value: 'ada@example.com' }
    for (const [scope, statuses] of [
      ['REPLY', [201, 422]],
      ['SEND', [422, 201]],
    ] as const) {
      const made = await own.post('/v0/email-rules', { ...rule, scope })
      expect(made.status).toBe(201)
      const ends = [await own.post(SEND, MAIL), await reply(messageId, {}, {}, own)]
      expect([scope, ...ends.map(({ status }) => status)]).toEqual([scope, ...statuses])
      await own.delete(`/v0/email-rules/${made.body.id}`)
    }
  })
})

test('a mail that exceeds the daily limit is refused until the next day, and the error tells how many seconds remain', async () => {
  const own = await service.newAgent()
  for (let n = 0; n < 4; n++) await sendMail(own, { to: people(50) })
  const before = Date.now() / 1000
  const over = await own.post(SEND, MAIL, keyed('k'))
  expect(errorOf(over)).toEqual([
    429,
    'quota_exceeded',
    'The daily limit of 200 recipients is reached',
  ])
  const daySeconds = 24 * 60 * 60
  const waitS = Number(over.headers.get('retry-after'))
  const nextDay = Math.ceil((before + 0.001) / daySeconds) * daySeconds
  expect(Math.abs(nextDay - (before + waitS))).toBeLessThan(10)
})

test('a project whose storage is full cannot send mail', async () => {
  const own = await service.newAgent()
  await service.platform.patch(`/v0/platform/projects/${own.project.id}`, {
    limits: { storageBytes: 1 },
  })
  await sendMail(own)
  expect(errorOf(await own.post(SEND, MAIL))).toEqual([
    413,
    'quota_exceeded',
    'The storage of this project is used up: delete messages or ask the operator',
  ])
})

describe('a reply takes its recipients, subject and thread from the answered message', () => {
  test('a reply to a mail that the project itself sent goes to the recipients of that mail, in the same thread', async () => {
    const { messageId, threadId } = await sendMail(agent, { cc: ['bob@example.com'] })
    const { status, body } = await reply(messageId)
    expect([status, body]).toEqual([
      201,
      {
        messageId: expect.stringMatching(/^<.+@mail\.test>$/),
        from: [agent.address],
        to: ['ada@example.com'],
        cc: [],
        subject: 'Re: Subject',
        labels: ['sent'],
        threadId,
        createdAt: expect.any(String),
      },
    ])
    expect(await messageOf(body.messageId)).toMatchObject({
      in_reply_to: [messageId],
      reference_ids: [messageId],
    })
    const all = await reply(body.messageId, { replyAll: true })
    expect((await messageOf(all.body.messageId)).reference_ids).toEqual([messageId, body.messageId])
    const toAll = await reply(messageId, { replyAll: true })
    expect(toAll.body.cc).toEqual(['bob@example.com'])
  })

  test('the subject of a reply is cut to 998 characters, and half a surrogate pair at the cut is replaced', async () => {
    const { messageId } = await sendMail(agent, { subject: `${'x'.repeat(993)}😀` })
    const { body } = await reply(messageId)
    expect(body.subject).toBe(`Re: ${'x'.repeat(993)}\ufffd`)
    const short = await sendMail(agent, { subject: 'x'.repeat(994) })
    expect((await reply(short.messageId)).body.subject).toBe(`Re: ${'x'.repeat(994)}`)
  })

  test('a reply to an unknown message, or to a message of another project, gets the error not_found', async () => {
    const other = await service.newAgent()
    const { messageId } = await sendMail(other)
    for (const id of [messageId, '<none@mail.test>', '__proto__']) {
      expect([id, ...errorOf(await reply(id))]).toEqual([id, 404, 'not_found', 'Message not found'])
    }
  })

  test('a reply may be scheduled for a later time, and may wait for its owner’s approval', async () => {
    const sendAt = new Date(Date.now() + 3_600_000).toISOString()
    const { messageId } = await sendMail(agent)
    expect((await reply(messageId, { sendAt })).body).toMatchObject({
      sendAt,
      deliveryStatus: 'scheduled',
    })
    const own = await heldAgent(service)
    const held = await sendMail(own)
    expect((await reply(held.messageId, {}, {}, own)).body.deliveryStatus).toBe('held')
  })
})

test('a mail may have its own List-Unsubscribe header only if the unsubscribe field is absent', async () => {
  const headers = { 'List-Unsubscribe': '<https://list.example/u>' }
  await sendMail(agent, { headers })
  const both = { ...MAIL, headers, unsubscribe: { url: 'https://list.example/u' } }
  const { status, body } = await agent.post(SEND, both)
  expect(status).toBe(400)
  expect(body.message).toEndWith('must not stand beside unsubscribe')
})

test('the calendar file of an invitation is the mail’s first attachment, and the service extracts its text later', async () => {
  const file = { filename: 'a.txt', contentType: 'text/plain', content: btoa('x') }
  const event = { start: '2030-05-01', end: '2030-05-03' }
  const { messageId, event: shown } = await sendMail(agent, { event, attachments: [file] })
  expect(shown).toMatchObject({ uid: expect.any(String) })
  const pending = async (id: string) => {
    const { rows } = await service.database.pool.query<{ attachment_id: string }>(
      `select attachment_id from attachment_texts t join messages m on m.row = t.message_row
       where m.message_id = $1`,
      [id],
    )
    return rows.map(({ attachment_id: attachment }) => attachment)
  }
  const { body } = await agent.get(messagePath(messageId))
  const [calendar, other] = body.attachments
  expect([calendar.contentType, other.filename]).toEqual([
    'text/calendar; charset=utf-8; method=REQUEST',
    'a.txt',
  ])
  expect(await pending(messageId)).toEqual([calendar.attachmentId])
  const plain = await sendMail(agent, { attachments: [file] })
  expect(await pending(plain.messageId)).toEqual([])
  expect(plain.event).toBeUndefined()
})

describe('if a send call repeats an Idempotency-Key, it gets the first response, or a conflict if the calls differ', () => {
  test('a repeated send call gets the first response, even if the answered message was deleted in the meantime', async () => {
    const { messageId } = await sendMail(agent)
    const first = await reply(messageId, {}, keyed('deleted'))
    await agent.delete(messagePath(messageId))
    expect((await reply(messageId, {}, keyed('deleted'))).body).toEqual(first.body)
    expect((await reply(messageId, {}, keyed('other'))).status).toBe(404)
  })

  test('a repeated send call gets the first response again, with the same refused recipients and status', async () => {
    const own = await service.newAgent()
    await suppress(own, 'ada@example.com')
    const sendAt = new Date(Date.now() + 3_600_000).toISOString()
    const mail = { ...MAIL, to: ['ada@example.com', 'bob@example.com'], sendAt }
    const first = await own.post(SEND, mail, keyed('k'))
    expect(first.body).toMatchObject({ deliveryStatus: 'scheduled', refused: [{}] })
    expect(await own.post(SEND, mail, keyed('k'))).toMatchObject({ status: 201, body: first.body })
  })

  test('a call with a used Idempotency-Key gets a conflict if its mail or answered message differs, or if only one of the calls is a reply', async () => {
    const own = await service.newAgent()
    const [one, two] = [await sendMail(own), await sendMail(own)]
    await reply(one.messageId, {}, keyed('k'), own)
    expect((await reply(one.messageId, {}, keyed('k'), own)).status).toBe(201)
    expect(errorOf(await reply(two.messageId, {}, keyed('k'), own))).toEqual(CONFLICT)
    expect(errorOf(await reply(one.messageId, { text: 'No.' }, keyed('k'), own))).toEqual(CONFLICT)
    expect(errorOf(await own.post(SEND, MAIL, keyed('k')))).toEqual(CONFLICT)
    expect((await agent.post(SEND, MAIL, keyed('k'))).status).toBe(201)
  })

  test('a repeated send call gets the first response, even if the project reached its daily limit in the meantime', async () => {
    const own = await service.newAgent()
    const mail = { ...MAIL, to: people(50) }
    const twins = await Promise.all([1, 2, 3, 4, 5, 6].map(() => own.post(SEND, mail, keyed('k'))))
    for (let n = 0; n < 3; n++) await sendMail(own, { to: people(50) })
    expect((await own.post(SEND, MAIL)).status).toBe(429)
    const last = await own.post(SEND, mail, keyed('k'))
    const answers = [...twins, last].map(({ status, body }) => [status, body.messageId])
    expect(new Set(answers.map(String)).size).toBe(1)
    expect(last.status).toBe(201)
  })
})

test('a draft is sent only once, even if several send calls have different Idempotency-Keys', async () => {
  const { body: draft } = await agent.post(DRAFTS, MAIL)
  const send = (key: string) => agent.post(`${DRAFTS}/${draft.draftId}/send`, undefined, keyed(key))
  const first = await send('one')
  expect(first.status).toBe(201)
  expect((await send('two')).body).toEqual(first.body)
})

test('if a draft changes during the send call, the draft is not sent', async () => {
  const { draftId } = (await agent.post(DRAFTS, MAIL)).body
  const change = 'update drafts set version = version + 1 where id = $1'
  const [end] = await whileHeld(service.database.pool, change, [draftId], () => [
    agent.post(`${DRAFTS}/${draftId}/send`),
  ])
  expect(errorOf(end!)).toEqual([
    409,
    'conflict',
    'The draft was changed or deleted meanwhile: read it again',
  ])
  expect((await agent.post(`${DRAFTS}/${draftId}/send`)).status).toBe(201)
})

test('if a project is deleted during a send call, the call is refused like a call with an invalid API key', async () => {
  const own = await service.newAgent()
  const deletion = `with locked as (select id from projects where id = $1 for update)
                    update projects p set deleted_at = now() from locked where p.id = locked.id`
  const [end] = await whileHeld(service.database.pool, deletion, [own.project.id], () => [
    own.post(SEND, MAIL),
  ])
  expect(errorOf(end!)).toEqual([401, 'unauthorized', 'Invalid API key'])
})

test('if a thread is deleted during a reply in this thread, the reply is refused because its original message does not exist any more', async () => {
  const { messageId } = await sendMail(agent)
  const { thread_row: threadRow } = await messageOf(messageId)
  const deletion = 'delete from threads where row = $1'
  const [end] = await whileHeld(service.database.pool, deletion, [threadRow], () => [
    reply(messageId),
  ])
  expect(errorOf(end!)).toEqual([404, 'not_found', 'Message not found'])
})

test('if two fields name one recipient in different letter case, the recipient gets one copy of the mail', async () => {
  const own = await service.newAgent()
  const { body } = await own.post(SEND, {
    ...MAIL,
    to: ['Ada@example.com'],
    cc: ['ada@EXAMPLE.com'],
    bcc: ['bob@example.com'],
  })
  const { rows } = await service.database.pool.query(
    `select address from outbound_recipients r join messages m on m.row = r.message_row
     where m.message_id = $1 order by address`,
    [body.messageId],
  )
  expect(rows.map(({ address }) => address)).toEqual(['Ada@example.com', 'bob@example.com'])
  expect([body.to, body.cc]).toEqual([['Ada@example.com'], ['ada@example.com']])
})
