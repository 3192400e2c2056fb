import { afterAll, beforeAll, expect, test } from 'bun:test'
import { sendMail, sunkAt } from '../../../support/mail/outbound.ts'
import { type Sink, startSink } from '../../../support/mail/sink.ts'
import { startTestService, type TestService } from '../../../support/service.ts'

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

test('recipients keep their display names in the To header, but the API response contains only the addresses', async () => {
  const agent = await service.newAgent()
  const sent = await sendMail(agent, {
    to: [
      'Jane Doe <jane@example.net>',
      '"Roe, \\"Rick\\"" <rick@example.net>',
      'plain@example.net',
    ],
    cc: [' Jürgen Ü <juergen@exämple.net> '],
    bcc: ['Secret <secret@example.net>'],
  })
  expect(sent.to).toEqual(['jane@example.net', 'rick@example.net', 'plain@example.net'])
  const { email, raw } = await sunkAt(sink, sent.messageId)
  expect(email.to).toEqual([
    { name: 'Jane Doe', address: 'jane@example.net' },
    { name: 'Roe, "Rick"', address: 'rick@example.net' },
    { name: '', address: 'plain@example.net' },
  ])
  expect(email.cc).toEqual([{ name: 'Jürgen Ü', address: 'juergen@xn--exmple-cua.net' }])
  expect(raw).not.toInclude('Secret')
})

test('a recipient is refused if the text is not exactly one mailbox, or if its display name would add a header', async () => {
  const agent = await service.newAgent()
  for (const to of [
    'a@example.com, b@example.com',
    'A <a@example.com>, B <b@example.com>',
    'A <a@example.com> <b@example.com>',
    'A\r\nBcc: v@example.com <a@example.com>',
    '"A\nB" <a@example.com>',
    'b@example.com <a@example.com>',
    'Group: a@example.com;',
    'A (comment) <a@example.com>',
    '"open <a@example.com>',
    'A \u202e <a@example.com>',
    `${'x'.repeat(201)} <a@example.com>`,
    'A <a@example.com',
    '<>',
  ]) {
    const { status, body } = await agent.post('/v0/messages/send', {
      to: [to],
      subject: 's',
      text: 't',
    })
    expect([to, status, body.message]).toEqual([
      to,
      400,
      'to[0] must be one email address, such as ada@example.com or Ada <ada@example.com>',
    ])
  }
})

test('the From header of a mail shows the display name of the sending project', async () => {
  const agent = await service.newAgent()
  const path = `/v0/platform/projects/${agent.project.id}`
  const fromOf = async () => (await sunkAt(sink, (await sendMail(agent)).messageId)).email.from
  const { address } = agent
  expect(await fromOf()).toEqual({ name: `Agent ${address}`, address })
  const changed = await service.platform.patch(path, { displayName: 'Ada’s Shop' })
  expect(changed.body).toMatchObject({ name: `Agent ${address}`, displayName: 'Ada’s Shop' })
  expect(await fromOf()).toEqual({ name: 'Ada’s Shop', address })
  expect((await agent.get('/v0/whoami')).body.displayName).toBe('Ada’s Shop')
  await service.platform.patch(path, { displayName: null })
  expect(await fromOf()).toEqual({ name: `Agent ${address}`, address })
  expect((await service.platform.patch(path, { displayName: 'a\nb' })).status).toBe(400)
})
