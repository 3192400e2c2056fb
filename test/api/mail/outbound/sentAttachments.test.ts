import { afterAll, beforeAll, expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import PostalMime from 'postal-mime'
import { testWhole } from '../../../support/database/extent.ts'
import { sunkAt } from '../../../support/mail/outbound.ts'
import { type Sink, startSink } from '../../../support/mail/sink.ts'
import { callTool, connectMcp } from '../../../support/mcp.ts'
import {
  type Agent,
  messagePath,
  startTestService,
  type TestService,
  waitForMessages,
} from '../../../support/service.ts'
import '../../../support/long.ts'

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

const MAIL = { to: ['ada@example.com'], subject: 'Files', text: 'See there.' }
const PIXEL = 'R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7'
const file = (content: Buffer | string, more: object = {}) => ({
  filename: 'a.bin',
  contentType: 'application/octet-stream',
  content: Buffer.from(content).toString('base64'),
  ...more,
})
const bytesOf = async (agent: Agent, messageId: string, attachmentId: string) => {
  const response = await fetch(
    `${service.url}${messagePath(messageId)}/attachments/${attachmentId}`,
    { headers: { authorization: `Bearer ${agent.key}` } },
  )
  return {
    type: response.headers.get('content-type'),
    bytes: Buffer.from(await response.arrayBuffer()),
  }
}

test('attachments of a mail are sent byte for byte, and the API lists them when it returns the mail', async () => {
  const agent = await service.newAgent()
  const data = randomBytes(300_000)
  const { status, body } = await agent.post('/v0/messages/send', {
    ...MAIL,
    html: '<p>See <img src="cid:pixel"></p>',
    attachments: [
      file(data, { filename: 'Übersicht "März".pdf', contentType: 'application/pdf; v=1' }),
      { filename: 'p.gif', contentType: 'image/gif', content: PIXEL, contentId: '<pixel>' },
      file('', { filename: 'empty.txt', contentType: 'text/plain' }),
    ],
  })
  expect(status).toBe(201)
  const described = (await agent.get(messagePath(body.messageId))).body.attachments
  expect(described).toEqual([
    {
      attachmentId: 'att_1',
      filename: 'Übersicht "März".pdf',
      contentType: 'application/pdf; v=1',
      size: data.length,
      contentId: null,
      disposition: 'attachment',
    },
    {
      attachmentId: 'att_2',
      filename: 'p.gif',
      contentType: 'image/gif',
      size: 42,
      contentId: '<pixel>',
      disposition: 'inline',
    },
    expect.objectContaining({ attachmentId: 'att_3', size: 0 }),
  ])
  const stored = await bytesOf(agent, body.messageId, 'att_1')
  expect(stored.bytes.equals(data)).toBe(true)
  const { email, raw } = await sunkAt(sink, body.messageId)
  expect(raw.replace(/\r\n/g, '')).not.toMatch(/[\r\n]/)
  expect(raw).toContain('multipart/related')
  const [pdf, pixel, empty] = ['Übersicht "März".pdf', 'p.gif', 'empty.txt'].map(
    (name) => email.attachments.find(({ filename }) => filename === name)!,
  )
  expect(Buffer.from(pdf!.content as ArrayBuffer).equals(data)).toBe(true)
  expect(pdf!.disposition).toBe('attachment')
  expect([pixel!.contentId, pixel!.disposition, pixel!.mimeType]).toEqual([
    '<pixel>',
    'inline',
    'image/gif',
  ])
  expect(Buffer.from(pixel!.content as ArrayBuffer).toString('base64')).toBe(PIXEL)
  expect(Buffer.from(empty!.content as ArrayBuffer)).toHaveLength(0)
  expect(email.text?.trim()).toBe('See there.')
})

test('a reply delivers its attachments to another local inbox, and search finds the names of the attachments', async () => {
  const [one, two] = [await service.newAgent(), await service.newAgent()]
  await one.post('/v0/messages/send', { ...MAIL, to: [two.address] })
  const [received] = await waitForMessages(two, 1)
  const { body: reply } = await two.post(`${messagePath(received.messageId)}/reply`, {
    text: 'x',
    attachments: [file('hello', { filename: 'Quittung-77.txt', contentType: 'text/plain' })],
  })
  await waitForMessages(one, 2)
  for (const agent of [one, two]) {
    const { attachments } = (await agent.get(messagePath(reply.messageId))).body
    expect(attachments).toMatchObject([{ filename: 'Quittung-77.txt', size: 5 }])
    const { bytes } = await bytesOf(agent, reply.messageId, attachments[0].attachmentId)
    expect(bytes.toString()).toBe('hello')
    const found = (await agent.get('/v0/messages?q=quittung')).body.messages
    expect(found.map((message: any) => message.messageId)).toEqual([reply.messageId])
  }
})

test('a message that is attached to a mail is sent as message/rfc822, or as plain bytes if its format is invalid', async () => {
  const agent = await service.newAgent()
  const plain = 'Subject: inner\r\nMessage-ID: <inner@example.com>\r\n\r\nHello\r\n'
  const rough = 'Subject: inner\n\nGrüße\n'
  const { body } = await agent.post('/v0/messages/send', {
    ...MAIL,
    attachments: [
      file(plain, { filename: 'plain.eml', contentType: 'message/rfc822' }),
      file(rough, { filename: 'rough.eml', contentType: 'message/rfc822' }),
    ],
  })
  const { raw } = await sunkAt(sink, body.messageId)
  const email = await PostalMime.parse(Buffer.from(raw, 'latin1'), { forceRfc822Attachments: true })
  expect(email.attachments.map(({ filename, mimeType }) => [filename, mimeType])).toEqual([
    ['plain.eml', 'message/rfc822'],
    ['rough.eml', 'application/octet-stream'],
  ])
  expect(raw).toContain(`\r\n\r\n${plain}`)
  expect(Buffer.from(email.attachments[1]!.content as ArrayBuffer).toString()).toBe(rough)
})

test('a send request with an invalid attachment gets status 400 and a message that names the attachment', async () => {
  const agent = await service.newAgent()
  const good = file('x')
  const cases: [unknown, string][] = [
    [Array(51).fill(good), 'attachments must be an array of at most 50 items'],
    [[{ ...good, filename: '' }], 'attachments[0].filename must be 1 to 255 characters'],
    [
      [{ ...good, filename: 'x'.repeat(256) }],
      'attachments[0].filename must be 1 to 255 characters',
    ],
    [
      [{ ...good, filename: 'a\r\nBcc: v@example.org' }],
      'attachments[0].filename must be 1 to 255',
    ],
    [[{ filename: 'a', content: '' }], 'attachments[0].contentType must be a string'],
    [[good, { ...good, contentType: 'pdf' }], 'attachments[1].contentType must be a media type'],
    [[{ ...good, contentType: 'a/b\r\nX: y' }], 'attachments[0].contentType must be a media type'],
    [
      [{ ...good, contentType: 'multipart/mixed' }],
      'attachments[0].contentType must be a media type',
    ],
    [[{ ...good, content: 'not base64' }], 'attachments[0].content must be base64'],
    [[{ ...good, contentId: 'a b' }], 'attachments[0].contentId must be 1 to 255 visible'],
    [
      [
        { ...good, contentId: 'a' },
        { ...good, contentId: '<a>' },
      ],
      'attachments[1].contentId must differ',
    ],
    [
      Array(3).fill(file(Buffer.alloc(8_800_000))),
      'attachments must be at most 26214400 bytes together',
    ],
  ]
  for (const [attachments, message] of cases) {
    const answer = await agent.post('/v0/messages/send', { ...MAIL, attachments })
    expect([answer.status, String(answer.body.message).slice(0, message.length)]).toEqual([
      400,
      message,
    ])
  }
  expect((await agent.get('/v0/messages')).body.count).toBe(0)
})

testWhole(
  'only attachments may make a send request exceed the default body limit, so a mail of the maximum size is sent',
  async () => {
    const agent = await service.newAgent()
    const content = randomBytes(25 * 1024 * 1024)
    const sent = await agent.post('/v0/messages/send', { ...MAIL, attachments: [file(content)] })
    expect(sent.status).toBe(201)
    const { email } = await sunkAt(sink, sent.body.messageId)
    expect(Buffer.from(email.attachments[0]!.content as ArrayBuffer).equals(content)).toBe(true)
    const text = 'x'.repeat(2 * 1024 * 1024)
    expect((await agent.post('/v0/messages/send', { ...MAIL, text })).status).toBe(413)
    const hidden = { ...MAIL, text: `${text}x`, attachments: [] }
    expect((await agent.post('/v0/messages/send', hidden)).body.message).toBe(
      'text must be a string of at most 2097152 characters',
    )
    const over = { ...MAIL, attachments: [{ ...file(''), content: 'A'.repeat(36 * 1024 * 1024) }] }
    expect((await agent.post('/v0/messages/send', over)).status).toBe(413)
  },
)

test('a model can send attachments with the MCP tool mail.send', async () => {
  const agent = await service.newAgent()
  await using mcp = await connectMcp(service.url, agent.key)
  const content = randomBytes(3_000_000)
  const { messageId } = await callTool(mcp, 'mail.send', { ...MAIL, attachments: [file(content)] })
  const { attachments } = await callTool(mcp, 'mail.get_message', { messageId })
  expect(attachments).toMatchObject([{ filename: 'a.bin', size: content.length }])
  const { bytes } = await bytesOf(agent, messageId, attachments[0].attachmentId)
  expect(bytes.equals(content)).toBe(true)
})

test('a Content-ID without angle brackets matches the cid: reference in the HTML of the mail', async () => {
  const agent = await service.newAgent()
  const { body } = await agent.post('/v0/messages/send', {
    ...MAIL,
    html: '<img src="cid:logo">',
    attachments: [
      { filename: 'l.gif', contentType: 'image/gif', content: PIXEL, contentId: 'logo' },
    ],
  })
  const { email, raw } = await sunkAt(sink, body.messageId)
  expect(email.html).toContain('src="cid:logo"')
  expect(email.attachments[0]).toMatchObject({ contentId: '<logo>', disposition: 'inline' })
  expect(raw).toContain('multipart/related')
})
