import { afterAll, beforeAll, expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { deliverRaw } from '../../../support/mail/smtpTalk.ts'
import { expireAll } from '../../../support/retention.ts'
import {
  type Agent,
  messagePath,
  startTestService,
  type TestService,
  waitForMessages,
} from '../../../support/service.ts'
import { waitFor } from '../../../support/waitFor.ts'

let service: TestService
let agent: Agent
beforeAll(async () => {
  service = await startTestService()
  agent = await service.newAgent()
})
afterAll(() => service[Symbol.asyncDispose]())

const download = (path: string, who: Agent = agent) =>
  fetch(service.url + path, { headers: { authorization: `Bearer ${who.key}` } })

test('attachments are served byte for byte, as downloads that a browser does not execute', async () => {
  const image = randomBytes(300_000)
  await service.deliver({
    from: 'ada@example.com',
    to: agent.address,
    subject: 'Files',
    text: 'See the files.',
    messageId: '<files@example.com>',
    attachments: [
      { filename: 'Übersicht "neu"; x=.png', content: image, contentType: 'image/png', cid: 'c1' },
      { filename: 'page.html', content: '<script>1</script>', contentType: 'text/html' },
      { filename: 'empty.bin', content: Buffer.alloc(0) },
    ],
  })
  await waitForMessages(agent, 1)
  const path = messagePath('<files@example.com>')
  const { attachments } = (await agent.get(path)).body
  expect(attachments.map((one: any) => [one.filename, one.size])).toEqual([
    ['Übersicht "neu"; x=.png', 300_000],
    ['page.html', 18],
    ['empty.bin', 0],
  ])
  const answers = await Promise.all(
    attachments.map((one: any) => download(`${path}/attachments/${one.attachmentId}`)),
  )
  const [first, second, third] = answers as [Response, Response, Response]
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200])
  expect(Buffer.from(await first.arrayBuffer()).equals(image)).toBe(true)
  expect(first.headers.get('content-type')).toBe('image/png')
  expect(first.headers.get('content-disposition')).toBe(
    `attachment; filename="_bersicht _neu_; x=.png"; filename*=UTF-8''%C3%9Cbersicht%20%22neu%22%3B%20x%3D.png`,
  )
  for (const answer of answers) {
    expect(answer.headers.get('x-content-type-options')).toBe('nosniff')
    expect(answer.headers.get('content-security-policy')).toBe("default-src 'none'; sandbox")
    expect(answer.headers.get('cache-control')).toBe('no-store')
  }
  expect(await second.text()).toBe('<script>1</script>')
  expect((await third.arrayBuffer()).byteLength).toBe(0)
})

test('a hostile media type or file name of an attachment does not break the response headers', async () => {
  const who = await service.newAgent()
  await deliverRaw(
    service.smtp!.port,
    who.address,
    'Message-ID: <evil@example.com>\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n' +
      '--b\nContent-Type: text/plain\n\nhi\n--b\n' +
      'Content-Type: text/html;x\u0001y/z\nContent-Disposition: attachment;\n' +
      " filename*=utf-8''a%0D%0ASet-Cookie%3A%20x%3D1.html\n\n<b>\n--b--\n",
  )
  await waitForMessages(who, 1)
  const path = messagePath('<evil@example.com>')
  const [one] = (await who.get(path)).body.attachments
  const answer = await download(`${path}/attachments/${one.attachmentId}`, who)
  expect(answer.status).toBe(200)
  expect(answer.headers.get('set-cookie')).toBeNull()
  expect(answer.headers.get('content-disposition')).toStartWith('attachment; ')
})

test('the original of a received message is returned byte for byte', async () => {
  const raw =
    'From: x@example.com\r\nMessage-ID: <raw@example.com>\r\nX-Odd:  two  spaces \r\n\r\nBody\tü'
  await deliverRaw(service.smtp!.port, agent.address, raw)
  await waitFor(
    'the message',
    async () => (await agent.get(messagePath('<raw@example.com>'))).status === 200,
  )
  const answer = await download(`${messagePath('<raw@example.com>')}/raw`)
  expect(answer.headers.get('content-type')).toBe('message/rfc822')
  expect(await answer.text()).toEndWith(`${raw}\r\n`)
})

test('the original of a sent message has exactly the sent bytes', async () => {
  const { body } = await agent.post('/v0/messages/send', {
    to: ['a@example.com'],
    subject: 'Out',
    text: 'Hello',
  })
  const path = messagePath(body.messageId)
  await waitFor(
    'the first attempt',
    async () => (await agent.get(path)).body.deliveryStatus === 'sent',
  )
  const text = await (await download(`${path}/raw`)).text()
  expect(text).toContain(`Message-ID: ${body.messageId}`)
  expect(text).toContain('Subject: Out')
})

test('if the stored original of a message has expired, a request for it gets status 410, and the message itself remains', async () => {
  const { body } = await agent.post('/v0/messages/send', {
    to: ['a@example.com'],
    subject: 'Out',
    text: 'Hello',
  })
  const sent = messagePath(body.messageId)
  await waitFor(
    'the first attempt',
    async () => (await agent.get(sent)).body.deliveryStatus === 'sent',
  )
  await deliverRaw(service.smtp!.port, agent.address, 'Message-ID: <old@example.com>\r\n\r\nBody')
  const received = messagePath('<old@example.com>')
  await waitFor('the message', async () => (await agent.get(received)).status === 200)
  const retained = await service.platform.patch(`/v0/platform/projects/${agent.project.id}`, {
    retention: { rawMail: 1 },
  })
  expect(retained.status).toBe(200)
  await service.database.pool.query(
    `update messages set created_at = created_at - interval '25 hours'`,
  )
  await service.database.pool.query(
    `update outbound_mails set accepted_at = accepted_at - interval '25 hours'`,
  )
  await expireAll(service.database.pool)
  for (const path of [sent, received]) {
    expect((await agent.get(path)).status).toBe(200)
    expect((await agent.get(`${path}/raw`)).body).toEqual({
      error: 'expired',
      message: 'The original of this message is no longer kept',
      status: 410,
    })
  }
})

test('a client that requests an unknown message or attachment, or a message of another project, gets status 404', async () => {
  const stranger = await service.newAgent()
  const path = messagePath('<files@example.com>')
  for (const [who, suffix, message] of [
    [agent, '/attachments/att_9', 'Attachment not found'],
    [agent, '/attachments/..%2Fraw', 'Attachment not found'],
    [stranger, '/attachments/att_1', 'Message not found'],
    [stranger, '/raw', 'Message not found'],
  ] as const) {
    const answer = await download(path + suffix, who)
    expect([suffix, answer.status, ((await answer.json()) as any).message]).toEqual([
      suffix,
      404,
      message,
    ])
  }
})
