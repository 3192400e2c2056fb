import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test'
import { eventsOf } from '../../../support/mail/mailRows.ts'
import { copiesAt, hurry, sendMail, sunkAt, untilStatus } from '../../../support/mail/outbound.ts'
import { type Sink, startSink } from '../../../support/mail/sink.ts'
import { deliverRaw } from '../../../support/mail/smtpTalk.ts'
import {
  messagePath,
  startTestService,
  type TestService,
  waitForMessages,
} from '../../../support/service.ts'
import { waitFor } from '../../../support/waitFor.ts'

let sink: Sink
let service: TestService
beforeAll(async () => {
  sink = await startSink()
  service = await startTestService({ env: { SMTP_RELAY_URL: sink.url } })
})
afterEach(() => {
  sink.refuseRecipient = () => null
  sink.refuseData = () => null
})
afterAll(async () => {
  await service[Symbol.asyncDispose]()
  await sink[Symbol.asyncDispose]()
})

test('a send request gets its response at once, and the worker later sends the composed message', async () => {
  const agent = await service.newAgent()
  const { status, body } = await agent.post('/v0/messages/send', {
    to: ['Ada@Example.COM', 'ada@example.com'],
    cc: ['carl@example.com'],
    bcc: ['hidden@example.com'],
    subject: 'Grüße ✓',
    text: 'Zeile 1\nZeile 2',
    html: '<p>Zeile</p>',
  })
  expect(status).toBe(201)
  expect(body).toEqual({
    messageId: expect.stringMatching(/^<[0-9a-f]{32}@mail\.test>$/),
    threadId: expect.stringMatching(/^thd_[0-9a-f]{24}$/),
    inboxId: agent.address,
    from: [agent.address],
    to: ['ada@example.com'],
    cc: ['carl@example.com'],
    subject: 'Grüße ✓',
    labels: ['sent'],
    createdAt: expect.stringMatching(/\.\d{3}Z$/),
  })
  const all = ['ada@example.com', 'carl@example.com', 'hidden@example.com']
  const copies = [...(await copiesAt(sink, body.messageId, all)).values()]
  expect(copies).toHaveLength(all.length)
  const { email, raw } = copies[0]!
  expect(copies.map((copy) => copy.raw)).toEqual([raw, raw, raw])
  expect(raw).not.toContain('hidden')
  expect(raw).not.toMatch(/^bcc:/im)
  expect(raw).toContain('multipart/alternative')
  expect(raw.replace(/\r\n/g, '')).not.toMatch(/[\r\n]/)
  expect([email.subject, email.text?.trim(), email.html?.trim()]).toEqual([
    'Grüße ✓',
    'Zeile 1\nZeile 2',
    '<p>Zeile</p>',
  ])
  expect(email.from).toEqual({ address: agent.address, name: `Agent ${agent.address}` })
  expect(Date.parse(email.date!)).toBe(Math.floor(Date.parse(body.createdAt) / 1000) * 1000)
  const whole = await untilStatus(agent, body.messageId, 'sent')
  expect(whole.deliveryError).toBeNull()
  expect('extractedText' in whole).toBe(false)
})

test('a received mail, the reply, and the response to the reply form one thread with correct References headers', async () => {
  const agent = await service.newAgent()
  await service.deliver({
    from: 'ada@example.com',
    replyTo: 'office@example.com',
    to: agent.address,
    subject: 'Offer',
    text: 'Question?',
    messageId: '<q2@example.com>',
    inReplyTo: '<q1@example.com>',
    references: '<q0@example.com> <q1@example.com>',
  })
  const [question] = await waitForMessages(agent, 1)
  const { status, body: reply } = await agent.post(`${messagePath('<q2@example.com>')}/reply`, {
    text: 'Answer.',
  })
  expect(status).toBe(201)
  expect(reply).toEqual({
    from: [agent.address],
    to: ['office@example.com'],
    cc: [],
    messageId: expect.any(String),
    threadId: question.threadId,
    subject: 'Re: Offer',
    labels: ['sent'],
    createdAt: expect.any(String),
  })
  const { email, to } = await sunkAt(sink, reply.messageId)
  expect(to).toEqual(['office@example.com'])
  expect(email.inReplyTo).toBe('<q2@example.com>')
  expect(email.references?.split(/\s+/)).toEqual([
    '<q0@example.com>',
    '<q1@example.com>',
    '<q2@example.com>',
  ])
  await service.deliver({
    from: 'ada@example.com',
    to: agent.address,
    subject: 'RE: Offer',
    text: 'Thanks.',
    messageId: '<q3@example.com>',
    inReplyTo: reply.messageId,
    references: `${email.references} ${reply.messageId}`,
  })
  await waitForMessages(agent, 3)
  const { body: thread } = await agent.get(`/v0/threads/${question.threadId}`)
  expect(thread.messages.map((message: any) => message.messageId)).toEqual([
    '<q2@example.com>',
    reply.messageId,
    '<q3@example.com>',
  ])
  const again = await agent.post(`${messagePath('<q3@example.com>')}/reply`, { text: 'Welcome.' })
  expect(again.body.subject).toBe('Re: Offer')
})

test('a reply contains the complete chain of the References header', async () => {
  const agent = await service.newAgent()
  const chain = [
    ...Array.from({ length: 60 }, (_, n) => `<chain${n}.${'x'.repeat(40)}@example.com>`),
    '<"a quoted one"@example.com>',
  ]
  await deliverRaw(
    service.smtp!.port,
    agent.address,
    `From: ada@example.com\nMessage-ID: <end@example.com>\nReferences: ${chain.join('\n ')}\n\nx\n`,
  )
  await waitForMessages(agent, 1)
  const { body } = await agent.post(`${messagePath('<end@example.com>')}/reply`, { text: 'x' })
  const { raw } = await sunkAt(sink, body.messageId)
  const header = /^References: ([\s\S]*?)\r\n(?! )/m.exec(raw)?.[1]
  expect(header?.split(/\r\n /)).toEqual([...chain, '<end@example.com>'])
  expect(Math.max(...raw.split('\r\n').map((line) => line.length))).toBeLessThanOrEqual(998)
})

test('a reply with the option replyAll goes to all other recipients, but never to the sending inbox', async () => {
  const agent = await service.newAgent()
  await service.deliver({
    from: 'ada@example.com',
    to: [agent.address, 'bob@example.com'],
    cc: ['carl@example.com', agent.address.toUpperCase().replace('@', '+Tag@'), 'ada@example.com'],
    subject: 'All',
    text: 'x',
    messageId: '<all@example.com>',
  })
  await waitForMessages(agent, 1)
  const { body } = await agent.post(`${messagePath('<all@example.com>')}/reply`, {
    text: 'x',
    replyAll: true,
  })
  const all = ['ada@example.com', 'bob@example.com', 'carl@example.com']
  const { email } = (await copiesAt(sink, body.messageId, all)).get(all[0]!)!
  expect(email.to?.map(({ address }) => address)).toEqual(['ada@example.com'])
  expect(email.cc?.map(({ address }) => address)).toEqual(['bob@example.com', 'carl@example.com'])
})

test('a mail that gets an SMTP reply 4xx is sent again later, and arrives only once', async () => {
  const agent = await service.newAgent()
  sink.refuseRecipient = () => ({ code: 451, message: 'greylisted' })
  const { messageId } = await sendMail(agent)
  const deferred = await untilStatus(agent, messageId, 'deferred')
  expect(deferred.deliveryError).toContain('451')
  sink.refuseRecipient = () => null
  sink.refuseData = () => ({ code: 452, message: 'full' })
  await hurry(service, messageId)
  await waitFor('a second refusal', async () => {
    return (await untilStatus(agent, messageId, 'deferred')).deliveryError.includes('452')
  })
  sink.refuseData = () => null
  await hurry(service, messageId)
  await untilStatus(agent, messageId, 'sent')
  expect(sink.mails.filter((mail) => mail.email.messageId === messageId)).toHaveLength(1)
})

test('an SMTP reply 5xx to a mail is final, and the message shows the reply', async () => {
  const agent = await service.newAgent()
  sink.refuseRecipient = () => ({ code: 550, message: '5.1.1 no such user' })
  const { messageId } = await sendMail(agent)
  const { deliveryError } = await untilStatus(agent, messageId, 'failed')
  expect(deliveryError).toContain('ada@example.com: 550 5.1.1 no such user')
  const { rows } = await service.database.pool.query(
    `select o.state, o.attempt from outbound_mails o join messages m on m.row = o.message_row where m.message_id = $1`,
    [messageId],
  )
  expect(rows).toEqual([{ state: 'done', attempt: 1 }])
})

test('if one of three recipients is deferred, only this recipient is tried again', async () => {
  const agent = await service.newAgent()
  sink.refuseRecipient = (address) => {
    if (address.startsWith('later')) return { code: 450, message: 'later' }
    return address.startsWith('never') ? { code: 550, message: 'no' } : null
  }
  const { messageId } = await sendMail(agent, {
    to: ['now@example.com', 'later@example.com', 'never@example.com'],
  })
  const first = await sunkAt(sink, messageId)
  expect(first.to).toEqual(['now@example.com'])
  await untilStatus(agent, messageId, 'failed')
  sink.refuseRecipient = () => null
  await hurry(service, messageId)
  const second = await waitFor(
    'the second delivery',
    () => sink.mails.filter((mail) => mail.email.messageId === messageId)[1],
  )
  expect(second.to).toEqual(['later@example.com'])
  expect(second.raw).toBe(first.raw)
})

test('mail is deferred while the smarthost is unreachable, and fails after 24 h', async () => {
  await using away = await startTestService({ env: { SMTP_RELAY_URL: 'smtp://127.0.0.1:1' } })
  const agent = await away.newAgent()
  const { body } = await agent.post('/v0/messages/send', {
    to: ['a@example.com'],
    subject: 's',
    text: 't',
  })
  await untilStatus(agent, body.messageId, 'deferred')
  await away.database.pool.query(
    `update outbound_mails set accepted_at = accepted_at - interval '24 hours', next_attempt_at = now()`,
  )
  await away.database.pool.query(
    `select graphile_worker.reschedule_jobs(array(select id from graphile_worker.jobs), run_at := now())`,
  )
  const { deliveryError } = await untilStatus(agent, body.messageId, 'failed')
  expect(deliveryError).toContain('given up after 24 h')
})

test('mail to another inbox of the service arrives in a thread of that inbox, and mail to an unknown inbox fails', async () => {
  const [one, two] = [await service.newAgent(), await service.newAgent()]
  const sent = await sendMail(one, {
    to: [two.address.toUpperCase(), two.address.replace('@', '+tag@')],
    subject: 'Hello',
    text: 'Neighbour.',
  })
  const items = await waitForMessages(two, 1)
  expect(items).toHaveLength(1)
  expect(items[0]).toMatchObject({
    messageId: sent.messageId,
    from: [one.address],
    subject: 'Hello',
    extractedText: 'Neighbour.',
    labels: ['received', 'unread'],
  })
  expect(items[0].threadId).not.toBe(sent.threadId)
  await untilStatus(one, sent.messageId, 'sent')
  const reply = (await two.post(`${messagePath(sent.messageId)}/reply`, { text: 'Hello back.' }))
    .body
  const back = (await waitForMessages(one, 2)).find(
    (message) => message.messageId === reply.messageId,
  )
  expect(back.threadId).toBe(sent.threadId)
  const lost = await sendMail(one, { to: ['nobody@mail.test'] })
  expect((await untilStatus(one, lost.messageId, 'failed')).deliveryError).toContain(
    'No such inbox',
  )
  expect(sink.mails.some((mail) => mail.email.messageId === sent.messageId)).toBe(false)
})

test('while a remote mail host hangs, recipients on this service get a message at once, and only once', async () => {
  const [writer, inbox] = [await service.newAgent(), await service.newAgent()]
  const { promise, resolve: release } = Promise.withResolvers<null>()
  let transactions = 0
  sink.refuseData = () => {
    transactions++
    return promise
  }
  try {
    const { messageId } = await sendMail(writer, {
      to: [inbox.address, 'nobody@mail.test', 'ada@example.com'],
    })
    expect((await waitForMessages(inbox, 1))[0].messageId).toBe(messageId)
    await untilStatus(writer, messageId, 'failed')
    await waitFor('the smarthost to have the message', () => transactions > 0)
    release(null)
    await sunkAt(sink, messageId)
    await waitFor('the end of the sending', async () => {
      const { rows } = await service.database.pool.query(
        `select o.state, o.attempt from outbound_mails o join messages m on m.row = o.message_row
         where m.message_id = $1 and m.direction = 'sent'`,
        [messageId],
      )
      expect(rows[0].attempt).toBe(1)
      return rows[0].state === 'done'
    })
    const { deliveryError } = await untilStatus(writer, messageId, 'failed')
    expect(deliveryError).toBe('nobody@mail.test: 550 5.1.1 No such inbox')
    expect(transactions).toBe(1)
    expect(await eventsOf(service.database.pool, writer.project.id)).toEqual(['message.failed'])
  } finally {
    release(null)
  }
})

test('an outbound mail counts as finished if its last deferred recipient bounces', async () => {
  const agent = await service.newAgent()
  sink.refuseRecipient = () => ({ code: 451, message: 'greylisted' })
  const { messageId } = await sendMail(agent)
  await untilStatus(agent, messageId, 'deferred')
  await service.database.pool.query(
    `update outbound_recipients r set state = 'bounced' from messages m
     where m.row = r.message_row and m.message_id = $1`,
    [messageId],
  )
  await hurry(service, messageId)
  await waitFor('the end of the sending', async () => {
    const { rows } = await service.database.pool.query(
      `select o.state from outbound_mails o join messages m on m.row = o.message_row
       where m.message_id = $1`,
      [messageId],
    )
    return rows[0].state === 'done'
  })
})

test('no field of a send request can add a recipient or a header by injection', async () => {
  const agent = await service.newAgent()
  const base = { to: ['a@example.com'], subject: 's', text: 't' }
  const many = (count: number) => Array.from({ length: count }, (_, n) => `a${n}@example.com`)
  const bad: [object, string][] = [
    [{ to: ['a@example.com\r\nBcc: v@example.org'] }, 'to[0]'],
    [{ to: ['a@example.com, b@example.com'] }, 'to[0]'],
    [{ to: ['"v@example.org x"@example.com'] }, 'to[0]'],
    [{ to: ['Ada <a@example.com>, b@example.com'] }, 'to[0]'],
    [{ to: ['group:a@example.com;'] }, 'to[0]'],
    [{ to: ['a@example.com(comment)'] }, 'to[0]'],
    [{ cc: ['ok@example.com', 'a b@example.com'] }, 'cc[1]'],
    [{ bcc: ['@example.com'] }, 'bcc[0]'],
    [{ subject: 'a\r\nBcc: v@example.org' }, 'subject'],
    [{ subject: 'a\nb' }, 'subject'],
    [{ subject: 'a\rb' }, 'subject'],
    [{ to: [] }, 'to must be an array of 1 to 50 items'],
    [{ to: many(51) }, 'to must be an array of 1 to 50 items'],
    [{ cc: many(50) }, 'to, cc and bcc must name at most 50 recipients'],
    [{ subject: 'x'.repeat(999) }, 'subject must be one line of at most 998 characters'],
  ]
  for (const [body, message] of bad) {
    const answer = await agent.post('/v0/messages/send', { ...base, ...body })
    const right = answer.status === 400 && answer.body.message.startsWith(message)
    expect([JSON.stringify(body), answer.body, right]).toEqual([
      JSON.stringify(body),
      answer.body,
      true,
    ])
  }
  await service.deliver({
    from: 'ada@example.com',
    to: agent.address,
    subject: 'x',
    text: 'x',
    messageId: '<inject@example.com>',
  })
  await waitForMessages(agent, 1)
  await service.database.pool.query(
    `update messages set subject = E'x\\r\\nBcc: v@example.org' where message_id = '<inject@example.com>'`,
  )
  const { body } = await agent.post(`${messagePath('<inject@example.com>')}/reply`, {
    text: 'x\r\rfoo\n.\nbar',
  })
  const { raw, to } = await sunkAt(sink, body.messageId)
  expect(to).toEqual(['ada@example.com'])
  expect(raw.split('\r\n\r\n')[0]).not.toMatch(/^bcc/im)
})

test('a reply to a message without a sender is refused', async () => {
  const agent = await service.newAgent()
  await service.deliver({
    envelope: { from: '', to: agent.address },
    raw: 'Subject: x\r\nMessage-ID: <none@x.test>\r\n\r\nx',
  })
  await waitForMessages(agent, 1)
  const { status, body } = await agent.post(`${messagePath('<none@x.test>')}/reply`, { text: 'x' })
  expect([status, body.message]).toEqual([400, 'The message has no sender that can be replied to'])
})

test('a project’s mail to the postmaster address reaches the inbox from the operator’s setting, like mail from outside', async () => {
  await using own = await startTestService({ smtp: false, env: { POSTMASTER: 'ops@mail.test' } })
  const agent = await own.newAgent()
  const early = await sendMail(agent, { to: ['postmaster@mail.test'] })
  const { deliveryError } = await untilStatus(agent, early.messageId, 'failed')
  expect(deliveryError).toBe('postmaster@mail.test: 550 5.1.1 No such inbox')
  const ops = await own.newAgent({ emailName: 'ops' })
  const to = ['Postmaster@MAIL.test', 'dmarc@mail.test']
  const { messageId } = await sendMail(agent, { to })
  await untilStatus(agent, messageId, 'sent')
  await waitForMessages(ops, 1)
  const postmaster = await own.newAgent({ emailName: 'postmaster' })
  await sendMail(agent, { to: ['postmaster@mail.test'] })
  await waitForMessages(postmaster, 1)
  expect((await ops.get('/v0/messages')).body.count).toBe(1)
})

test('the job of a mail that was deleted ends without an error', async () => {
  const { pool } = service.database
  const { rows } = await pool.query(
    `select id from graphile_worker.add_job('send_mail', '{"messageRow": "999999999"}')`,
  )
  await waitFor('the end of the job', async () => {
    const found = await pool.query('select last_error from graphile_worker.jobs where id = $1', [
      rows[0].id,
    ])
    expect(found.rows[0]?.last_error ?? null).toBeNull()
    return found.rows.length === 0
  })
})
