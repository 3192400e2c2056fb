/** Tests that the approval page shows the files of a mail as the recipients get them. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { calendarFile } from '../../../support/mail/calendar/invitations.ts'
import {
  approvalLink,
  decideByLink,
  heldAgent,
  readApprovalPages,
  requestOf,
} from '../../../support/mail/held.ts'
import { sendMail, untilStatus } from '../../../support/mail/outbound.ts'
import { type Sink, startSink } from '../../../support/mail/sink.ts'
import { type Agent, startTestService, type TestService } from '../../../support/service.ts'
import { waitFor } from '../../../support/waitFor.ts'

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

const base64 = (content: string | Buffer) => Buffer.from(content).toString('base64')
const NAMED = `=?utf-8?B?${base64('invite.ics')}?=`

async function held(file: { filename: string; contentType?: string; content: string | Buffer }) {
  const subject = `About ${file.filename} ${file.contentType}`
  const { filename, contentType = 'application/octet-stream', content } = file
  const attachments = [{ filename, contentType, content: base64(content) }]
  const mail = { to: ['ada@example.com'], subject, text: 'x', attachments }
  const { messageId } = await sendMail(agent, mail)
  const { approvalId, sha256 } = await requestOf(service, agent, messageId)
  const link = await approvalLink(service, sink, approvalId)
  const { pages, seen } = await readApprovalPages(link)
  return { messageId, sha256, link, html: pages.join(''), seen, subject }
}

test('the recipient of a mail gets each file name that the approval page shows', async () => {
  for (const filename of [NAMED, '=?utf-8?Q?a b?= c', 'Übersicht 日本.pdf', 'a "b" =? c']) {
    const { messageId, sha256, link, html, seen, subject } = await held({ filename, content: 'x' })
    await decideByLink(link, { decision: 'approve', sha256, seen })
    await untilStatus(agent, messageId, 'sent')
    const mail = await waitFor(`the mail ${subject}`, () =>
      sink.mails.find(({ email }) => email.subject === subject),
    )
    const [file] = mail.email.attachments
    expect(file!.filename).toBe(filename.replaceAll('=?', '= ?'))
    expect(html).toContain(`${file!.filename!.replaceAll('"', '&quot;')} – application/`)
  }
})

test.each([NAMED, 'a.txt', 'b.bin', 'c'])(
  'the approval page shows the text of a calendar file with the name %s',
  async (filename) => {
    for (const before of ['', '\ufeff', '\r\n ']) {
      const content = before + calendarFile({ lines: ['SUMMARY:Pay mallory'] })
      expect((await held({ filename, content })).html).toContain('SUMMARY:Pay mallory')
    }
  },
)

test('the owner cannot approve a calendar file in an encoding that the approval page cannot decode', async () => {
  const file = calendarFile({ lines: ['SUMMARY:+AFAAYQB5-'] })
  const latin = Buffer.from(calendarFile({ lines: ['SUMMARY:Büro'] }), 'latin1')
  const reason = 'the mail has a calendar file that is not in UTF-8'
  for (const [contentType, content] of [
    ['text/calendar; charset=utf-7', file],
    ['text/calendar; charset="UTF-7"; method=REQUEST', file],
    ["text/calendar; charset*=utf-8''utf-7", file],
    ['text/calendar', latin],
    ['text/plain', Buffer.from(file, 'utf16le')],
  ] as const) {
    const { html } = await held({ filename: 'a.ics', contentType, content })
    expect([contentType, html.includes(reason)]).toEqual([contentType, true])
    expect(html).not.toContain('value="approve"')
  }
  for (const contentType of ['text/calendar', 'text/calendar; charset=UTF-8', 'application/ics'])
    expect((await held({ filename: 'b.ics', contentType, content: file })).html).toContain(
      'value="approve"',
    )
})
