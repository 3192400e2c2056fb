import { afterAll, beforeAll, expect, test } from 'bun:test'
import { deliverRaw } from '../../support/mail/smtpTalk.ts'
import {
  messagePath,
  startTestService,
  type TestService,
  waitForMessages,
} from '../../support/service.ts'
import { waitFor } from '../../support/waitFor.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService()
})
afterAll(() => service[Symbol.asyncDispose]())

const raw = (to: string, headers: string, body = 'Hello.') =>
  `From: ada@example.com\nTo: ${to}\nSubject: Test\n${headers}${headers === '' ? '' : '\n'}\n${body}\n`

const deliver = (to: string, text: string | Buffer) => deliverRaw(service.smtp!.port, to, text)

test('an agent reads over REST a message that arrived by SMTP', async () => {
  const agent = await service.newAgent()
  await service.deliver({
    from: 'Ada <ada@example.com>',
    to: agent.address,
    cc: 'carl@example.com',
    subject: 'Grüße aus Köln',
    text: 'Yes, please.\n\nOn Mon, Jan 5, 2026 at 9:30 AM Agent <a@mail.test> wrote:\n> Shall I order?\n',
    messageId: '<one@example.com>',
    attachments: [{ filename: 'ä.txt', content: 'hello' }],
  })
  const [item] = await waitForMessages(agent, 1)
  expect(item).toEqual({
    messageId: '<one@example.com>',
    threadId: expect.stringMatching(/^thd_[0-9a-f]{24}$/),
    from: ['ada@example.com'],
    to: [agent.address],
    subject: 'Grüße aus Köln',
    text: 'Yes, please.\n\nOn Mon, Jan 5, 2026 at 9:30 AM Agent <a@mail.test> wrote:\n> Shall I order?\n\n',
    extractedText: 'Yes, please.',
    labels: ['received', 'unread'],
    createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
  })
  const { status, body } = await agent.get(messagePath('<one@example.com>'))
  expect(status).toBe(200)
  expect(body).toEqual({
    codes: [],
    links: [],
    ...item,
    inboxId: agent.address,
    cc: ['carl@example.com'],
    authentication: {
      ...{ spf: 'pass', dkim: 'none', dmarc: 'none', arc: 'none' },
      ...{ internal: false, aligned: true },
    },
    attachments: [
      {
        attachmentId: 'att_1',
        filename: 'ä.txt',
        contentType: 'text/plain',
        size: 5,
        contentId: null,
        disposition: 'attachment',
        text: {
          state: expect.stringMatching(/^(pending|ready)$/),
          chars: expect.any(Number),
          omitted: [],
        },
      },
    ],
  })
})

test('a message that has only HTML gets a plain text from the service, and the field extractedText omits the quoted text', async () => {
  const agent = await service.newAgent()
  await service.deliver({
    from: 'ada@example.com',
    to: agent.address,
    subject: 'Html',
    html: '<p>Fine <b>with me</b>.</p><div class="gmail_quote">On Monday Agent wrote:<blockquote>Old text</blockquote></div>',
  })
  const [item] = await waitForMessages(agent, 1)
  expect(item.text).toContain('Fine with me.')
  expect(item.text).toContain('Old text')
  expect(item.extractedText).toBe('Fine with me.')
})

test('8-bit text is decoded with the charset that the mail declares', async () => {
  const agent = await service.newAgent()
  const head = raw(
    agent.address,
    'Content-Type: text/plain; charset=iso-8859-1\nContent-Transfer-Encoding: 8bit',
    '@',
  )
  await deliver(agent.address, Buffer.from(head.replace('@\n', 'Caf\u00e9\n'), 'latin1'))
  const [item] = await waitForMessages(agent, 1)
  expect(item.text.trim()).toBe('Café')
})

test('if the same mail is received twice, the inbox shows it once, even if the second copy came by another route', async () => {
  const agent = await service.newAgent()
  const text = raw(agent.address, 'Message-ID: <twice@example.com>')
  await deliver(agent.address, `Received: from a by b; Mon, 5 Jan 2026 09:30:00 +0000\n${text}`)
  await deliver(
    agent.address,
    `Received: from c by d;\n Mon, 5 Jan 2026 09:31:00 +0000\nReturn-Path: <x@y.z>\n${text}`,
  )
  await deliver(agent.address, raw(agent.address, 'Message-ID: <after@example.com>'))
  const items = await waitForMessages(agent, 2)
  expect(items.map((item) => item.messageId).sort()).toEqual([
    '<after@example.com>',
    '<twice@example.com>',
  ])
  await waitFor('three inbound mails to end', async () => {
    const { rows } = await service.database.pool.query(
      `select state from inbound_mails where project_id = $1 and state <> 'accepted' order by id`,
      [agent.project.id],
    )
    return (
      rows.length === 3 &&
      rows
        .map((row) => row.state)
        .sort()
        .join() === 'retransmission,stored,stored'
    )
  })
})

test('a different message with the same Message-ID gets its own id in the same thread', async () => {
  const agent = await service.newAgent()
  for (const body of ['First.', 'Second.', 'Third.']) {
    await deliver(agent.address, raw(agent.address, 'Message-ID: <same@example.com>', body))
  }
  const items = await waitForMessages(agent, 3)
  expect(items.map((item) => item.messageId).sort()).toEqual([
    '<same.1@example.com>',
    '<same.2@example.com>',
    '<same@example.com>',
  ])
  expect(new Set(items.map((item) => item.text)).size).toBe(3)
  expect(new Set(items.map((item) => item.threadId)).size).toBe(1)
  const { body } = await agent.get(messagePath('<same.1@example.com>'))
  expect(body.messageId).toBe('<same.1@example.com>')
})

test('two inboxes can each have a different message with the same Message-ID', async () => {
  const [one, two] = [await service.newAgent(), await service.newAgent()]
  await service.deliver({
    from: 'ada@example.com',
    to: [one.address, two.address],
    subject: 'Both',
    text: 'Hi.',
    messageId: '<both@example.com>',
  })
  const [first] = await waitForMessages(one, 1)
  const [second] = await waitForMessages(two, 1)
  expect(first.messageId).toBe('<both@example.com>')
  expect(second.messageId).toBe('<both@example.com>')
  expect(first.threadId).not.toBe(second.threadId)
  await one.patch(messagePath('<both@example.com>'), { addLabels: ['mine'] })
  expect((await two.get(messagePath('<both@example.com>'))).body.labels).toEqual([
    'received',
    'unread',
  ])
})

test('a mail with a missing or malformed Message-ID gets an id derived from its bytes, and a retransmission gets the same id', async () => {
  const agent = await service.newAgent()
  await deliver(agent.address, raw(agent.address, '', 'No id.'))
  await deliver(agent.address, raw(agent.address, '', 'No id.'))
  await deliver(agent.address, raw(agent.address, 'Message-ID: nonsense', 'Bad id.'))
  const items = await waitForMessages(agent, 2)
  expect(items).toHaveLength(2)
  for (const item of items) expect(item.messageId).toMatch(/^<[0-9a-f]{32}@mail\.test>$/)
})

test('a mail that cannot be parsed is stored, shown and labelled, and does not delay other mails', async () => {
  const agent = await service.newAgent()
  const parts = Array.from(
    { length: 150 },
    (_, n) => `Content-Type: multipart/mixed; boundary="b${n}"\n\n--b${n}\n`,
  ).join('')
  await deliver(
    agent.address,
    `From: ada@example.com\nSubject: Too deep\nMIME-Version: 1.0\n${parts}\nend\n`,
  )
  await deliver(agent.address, raw(agent.address, 'Message-ID: <next@example.com>'))
  const items = await waitForMessages(agent, 2)
  const broken = items.find((item) => item.messageId !== '<next@example.com>')
  expect(broken.labels).toEqual(['received', 'unread', 'unparseable'])
  expect(broken.subject).toBe('Too deep')
  expect(broken.text).toContain('boundary="b0"')
})

test('line breaks in an encoded subject become spaces wherever the subject is shown', async () => {
  const agent = await service.newAgent()
  const encoded = Buffer.from('Hi\r\nBcc: victim@example.com\n\u2028x').toString('base64')
  await deliver(
    agent.address,
    `From: ada@example.com\nSubject: =?utf-8?B?${encoded}?=\nMessage-ID: <lines@x.test>\n\nHello\n`,
  )
  const [item] = await waitForMessages(agent, 1)
  const flat = 'Hi Bcc: victim@example.com x'
  expect(item.subject).toBe(flat)
  const thread = (await agent.get(`/v0/threads/${item.threadId}`)).body
  expect(thread.subject).toBe(flat)
  const { rows } = await service.database.pool.query(
    `select data->>'subject' as subject from events where project_id = $1`,
    [agent.project.id],
  )
  expect(rows).toEqual([{ subject: flat }])
  const reply = await agent.post(`${messagePath('<lines@x.test>')}/reply`, { text: 'x' })
  expect(reply.body.subject).toBe(`Re: ${flat}`)
})

test('the service removes U+0000 from the subject, body, names and headers of a mail', async () => {
  const agent = await service.newAgent()
  const text = [
    'From: =?utf-8?B?QQBC?= <ada@example.com>',
    `To: ${agent.address}`,
    'Subject: =?utf-8?Q?a=00b?=',
    'Message-ID: <nul@example.com>',
    'MIME-Version: 1.0',
    'Content-Type: multipart/mixed; boundary=x',
    '',
    '--x',
    'Content-Type: text/plain; charset=utf-8',
    'Content-Transfer-Encoding: base64',
    '',
    Buffer.from('body\0text').toString('base64'),
    '--x',
    'Content-Type: text/plain; name="=?utf-8?Q?f=00g.txt?="',
    'Content-Disposition: attachment',
    '',
    'x',
    '--x--',
    '',
  ].join('\n')
  await deliver(agent.address, text)
  const [item] = await waitForMessages(agent, 1)
  expect(item.subject).toBe('a\ufffdb')
  expect(item.text).toContain('body\ufffdtext')
  expect(item.labels).toEqual(['received', 'unread'])
  const { body } = await agent.get(messagePath('<nul@example.com>'))
  expect(body.attachments[0].filename).not.toContain('\0')
})

test('an address in upper case or with a +tag finds the inbox', async () => {
  const agent = await service.newAgent({ emailName: 'tagged' })
  await deliver('TAGGED+News@Mail.Test', raw('x@y.z', 'Message-ID: <tag@example.com>'))
  const [item] = await waitForMessages(agent, 1)
  expect(item.messageId).toBe('<tag@example.com>')
})
